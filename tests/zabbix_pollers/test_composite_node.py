"""The composite as a value, and as what a poller is given."""

import ast
import asyncio
import importlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path

import pytest

import facho
from api.rows import make_execution
from facho.core.wiring import open_parts
from facho.executions.models import Execution
from facho.executions.runner import InProcessExecutor
from facho.executions.store import load_unfinished
from facho.infrastructure.gateway import ThreadGateway
from facho.polling.domain.collection import Collected, CollectRequest, RunControl
from facho.polling.domain.execution_state import ExecutionState
from facho.polling.domain.planning import NodeQueue
from facho.snmp_jobs.models import WorkflowNode
from facho.zabbix_pollers import store
from facho.zabbix_pollers.composite_node import CompositeNode, Step
from facho.zabbix_pollers.models import Poller, PollerStats, PollerStatus
from facho.zabbix_pollers.poller_manager import PollerManager
from facho.zabbix_pollers.read_model import load_queue
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


def manage(scene: Callable[[PollerManager], Awaitable[object]], *, pollers: int = 2) -> Notes:
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


async def start_due(manager: PollerManager) -> int:
    unfinished = await manager._database.run(load_unfinished, NOW)
    return await manager.start_due_nodes(unfinished, NOW)


def test_a_composite_shows_its_master_its_chain_and_its_delay() -> None:
    """S0-26, S0-08."""
    master = make_node(next_run_at=NOW - timedelta(seconds=400), interval_seconds=300)
    WorkflowNode.objects.filter(id=master.id).update(last_run_at=NOW - timedelta(seconds=700), priority=70)
    second, first = chain_to(master, priority=60), chain_to(master, priority=10)
    chain_to(master, enabled=False)

    composite = composite_of(master)

    assert (composite.id, composite.name, composite.enabled) == (master.id, master.job.name, True)
    assert (composite.nextcheck, composite.lastcheck) == (master.next_run_at, NOW - timedelta(seconds=700))
    assert (composite.interval_seconds, composite.priority) == (300, 70)
    assert (composite.delayed, composite.delay_time) == (True, 400.0)
    assert composite.chain_nodes == (Step(first.id, first.name), Step(second.id, second.name))
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
    """S2-01, S2-02: master and chain are one assignment, and its poller is busy before anybody runs it."""
    master = make_node()
    members = [chain_to(master), chain_to(master)]

    notes = manage(start_due)

    execution = Execution.objects.get()
    assert (notes.started, execution.status) == ([execution.id], ExecutionState.PENDING)
    busy = Poller.objects.get(status=PollerStatus.BUSY)
    assert (busy.current_node_id, busy.current_execution_id) == (master.id, execution.id)
    assert not Execution.objects.filter(node__in=members).exists()


def test_what_finds_its_olt_or_every_poller_taken_is_not_assigned() -> None:
    olt = make_olt()
    first, same_olt, other_olt = make_node(olt), make_node(olt), make_node()

    async def scene(manager: PollerManager) -> None:
        await start_due(manager)
        assert {node.node_id for node in manager.queue.peek(10, now=NOW)} == {same_olt.id, other_olt.id}

    manage(scene, pollers=1)

    assert Execution.objects.get().node_id == first.id


@pytest.mark.parametrize("state", list(ExecutionState))
def test_an_olt_is_busy_while_an_execution_of_it_is_active(state: ExecutionState) -> None:
    """S0-29: pending and running, and nothing else; another OLT is none of it."""
    node, other = make_node(), make_node()
    make_execution(node, state, at=NOW)

    assert PollerManager.is_olt_busy(node.workflow.olt_id) == (state in ("PENDING", "RUNNING"))
    assert not PollerManager.is_olt_busy(other.workflow.olt_id)


@pytest.mark.parametrize(
    ("groups", "held", "free"),
    [
        ({}, [], {"": 0, "north": 0}),
        ({}, [0], {"": 1, "north": 1}),
        ({}, [0, 1], {"": None, "north": None}),
        ({"north": 1}, [0], {"": 1, "north": 2, "south": None}),
        ({"north": 1}, [2], {"": 0, "north": None}),
    ],
)
def test_the_free_poller_of_a_group_is_its_lowest(
    groups: dict[str, int], held: list[int], free: dict[str, int | None]
) -> None:
    """Two pollers, and those of the groups; without groups all share them."""
    store.save_poller_count(2, groups)
    for poller_id in held:
        make_execution(make_node(), at=NOW, poller_id=poller_id)

    assert {group: PollerManager.get_free_poller(group) for group in free} == free
    assert {group: PollerManager.has_free_poller(group) for group in free} == {
        group: number is not None for group, number in free.items()
    }


def test_assigning_does_not_wait_for_the_run() -> None:
    """S0-30: while three OLTs do not answer, ticks go on, and start what else is due."""
    silent = [make_node() for _ in range(3)]

    class Silence:
        async def collect(self, request: CollectRequest, control: RunControl) -> Collected:
            await asyncio.Event().wait()
            raise AssertionError("nobody sets it")

    async def run() -> list[int | None]:
        async with open_parts("test") as parts:
            executor = InProcessExecutor(parts.runner(Silence()), lambda: None)
            manager = PollerManager(start_pollers=4, database=parts.database, executor=executor, owner=parts.owner)
            await manager.prepare()
            async with asyncio.timeout(30):
                assert await start_due(manager) == 3
                late = await parts.database.run(make_node)
                assert await start_due(manager) == 1
            unfinished = await parts.database.run(load_unfinished, NOW)
            await executor.drain(timeout_seconds=0)
            assert late.id in (run.node_id for run in unfinished.active)
            return [run.node_id for run in unfinished.active]

    assert len(asyncio.run(run())) == len(silent) + 1


def test_statistics_come_from_the_database() -> None:
    """S2-10, S2-15."""
    master = make_node()
    member = chain_to(master)
    ran = make_execution(master, ExecutionState.SUCCESS, at=NOW, poller_id=0)
    runs = make_execution(member, at=NOW, poller_id=0, master_execution=ran, chain_position=1)

    async def scene(manager: PollerManager) -> None:
        stats = await manager._database.run(PollerManager.get_stats, NOW)
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


# Module, class, and the members of it that the specification names.
PARTS = [
    ("zabbix_pollers.models", "Poller", ""),
    ("zabbix_pollers.models", "PollerStats", ""),
    ("zabbix_pollers.composite_node", "CompositeNode", "execute"),
    ("zabbix_pollers.scheduler", "ZabbixScheduler", "scheduler_loop on_task_completed"),
    (
        "zabbix_pollers.poller_manager",
        "PollerManager",
        "has_free_poller get_free_poller is_olt_busy assign_node get_stats",
    ),
    ("polling.domain.planning", "NodeQueue", "put qsize is_overload peek"),
    ("zabbix_pollers.store", "occupy", ""),
    ("zabbix_pollers.store", "hand_on", ""),
    ("zabbix_pollers.store", "free", ""),
    ("zabbix_pollers.views", "PollersView", ""),
    ("zabbix_pollers.views", "QueueView", ""),
    ("zabbix_pollers.views", "StatsView", ""),
    ("zabbix_pollers.views", "RunNodeView", ""),
    ("zabbix_pollers.tasks", "zabbix_scheduler_loop_task", ""),
]


@pytest.mark.parametrize(("module", "name", "members"), PARTS, ids=[part[1] for part in PARTS])
def test_the_specifications_parts_stand_where_it_names_them_and_are_used(module: str, name: str, members: str) -> None:
    """S0-41: what the specification names is what the product itself calls."""
    part = getattr(importlib.import_module(f"facho.{module}"), name)

    assert [member for member in members.split() if not callable(getattr(part, member, None))] == []
    assert [member for member in members.split() if member not in used_attributes()] == []


def test_the_queue_of_the_manager_is_a_node_queue() -> None:
    """S0-41: a value of the manager, built from rows at every look."""

    async def scene(manager: PollerManager) -> None:
        assert isinstance(manager.queue, NodeQueue)

    manage(scene)


@cache
def used_attributes() -> frozenset[str]:
    """Name everything that the product takes from an object, as in `queue.peek`."""
    trees = [ast.parse(path.read_text()) for path in Path(facho.__file__).parent.rglob("*.py")]
    return frozenset(node.attr for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Attribute))
