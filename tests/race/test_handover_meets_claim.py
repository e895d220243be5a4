"""A chain passes its OLT from member to member while others try to claim it: nobody waits for ever, nobody gets in."""

import asyncio
import threading

import pytest
from django.db import connections

from facho.executions.models import Execution
from facho.executions.runner import NodeRunner, Times
from facho.infrastructure.gateway import SystemClock, ThreadGateway
from facho.polling.domain.collection import Collected, CollectRequest, RunControl
from facho.polling.domain.planning import Assignment, DueNode
from facho.snmp_jobs.due import load_due_nodes
from facho.zabbix_pollers.store import claim_assignments, release_poller, save_node_ended, save_poller_count
from factories import NOW, chain_to, make_node

pytestmark = pytest.mark.django_db(transaction=True)

MEMBERS = 60
RIVALS = 3
PAUSE_SECONDS = 0.002


class Instant:
    """A device that needs no time."""

    async def collect(self, request: CollectRequest, control: RunControl) -> Collected:
        control.check()
        return Collected({"onus": 1}, was_heard=True)


class Rival(threading.Thread):
    """A scheduler that does not know that the OLT is busy, and starts another node of it again and again."""

    def __init__(self, node: DueNode, done: threading.Event) -> None:
        super().__init__(daemon=True)
        self.won = 0
        self.error: Exception | None = None
        self._assignment = Assignment(node, poller_id=1)
        self._done = done

    def run(self) -> None:
        try:
            # SQLite's one lock is not fair: who asks without a pause would have it all the time.
            while not self._done.wait(PAUSE_SECONDS):
                self.won += len(claim_assignments([self._assignment], owner="engine/rival", now=NOW))
        except Exception as error:  # noqa: BLE001 the thread's own; the test tells it
            self.error = error
        finally:
            connections.close_all()


def run_chain(execution_id: int, token: int) -> None:
    async def run() -> None:
        database = ThreadGateway()
        times = Times(lease_seconds=60, yield_after_seconds=60)
        runner = NodeRunner(Instant(), database, SystemClock(), "engine/test", times, (save_node_ended, release_poller))
        await runner.run(execution_id, token)
        await database.close()

    asyncio.run(run())


def test_a_chain_keeps_its_olt_to_the_end_however_many_want_it() -> None:
    """D1, D21: the hand-over and a claim take their locks in the same order, so that neither is a deadlock's victim."""
    master = make_node()
    for _ in range(MEMBERS):
        chain_to(master)
    make_node(master.workflow.olt)
    ours, theirs = sorted(load_due_nodes(NOW), key=lambda node: node.node_id)
    save_poller_count(2)
    [claimed] = claim_assignments([Assignment(ours, 0)], owner="engine/test", now=NOW)
    done = threading.Event()
    rivals = [Rival(theirs, done) for _ in range(RIVALS)]
    for rival in rivals:
        rival.start()

    run_chain(claimed.execution_id, claimed.token)
    done.set()
    for rival in rivals:
        rival.join(60)

    assert [rival.error for rival in rivals] == [None] * RIVALS
    assert Execution.objects.filter(status="SUCCESS").count() == MEMBERS + 1
    # The OLT became free once, at the end of the chain, and one of them may have seen it.
    assert sum(rival.won for rival in rivals) <= 1
    assert Execution.objects.exclude(status="SUCCESS").count() == sum(rival.won for rival in rivals)
