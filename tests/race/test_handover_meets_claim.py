"""A chain passes its OLT from member to member while others try to claim it: nobody waits for ever, nobody gets in."""

import asyncio
import threading

import pytest
from django.db import connections

from facho.core.clock import SystemClock
from facho.core.gateway import ThreadGateway
from facho.executions import store
from facho.executions.models import Execution, Origin
from facho.executions.runner import NodeRunner, Times
from facho.executions.store import ClaimRequest
from facho.polling.domain.collection import Collected, CollectRequest, RunControl
from facho.zabbix_pollers.store import save_node_ended
from factories import NOW, chain_to, make_node

pytestmark = pytest.mark.django_db(transaction=True)

MEMBERS = 60
RIVALS = 3


class Instant:
    """A device that needs no time."""

    async def collect(self, request: CollectRequest, control: RunControl) -> Collected:
        control.check()
        return Collected({"onus": 1}, was_heard=True)


class Rival(threading.Thread):
    """Wants the OLT again and again, as a probe does that waits for its turn."""

    def __init__(self, olt_id: int, done: threading.Event) -> None:
        super().__init__(daemon=True)
        self.won = 0
        self.error: Exception | None = None
        self._olt_id = olt_id
        self._done = done

    def run(self) -> None:
        wish = ClaimRequest(self._olt_id, "probe", Origin.PROBE)
        try:
            while not self._done.is_set():
                self.won += len(store.claim([wish], owner="cli/rival", now=NOW))
        except Exception as error:  # noqa: BLE001 the thread's own; the test tells it
            self.error = error
        finally:
            connections.close_all()


def run_chain(execution_id: int, token: int) -> None:
    async def run() -> None:
        database = ThreadGateway()
        times = Times(lease_seconds=60, yield_after_seconds=60)
        runner = NodeRunner(Instant(), database, SystemClock(), "engine/test", times, (save_node_ended,))
        await runner.run(execution_id, token)
        await database.close()

    asyncio.run(run())


def test_a_chain_keeps_its_olt_to_the_end_however_many_want_it() -> None:
    """D1, D21: the hand-over and a claim take their locks in the same order, so that neither is a deadlock's victim."""
    master = make_node()
    for _ in range(MEMBERS):
        chain_to(master)
    olt_id, done = master.workflow.olt_id, threading.Event()
    wish = ClaimRequest(olt_id, "get_x", Origin.SCHEDULE, node_id=master.id, poller_id=0, slot_at=NOW)
    [claimed] = store.claim([wish], owner="engine/test", now=NOW)
    rivals = [Rival(olt_id, done) for _ in range(RIVALS)]
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
