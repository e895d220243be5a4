"""Failed tries: another one after a pause, or the next slot, and the chain after the last."""

from datetime import timedelta

import pytest

from facho.executions.models import Execution, ExecutionAttempt
from facho.hosts.models import Olt
from facho.polling.domain.collection import Collected, CollectRequest, RunControl
from facho.snmp_jobs.models import WorkflowNode
from facho.zabbix_pollers.models import Poller, PollerStatus
from factories import NOW, chain_to, make_node
from zabbix_pollers.retry_world import GARBAGE, GOOD, World, garbled, in_turn, play, well

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_failed_try_waits_two_minutes_and_goes_on_as_the_same_execution() -> None:
    """S3-08, S3-15, S3-19, D18, D21: it holds neither its OLT nor a poller meanwhile."""
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
            world.clock.advance(310)
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
            world.clock.advance(200)
            return GOOD

        world.devices.answer = answer
        await world.scheduler.tick()
        await world.executor.drain(timeout_seconds=60)

    play(scene, well)

    master.refresh_from_db()
    assert master.last_run_at == NOW + timedelta(seconds=400)
    assert (master.next_run_at, master.slots_skipped) == (NOW + timedelta(seconds=600), 1)


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


def test_an_olt_without_secrets_to_read_still_ends_its_run() -> None:
    """A lost encryption key is a failure of the run, never of the claim."""
    node = make_node(interval_seconds=600)
    Olt.objects.filter(id=node.workflow.olt_id).update(community="")

    async def scene(world: World) -> None:
        await world.tick()

    play(scene, well)

    assert Execution.objects.get().status == "SUCCESS"
