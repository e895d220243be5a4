"""When a process is gone, the next one carries on at once where it may, and after one lease where it must wait."""

import asyncio

import pytest

from facho.core.gateway import ThreadGateway
from facho.core.processes.engine import run_engine
from facho.executions import store as executions
from facho.executions.models import Execution, Origin
from facho.executions.store import ClaimRequest
from facho.polling.domain.execution_state import ExecutionState
from facho.zabbix_pollers.models import LeaderLease
from facho.zabbix_pollers.poller_manager import PollerManager
from facho.zabbix_pollers.scheduler import Leases, ZabbixScheduler
from factories import NOW, make_node
from zabbix_pollers.scheduler_world import VirtualClock, Waiting

pytestmark = pytest.mark.django_db(transaction=True)

LEASE_SECONDS = 60
PACKET_SECONDS = 5


def scheduler(owner: str, database: ThreadGateway, clock: VirtualClock, executor: Waiting) -> ZabbixScheduler:
    manager = PollerManager(start_pollers=3, database=database, executor=executor, owner=owner)
    return ZabbixScheduler(manager, database, clock, owner, Leases(LEASE_SECONDS, PACKET_SECONDS))


def take_all(owner: str) -> None:
    for active in executions.load_active():
        executions.take(active.execution_id, active.token, owner=owner, now=NOW)


async def watch_a_leader_die(database: ThreadGateway, clock: VirtualClock) -> float:
    """Let one scheduler start a run and be gone; return after how long the other one has freed the OLT."""
    leader = scheduler("engine/one", database, clock, Waiting())
    standby = scheduler("engine/two", database, clock, Waiting())
    await leader.pollers.prepare()
    await leader.tick()
    await database.run(take_all, "engine/one")
    died_at = clock.monotonic()
    while await database.run(executions.load_busy_olts):
        await standby.tick()
        clock.advance(1)
        assert clock.monotonic() - died_at < 10 * LEASE_SECONDS, "the OLT stays closed"
    return clock.monotonic() - died_at


def test_the_olts_of_a_dead_leader_are_closed_for_one_lease_and_not_for_two() -> None:
    """D7: who waits for the lead watches the claims meanwhile."""
    make_node(interval_seconds=3_600)

    async def scene() -> float:
        database = ThreadGateway()
        try:
            return await watch_a_leader_die(database, VirtualClock())
        finally:
            await database.close()

    assert LEASE_SECONDS + PACKET_SECONDS <= asyncio.run(scene()) <= LEASE_SECONDS + PACKET_SECONDS + 2

    assert LeaderLease.objects.get().owner == "engine/two"


@pytest.mark.parametrize(
    ("lease", "sent_again", "given_up"), [(60, 30, 90), (600, 30, 90), (2, 1, 3)], ids=["default", "long", "short"]
)
def test_a_claim_that_nobody_took_is_closed_no_longer_than_a_lease(
    lease: float, sent_again: float, given_up: float
) -> None:
    """D21, and the promise that no OLT is closed for longer than the lease."""
    leases = Leases(lease, PACKET_SECONDS)

    assert (leases.send_again_seconds, leases.give_up_seconds) == (sent_again, given_up)


def claim_of(owner: str, *, is_taken: bool) -> Execution:
    wish = ClaimRequest(make_node(interval_seconds=3_600, next_run_at=None).workflow.olt_id, "walk_x", Origin.SCHEDULE)
    [claimed] = executions.claim([wish], owner=owner, now=NOW)
    if is_taken:
        executions.take(claimed.execution_id, claimed.token, owner=owner, now=NOW)
    return Execution.objects.get(id=claimed.execution_id)


async def start_and_stop() -> None:
    stop = asyncio.Event()
    stop.set()
    await run_engine(stop)


def test_a_new_engine_leaves_the_engines_of_other_data_folders_alone() -> None:
    """Its lock proves nothing about them: they may be sending."""
    other = claim_of("engine-00000000/elsewhere/1/ab", is_taken=True)

    asyncio.run(start_and_stop())

    other.refresh_from_db()
    assert other.status == ExecutionState.RUNNING


def test_a_new_engine_does_not_wait_for_the_leases_of_its_dead_predecessor() -> None:
    from facho.core.processes.engine import _role

    former = claim_of(f"{_role()}/here/1/ab", is_taken=True)

    asyncio.run(start_and_stop())

    former.refresh_from_db()
    assert (former.status, former.error) == (ExecutionState.INTERRUPTED, "the engine was started again")
