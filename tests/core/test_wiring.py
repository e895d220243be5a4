"""The joined parts: what the end of a run does to its OLT, by the finishing steps that the product has."""

import asyncio
from dataclasses import dataclass

import pytest

from facho.core.wiring import ENGINE, open_parts, run_interactive
from facho.executions.models import Origin
from facho.executions.store import ClaimRequest
from facho.hosts.models import Olt
from facho.polling.domain.collection import Collected, CollectRequest, Failure, RunControl
from facho.polling.domain.execution_state import FailureKind
from facho.snmp_jobs.models import WorkflowNode
from factories import make_node

pytestmark = pytest.mark.django_db(transaction=True)

SILENCE = Collected(failure=Failure(FailureKind.TIMEOUT, "no answer"))
GARBAGE = Collected(failure=Failure(FailureKind.MALFORMED, "not SNMP"), was_heard=True)
GOOD = Collected(was_heard=True)


@dataclass
class Answering:
    """A collector whose OLT answers the same each time."""

    answer: Collected

    async def collect(self, request: CollectRequest, control: RunControl) -> Collected:
        return self.answer


def run_each(node: WorkflowNode, *answers: Collected) -> list[tuple[int, str]]:
    """Run the node once for each answer; return its OLT's failures and last error after each run."""

    async def run() -> list[tuple[int, str]]:
        wish = ClaimRequest(node.workflow.olt_id, "get_x", Origin.MANUAL, node.id)
        seen = []
        async with open_parts(ENGINE) as parts:
            for answer in answers:
                await run_interactive(parts, wish, Answering(answer), wait_seconds=0)
                olt = await parts.database.run(Olt.objects.get, id=wish.olt_id)
                seen.append((olt.consecutive_failures, olt.last_error))
        return seen

    return asyncio.run(run())


def test_a_success_resets_the_failures_of_its_olt_and_of_no_other() -> None:
    """S3-12, S3-14: also those of tries that the OLT answered; the next failure is the first again."""
    node, other = make_node(), make_node()
    run_each(other, SILENCE)

    seen = run_each(node, SILENCE, GARBAGE, GOOD, SILENCE)

    assert seen == [(1, "no answer"), (2, "not SNMP"), (0, ""), (1, "no answer")]
    assert Olt.objects.get(id=other.workflow.olt_id).consecutive_failures == 1
