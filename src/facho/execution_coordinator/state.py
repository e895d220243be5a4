"""Reads the whole system as the coordinator looks at it: every OLT, its tasks and when they are due, in two queries.

More only while an OLT was never discovered: some of its tasks wait for that.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, time
from itertools import starmap
from typing import Any, NamedTuple

from django.db.models import Q, QuerySet

from facho.execution_coordinator.models import OltState
from facho.hosts.models import Olt, Reachability
from facho.infrastructure.statements import Select
from facho.polling.domain.changes import OltView, Task
from facho.polling.domain.execution_state import QueryType
from facho.polling.domain.planning import DueNode, FirstDiscovery, WaitReason, owes_slots
from facho.polling.domain.quota import Promise
from facho.polling.domain.schedule import Grid, task_type
from facho.snmp_jobs.due import load_waits
from facho.snmp_jobs.models import WorkflowNode
from facho.snmp_jobs.store import build_grid
from facho.zabbix_pollers.activity import Holder, load_holders
from facho.zabbix_pollers.read_model import load_candidates


class _TaskColumns(NamedTuple):
    id: int
    workflow__olt_id: int
    master_node_id: int | None
    next_run_at: datetime | None
    suspended_at: datetime | None
    priority: int
    interval_seconds: int
    offset_seconds: int
    job__query_type: str
    job__slug: str
    job__cadence: str
    job__hours_from: time | None
    job__hours_to: time | None


_OLT_OF_TASK = _TaskColumns._fields.index("workflow__olt_id")


class _OltColumns(NamedTuple):
    id: int
    name: str
    enabled: bool
    reachability: str
    last_answer_at: datetime | None
    next_probe_at: datetime | None
    discovered_at: datetime | None


@dataclass(frozen=True, slots=True)
class TaskRow:
    """An enabled node: one job on one OLT."""

    node_id: int
    olt_id: int
    master_id: int | None
    task_type: str
    grid: Grid
    next_run_at: datetime | None
    suspended_at: datetime | None
    priority: int
    # Where the first discovery stands that it waits for; None when it waits for none.
    first_discovery: FirstDiscovery | None = None

    @property
    def owes_slots(self) -> bool:
        """Whether what comes now is owed: not while the first discovery of its OLT is coming."""
        return self.first_discovery is None or owes_slots(self.first_discovery, reads_onus=True)

    def is_stuck(self, now: datetime) -> bool:
        """Return whether its slot has come and no discovery will let it start; a suspended one is skipped as such."""
        has_come = self.next_run_at is not None and self.next_run_at <= now
        return has_come and self.suspended_at is None and self.first_discovery is not None and self.owes_slots

    @property
    def place(self) -> tuple[int, int]:
        return self.priority, self.node_id

    @property
    def as_seen(self) -> Task:
        """What matters about it; a chain member has no interval but its master's."""
        return Task(self.node_id, self.task_type, 0 if self.master_id else self.grid.interval_seconds)

    def promise(self, *, is_under_way: bool) -> Promise | None:
        """Return what the node still owes; a chain member owes what its master does."""
        if self.next_run_at is None or not self.owes_slots:
            return None
        is_held = self.suspended_at is not None or self.first_discovery is not None
        return Promise(self.grid, self.next_run_at, is_suspended=is_held, is_under_way=is_under_way)


@dataclass(frozen=True, slots=True)
class OltRow:
    olt_id: int
    name: str
    enabled: bool
    is_silent: bool
    last_answer_at: datetime | None
    next_probe_at: datetime | None
    tasks: tuple[TaskRow, ...]
    is_discovered: bool = True

    @property
    def view(self) -> OltView:
        return OltView(
            self.enabled, self.is_silent, tuple(task.as_seen for task in self.tasks), is_discovered=self.is_discovered
        )


def load_olts(olt_ids: list[int] | None = None, *, as_if_enabled: Collection[int] = ()) -> dict[int, OltRow]:
    """Load every OLT, or these, with their enabled tasks; a member of a disabled master's chain is none.

    Nodes `as_if_enabled` count as enabled: what somebody thinks of enabling can be judged before.
    """
    if olt_ids is None and not as_if_enabled:
        return OltRows().load()
    found = _build(list(_select_olts(olt_ids)), list(_select_tasks(olt_ids, as_if_enabled)), {})
    return {olt_id: olt for olt_id, (_, olt) in found.items()}


# What the database has of an OLT and of its tasks.
_Read = tuple[tuple[Any, ...], list[tuple[Any, ...]]]


class OltRows:
    """Loads every OLT every few seconds, as the coordinator does; what did not change is not built again."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[_Read, OltRow]] = {}

    def load(self) -> dict[int, OltRow]:
        """Return the rows as they are now; one that did not change is the same object."""
        self._known = _build(_ALL_OLTS.rows(), _ALL_TASKS.rows(), self._known)
        return {olt_id: olt for olt_id, (_, olt) in self._known.items()}


def _build(
    olts: Sequence[tuple[Any, ...]], nodes: Sequence[tuple[Any, ...]], known: Mapping[int, tuple[_Read, OltRow]]
) -> dict[int, tuple[_Read, OltRow]]:
    """Make the rows of OLTs from what was read, but for those of which the same was read before."""
    tasks: dict[int, list[tuple[Any, ...]]] = defaultdict(list)
    for node in nodes:
        tasks[node[_OLT_OF_TASK]].append(node)
    found, new = {}, list[_Read]()
    for row in olts:
        olt_id = row[0]
        read = row, tasks[olt_id]
        if (before := known.get(olt_id)) and before[0] == read and before[1].is_discovered:
            found[olt_id] = before
        else:
            new.append(read)
    columns = [_OltColumns(*row) for row, _ in new]
    # What its tasks wait for is not in the rows of an OLT that was never discovered.
    waits = load_waits([olt.id for olt in columns if olt.enabled and olt.discovered_at is None])
    for olt, read in zip(columns, new, strict=True):
        found[olt.id] = read, _olt_row(olt, read[1], waits)
    return {row[0]: found[row[0]] for row in olts}


def _olt_row(olt: _OltColumns, nodes: Iterable[tuple[Any, ...]], waits: Mapping[int, FirstDiscovery]) -> OltRow:
    tasks = []
    for row in starmap(_TaskColumns, nodes):
        hours = row.job__hours_from, row.job__hours_to
        tasks.append(
            TaskRow(
                row.id,
                row.workflow__olt_id,
                row.master_node_id,
                task_type(QueryType(row.job__query_type), row.job__slug),
                build_grid(row.interval_seconds, row.offset_seconds, row.job__cadence, hours),
                row.next_run_at,
                row.suspended_at,
                row.priority,
                waits.get(row.id),
            )
        )
    return OltRow(
        olt.id,
        olt.name,
        olt.enabled,
        olt.reachability == Reachability.DOWN,
        olt.last_answer_at,
        olt.next_probe_at,
        tuple(tasks),
        is_discovered=olt.discovered_at is not None,
    )


def _select_olts(olt_ids: list[int] | None) -> QuerySet[Olt, Any]:
    olts = Olt.objects.order_by("id")
    return (olts if olt_ids is None else olts.filter(id__in=olt_ids)).values_list(*_OltColumns._fields)


def _select_tasks(olt_ids: list[int] | None, as_if_enabled: Collection[int]) -> QuerySet[WorkflowNode, Any]:
    is_enabled, is_left_out = Q(enabled=True), Q(master_node__enabled=False)
    if as_if_enabled:
        is_enabled |= Q(id__in=as_if_enabled)
        is_left_out &= ~Q(master_node_id__in=as_if_enabled)
    nodes = WorkflowNode.objects.filter(is_enabled).order_by("id")
    if olt_ids is not None:
        nodes = nodes.filter(workflow__olt_id__in=olt_ids)
    return nodes.exclude(is_left_out).values_list(*_TaskColumns._fields)


_ALL_OLTS = Select(lambda: _select_olts(None))
_ALL_TASKS = Select(lambda: _select_tasks(None, ()))


@dataclass(frozen=True, slots=True)
class WaitingNode:
    """A node in the queue; without a reason it starts at once."""

    node_id: int
    task_type: str
    due_at: datetime
    run_now: bool
    execution_id: int | None
    reason: WaitReason | None


@dataclass(frozen=True, slots=True)
class CoordinatorState:
    """One OLT; the hash and its time are those of the last pass that changed anything."""

    row: OltRow
    holder: Holder | None
    queue: tuple[WaitingNode, ...]
    state_hash: str | None
    saved_at: datetime | None


def load_states(olt_ids: Sequence[int], now: datetime) -> list[CoordinatorState]:
    """Load these OLTs in the order given; eight queries, however many there are."""
    rows, holders, candidates = load_olts(list(olt_ids)), load_holders(olt_ids), load_candidates(now)
    queues: dict[int, list[DueNode]] = defaultdict(list)
    for node in candidates.due:
        queues[node.olt_id].append(node)
    remembered = {state.olt_id: state for state in OltState.objects.filter(olt_id__in=olt_ids).defer("state")}
    states = []
    for row in (rows[olt_id] for olt_id in olt_ids if olt_id in rows):
        task_types = {task.node_id: task.task_type for task in row.tasks}
        queue = tuple(
            WaitingNode(
                node_id=node.node_id,
                task_type=task_types.get(node.node_id, ""),
                due_at=node.due_at,
                run_now=node.is_run_now,
                execution_id=node.execution_id,
                reason=candidates.reasons.get(node.node_id),
            )
            for node in queues[row.olt_id]
        )
        seen = remembered.get(row.olt_id)
        state_hash, saved_at = (seen.state_hash, seen.saved_at) if seen else (None, None)
        states.append(CoordinatorState(row, holders.get(row.olt_id), queue, state_hash, saved_at))
    return states
