"""Moves nodes along their grid: what a claim and an end do to a schedule, suspension and return, a person's wish."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db.models import F, QuerySet

from facho.polling.domain.retry import SILENCE
from facho.polling.domain.slots import count_slots, slot_at_or_before
from facho.polling.domain.task_type import QueryType, task_type
from facho.polling.domain.window import Window, next_slot_in
from facho.snmp_jobs.models import Cadence, SnmpJob, WorkflowNode

# A person's wish must not fail because a key is lost.
_SECRETS = tuple(f"workflow__olt__{name}" for name in ("community", "v3_auth_key", "v3_priv_key"))


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

    node: WorkflowNode
    task_type: str
    slot_at: datetime | None
    next_run_at: datetime | None
    slots_skipped: int


def load_schedules(node_ids: Sequence[int], now: datetime) -> list[Schedule]:
    """Work out, in one query, which slot each node would serve if it started now; the OLT's address comes along."""
    nodes = WorkflowNode.objects.filter(id__in=node_ids).select_related("job", "workflow__olt").defer(*_SECRETS)
    return [_schedule(node, now) for node in nodes]


def save_claimed(schedules: Sequence[Schedule]) -> None:
    """Move the claimed nodes to their next slot and grant their wishes; one statement."""
    for schedule in schedules:
        schedule.node.next_run_at = schedule.next_run_at
        schedule.node.run_requested_at = None
        schedule.node.slots_skipped += schedule.slots_skipped
    fields = ["next_run_at", "run_requested_at", "slots_skipped"]
    WorkflowNode.objects.bulk_update([schedule.node for schedule in schedules], fields)


def save_ended(node_id: int, *, failures_in_a_row: int, now: datetime) -> None:
    """Record the end of a run, and move past the slots that went by meanwhile: they are never caught up."""
    node = WorkflowNode.objects.select_related("job").filter(id=node_id).first()
    if node is None:
        return
    values: dict[str, object] = {"last_run_at": now, "consecutive_failures": failures_in_a_row}
    if node.next_run_at is not None and node.job.cadence == Cadence.FIXED_DELAY:
        values["next_run_at"] = now + timedelta(seconds=node.interval_seconds)
    elif node.next_run_at is not None and node.next_run_at <= now:
        values["next_run_at"] = _next_slot(node, now)
        values["slots_skipped"] = F("slots_skipped") + _slots_up_to(node, now)
    WorkflowNode.objects.filter(id=node_id).update(**values)


def grant_wish(node_id: int) -> None:
    """Take back the wish for a run, which is being granted."""
    WorkflowNode.objects.filter(id=node_id).update(run_requested_at=None)


def save_failures(node_id: int, failures_in_a_row: int) -> None:
    """Count failed tries of a run that is not over."""
    WorkflowNode.objects.filter(id=node_id).update(consecutive_failures=failures_in_a_row)


def suspend(nodes: QuerySet[WorkflowNode], *, reason: str, now: datetime) -> int:
    """Give these nodes no further slot until a probe or a person brings them back; `enabled` stays as it is."""
    return nodes.filter(suspended_at__isnull=True).update(suspended_at=now, suspend_reason=reason)


def return_to_schedule(nodes: QuerySet[WorkflowNode], *, now: datetime) -> int:
    """End the suspension of nodes: each goes on at its next slot, and what went by is skipped.

    A node that answered nonsense gets one try, not three: if it fails again, it is suspended again at once.
    """
    suspended = list(nodes.filter(suspended_at__isnull=False).select_related("job"))
    for node in suspended:
        is_silence = node.suspend_reason in SILENCE
        node.consecutive_failures = 0 if is_silence else max(node.job.max_attempts - 1, 0)
        node.suspended_at, node.suspend_reason = None, ""
        put_on_grid(node, now)
    WorkflowNode.objects.bulk_update(
        suspended,
        ["consecutive_failures", "suspended_at", "suspend_reason", "next_run_at", "slots_skipped"],
    )
    return len(suspended)


def put_on_grid(node: WorkflowNode, now: datetime) -> None:
    """Set, without saving, a master's next run to its next slot from now, counting what went by."""
    if node.is_chain_node or node.next_run_at is None:
        return
    if node.next_run_at <= now:
        node.slots_skipped += _slots_up_to(node, now)
    node.next_run_at = _next_slot(node, now)


def put_all_on_grid(now: datetime) -> int:
    """After a jump of the wall clock, let every master go on from its next slot: no burst and no stall."""
    nodes = list(WorkflowNode.objects.filter(is_chain_node=False, next_run_at__isnull=False).select_related("job"))
    for node in nodes:
        node.next_run_at = _next_slot(node, now)
    WorkflowNode.objects.bulk_update(nodes, ["next_run_at"], batch_size=500)
    return len(nodes)


def request_run(node_id: int, *, now: datetime) -> WorkflowNode:
    """Ask for a run as soon as the OLT is free; the wish is a column, so a restart does not lose it."""
    node = WorkflowNode.objects.select_related("job", "workflow__olt").defer(*_SECRETS).filter(id=node_id).first()
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
        return Schedule(node, kind, slot_at=None, next_run_at=node.next_run_at, slots_skipped=0)
    if node.job.cadence == Cadence.FIXED_DELAY:
        provisional = now + timedelta(seconds=node.interval_seconds)
        return Schedule(node, kind, slot_at=node.next_run_at, next_run_at=provisional, slots_skipped=0)
    slot = slot_at_or_before(now, interval_seconds=node.interval_seconds, offset_seconds=node.offset_seconds)
    # A changed offset may leave a due time off the grid and after its latest slot: it is served all the same.
    slot = max(slot, node.next_run_at)
    return Schedule(
        node,
        kind,
        slot_at=slot,
        next_run_at=_next_slot(node, now),
        slots_skipped=max(_slots_up_to(node, now) - 1, 0),
    )


def _next_slot(node: WorkflowNode, now: datetime) -> datetime:
    if node.job.cadence == Cadence.FIXED_DELAY:
        return now + timedelta(seconds=node.interval_seconds)
    return next_slot_in(
        window_of(node.job), now, interval_seconds=node.interval_seconds, offset_seconds=node.offset_seconds
    )


def window_of(job: SnmpJob) -> Window | None:
    """Return the hours in which a job may run, in the installation's time zone; None for always."""
    if job.hours_from is None or job.hours_to is None:
        return None
    return Window(job.hours_from, job.hours_to, ZoneInfo(settings.TIME_ZONE))


def _slots_up_to(node: WorkflowNode, now: datetime) -> int:
    """Count the slots from the node's due time to now, the due one included."""
    if node.next_run_at is None:
        return 0
    just_before = node.next_run_at - timedelta(microseconds=1)
    return count_slots(just_before, now, interval_seconds=node.interval_seconds, offset_seconds=node.offset_seconds)
