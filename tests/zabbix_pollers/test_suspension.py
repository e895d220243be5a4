"""Nodes that failed too often rest, and come back when their OLT answers."""

from datetime import timedelta

import pytest

from facho.executions.models import Execution
from facho.hosts.models import Olt
from facho.hosts.store import load_due_probes
from facho.polling.domain.collection import Collected, CollectRequest, RunControl
from facho.snmp_jobs.models import WorkflowNode
from facho.zabbix_pollers import store
from factories import NOW, make_node, make_olt
from zabbix_pollers.retry_world import GARBAGE, GOOD, SILENCE, World, garbled, in_turn, play, silent

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_probe_planned_before_the_clock_was_set_back_is_due() -> None:
    """D8: never more than five minutes."""
    olt = make_olt()
    Olt.objects.filter(id=olt.id).update(next_probe_at=NOW + timedelta(hours=1))

    assert load_due_probes(NOW) == [olt.id]
    assert load_due_probes(NOW + timedelta(minutes=56)) == []
    # Another machine, whose clock is a little behind, does not take the wait for one of another time.
    assert load_due_probes(NOW + timedelta(minutes=54, seconds=58)) == []


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
