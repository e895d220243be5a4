"""The scheduler starts what is due, once and in order, and survives its own errors and the clock's jumps."""

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from statistics import median

import pytest
from django.db import connection as django_connection
from django.db import reset_queries, transaction

from facho.core.wiring import open_parts
from facho.executions import store as executions
from facho.executions.models import Execution
from facho.executions.onu_reads import request_hinted, request_read
from facho.executions.run import Ending
from facho.executions.runner import Finished
from facho.executions.store import Unfinished, open_next
from facho.infrastructure import gateway as infrastructure_gateway
from facho.infrastructure.gateway import SystemClock
from facho.onus.models import PonPort
from facho.polling.domain.execution_state import ExecutionState
from facho.polling.domain.hints import HintedRead, ReadScope
from facho.snmp_jobs.models import WorkflowNode
from facho.snmp_jobs.store import request_run
from facho.zabbix_pollers import store
from facho.zabbix_pollers.models import Poller, PollerStats, PollerStatus
from facho.zabbix_pollers.poller_manager import PollerManager
from facho.zabbix_pollers.read_model import save_poller_stats
from facho.zabbix_pollers.scheduler import Leases, ZabbixScheduler
from factories import NOW, chain_to, make_node, make_olt
from history_world import make_onus
from zabbix_pollers.scheduler_world import Waiting, World, end_all, one_tick, play

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_due_node_starts_within_the_tick_and_takes_a_poller() -> None:
    """S0-10, S0-12, S2-02, S2-03, S2-04."""
    node = make_node()

    world = play(one_tick)

    execution = Execution.objects.get()
    assert world.executor.started == [execution.id]
    assert (execution.node_id, execution.slot_at, execution.status) == (node.id, NOW, ExecutionState.PENDING)
    poller = Poller.objects.get(status=PollerStatus.BUSY)
    assert (poller.poller_id, poller.current_node_id, poller.current_execution_id) == (0, node.id, execution.id)


def test_a_job_that_is_due_on_several_hosts_has_an_execution_on_each() -> None:
    """S3-04: at once, and one, however often it is looked; each for its own slot and on its own poller."""
    first = make_node()
    hosts = [first, *(make_node(job=first.job) for _ in range(2))]

    async def scene(world: World) -> None:
        assert [await world.scheduler.tick() for _ in range(3)] == [3, 0, 0]

    play(scene)

    found = Execution.objects.order_by("id").values_list("olt_id", "node_id", "slot_at")
    assert sorted(found) == sorted((node.workflow.olt_id, node.id, NOW) for node in hosts)
    assert set(Execution.objects.values_list("poller_id", flat=True)) == {0, 1, 2}


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


def test_a_node_that_becomes_due_starts_within_two_seconds() -> None:
    """S0-06: in the real loop on the real clock, where nothing but the time wakes it."""
    begin = SystemClock().now()
    due_at = {make_node(next_run_at=at).id: at for at in (begin + timedelta(seconds=s) for s in (1.3, 1.8, 2.3))}

    async def run() -> None:
        async with open_parts("test") as parts:
            executor, stop = Waiting(), asyncio.Event()
            manager = PollerManager(start_pollers=3, database=parts.database, executor=executor, owner=parts.owner)
            scheduler = ZabbixScheduler(manager, parts.database, parts.clock, parts.owner, Leases(60, 5))
            loop = asyncio.create_task(scheduler.scheduler_loop(stop))
            async with asyncio.timeout(60):
                while len(executor.started) < len(due_at):
                    await asyncio.wait([loop], timeout=0.05)
            stop.set()
            await loop

    asyncio.run(run())

    delays = [run.created_at - due_at[run.node_id or 0] for run in Execution.objects.all()]
    # The middle of them: a single hiccup of the machine says nothing about the scheduler.
    assert 0 <= median(delay.total_seconds() for delay in delays) < 2


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
        await world.scheduler.database.run(end_all)
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
        healthy = world.scheduler.pollers.look_and_start

        async def fail_once(now: datetime, *, may_start: Callable[[Unfinished], bool]) -> tuple[Unfinished, int | None]:
            if failures:
                world.scheduler.on_task_completed()
                raise failures.pop()
            stop.set()
            return await healthy(now, may_start=may_start)

        world.scheduler.pollers.look_and_start = fail_once  # type: ignore[method-assign]
        async with asyncio.timeout(30):
            await world.scheduler.scheduler_loop(stop)

    world = play(scene)

    assert "scheduler.tick_failed" in caplog.text
    assert len(world.executor.started) == 1


@pytest.mark.parametrize(("late_seconds", "statements"), [(0, 10), (3600, 14)])
@pytest.mark.parametrize("olts", [2, 30])
def test_a_tick_costs_the_same_statements_however_much_is_due(
    olts: int, late_seconds: int, statements: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three to look, six to start a batch, four to write down what was missed before; nothing per node."""
    # One thread, so that one connection sees every statement.
    monkeypatch.setitem(infrastructure_gateway.THREADS, "postgresql", 1)
    for _ in range(olts):
        olt = make_olt()
        for _ in range(3):
            make_node(olt, next_run_at=NOW - timedelta(seconds=late_seconds))

    async def scene(world: World) -> None:
        await world.scheduler.tick()
        await world.scheduler.database.run(end_all)
        world.clock.advance(10)
        await world.scheduler.database.run(connection.force_debug)
        await world.scheduler.tick()
        counted = await world.scheduler.database.run(connection.statements)
        assert len(counted) <= statements, counted

    connection = QueryLog()
    play(scene, pollers=50)


def be_due(node: WorkflowNode) -> None:
    WorkflowNode.objects.filter(id=node.id).update(next_run_at=NOW)


def be_asked_for(node: WorkflowNode) -> None:
    request_run(node.id, now=NOW)


def be_read(node: WorkflowNode) -> None:
    (onu,) = make_onus(PonPort.objects.create(olt=node.workflow.olt, frame=0, slot=1, port=1), 1, now=NOW)
    request_read(onu.id, now=NOW)


def be_hinted(node: WorkflowNode) -> None:
    hints = [HintedRead(ReadScope.STATES)]
    request_hinted(node.workflow.olt_id, hints, heard_at=NOW, gap=timedelta(0), now=NOW)


@pytest.mark.parametrize("happen", [be_due, be_asked_for, be_read, be_hinted])
def test_a_tick_with_nothing_to_do_asks_once_and_the_next_starts_what_comes(
    happen: Callable[[WorkflowNode], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(infrastructure_gateway.THREADS, "postgresql", 1)
    node = make_node(next_run_at=NOW + timedelta(hours=1))

    async def scene(world: World) -> None:
        database, log = world.scheduler.database, QueryLog()
        await world.scheduler.tick()
        await database.run(log.force_debug)
        await world.scheduler.tick()
        counted = await database.run(log.statements)
        await database.run(happen, node)
        started = await world.scheduler.tick()
        assert (len(counted), started) == (1, 1), counted

    play(scene)


class QueryLog:
    """Notes the statements of the database thread, without those that only begin and end transactions."""

    def force_debug(self) -> None:
        django_connection.force_debug_cursor = True
        reset_queries()

    def statements(self) -> list[str]:
        django_connection.force_debug_cursor = False
        return [q["sql"] for q in django_connection.queries if q["sql"].split()[0] in ("SELECT", "INSERT", "UPDATE")]


def test_a_poller_counts_what_it_completed_and_what_it_began_late() -> None:
    """S0-16, S0-03, S2-06: a composite once, however long its chain is; then it is free and knows it no more."""
    master = make_node(next_run_at=NOW - timedelta(seconds=301), interval_seconds=300)
    members = [chain_to(master) for _ in range(2)]

    async def scene(world: World) -> None:
        await world.scheduler.tick()
        await world.scheduler.database.run(carry_out, NOW + timedelta(seconds=10))

    play(scene)

    assert Execution.objects.filter(status=ExecutionState.SUCCESS).count() == 1 + len(members)
    first, *others = Poller.objects.order_by("poller_id")
    assert (first.tasks_completed, first.tasks_delayed, first.busy_time) == (1, 1, 10.0)
    assert (first.status, first.current_node_id, first.current_execution_id) == (PollerStatus.FREE, None, None)
    assert {(each.tasks_completed, each.tasks_delayed, each.busy_time) for each in others} == {(0, 0, 0.0)}


def test_a_minute_of_the_pollers_is_kept_as_they_were() -> None:
    """S0-21: the series that a look back reads."""
    for _ in range(4):
        make_node()

    async def scene(world: World) -> None:
        await world.scheduler.tick()
        await world.scheduler.database.run(save_poller_stats, NOW + timedelta(seconds=54))

    play(scene)

    row = PollerStats.objects.get()
    assert (row.total_pollers, row.free_pollers, row.busy_pollers, row.queue_size) == (3, 0, 3, 1)
    assert (row.busy_percentage, row.is_saturated) == (90.0, True)
    assert (row.total_tasks_completed, row.total_tasks_delayed) == (0, 0)


def test_fewer_pollers_than_before_leave_no_row_behind() -> None:
    store.save_poller_count(10)

    store.save_poller_count(4)

    assert list(Poller.objects.values_list("poller_id", flat=True)) == [0, 1, 2, 3]


@transaction.atomic
def carry_out(now: datetime) -> None:
    """Let the one active run and its chain succeed."""
    [active] = executions.load_active()
    run = executions.take(active.execution_id, active.token, owner="engine/one", now=NOW)
    while run is not None:
        ending = Ending(ExecutionState.SUCCESS)
        executions.close(run, ending, summary={}, now=now)
        following = open_next(run, ending, owner="engine/one", now=now)
        finished = Finished(run, ending, was_heard=True, following=following)
        store.save_node_ended(finished, now)
        store.release_poller(finished, now)
        run = following


def _set_due(moment: datetime) -> None:
    WorkflowNode.objects.update(next_run_at=moment)
