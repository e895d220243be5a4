"""The scheduler: starts what is due, leads alone, recovers what died, and survives its own errors."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pytest
from django.db import connection as django_connection
from django.db import reset_queries

from facho.core import gateway
from facho.core.gateway import ThreadGateway
from facho.executions import store as executions
from facho.executions.models import Execution, ExecutionAttempt
from facho.executions.waiting import Unfinished
from facho.hosts.models import Olt
from facho.polling.domain.execution_state import ExecutionState
from facho.snmp_jobs.models import WorkflowNode
from facho.snmp_jobs.store import request_run
from facho.zabbix_pollers import store
from facho.zabbix_pollers.models import LeaderLease, Poller, PollerStatus
from facho.zabbix_pollers.poller_manager import PollerManager
from facho.zabbix_pollers.scheduler import Leases, ZabbixScheduler
from factories import NOW, chain_to, make_node, make_olt

pytestmark = pytest.mark.django_db(transaction=True)


@dataclass
class VirtualClock:
    """Time that a test moves; the two clocks may be moved apart."""

    wall: datetime = NOW
    ticks: float = 1_000.0

    def now(self) -> datetime:
        return self.wall

    def monotonic(self) -> float:
        return self.ticks

    def advance(self, seconds: float) -> None:
        self.wall += timedelta(seconds=seconds)
        self.ticks += seconds


@dataclass
class Waiting:
    """An executor that notes what it was given and never runs it."""

    started: list[int] = field(default_factory=list)

    cancelled: list[int] = field(default_factory=list)

    def start(self, execution_id: int, token: int) -> None:
        self.started.append(execution_id)

    def cancel(self, execution_id: int, reason: str) -> None:
        self.cancelled.append(execution_id)


@dataclass
class World:
    """A scheduler on a virtual clock, with an executor that only takes notes."""

    clock: VirtualClock
    executor: Waiting
    scheduler: ZabbixScheduler

    def another(self, owner: str) -> ZabbixScheduler:
        return build(self.scheduler.database, self.clock, self.executor, owner)  # type: ignore[arg-type]


def build(
    database: ThreadGateway, clock: VirtualClock, executor: Waiting, owner: str, pollers: int = 3
) -> ZabbixScheduler:
    manager = PollerManager(start_pollers=pollers, database=database, executor=executor, owner=owner)
    return ZabbixScheduler(manager, database, clock, owner, Leases(lease_seconds=60, packet_timeout_seconds=5))


def play(scene: Callable[[World], Awaitable[None]], *, pollers: int = 3) -> World:
    async def run() -> World:
        database = ThreadGateway()
        clock, executor = VirtualClock(), Waiting()
        world = World(clock, executor, build(database, clock, executor, "engine/one", pollers))
        await world.scheduler.pollers.prepare()
        try:
            await scene(world)
        finally:
            await database.close()
        return world

    return asyncio.run(run())


async def one_tick(world: World) -> None:
    await world.scheduler.tick()


def test_a_due_node_starts_within_the_tick_and_takes_a_poller() -> None:
    """S0-12, S2-02, S2-03, S2-04."""
    node = make_node()

    world = play(one_tick)

    execution = Execution.objects.get()
    assert world.executor.started == [execution.id]
    assert (execution.node_id, execution.slot_at, execution.status) == (node.id, NOW, ExecutionState.PENDING)
    poller = Poller.objects.get(status=PollerStatus.BUSY)
    assert (poller.poller_id, poller.current_node_id, poller.current_execution_id) == (0, node.id, execution.id)


def test_ten_due_nodes_of_one_olt_start_one() -> None:
    """S0-02, S0-13, S0-29: the others wait in the queue, none is lost."""
    olt = make_olt()
    for _ in range(10):
        make_node(olt)

    world = play(one_tick)

    assert len(world.executor.started) == 1
    assert world.scheduler.pollers.queue.qsize() == 9
    assert executions.load_busy_olts() == {olt.id}


def test_a_master_with_six_members_is_one_task() -> None:
    """S0-03: queue size, pollers and starts count composites."""
    master = make_node()
    for _ in range(6):
        chain_to(master)

    world = play(one_tick)

    assert len(world.executor.started) == 1
    assert world.scheduler.pollers.queue.qsize() == 0
    assert Poller.objects.filter(status=PollerStatus.BUSY).count() == 1


def test_more_olts_than_pollers_wait_for_a_poller() -> None:
    """S0-11, S0-13."""
    for _ in range(5):
        make_node()

    world = play(one_tick)

    assert len(world.executor.started) == 3
    assert world.scheduler.pollers.queue.qsize() == 2


def test_a_tick_after_a_tick_starts_nothing_twice() -> None:
    """S0-25: the claim moved next_run_at, and the OLT is held."""
    make_node()

    async def scene(world: World) -> None:
        await world.scheduler.tick()
        await world.scheduler.tick()

    assert len(play(scene).executor.started) == 1


def test_a_wall_clock_set_back_repeats_no_slot_and_stalls_no_node() -> None:
    """D2: the slot had its run, so the run at the same time of the clock serves none."""
    make_node(interval_seconds=300)

    async def scene(world: World) -> None:
        await world.scheduler.tick()
        await world.scheduler.database.run(_end_all)
        await world.scheduler.database.run(_set_due, NOW)
        await world.scheduler.tick()

    world = play(scene)

    assert len(world.executor.started) == 2
    executions = Execution.objects.order_by("id")
    assert list(executions.values_list("slot_at", "origin")) == [(NOW, "schedule"), (None, "schedule")]
    node = WorkflowNode.objects.get()
    assert (node.next_run_at, node.slots_skipped) == (NOW + timedelta(minutes=5), 0)


def test_a_run_asked_for_goes_before_what_is_due() -> None:
    olt = make_olt()
    make_node(olt)
    asked = make_node(olt, next_run_at=NOW + timedelta(hours=1))
    request_run(asked.id, now=NOW)

    play(one_tick)

    assert Execution.objects.get().node_id == asked.id


def test_only_one_of_two_schedulers_leads() -> None:
    make_node()

    async def scene(world: World) -> None:
        second = world.another("engine/two")
        assert await world.scheduler.tick() == 1
        assert await second.tick() == 0

    play(scene)

    assert LeaderLease.objects.get().owner == "engine/one"


def test_a_scheduler_takes_over_when_the_leaders_counter_stands_still() -> None:
    """Measured on its own monotonic clock."""

    async def scene(world: World) -> None:
        second = world.another("engine/two")
        await world.scheduler.tick()
        await second.tick()
        world.clock.advance(59)
        await second.tick()
        assert await world.scheduler.database.run(store.load_leader_counter) == ("engine/one", 1)
        world.clock.advance(2)
        await second.tick()

    play(scene)

    assert LeaderLease.objects.get().owner == "engine/two"


def test_a_jump_of_the_wall_clock_moves_no_leader() -> None:
    """Stored times are for display."""

    async def scene(world: World) -> None:
        second = world.another("engine/two")
        await world.scheduler.tick()
        await second.tick()
        world.clock.wall += timedelta(hours=1)
        await second.tick()

    play(scene)

    assert LeaderLease.objects.get().owner == "engine/one"


async def statuses_after(world: World, *pauses: float) -> list[str]:
    """Tick after each pause and tell the state of the only execution each time."""
    statuses = []
    for seconds in pauses:
        world.clock.advance(seconds)
        await world.scheduler.tick()
        statuses.append((await world.scheduler.database.run(Execution.objects.get)).status)
    return statuses


def test_an_execution_that_nobody_renews_is_interrupted_and_its_poller_freed() -> None:
    """S2-06: after the lease and one packet time-out, not before."""
    make_node(interval_seconds=60)

    async def scene(world: World) -> None:
        await world.scheduler.tick()
        await world.scheduler.database.run(_take_all)
        assert await statuses_after(world, 1, 64, 1) == ["RUNNING", "RUNNING", "INTERRUPTED"]

    play(scene)

    assert not Poller.objects.filter(status=PollerStatus.BUSY).exists()


def test_a_run_whose_process_died_is_a_failed_try_like_any_other() -> None:
    """D2: it goes on after the retry delay as the same execution, and holds nothing meanwhile."""
    make_node(interval_seconds=3_600)

    async def scene(world: World) -> None:
        await world.scheduler.tick()
        await world.scheduler.database.run(_take_all)
        assert await statuses_after(world, 1, 65, 119, 1) == ["RUNNING", "WAITING", "WAITING", "PENDING"]

    play(scene)

    execution = Execution.objects.get()
    assert (execution.attempt, execution.slot_at) == (2, NOW)
    assert WorkflowNode.objects.get().consecutive_failures == 1
    assert ExecutionAttempt.objects.get().status == ExecutionState.FAILED


def test_an_execution_that_nobody_takes_is_handed_out_again_and_then_given_up() -> None:
    """After 30 s and after 90 s, so that a lost message costs little and a lost worker keeps no OLT."""
    make_node(interval_seconds=3_600)

    async def scene(world: World) -> None:
        assert await statuses_after(world, 0, 1, 29, 1, 30) == ["PENDING"] * 5
        assert len(world.executor.started) == 2
        assert await statuses_after(world, 30) == ["INTERRUPTED"]

    play(scene)

    assert Execution.objects.get().error == "no worker took it"
    assert not Poller.objects.filter(status=PollerStatus.BUSY).exists()


def test_what_shall_stop_is_told_so_within_a_tick() -> None:
    """Disabling an OLT or cancelling a run ends it before its next packet."""
    make_node(interval_seconds=3_600)

    async def scene(world: World) -> None:
        await world.scheduler.tick()
        await world.scheduler.database.run(_take_all)
        run = await world.scheduler.database.run(Execution.objects.get)
        assert await world.scheduler.database.run(executions.request_cancel, run.id, now=NOW)
        await world.scheduler.tick()
        assert world.executor.cancelled == [run.id]

    play(scene)


def test_a_pending_execution_of_a_disabled_olt_is_aborted_at_once() -> None:
    node = make_node(interval_seconds=3_600)

    async def scene(world: World) -> None:
        await world.scheduler.tick()
        await world.scheduler.database.run(Olt.objects.filter(id=node.workflow.olt_id).update, enabled=False)
        await world.scheduler.tick()

    play(scene)

    assert Execution.objects.get().status == ExecutionState.INTERRUPTED
    assert not Poller.objects.filter(status=PollerStatus.BUSY).exists()


@pytest.mark.parametrize("jump_hours", [1, -1])
def test_a_jump_of_the_wall_clock_makes_no_burst_and_no_stall(jump_hours: int) -> None:
    """Every node goes on at a slot of its grid, at most one interval away."""
    for minutes in range(1, 6):
        make_node(next_run_at=NOW + timedelta(minutes=minutes), interval_seconds=300)

    async def scene(world: World) -> None:
        await world.scheduler.tick()
        world.clock.wall += timedelta(hours=jump_hours)
        world.clock.advance(1)
        assert await world.scheduler.tick() == 0

    world = play(scene)

    for node in WorkflowNode.objects.all():
        assert node.next_run_at is not None
        assert world.clock.wall < node.next_run_at <= world.clock.wall + timedelta(minutes=5)


def test_an_error_in_a_tick_is_logged_and_the_next_tick_works(caplog: pytest.LogCaptureFixture) -> None:
    """S0-42."""
    make_node()

    async def scene(world: World) -> None:
        stop = asyncio.Event()
        failures = [RuntimeError("a bad row")]
        healthy = world.scheduler.pollers.start_due_nodes

        async def fail_once(unfinished: Unfinished, now: datetime) -> int:
            if failures:
                world.scheduler.on_task_completed()
                raise failures.pop()
            stop.set()
            return await healthy(unfinished, now)

        world.scheduler.pollers.start_due_nodes = fail_once  # type: ignore[method-assign]
        async with asyncio.timeout(30):
            await world.scheduler.scheduler_loop(stop)

    world = play(scene)

    assert "scheduler.tick_failed" in caplog.text
    assert len(world.executor.started) == 1


@pytest.mark.parametrize(("late_seconds", "statements"), [(0, 10), (3600, 13)])
@pytest.mark.parametrize("olts", [2, 30])
def test_a_tick_costs_the_same_statements_however_much_is_due(
    olts: int, late_seconds: int, statements: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three to look, six to start a batch, three to write down what was missed before; nothing per node."""
    # One thread, so that one connection sees every statement.
    monkeypatch.setitem(gateway.THREADS, "postgresql", 1)
    for _ in range(olts):
        olt = make_olt()
        for _ in range(3):
            make_node(olt, next_run_at=NOW - timedelta(seconds=late_seconds))

    async def scene(world: World) -> None:
        await world.scheduler.tick()
        await world.scheduler.database.run(_end_all)
        world.clock.advance(10)
        await world.scheduler.database.run(connection.force_debug)
        await world.scheduler.tick()
        counted = await world.scheduler.database.run(connection.statements)
        assert len(counted) <= statements, counted

    connection = QueryLog()
    play(scene, pollers=50)


class QueryLog:
    """Notes the statements of the database thread, without those that only begin and end transactions."""

    def force_debug(self) -> None:
        django_connection.force_debug_cursor = True
        reset_queries()

    def statements(self) -> list[str]:
        django_connection.force_debug_cursor = False
        return [q["sql"] for q in django_connection.queries if q["sql"].split()[0] in ("SELECT", "INSERT", "UPDATE")]


def test_fewer_pollers_than_before_leave_no_row_behind() -> None:
    store.save_poller_count(10)

    store.save_poller_count(4)

    assert list(Poller.objects.values_list("poller_id", flat=True)) == [0, 1, 2, 3]


def _take_all() -> None:
    for active in executions.load_active():
        executions.take(active.execution_id, active.token, owner="engine/dead", now=NOW)


def _end_all() -> None:
    store.release_orphans(list(Execution.objects.values_list("id", flat=True)), reason="test", now=NOW)


def _set_due(moment: datetime) -> None:
    WorkflowNode.objects.update(next_run_at=moment)
