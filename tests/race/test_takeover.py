"""When a process is gone, the next one carries on at once where it may, and after one lease where it must wait."""

import asyncio

import pytest

from facho.core.processes.engine import run_engine
from facho.executions import store as executions
from facho.executions.models import Execution, Origin
from facho.executions.store import ClaimRequest
from facho.infrastructure.gateway import ThreadGateway
from facho.polling.domain.execution_state import ExecutionState
from facho.polling.snmp.session import MOST_TIMEOUTS
from facho.polling.snmp.target import CHEAP
from facho.zabbix_pollers.models import LeaderLease
from facho.zabbix_pollers.poller_manager import PollerManager
from facho.zabbix_pollers.scheduler import Leases, ZabbixScheduler
from facho.zabbix_pollers.store import release_leadership
from factories import NOW, make_job, make_node, make_olt
from zabbix_pollers.scheduler_world import VirtualClock, Waiting

pytestmark = pytest.mark.django_db(transaction=True)

LEASE_SECONDS = 60
PACKET_SECONDS = 20


def scheduler(
    owner: str, database: ThreadGateway, clock: VirtualClock, executor: Waiting, *, dead_owners: str | None = None
) -> ZabbixScheduler:
    manager = PollerManager(start_pollers=3, database=database, executor=executor, owner=owner)
    return ZabbixScheduler(manager, database, clock, owner, Leases(LEASE_SECONDS, PACKET_SECONDS), dead_owners)


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
    return await closed_for(database, clock, standby)


async def closed_for(database: ThreadGateway, clock: VirtualClock, successor: ZabbixScheduler) -> float:
    """Let a scheduler look until the OLT is free."""
    died_at = clock.monotonic()
    while await database.run(executions.load_busy_olts):
        await successor.tick()
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

    closed_seconds = LEASE_SECONDS + MOST_TIMEOUTS * CHEAP.timeout_s
    assert closed_seconds <= asyncio.run(scene()) <= closed_seconds + 2

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


@pytest.mark.parametrize(
    ("columns", "asks_for_seconds"), [(("onu.run_state",), 10), (("onu.rx_power",), 40)], ids=["cheap", "live"]
)
def test_a_new_engine_waits_only_for_the_work_that_its_dead_predecessor_left_at_the_olt(
    columns: tuple[str, ...], asks_for_seconds: float
) -> None:
    """Its lock proves that nobody sends any more; the OLT may work on the last question for its kind's time-out."""
    olt = make_olt(vendor="huawei_smartax")
    make_node(olt, make_job(columns=columns), interval_seconds=3_600)

    async def scene() -> float:
        database, clock = ThreadGateway(), VirtualClock()
        try:
            former = scheduler("engine-1/here/1/ab", database, clock, Waiting())
            await former.pollers.prepare()
            await former.tick()
            await database.run(take_all, "engine-1/here/1/ab")
            await database.run(release_leadership, "engine-1/")
            successor = scheduler("engine-1/here/2/cd", database, clock, Waiting(), dead_owners="engine-1/")
            return await closed_for(database, clock, successor)
        finally:
            await database.close()

    assert asks_for_seconds <= asyncio.run(scene()) <= asks_for_seconds + 2
