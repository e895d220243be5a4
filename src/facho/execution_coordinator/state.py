"""Reads the whole system as the coordinator looks at it: every OLT, its tasks and when they are due, in two queries."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from facho.hosts.models import Olt, Reachability
from facho.polling.domain.changes import OltView, Task
from facho.polling.domain.quota import Promise
from facho.polling.domain.schedule import Grid
from facho.polling.domain.task_type import QueryType, task_type
from facho.snmp_jobs.models import WorkflowNode
from facho.snmp_jobs.store import build_grid

_TASK_COLUMNS = (
    *("id", "workflow__olt_id", "master_node_id", "next_run_at", "suspended_at", "priority"),
    *("interval_seconds", "offset_seconds"),
    *("job__query_type", "job__slug", "job__cadence", "job__hours_from", "job__hours_to"),
)


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

    @property
    def place(self) -> tuple[int, int]:
        """Where it stands in its chain."""
        return self.priority, self.node_id

    @property
    def as_seen(self) -> Task:
        """What matters about it; a chain member has no interval but its master's."""
        return Task(self.node_id, self.task_type, 0 if self.master_id else self.grid.interval_seconds)

    def promise(self, *, is_under_way: bool) -> Promise | None:
        """Return what the node still owes; a chain member owes what its master does."""
        if self.next_run_at is None:
            return None
        return Promise(
            self.grid, self.next_run_at, is_suspended=self.suspended_at is not None, is_under_way=is_under_way
        )


@dataclass(frozen=True, slots=True)
class OltRow:
    """An OLT with the tasks that are enabled on it."""

    olt_id: int
    name: str
    enabled: bool
    is_silent: bool
    last_answer_at: datetime | None
    next_probe_at: datetime | None
    tasks: tuple[TaskRow, ...]

    @property
    def view(self) -> OltView:
        """What matters about it."""
        return OltView(self.enabled, self.is_silent, tuple(task.as_seen for task in self.tasks))


def load_olts(olt_ids: list[int] | None = None) -> dict[int, OltRow]:
    """Load every OLT, or these, with their enabled tasks; a member of a disabled master's chain is none."""
    olts, nodes = Olt.objects.order_by("id"), WorkflowNode.objects.filter(enabled=True).order_by("id")
    if olt_ids is not None:
        olts, nodes = olts.filter(id__in=olt_ids), nodes.filter(workflow__olt_id__in=olt_ids)
    tasks: dict[int, list[TaskRow]] = {}
    for task in _load_tasks(nodes):
        tasks.setdefault(task.olt_id, []).append(task)
    return {
        olt_id: OltRow(
            olt_id,
            name,
            enabled,
            reachability == Reachability.DOWN,
            last_answer_at,
            next_probe_at,
            tuple(tasks.get(olt_id, ())),
        )
        for olt_id, name, enabled, reachability, last_answer_at, next_probe_at in olts.values_list(
            "id", "name", "enabled", "reachability", "last_answer_at", "next_probe_at"
        )
    }


def _load_tasks(nodes: QuerySet[WorkflowNode]) -> list[TaskRow]:
    rows = nodes.exclude(master_node__enabled=False).values_list(*_TASK_COLUMNS, named=True)
    return [_task_of(row) for row in rows]


def _task_of(row: Any) -> TaskRow:
    hours = row.job__hours_from, row.job__hours_to
    return TaskRow(
        row.id,
        row.workflow__olt_id,
        row.master_node_id,
        task_type(QueryType(row.job__query_type), row.job__slug),
        build_grid(row.interval_seconds, row.offset_seconds, row.job__cadence, hours),
        row.next_run_at,
        row.suspended_at,
        row.priority,
    )
