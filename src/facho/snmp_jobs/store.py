"""Reads and writes nodes: what is due, where each node's schedule stands, what a person asked for."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import F, Q, QuerySet
from django.db.models.functions import Coalesce

from facho.polling.domain.planning import DueNode
from facho.polling.domain.slots import count_slots, next_slot_after, slot_at_or_before
from facho.polling.domain.task_type import RANK, QueryType, task_type
from facho.snmp_jobs.models import Cadence, WorkflowNode


class UnknownNode(LookupError):
    """No node has this id."""


class IsChainNode(ValueError):
    """A chain member does not run alone: its master does."""

    def __init__(self, master_id: int) -> None:
        super().__init__(master_id)
        self.master_id = master_id


@dataclass(frozen=True, slots=True)
class Schedule:
    """A due node's place on its grid: the slot it serves, the slot after it, and how many were missed."""

    node_id: int
    task_type: str
    slot_at: datetime | None
    next_run_at: datetime | None
    slots_skipped: int


def due_nodes(now: datetime) -> QuerySet[WorkflowNode]:
    """Select the masters that may start: enabled, not suspended, on an enabled OLT, and due or asked for."""
    return WorkflowNode.objects.filter(
        Q(next_run_at__lte=now) | Q(run_requested_at__isnull=False),
        enabled=True,
        is_chain_node=False,
        suspended_at__isnull=True,
        workflow__olt__enabled=True,
    )


def load_due_nodes(now: datetime) -> list[DueNode]:
    """Load what is due as plain values, in one query."""
    rows = (
        due_nodes(now)
        .annotate(due_at=Coalesce("run_requested_at", "next_run_at"))
        .values_list(
            "id", "workflow__olt_id", "due_at", "run_requested_at", "interval_seconds", "priority", "job__query_type"
        )
    )
    return [
        DueNode(
            node_id=node_id,
            olt_id=olt_id,
            due_at=due_at,
            interval_seconds=interval,
            priority=priority,
            rank=RANK[QueryType(query_type)],
            is_run_now=requested_at is not None,
        )
        for node_id, olt_id, due_at, requested_at, interval, priority, query_type in rows
    ]


def load_schedules(node_ids: Sequence[int], now: datetime) -> list[Schedule]:
    """Work out, in one query, which slot each node would serve if it started now."""
    nodes = WorkflowNode.objects.filter(id__in=node_ids).select_related("job")
    return [_schedule(node, now) for node in nodes]


def save_claimed(schedules: Sequence[Schedule]) -> None:
    """Move the claimed nodes to their next slot and grant their wishes; one statement."""
    rows = [
        WorkflowNode(id=schedule.node_id, next_run_at=schedule.next_run_at, run_requested_at=None)
        for schedule in schedules
    ]
    WorkflowNode.objects.bulk_update(rows, ["next_run_at", "run_requested_at"])
    for schedule in schedules:
        if schedule.slots_skipped:
            count_skipped(schedule.node_id, schedule.slots_skipped)


def save_ended(node_id: int, now: datetime) -> None:
    """Record the end of a run, and move past the slots that went by meanwhile: they are never caught up."""
    node = WorkflowNode.objects.select_related("job").filter(id=node_id).first()
    if node is None:
        return
    values: dict[str, object] = {"last_run_at": now}
    if node.next_run_at is not None and node.job.cadence == Cadence.FIXED_DELAY:
        values["next_run_at"] = now + timedelta(seconds=node.interval_seconds)
    elif node.next_run_at is not None and node.next_run_at <= now:
        values["next_run_at"] = _next_slot(node, now)
        values["slots_skipped"] = F("slots_skipped") + _slots_up_to(node, now)
    WorkflowNode.objects.filter(id=node_id).update(**values)


def count_skipped(node_id: int, slots: int) -> None:
    """Add slots that got no run."""
    WorkflowNode.objects.filter(id=node_id).update(slots_skipped=F("slots_skipped") + slots)


def request_run(node_id: int, *, now: datetime) -> WorkflowNode:
    """Ask for a run as soon as the OLT is free; the wish is a column, so a restart does not lose it."""
    node = WorkflowNode.objects.select_related("job", "workflow__olt").filter(id=node_id).first()
    if node is None:
        raise UnknownNode(node_id)
    if node.master_node_id is not None:
        raise IsChainNode(node.master_node_id)
    WorkflowNode.objects.filter(id=node_id).update(run_requested_at=now)
    return node


def _schedule(node: WorkflowNode, now: datetime) -> Schedule:
    kind = task_type(QueryType(node.job.query_type), node.job.slug)
    if node.next_run_at is None or node.next_run_at > now:
        # Only asked for: the grid stays as it is, and the run counts for no slot.
        return Schedule(node.id, kind, slot_at=None, next_run_at=node.next_run_at, slots_skipped=0)
    if node.job.cadence == Cadence.FIXED_DELAY:
        provisional = now + timedelta(seconds=node.interval_seconds)
        return Schedule(node.id, kind, slot_at=node.next_run_at, next_run_at=provisional, slots_skipped=0)
    slot = slot_at_or_before(now, interval_seconds=node.interval_seconds, offset_seconds=node.offset_seconds)
    # A changed offset may leave a due time off the grid and after its latest slot: it is served all the same.
    slot = max(slot, node.next_run_at)
    return Schedule(
        node.id,
        kind,
        slot_at=slot,
        next_run_at=_next_slot(node, now),
        slots_skipped=max(_slots_up_to(node, now) - 1, 0),
    )


def _next_slot(node: WorkflowNode, now: datetime) -> datetime:
    return next_slot_after(now, interval_seconds=node.interval_seconds, offset_seconds=node.offset_seconds)


def _slots_up_to(node: WorkflowNode, now: datetime) -> int:
    """Count the slots from the node's due time to now, the due one included."""
    if node.next_run_at is None:
        return 0
    just_before = node.next_run_at - timedelta(microseconds=1)
    return count_slots(just_before, now, interval_seconds=node.interval_seconds, offset_seconds=node.offset_seconds)
