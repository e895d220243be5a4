"""Several schedulers on one database, each with its own OLTs, pollers and lease."""

from datetime import timedelta

import pytest
from asgiref.sync import sync_to_async
from pytest_django import Settings

from api.rows import make_execution, make_onu, make_pollers
from facho.executions.models import Execution
from facho.executions.onu_reads import load_wanted_reads, request_read
from facho.hosts.models import Olt
from facho.polling.domain.lease import Shard, all_shards
from facho.polling.domain.planning import WaitReason
from facho.snmp_jobs.models import WorkflowNode
from facho.zabbix_pollers.activity import load_is_polling
from facho.zabbix_pollers.explain import load_explanation, sentences
from facho.zabbix_pollers.models import LeaderLease
from facho.zabbix_pollers.poller_manager import PollerManager
from facho.zabbix_pollers.read_model import load_candidates
from facho.zabbix_pollers.store import forget_other_counts, lease_name, release_leadership, renew_leadership
from factories import NOW, make_node, make_olt
from zabbix_pollers.scheduler_world import World, play

pytestmark = pytest.mark.django_db(transaction=True)

SHARDS = all_shards(3)
MINUTE = timedelta(minutes=1)


def olts_of(shard: Shard, count: int = 1) -> list[Olt]:
    """Make OLTs until so many of them are the shard's."""
    found: list[Olt] = []
    while len(found) < count:
        olt = make_olt()
        found += [olt] if shard.holds(olt.id) else []
    return found


def shared_by_three(settings: Settings) -> None:
    settings.FACHO_ENGINES, settings.FACHO_POLLERS = 3, 6


@sync_to_async
def owners() -> dict[int, set[str]]:
    rows = Execution.objects.values_list("olt_id", "owner", "poller_id")
    return {olt_id % 3: {owner for other, owner, _ in rows if other % 3 == olt_id % 3} for olt_id, *_ in rows}


def test_each_scheduler_starts_the_nodes_of_its_own_olts_on_its_own_pollers() -> None:
    for shard in SHARDS:
        make_node(*olts_of(shard))

    async def scene(world: World) -> None:
        for shard in SHARDS:
            scheduler = world.another(f"engine/{shard.number}", shard)
            assert await scheduler.tick() == 1
            assert await scheduler.tick() == 0
        assert await owners() == {0: {"engine/1"}, 1: {"engine/2"}, 2: {"engine/3"}}

    play(scene)

    assert all(run.olt_id % 3 == (run.poller_id or 0) % 3 for run in Execution.objects.all())
    assert sorted(LeaderLease.objects.values_list("name", flat=True)) == [lease_name(shard) for shard in SHARDS]


def test_a_scheduler_leaves_the_dead_runs_of_others_to_them() -> None:
    make_node(*olts_of(SHARDS[0]))

    async def scene(world: World) -> None:
        mine, other = world.another("engine/1", SHARDS[0]), world.another("engine/2", SHARDS[1])
        await mine.tick()
        await other.tick()
        world.clock.advance(1_000)
        await other.tick()
        world.clock.advance(1_000)
        await other.tick()
        assert await sync_to_async(Execution.objects.filter(finished_at=None).count)() == 1

    play(scene)


def test_a_jump_of_the_clock_moves_the_nodes_of_the_scheduler_that_saw_it() -> None:
    [mine], [other] = olts_of(SHARDS[0]), olts_of(SHARDS[1])
    nodes = [make_node(olt, next_run_at=NOW + MINUTE, interval_seconds=300) for olt in (mine, other)]

    async def scene(world: World) -> None:
        scheduler = world.another("engine/1", SHARDS[0])
        await scheduler.tick()
        world.clock.wall += timedelta(hours=1)
        await scheduler.tick()

    play(scene)

    moved = [WorkflowNode.objects.get(id=node.id).next_run_at != NOW + MINUTE for node in nodes]
    assert moved == [True, False]


def test_a_lease_is_released_by_name_and_those_of_another_count_are_forgotten() -> None:
    for shard in (*SHARDS, Shard(1, 2), Shard(2, 2)):
        assert renew_leadership("engine-abc/1", now=NOW, shard=shard)
    assert renew_leadership("engine-elsewhere/1", now=NOW)

    release_leadership("engine-abc/", SHARDS[1])
    forget_other_counts("engine-abc/", SHARDS)

    assert set(LeaderLease.objects.values_list("name", flat=True)) == {"scheduler", "scheduler 1/3", "scheduler 3/3"}


def test_a_node_waits_for_the_pollers_of_its_own_engine(settings: Settings) -> None:
    shared_by_three(settings)
    make_pollers(3)
    busy, waiting = olts_of(SHARDS[0], 2)
    [other] = olts_of(SHARDS[1])
    make_execution(make_node(busy), poller_id=0)
    kept, free = make_node(waiting, next_run_at=NOW - MINUTE), make_node(other, next_run_at=NOW - 2 * MINUTE)

    queue, reported = load_candidates(NOW), load_explanation(kept.id, NOW)

    assert queue.reasons == {kept.id: WaitReason.NO_POLLER}
    assert {node.node_id for node in queue.due} == {kept.id, free.id}
    assert reported.place is not None
    # The node of the other engine is no rival.
    assert (reported.place.number, reported.place.size, reported.place.reason) == (1, 1, WaitReason.NO_POLLER)
    assert "No poller of its engine is free." in sentences(reported)
    assert [PollerManager.has_free_poller(shard=shard) for shard in SHARDS] == [False, True, True]


def test_who_waits_for_a_dead_engine_is_reported_and_the_others_poll(settings: Settings) -> None:
    shared_by_three(settings)
    for shard in SHARDS[:2]:
        renew_leadership(f"engine/{shard.number}", now=NOW, shard=shard)
    renew_leadership("engine/3", now=NOW - MINUTE, shard=SHARDS[2])

    [[one], [two], [three]] = (olts_of(shard) for shard in SHARDS)

    assert not load_is_polling(NOW)
    assert [load_is_polling(NOW, olt_id=olt.id) for olt in (one, two, three)] == [True, True, False]
    assert not load_explanation(make_node(three).id, NOW).is_polling


def test_a_read_is_granted_by_the_engine_of_its_olt() -> None:
    [olt] = olts_of(SHARDS[2])
    onu = make_onu(olt, (0, 1, 3, 7))
    request_read(onu.id, now=NOW)

    assert [len(load_wanted_reads(NOW, shard)) for shard in SHARDS] == [0, 0, 1]
