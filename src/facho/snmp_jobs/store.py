"""Moves nodes along their grid: what a claim and an end do to a schedule, suspension and return, a person's wish."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from itertools import chain
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q, QuerySet

from facho.polling.domain.quota import SkipReason
from facho.polling.domain.schedule import Grid, plan_end, plan_rejoin, plan_start
from facho.polling.domain.slots import first_offset
from facho.polling.domain.suspension import UNREACHABLE
from facho.polling.domain.task_type import QueryType, task_type
from facho.polling.domain.window import Window, next_slot_in
from facho.snmp_jobs.due import due_nodes
from facho.snmp_jobs.models import Cadence, SnmpJob, WorkflowNode
from facho.snmp_jobs.skipped import Passage, passed_until_now, save_skipped

ReasonOf = Callable[[WorkflowNode], SkipReason]
# From and to, as a job or a rule has them; it may have none.
Hours = tuple[time | None, time | None]

# What the grid of a node is made of, of its and its job's forty columns.
_GRID = (
    "interval_seconds",
    "offset_seconds",
    "next_run_at",
    "slots_skipped",
    "job__cadence",
    "job__hours_from",
    "job__hours_to",
)
_STARTING = (
    *_GRID,
    "run_requested_at",
    "job__slug",
    "job__query_type",
    "workflow__olt__address",
    "workflow__olt__port",
)


class UnknownNode(LookupError):
    """No node has this id."""


class NodeMoved(Exception):
    """Somebody else moved a node along its grid after its schedule was read."""


class IsChainNode(ValueError):
    """A chain member does not run alone: its master does."""

    def __init__(self, master_id: int) -> None:
        super().__init__(master_id)
        self.master_id = master_id


@dataclass(frozen=True, slots=True)
class Schedule:
    """A due node's place on its grid: the slot it serves, the slot after it, and how many were missed.

    When its hours are over it does not run, and only moves on: `is_run` is False.
    """

    node: WorkflowNode
    task_type: str
    slot_at: datetime | None
    next_run_at: datetime | None
    slots_skipped: int
    is_run: bool = True


def load_schedules(node_ids: Sequence[int], now: datetime) -> list[Schedule]:
    """Work out, in one query, which slot each node would serve if it started now; the OLT's address comes along.

    A node that another process has started meanwhile, and that nobody asks for, is left out, and so is one that was
    disabled, suspended or paused meanwhile.
    """
    nodes = due_nodes(now).filter(id__in=node_ids).select_related("job", "workflow__olt").only(*_STARTING)
    return [schedule for node in nodes if (schedule := _schedule(node, now))]


def save_claimed(schedules: Sequence[Schedule], waited: Mapping[int, SkipReason], *, now: datetime) -> None:
    """Move the claimed nodes to their next slot and grant their wishes; one statement.

    Slots before the served one are written down as skipped; `waited` says why, of who waited before our eyes.
    NodeMoved when one of them is not due any more: its slot is written down as skipped, and must not start.
    """
    passages = list(chain.from_iterable(_passed_by_start(schedule, waited, now) for schedule in schedules))
    due = {schedule.node.id for schedule in schedules if schedule.next_run_at != schedule.node.next_run_at}
    for schedule in schedules:
        schedule.node.next_run_at = schedule.next_run_at if schedule.node.id in due else F("next_run_at")
        schedule.node.run_requested_at = None
        schedule.node.slots_skipped = F("slots_skipped") + schedule.slots_skipped
    as_read = WorkflowNode.objects.filter(~Q(id__in=due) | Q(next_run_at__lte=now))
    fields = ["next_run_at", "run_requested_at", "slots_skipped"]
    if as_read.bulk_update([schedule.node for schedule in schedules], fields) < len(schedules):
        raise NodeMoved
    # Rows of nodes first, then those of their slots: whoever took them the other way round would wait for ever.
    save_skipped(passages, now)


def save_ended(node_id: int, *, failures_in_a_row: int, now: datetime) -> None:
    """Record the end of a run, and move past the slots that went by meanwhile: they are never caught up."""
    _save_moved(node_id, now, last_run_at=now, consecutive_failures=failures_in_a_row)


def save_chain_ended(master_id: int, *, now: datetime) -> None:
    """Record the end of a master's chain, which is the end of its run: slots that went by meanwhile are passed."""
    _save_moved(master_id, now, last_run_at=now)


def grant_wish(node_id: int) -> None:
    """Take back the wish for a run, which is being granted."""
    WorkflowNode.objects.filter(id=node_id).update(run_requested_at=None)


def save_failures(node_id: int, failures_in_a_row: int, *, now: datetime) -> None:
    """Count the failed tries of a run that goes on later, and pass the slots that went by during this one."""
    _save_moved(node_id, now, consecutive_failures=failures_in_a_row)


def suspend(nodes: QuerySet[WorkflowNode], *, reason: str, now: datetime) -> int:
    """Give these nodes no further slot until a probe or a person brings them back; `enabled` stays as it is."""
    return nodes.filter(suspended_at__isnull=True).update(suspended_at=now, suspend_reason=reason)


def return_to_schedule(nodes: QuerySet[WorkflowNode], *, now: datetime) -> int:
    """End the suspension of nodes: each goes on at its next slot, and what went by is skipped.

    A node that answered nonsense gets one try, not three: if it fails again, it is suspended again at once.
    """
    with transaction.atomic(savepoint=False):
        suspended = _hold(nodes.filter(suspended_at__isnull=False))
        _put_on_grid(suspended, now, _reason_of_suspension)
        for node in suspended:
            is_silence = node.suspend_reason == UNREACHABLE
            node.consecutive_failures = 0 if is_silence else max(node.job.max_attempts - 1, 0)
            node.suspended_at, node.suspend_reason = None, ""
        WorkflowNode.objects.bulk_update(
            suspended,
            ["consecutive_failures", "suspended_at", "suspend_reason", "next_run_at", "slots_skipped"],
        )
    return len(suspended)


def pass_suspended(now: datetime) -> int:
    """Let suspended masters pass the slots that have come: they stay owed, and the quotas see them skipped at once."""
    overdue = WorkflowNode.objects.filter(
        suspended_at__isnull=False, next_run_at__lte=now, enabled=True, workflow__olt__enabled=True
    )
    return _save_on_grid(overdue, now, _reason_of_suspension)


def put_all_on_grid(now: datetime) -> int:
    """After a jump of the wall clock, let every master go on from its next slot: no burst and no stall."""
    masters = WorkflowNode.objects.filter(is_chain_node=False, next_run_at__isnull=False)
    return _save_on_grid(masters, now, _the_clock)


def pull_back_to_grid(now: datetime) -> int:
    """Let masters go on from their next slot that wait for longer than their interval.

    Nobody looked when the clock was set back; a job that waits for its hours stays where it is.
    """
    masters = WorkflowNode.objects.filter(is_chain_node=False)
    intervals = set(masters.values_list("interval_seconds", flat=True).distinct().order_by())
    is_ahead = Q(pk__in=[])
    for seconds in intervals:
        is_ahead |= Q(interval_seconds=seconds, next_run_at__gt=now + timedelta(seconds=seconds))
    return _save_on_grid(masters.filter(is_ahead), now, _the_clock)


def pull_node_back(node_id: int, now: datetime) -> None:
    """After a change of its interval, let a master go on from its next slot if it would wait for longer than that."""
    node = WorkflowNode.objects.filter(id=node_id).first()
    if node is not None and node.next_run_at and node.next_run_at > now + timedelta(seconds=node.interval_seconds):
        _save_on_grid(WorkflowNode.objects.filter(id=node_id), now, _the_clock)


def put_job_on_grid(job: SnmpJob, now: datetime) -> None:
    """After a change of a job's hours, let its masters go on at the next slot at which they may run."""
    masters = WorkflowNode.objects.filter(job=job, is_chain_node=False, next_run_at__isnull=False)
    _save_on_grid(masters, now, _its_hours)


def request_run(node_id: int, *, now: datetime) -> WorkflowNode:
    """Ask for a run as soon as the OLT is free; the wish is a column, so a restart does not lose it."""
    node = WorkflowNode.objects.select_related("job", "workflow__olt").only(*_STARTING).filter(id=node_id).first()
    if node is None:
        raise UnknownNode(node_id)
    if node.master_node_id is not None:
        raise IsChainNode(node.master_node_id)
    WorkflowNode.objects.filter(id=node_id).update(run_requested_at=now)
    return node


def next_slot_after_try(node: WorkflowNode, now: datetime) -> datetime | None:
    """Return the slot that follows a try which ends now; None for a node without a time of its own."""
    return plan_end(grid_of(node), node.next_run_at, now=now).next_run_at if node.next_run_at else None


def _save_on_grid(masters: QuerySet[WorkflowNode], now: datetime, reason_of: ReasonOf) -> int:
    # Whoever has nothing to move does not ask for SQLite's one writer.
    if not masters.exists():
        return 0
    with transaction.atomic(savepoint=False):
        nodes = _hold(masters)
        _put_on_grid(nodes, now, reason_of)
        WorkflowNode.objects.bulk_update(nodes, ["next_run_at", "slots_skipped"], batch_size=500)
    return len(nodes)


def _hold(nodes: QuerySet[WorkflowNode]) -> list[WorkflowNode]:
    """Load nodes as they are, so that nobody moves them before the end of the transaction."""
    return list(nodes.select_related("job").select_for_update(of=("self",), no_key=True).order_by("id"))


def _put_on_grid(nodes: Iterable[WorkflowNode], now: datetime, reason_of: ReasonOf) -> None:
    """Set, without saving, each master's next run to its next slot from now, and write down what went by."""
    passages: list[Passage] = []
    for node in nodes:
        if node.next_run_at is not None:
            grid = grid_of(node)
            passages += passed_until_now(node.id, grid, node.next_run_at, now, reason_of(node))
            move = plan_rejoin(grid, node.next_run_at, now=now)
            node.next_run_at = move.next_run_at
            node.slots_skipped += move.slots_skipped
    save_skipped(passages, now)


def _reason_of_suspension(node: WorkflowNode) -> SkipReason:
    return SkipReason.OLT_UNREACHABLE if node.suspend_reason == UNREACHABLE else SkipReason.SUSPENDED


def _the_clock(_node: WorkflowNode) -> SkipReason:
    return SkipReason.CLOCK


def _its_hours(_node: WorkflowNode) -> SkipReason:
    return SkipReason.OUT_OF_HOURS


def _passed_by_start(schedule: Schedule, waited: Mapping[int, SkipReason], now: datetime) -> list[Passage]:
    """Describe what a start passes over: everything due before the slot that it serves."""
    node, due_at = schedule.node, schedule.node.next_run_at
    if due_at is None or due_at > now:
        return []
    if schedule.slot_at is None:
        return passed_until_now(node.id, grid_of(node), due_at, now, SkipReason.OUT_OF_HOURS)
    reason = waited.get(node.id, SkipReason.NOT_POLLING)
    return [Passage(node.id, grid_of(node), due_at, schedule.slot_at, reason)]


def _save_moved(node_id: int, now: datetime, **values: object) -> None:
    node = WorkflowNode.objects.select_related("job").only(*_GRID).filter(id=node_id).first()
    if node is None:
        return
    passages: list[Passage] = []
    if node.next_run_at is not None:
        grid = grid_of(node)
        move = plan_end(grid, node.next_run_at, now=now)
        if move.slots_skipped:
            passages = passed_until_now(node_id, grid, node.next_run_at, now, SkipReason.OWN_RUN)
        values["next_run_at"], values["slots_skipped"] = move.next_run_at, F("slots_skipped") + move.slots_skipped
    WorkflowNode.objects.filter(id=node_id).update(**values)
    save_skipped(passages, now)


def _schedule(node: WorkflowNode, now: datetime) -> Schedule | None:
    is_asked_for = node.run_requested_at is not None
    start = plan_start(grid_of(node), node.next_run_at, is_asked_for=is_asked_for, now=now)
    if start is None:
        return None
    kind = task_type(QueryType(node.job.query_type), node.job.slug)
    return Schedule(node, kind, start.slot_at, start.next_run_at, start.slots_skipped, start.is_run)


def grid_of(node: WorkflowNode) -> Grid:
    """Return when the node's slots are."""
    job = node.job
    return build_grid(node.interval_seconds, node.offset_seconds, job.cadence, (job.hours_from, job.hours_to))


def build_grid(interval_seconds: int, offset_seconds: int, cadence: str, hours: Hours) -> Grid:
    """Return the slots that these columns of a node and its job mean, for those who load columns and no rows."""
    is_fixed_delay = cadence == Cadence.FIXED_DELAY
    return Grid(interval_seconds, offset_seconds, build_window(hours), is_fixed_delay=is_fixed_delay)


def first_slot(node: WorkflowNode, now: datetime) -> tuple[int, datetime]:
    """Return the offset and the first run of a master that was just enabled; many enabled together are spread."""
    offset = first_offset(node.id, interval_seconds=node.interval_seconds, now=now)
    window = window_of(node.job)
    return offset, next_slot_in(window, now, interval_seconds=node.interval_seconds, offset_seconds=offset)


def window_of(job: SnmpJob) -> Window | None:
    """Return the hours in which a job may run, in the installation's time zone; None for always."""
    return build_window((job.hours_from, job.hours_to))


def build_window(hours: Hours) -> Window | None:
    """Return the hours of every day on the installation's clock; None where one end is missing."""
    opens, closes = hours
    return None if opens is None or closes is None else Window(opens, closes, ZoneInfo(settings.TIME_ZONE))
