"""Failed tries, suspension, return, long reads and pauses: the real scheduler and runner on a clock the test moves."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pytest

from facho.core.gateway import ThreadGateway
from facho.executions.executor import InProcessExecutor
from facho.executions.models import Execution, ExecutionAttempt
from facho.executions.runner import Finished, NodeRunner, Times
from facho.executions.waiting import cancel, end_forsaken
from facho.hosts.models import Olt
from facho.hosts.pauses import end_pauses, pause
from facho.hosts.store import load_due_probes, save_answer
from facho.polling.domain.collection import Collected, CollectRequest, Failure, RunControl
from facho.polling.domain.failure import FailureKind
from facho.snmp_jobs.models import WorkflowNode
from facho.snmp_jobs.store import request_run
from facho.zabbix_pollers import store
from facho.zabbix_pollers.models import Poller, PollerStatus
from facho.zabbix_pollers.poller_manager import PollerManager
from facho.zabbix_pollers.scheduler import Leases, ZabbixScheduler
from factories import NOW, chain_to, make_node, make_olt

pytestmark = pytest.mark.django_db(transaction=True)

GOOD = Collected({"onus": 1}, was_heard=True)
SILENCE = Collected(failure=Failure(FailureKind.TIMEOUT, "no answer"))
GARBAGE = Collected(failure=Failure(FailureKind.MALFORMED, "not SNMP"), was_heard=True)

Device = Callable[[CollectRequest, RunControl], Awaitable[Collected]]


@dataclass
class VirtualClock:
    """Time that a test moves."""

    wall: datetime = NOW
    ticks: float = 1_000.0

    def now(self) -> datetime:
        return self.wall

    def monotonic(self) -> float:
        return self.ticks


@dataclass
class Scripted:
    """Devices that answer as the test says, or well."""

    answer: Device
    asked: list[tuple[int, datetime]] = field(default_factory=list)
    clock: VirtualClock = field(default_factory=VirtualClock)

    async def collect(self, request: CollectRequest, control: RunControl) -> Collected:
        self.asked.append((request.olt_id, self.clock.now()))
        control.check()
        return await self.answer(request, control)


class World:
    """One engine; `pass_time` moves the clock in steps of a second where something may happen."""

    def __init__(self, database: ThreadGateway, answer: Device) -> None:
        self.clock = VirtualClock()
        self.database = database
        self.devices = Scripted(answer, clock=self.clock)
        runner = NodeRunner(
            self.devices,
            database,
            self.clock,
            "engine/one",
            Times(lease_seconds=1e6, yield_after_seconds=60),
            finishing_steps=(store.save_node_ended, store.release_poller, _save_health),
        )
        self.executor = InProcessExecutor(runner, lambda: None)
        manager = PollerManager(start_pollers=3, database=database, executor=self.executor, owner="engine/one")
        self.scheduler = ZabbixScheduler(manager, database, self.clock, "engine/one", Leases(1e6, 5))

    async def tick(self) -> None:
        """Let the scheduler look, and everything it started come to its end."""
        while await self.scheduler.tick():
            await self.executor.drain(timeout_seconds=60)

    async def pass_time(self, seconds: float, *, step: float = 10) -> None:
        """Move on, with a look at every step."""
        end = self.clock.wall + timedelta(seconds=seconds)
        while self.clock.wall < end:
            self.clock.wall += timedelta(seconds=step)
            self.clock.ticks += step
            await self.tick()

    @property
    def minutes_asked(self) -> list[float]:
        """When devices were asked, in minutes from the start."""
        return [round((at - NOW).total_seconds() / 60, 2) for _, at in self.devices.asked]


def play(scene: Callable[[World], Awaitable[None]], answer: Device) -> World:
    async def run() -> World:
        database = ThreadGateway()
        world = World(database, answer)
        await world.scheduler.pollers.prepare()
        try:
            await scene(world)
        finally:
            await database.close()
        return world

    return asyncio.run(run())


def _save_health(finished: Finished, now: datetime) -> None:
    save_answer(finished.run.olt_id, finished.ending.failure, was_heard=finished.was_heard, now=now)


async def well(request: CollectRequest, control: RunControl) -> Collected:
    return GOOD


async def silent(request: CollectRequest, control: RunControl) -> Collected:
    return SILENCE


async def garbled(request: CollectRequest, control: RunControl) -> Collected:
    return GARBAGE


def in_turn(*answers: Collected) -> Device:
    left = list(answers)

    async def answer(request: CollectRequest, control: RunControl) -> Collected:
        return left.pop(0) if left else GOOD

    return answer


def test_a_failed_try_waits_two_minutes_and_goes_on_as_the_same_execution() -> None:
    """S3-15, S3-19, D18: it holds neither its OLT nor a poller meanwhile."""
    make_node(interval_seconds=600)

    async def scene(world: World) -> None:
        await world.tick()
        waiting = await world.database.run(Execution.objects.get)
        assert (waiting.status, waiting.resume_at) == ("WAITING", NOW + timedelta(seconds=120))
        assert not await world.database.run(Poller.objects.filter(status=PollerStatus.BUSY).exists)
        await world.pass_time(130)

    world = play(scene, in_turn(GARBAGE))

    assert world.minutes_asked == [0, 2]
    execution = Execution.objects.get()
    assert (execution.status, execution.attempt, execution.slot_at) == ("SUCCESS", 2, NOW)
    assert list(ExecutionAttempt.objects.values_list("number", "status")) == [(1, "FAILED"), (2, "SUCCESS")]
    assert WorkflowNode.objects.get().consecutive_failures == 0


def test_a_slot_before_the_retry_runs_instead_and_carries_the_count() -> None:
    make_node(interval_seconds=60)

    async def scene(world: World) -> None:
        await world.tick()
        await world.pass_time(60)

    play(scene, garbled)

    assert list(Execution.objects.order_by("id").values_list("status", "slot_at")) == [
        ("FAILED", NOW),
        ("FAILED", NOW + timedelta(seconds=60)),
    ]
    assert WorkflowNode.objects.get().consecutive_failures == 2


def test_a_slot_that_comes_during_a_failing_try_is_skipped_and_the_retry_keeps_its_pause() -> None:
    """D2, D21: neither the slot nor the retry was left when each was left to the other."""
    node = make_node(interval_seconds=300)

    async def scene(world: World) -> None:
        async def answer(request: CollectRequest, control: RunControl) -> Collected:
            world.clock.wall += timedelta(seconds=310)
            world.clock.ticks += 310
            return GARBAGE

        world.devices.answer = answer
        await world.scheduler.tick()
        await world.executor.drain(timeout_seconds=60)

    play(scene, well)

    execution = Execution.objects.get()
    assert (execution.status, execution.resume_at) == ("WAITING", NOW + timedelta(seconds=430))
    node.refresh_from_db()
    assert (node.next_run_at, node.slots_skipped) == (NOW + timedelta(seconds=600), 1)


def test_the_slots_that_went_by_during_the_chain_are_passed_too() -> None:
    """S0-19, S0-28: a run ends with the last member of its chain."""
    master = make_node(interval_seconds=300)
    chain_to(master)

    async def scene(world: World) -> None:
        async def answer(request: CollectRequest, control: RunControl) -> Collected:
            world.clock.wall += timedelta(seconds=200)
            world.clock.ticks += 200
            return GOOD

        world.devices.answer = answer
        await world.scheduler.tick()
        await world.executor.drain(timeout_seconds=60)

    play(scene, well)

    master.refresh_from_db()
    assert master.last_run_at == NOW + timedelta(seconds=400)
    assert (master.next_run_at, master.slots_skipped) == (NOW + timedelta(seconds=600), 1)


def test_a_probe_planned_before_the_clock_was_set_back_is_due() -> None:
    """D8: never more than five minutes."""
    olt = make_olt()
    Olt.objects.filter(id=olt.id).update(next_probe_at=NOW + timedelta(hours=1))

    assert load_due_probes(NOW) == [olt.id]
    assert load_due_probes(NOW + timedelta(minutes=56)) == []


def test_the_chain_starts_after_the_masters_last_try() -> None:
    """S2-07."""
    master = make_node(interval_seconds=600)
    chain_to(master)

    async def scene(world: World) -> None:
        await world.tick()
        assert await world.database.run(Execution.objects.count) == 1
        await world.pass_time(130)

    play(scene, in_turn(GARBAGE))

    assert list(Execution.objects.order_by("id").values_list("status", "chain_position")) == [
        ("SUCCESS", 0),
        ("SUCCESS", 1),
    ]


def test_a_silent_olt_costs_three_tries_and_then_only_probes() -> None:
    """D8, S3-16, S3-18, S3-20: its other nodes do not burn attempts of their own, and the OLT stays enabled."""
    olt = make_olt()
    make_node(olt, interval_seconds=600)
    make_node(olt, interval_seconds=600)

    async def scene(world: World) -> None:
        await world.tick()
        await world.pass_time(400)

    world = play(scene, silent)

    assert world.minutes_asked == [0, 2, 4]
    nodes = WorkflowNode.objects.all()
    assert {node.suspend_reason for node in nodes} == {"unreachable"}
    assert all(node.enabled for node in nodes)
    olt.refresh_from_db()
    assert olt.enabled
    assert olt.next_probe_at == NOW + timedelta(minutes=5)


def test_an_answered_probe_returns_all_nodes_to_their_grid() -> None:
    """D8: at the next slot, without catching up."""
    olt = make_olt()
    make_node(olt, interval_seconds=300)
    make_node(olt, interval_seconds=600)

    async def scene(world: World) -> None:
        await world.tick()
        await world.pass_time(1_200)
        assert await world.database.run(load_due_probes, world.clock.now()) == [olt.id]
        await world.database.run(store.after_probe, olt.id, answered=False, now=world.clock.now())
        await world.database.run(store.after_probe, olt.id, answered=True, now=world.clock.now())

    world = play(scene, silent)

    now = world.clock.wall
    for node in WorkflowNode.objects.all():
        assert (node.suspended_at, node.suspend_reason, node.consecutive_failures) == (None, "", 0)
        assert node.next_run_at is not None
        assert now < node.next_run_at <= now + timedelta(seconds=node.interval_seconds)
        assert node.slots_skipped > 0
    olt.refresh_from_db()
    assert olt.next_probe_at is None


def test_a_node_that_answers_nonsense_gets_one_try_after_its_return() -> None:
    node = make_node(interval_seconds=600)

    async def scene(world: World) -> None:
        await world.tick()
        await world.pass_time(250)
        await world.database.run(store.after_probe, node.workflow.olt_id, answered=True, now=world.clock.now())
        await world.pass_time(360)

    world = play(scene, garbled)

    assert world.minutes_asked == [0, 2, 4, 10]
    node.refresh_from_db()
    assert node.suspend_reason == "malformed"


def test_a_sick_olt_delays_no_healthy_one() -> None:
    """A WAITING run holds no poller, so two dead OLTs leave all three pollers to the living."""
    sick = {make_node(interval_seconds=300).workflow.olt_id for _ in range(2)}
    healthy = make_node(interval_seconds=60)

    async def answer(request: CollectRequest, control: RunControl) -> Collected:
        return SILENCE if request.olt_id in sick else GOOD

    async def scene(world: World) -> None:
        await world.tick()
        await world.pass_time(600)

    play(scene, answer)

    healthy.refresh_from_db()
    assert healthy.slots_skipped == 0
    assert Execution.objects.filter(node=healthy, status="SUCCESS").count() == 11


def test_a_long_read_gives_way_and_goes_on_at_its_port() -> None:
    """D22: one execution, one slot, however many slices; the five-minute poll keeps its slot."""
    olt = make_olt()
    optics = make_node(olt, interval_seconds=3_600)
    state = make_node(olt, next_run_at=NOW + timedelta(seconds=20), interval_seconds=300)

    async def scene(world: World) -> None:
        async def answer(request: CollectRequest, control: RunControl) -> Collected:
            if world.devices.asked[-1][1] == NOW and request.cursor is None:
                world.clock.wall += timedelta(seconds=70)
                world.clock.ticks += 70
                assert await control.should_yield()
                return Collected({"onus": 5}, was_heard=True, cursor={"frame": 0, "slot": 1, "port": 3})
            if request.cursor:
                assert request.cursor == {"frame": 0, "slot": 1, "port": 3}
            return GOOD

        world.devices.answer = answer
        await world.tick()
        await world.tick()

    world = play(scene, well)

    pass_, poll = Execution.objects.get(node=optics), Execution.objects.get(node=state)
    assert (pass_.status, pass_.attempt, pass_.slot_at) == ("SUCCESS", 1, NOW)
    assert poll.status == "SUCCESS"
    assert poll.id > pass_.id
    assert [at for _, at in world.devices.asked] == [NOW, *[NOW + timedelta(seconds=70)] * 2]
    assert pass_.duration_ms == 70_000
    assert ExecutionAttempt.objects.filter(execution=pass_).count() == 1


def test_giving_way_forgets_no_failure() -> None:
    """D8: three failed tries suspend the node, however many slices lie between them."""
    node = make_node(interval_seconds=7_200)
    gave_way = Collected(was_heard=True, cursor={"frame": 0, "slot": 1, "port": 3})

    async def scene(world: World) -> None:
        await world.tick()
        await world.pass_time(600)

    play(scene, in_turn(GARBAGE, gave_way, GARBAGE, gave_way, GARBAGE))

    node.refresh_from_db()
    assert node.suspend_reason == "malformed"
    assert Execution.objects.get().attempt == 3


def test_cancelling_a_waiting_run_ends_its_attempt_and_skips_its_chain() -> None:
    master = make_node(interval_seconds=600)
    chain_to(master)

    async def scene(world: World) -> None:
        await world.scheduler.tick()
        await world.executor.drain(timeout_seconds=60)
        run = await world.database.run(Execution.objects.get)
        assert await world.database.run(cancel, run.id, now=world.clock.now())
        assert not await world.database.run(cancel, run.id, now=world.clock.now())

    play(scene, in_turn(Collected(was_heard=True, cursor={"frame": 0, "slot": 1, "port": 3})))

    assert list(Execution.objects.order_by("id").values_list("status", flat=True)) == ["INTERRUPTED", "SKIPPED"]
    assert not ExecutionAttempt.objects.filter(finished_at__isnull=True).exists()


def test_a_run_wished_for_goes_on_at_once_although_it_waits() -> None:
    node = make_node(interval_seconds=600)

    async def scene(world: World) -> None:
        await world.tick()
        await world.database.run(request_run, node.id, now=NOW)
        await world.pass_time(10)

    world = play(scene, in_turn(GARBAGE))

    assert world.minutes_asked == [0, round(10 / 60, 2)]
    node.refresh_from_db()
    assert node.run_requested_at is None


@pytest.mark.parametrize("everything", [True, False])
def test_a_pause_starts_nothing_and_its_end_catches_nothing_up(everything: bool) -> None:
    node = make_node(next_run_at=NOW + timedelta(seconds=5), interval_seconds=60)
    pause(None if everything else node.workflow.olt, minutes=10, note="fibre works", now=NOW)

    async def scene(world: World) -> None:
        await world.pass_time(590)
        assert world.devices.asked == []
        await world.pass_time(30)

    world = play(scene, well)

    assert len(world.devices.asked) == 1


def test_a_pause_can_end_early() -> None:
    node = make_node(interval_seconds=60)
    pause(node.workflow.olt, minutes=10, note="", now=NOW - timedelta(minutes=1))

    assert end_pauses(node.workflow.olt, now=NOW) == 1

    async def scene(world: World) -> None:
        await world.tick()

    assert len(play(scene, well).devices.asked) == 1


def test_a_node_disabled_while_its_run_waits_ends_that_run() -> None:
    node = make_node(interval_seconds=600)

    async def scene(world: World) -> None:
        await world.tick()
        await world.database.run(WorkflowNode.objects.filter(id=node.id).update, enabled=False)
        await world.database.run(end_forsaken, now=world.clock.now())
        await world.pass_time(200)

    world = play(scene, garbled)

    assert Execution.objects.get().status == "INTERRUPTED"
    assert len(world.devices.asked) == 1


def test_an_olt_without_secrets_to_read_still_ends_its_run() -> None:
    """A lost encryption key is a failure of the run, never of the claim."""
    node = make_node(interval_seconds=600)
    Olt.objects.filter(id=node.workflow.olt_id).update(community="")

    async def scene(world: World) -> None:
        await world.tick()

    play(scene, well)

    assert Execution.objects.get().status == "SUCCESS"
