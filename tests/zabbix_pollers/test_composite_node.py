"""The composite as a value, and as what a poller is given."""

import asyncio
import importlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pytest

from api.rows import make_execution
from facho.core.gateway import ThreadGateway
from facho.executions.models import Execution
from facho.polling.domain.execution_state import ExecutionState
from facho.polling.domain.node_queue import NodeQueue
from facho.snmp_jobs.models import WorkflowNode
from facho.zabbix_pollers.composite_node import ChainNode, CompositeNode
from facho.zabbix_pollers.models import Poller, PollerStats, PollerStatus
from facho.zabbix_pollers.poller_manager import PollerManager
from facho.zabbix_pollers.queue_read_model import load_queue
from factories import NOW, chain_to, make_node, make_olt

pytestmark = pytest.mark.django_db(transaction=True)


@dataclass
class Notes:
    """An executor that notes what it was given and never runs it."""

    started: list[int] = field(default_factory=list)

    def start(self, execution_id: int, token: int) -> None:
        self.started.append(execution_id)

    def cancel(self, execution_id: int, reason: str) -> None:
        raise AssertionError("nothing is cancelled here")


def composite_of(node: WorkflowNode, now: datetime = NOW) -> CompositeNode:
    (composite,) = (each for each in load_queue(now).next_nodes if each.id == node.id)
    return composite


def manage(scene: Callable[[PollerManager], Awaitable[None]], *, pollers: int = 2) -> Notes:
    async def run() -> Notes:
        database, notes = ThreadGateway(), Notes()
        manager = PollerManager(start_pollers=pollers, database=database, executor=notes, owner="engine/one")
        try:
            await manager.prepare()
            await scene(manager)
        finally:
            await database.close()
        return notes

    return asyncio.run(run())


def test_a_composite_shows_its_master_its_chain_and_its_delay() -> None:
    """S0-26."""
    master = make_node(next_run_at=NOW - timedelta(seconds=400), interval_seconds=300)
    WorkflowNode.objects.filter(id=master.id).update(last_run_at=NOW - timedelta(seconds=700), priority=70)
    second, first = chain_to(master, priority=60), chain_to(master, priority=10)
    chain_to(master, enabled=False)

    composite = composite_of(master)

    assert (composite.id, composite.name, composite.enabled) == (master.id, master.job.name, True)
    assert (composite.nextcheck, composite.lastcheck) == (master.next_run_at, NOW - timedelta(seconds=700))
    assert (composite.interval_seconds, composite.priority) == (300, 70)
    assert (composite.delayed, composite.delay_time) == (True, 400.0)
    assert composite.chain_nodes == (ChainNode(first.id, first.name), ChainNode(second.id, second.name))
    assert composite.execution_time is None


def test_the_time_of_a_composite_is_that_of_its_whole_chain() -> None:
    """S0-19: of its last run, not of all of them."""
    master = make_node()
    members = [chain_to(master), chain_to(master)]
    for minutes, factor in ((60, 9), (5, 1)):
        at = NOW - timedelta(minutes=minutes)
        ran = make_execution(master, ExecutionState.SUCCESS, at=at, duration_ms=1_500 * factor)
        for position, member in enumerate(members, start=1):
            links = {"master_execution": ran, "chain_position": position}
            make_execution(member, ExecutionState.FAILED, at=at, duration_ms=250 * factor, **links)

    assert composite_of(master).execution_time == 2.0


def test_a_composite_starts_on_a_free_poller() -> None:
    """S2-01, S2-02: master and chain are one assignment."""
    master = make_node()
    chain_to(master)
    composite = composite_of(master)

    async def scene(manager: PollerManager) -> None:
        assert await manager.assign_node(composite, NOW)

    notes = manage(scene)

    assert notes.started == [Execution.objects.get().id]
    assert Poller.objects.get(status=PollerStatus.BUSY).current_node_id == master.id


def test_a_composite_waits_for_its_olt_and_for_a_poller() -> None:
    olt = make_olt()
    first, same_olt, other_olt = make_node(olt), make_node(olt), make_node()
    composites = [composite_of(node) for node in (first, same_olt, other_olt)]

    async def scene(manager: PollerManager) -> None:
        assert [await manager.assign_node(composite, NOW) for composite in composites] == [True, False, False]

    manage(scene, pollers=1)

    assert Execution.objects.get().node_id == first.id


def test_assigning_does_not_wait_for_the_run() -> None:
    """S0-30: this executor never runs anything, and three assignments return all the same."""
    composites = [composite_of(make_node()) for _ in range(3)]

    async def scene(manager: PollerManager) -> None:
        async with asyncio.timeout(20):
            for composite in composites:
                assert await manager.assign_node(composite, NOW)

    assert len(manage(scene, pollers=3).started) == 3


def test_statistics_come_from_the_database() -> None:
    """S2-10, S2-15."""
    master = make_node()
    member = chain_to(master)
    ran = make_execution(master, ExecutionState.SUCCESS, at=NOW, poller_id=0)
    runs = make_execution(member, at=NOW, poller_id=0, master_execution=ran, chain_position=1)

    async def scene(manager: PollerManager) -> None:
        stats = await manager._database.run(manager.get_stats, NOW)
        busy, free = stats.pollers
        assert (busy.status, free.status) == (PollerStatus.BUSY, PollerStatus.FREE)
        assert busy.composite is not None
        assert busy.composite.current_node_id == member.id
        assert busy.composite.execution_ids == (ran.id, runs.id)
        assert stats.global_stats.busy_pollers == 1

    manage(scene)


@pytest.mark.parametrize(
    ("model", "columns"),
    [
        (
            Poller,
            "poller_id status current_node_id busy_time total_time tasks_completed tasks_delayed created_at updated_at",
        ),
        (
            PollerStats,
            "total_pollers free_pollers busy_pollers busy_percentage queue_size is_saturated total_tasks_completed "
            "total_tasks_delayed timestamp",
        ),
    ],
)
def test_the_models_have_the_columns_of_the_specification(model: type[Poller | PollerStats], columns: str) -> None:
    """S0-20, S0-21."""
    assert set(columns.split()) <= {column.name for column in model._meta.get_fields()}


def test_a_new_poller_is_free_and_its_number_is_unique() -> None:
    """S0-20."""
    poller = Poller.objects.create(poller_id=3)

    assert (poller.status, poller.current_node_id) == (PollerStatus.FREE, None)
    assert (poller.busy_time, poller.total_time, poller.tasks_completed, poller.tasks_delayed) == (0.0, 0.0, 0, 0)
    assert Poller._meta.get_field("poller_id").unique


def test_the_specifications_parts_stand_where_it_names_them() -> None:
    """S0-41: the queue is a value of the manager, built from rows at every look."""
    parts = {
        "models": ["Poller", "PollerStats"],
        "composite_node": ["CompositeNode"],
        "scheduler": ["ZabbixScheduler"],
        "poller_manager": ["PollerManager"],
        "poller": ["occupy", "hand_on", "free"],
        "views": ["PollersView", "QueueView", "StatsView", "RunNodeView"],
        "tasks": ["zabbix_scheduler_loop_task"],
    }

    async def scene(manager: PollerManager) -> None:
        assert isinstance(manager.queue, NodeQueue)

    for module, names in parts.items():
        found = vars(importlib.import_module(f"facho.zabbix_pollers.{module}"))
        assert [name for name in names if name not in found] == [], module
    manage(scene)
