"""Runs that wait, because they gave way or failed, and OLTs that are paused."""

from datetime import timedelta

import pytest

from facho.executions.models import Execution, ExecutionAttempt
from facho.executions.store import cancel, end_abandoned
from facho.hosts.store import end_pauses, pause
from facho.polling.domain.collection import Collected, CollectRequest, RunControl
from facho.snmp_jobs.models import WorkflowNode
from facho.snmp_jobs.store import request_run
from factories import NOW, chain_to, make_node, make_olt
from zabbix_pollers.retry_world import GARBAGE, GOOD, World, garbled, in_turn, play, well

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_long_read_gives_way_and_goes_on_at_its_port() -> None:
    """D22: one execution, one slot, however many slices; the five-minute poll keeps its slot."""
    olt = make_olt()
    optics = make_node(olt, interval_seconds=3_600)
    state = make_node(olt, next_run_at=NOW + timedelta(seconds=20), interval_seconds=300)

    port, cursors = {"frame": 0, "slot": 1, "port": 3}, []

    async def scene(world: World) -> None:
        async def answer(request: CollectRequest, control: RunControl) -> Collected:
            cursors.append(request.cursor)
            if world.devices.asked[-1][1] == NOW and request.cursor is None:
                world.clock.advance(70)
                assert await control.should_yield()
                return Collected({"onus": 5}, was_heard=True, cursor=port)
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
    assert cursors == [None, None, port]
    assert pass_.duration_ms == 70_000
    assert ExecutionAttempt.objects.filter(execution=pass_).count() == 1


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


def test_a_node_disabled_while_its_run_waits_ends_that_run() -> None:
    node = make_node(interval_seconds=600)

    async def scene(world: World) -> None:
        await world.tick()
        await world.database.run(WorkflowNode.objects.filter(id=node.id).update, enabled=False)
        await world.database.run(end_abandoned, now=world.clock.now())
        await world.pass_time(200)

    world = play(scene, garbled)

    assert Execution.objects.get().status == "INTERRUPTED"
    assert len(world.devices.asked) == 1


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
