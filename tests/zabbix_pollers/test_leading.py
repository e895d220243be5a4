"""Of several schedulers one leads, and frees, hands out again or stops what does not go on by itself."""

from datetime import timedelta

import pytest

from facho.executions import store as executions
from facho.executions.models import Execution, ExecutionAttempt
from facho.hosts.models import Olt
from facho.infrastructure.standstill import Standstill
from facho.polling.domain.execution_state import ExecutionState
from facho.snmp_jobs.models import WorkflowNode
from facho.snmp_jobs.store import request_run
from facho.zabbix_pollers import poller_manager, store
from facho.zabbix_pollers.models import LeaderLease, Poller, PollerStatus
from factories import NOW, make_node, make_olt
from zabbix_pollers.scheduler_world import World, play, take_all

pytestmark = pytest.mark.django_db(transaction=True)


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
        leader = await world.scheduler.database.run(store.load_leader)
        assert (leader.owner, leader.counter) == ("engine/one", 1)
        world.clock.advance(2)
        await second.tick()

    play(scene)

    assert LeaderLease.objects.get().owner == "engine/two"


def test_a_successor_goes_on_with_all_that_the_dead_scheduler_knew() -> None:
    """D6, D21: what holds an OLT, who waits for it, a run that a person asked for, and a try that waits."""
    olt = make_olt()
    for _ in range(2):
        make_node(olt, interval_seconds=3_600)
    asked_for, failed = make_node(next_run_at=None), make_node(next_run_at=None)
    waiting = Execution.objects.create(
        olt=failed.workflow.olt,
        node=failed,
        task_type="x",
        status=ExecutionState.WAITING,
        failure_kind="timeout",
        resume_at=NOW + timedelta(seconds=50),
        address=failed.workflow.olt.address,
        port=failed.workflow.olt.port,
        token=1,
        created_at=NOW,
    )

    async def scene(world: World) -> None:
        successor = world.another("engine/two")
        assert await world.scheduler.tick() == 1
        assert await successor.tick() == 0
        await world.scheduler.database.run(request_run, asked_for.id, now=world.clock.now())
        world.clock.advance(61)
        assert await successor.tick() == 2
        assert successor.pollers.queue.qsize() == 1

    play(scene)

    begun = dict(Execution.objects.filter(status=ExecutionState.PENDING).values_list("node_id", "attempt"))
    assert begun.keys() > {asked_for.id, failed.id}
    assert Execution.objects.get(id=waiting.id).attempt == 2


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
    """S2-06: after the lease and the longest that its OLT may work on the last question, not before."""
    make_node(interval_seconds=60)

    async def scene(world: World) -> None:
        await world.scheduler.tick()
        await world.scheduler.database.run(take_all)
        assert await statuses_after(world, 1, 69, 1) == ["RUNNING", "RUNNING", "INTERRUPTED"]

    play(scene)

    assert not Poller.objects.filter(status=PollerStatus.BUSY).exists()


def test_a_run_whose_process_died_is_a_failed_try_like_any_other() -> None:
    """D2: it goes on after the retry delay as the same execution, and holds nothing meanwhile."""
    make_node(interval_seconds=3_600)

    async def scene(world: World) -> None:
        await world.scheduler.tick()
        await world.scheduler.database.run(take_all)
        assert await statuses_after(world, 1, 70, 119, 1) == ["RUNNING", "WAITING", "WAITING", "PENDING"]

    play(scene)

    execution = Execution.objects.get()
    assert (execution.attempt, execution.slot_at) == (2, NOW)
    assert WorkflowNode.objects.get().consecutive_failures == 1
    assert ExecutionAttempt.objects.get().status == ExecutionState.FAILED


def test_an_execution_that_nobody_takes_is_handed_out_again_and_then_given_up() -> None:
    """D21: after 30 s and after 90 s, so that a lost message costs little and a lost worker keeps no OLT."""
    make_node(interval_seconds=3_600)

    async def scene(world: World) -> None:
        assert await statuses_after(world, 0, 1, 29, 1, 30) == ["PENDING"] * 5
        assert len(world.executor.started) == 2
        assert await statuses_after(world, 30) == ["INTERRUPTED"]

    play(scene)

    assert Execution.objects.get().error == "no worker took it"
    assert not Poller.objects.filter(status=PollerStatus.BUSY).exists()


def test_what_shall_stop_is_reported_so_within_a_tick() -> None:
    """Disabling an OLT or cancelling a run ends it before its next packet."""
    make_node(interval_seconds=3_600)

    async def scene(world: World) -> None:
        await world.scheduler.tick()
        await world.scheduler.database.run(take_all)
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


class Held:
    """A storage that is full until it is freed."""

    trouble: Standstill | None = Standstill.DISK_FULL
    holds = True


def test_a_leader_that_cannot_store_starts_nothing_keeps_the_lead_and_says_why() -> None:
    make_node()
    storage, reported = Held(), []

    async def scene(world: World) -> None:
        world.scheduler.storage = storage
        for _ in range(2):
            assert await world.scheduler.tick() == 0
            reported.append((await world.scheduler.database.run(store.load_leader)).standstill)
            assert not world.scheduler.is_scheduling
            world.clock.advance(1)
        storage.trouble, storage.holds = None, False
        # At once, not at the next renewal.
        assert await world.scheduler.tick() == 1
        reported.append((await world.scheduler.database.run(store.load_leader)).standstill)
        assert world.scheduler.is_scheduling

    play(scene)

    assert reported == ["disk_full", "disk_full", None]


def test_a_leader_whose_looks_fail_says_so_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    make_node()
    reported = []

    async def scene(world: World) -> None:
        await world.scheduler.tick()
        monkeypatch.setattr(poller_manager, "load_unfinished", lambda _now, _shard: [][0])
        for _ in range(2):
            world.clock.advance(20)
            with pytest.raises(IndexError):
                await world.scheduler.tick()
            reported.append((await world.scheduler.database.run(store.load_leader)).standstill)

    play(scene)

    assert reported == [None, "ticks_fail"]
