"""Moves nodes along their grid: the end of a run, suspension and return, a person's request.

`change_nodes` is the one door for what people, programs and the coordinator change about nodes. The next run is the
border: every slot before it is settled, every slot from it on is open. So a row moves only in a transaction that also
writes what it passes, by `save_skipped` or as the execution of the slot that it serves.

At the end: what is read, by name.
"""

import logging
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, time, timedelta
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.db import transaction
from django.db.models import DateTimeField, F, IntegerField, Min, Q, QuerySet
from django.db.models.functions import Coalesce
from django.utils.translation import gettext_lazy

from facho.accounts.audit import Action, record
from facho.hosts.store import is_paused, polling_pauses
from facho.infrastructure.bulk import in_shard
from facho.infrastructure.statements import Given, Select, Update
from facho.polling.domain import schedule
from facho.polling.domain.execution_state import UNREACHABLE
from facho.polling.domain.lease import WHOLE, Shard
from facho.polling.domain.quota import NOT_OWED, SkipReason
from facho.polling.snmp.oid import format_oid
from facho.polling.vendors.loader import load_definitions
from facho.snmp_jobs.due import load_waits
from facho.snmp_jobs.models import Cadence, SkippedSlot, SnmpJob, SnmpJobOid, WorkflowNode

logger = logging.getLogger(__name__)

INSTANT = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Passage:
    """A node's slots from `due_at` to `until`, the latter excluded, passed for this reason."""

    node_id: int
    grid: schedule.Grid
    due_at: datetime
    until: datetime
    reason: SkipReason


def passed_until_now(
    node_id: int, grid: schedule.Grid, due_at: datetime | None, now: datetime, reason: SkipReason
) -> list[Passage]:
    """Describe that a node continues after now, without the slots due up to now."""
    return [] if due_at is None or due_at > now else [Passage(node_id, grid, due_at, now + INSTANT, reason)]


def save_skipped(passages: Iterable[Passage], now: datetime) -> None:
    """Store passed slots, for masters and their chains.

    Each slot of this hour and the one before has a row of its own, for the quotas. Older hours are judged: after a week
    without polling a row for each slot of it is useless, so all that is older is one row.
    """
    since = schedule.hour_of(now).start - schedule.HOUR
    rows: dict[int, list[SkippedSlot]] = defaultdict(list)
    for passage in passages:
        rows[passage.node_id] += _rows(passage, since)
    rows = {node_id: skipped for node_id, skipped in rows.items() if skipped}
    if not rows:
        return
    _name_pauses(rows)
    _log_gaps(rows)
    every = [*(row for skipped in rows.values() for row in skipped), *_rows_of_chains(rows)]
    SkippedSlot.objects.bulk_create(every, ignore_conflicts=True, batch_size=500)


def owed_slots(span: schedule.Span) -> QuerySet[SkippedSlot]:
    """Select what was owed in a span and got no run, a row for each slot; what a person took away was not owed."""
    rows = SkippedSlot.objects.filter(slot_at__gte=span.start, slot_at__lt=span.end, count=1)
    return rows.exclude(reason__in=NOT_OWED).order_by()


def _rows(passage: Passage, since: datetime) -> Iterator[SkippedSlot]:
    grid, due_at, until, node_id = passage.grid, passage.due_at, passage.until, passage.node_id
    if due_at < min(since, until):
        end = min(since, until)
        last = max(grid.slots(due_at, due_at, end)) if grid.window else grid.latest(due_at, end - INSTANT)
        count = grid.count(due_at, last)
        yield SkippedSlot(node_id=node_id, slot_at=last, first_slot_at=due_at, count=count, reason=passage.reason)
    for slot in grid.slots(due_at, since, until):
        yield SkippedSlot(node_id=node_id, slot_at=slot, reason=passage.reason)


def _name_pauses(rows: Mapping[int, Collection[SkippedSlot]]) -> None:
    """Correct the reason of slots passed in a pause: a process started later only knows that polling stopped."""
    slots = [row.slot_at for skipped in rows.values() for row in skipped]
    pauses = polling_pauses().filter(starts_at__lte=max(slots), ends_at__gt=min(slots))
    spans: dict[int | None, list[schedule.Span]] = defaultdict(list)
    for olt_id, starts_at, ends_at in pauses.values_list("olt_id", "starts_at", "ends_at"):
        spans[olt_id].append(schedule.Span(starts_at, ends_at))
    if not spans:
        return
    olts = dict(WorkflowNode.objects.filter(id__in=list(rows)).order_by().values_list("id", "workflow__olt_id"))
    for node_id, skipped in rows.items():
        paused = [*spans[None], *spans[olts.get(node_id)]]
        for row in skipped:
            if any(span.contains(row.slot_at) for span in paused):
                row.reason = SkipReason.PAUSED


def _log_gaps(rows: Mapping[int, Collection[SkippedSlot]]) -> None:
    """Log passed slots as one line when they are too many to list."""
    gaps = [row for skipped in rows.values() for row in skipped if row.first_slot_at]
    if gaps:
        logger.warning(
            "slots.skipped_long_ago nodes=%s slots=%s from=%s to=%s",
            len(gaps),
            sum(row.count for row in gaps),
            min(row.first_slot_at for row in gaps if row.first_slot_at),
            max(row.slot_at for row in gaps),
        )


def _rows_of_chains(rows: Mapping[int, Collection[SkippedSlot]]) -> Iterator[SkippedSlot]:
    """Let chain members share what their masters missed: they owe the same slots."""
    members = WorkflowNode.objects.filter(master_node_id__in=list(rows), enabled=True).order_by()
    for member_id, master_id in members.values_list("id", "master_node_id"):
        for row in rows[master_id or 0]:
            yield SkippedSlot(
                node_id=member_id,
                slot_at=row.slot_at,
                first_slot_at=row.first_slot_at,
                count=row.count,
                reason=row.reason,
            )


# From and to, as a job or a rule has them; it may have none.
Hours = tuple[time | None, time | None]


def grid_of(node: WorkflowNode) -> schedule.Grid:
    job = node.job
    return build_grid(node.interval_seconds, node.offset_seconds, job.cadence, (job.hours_from, job.hours_to))


def build_grid(interval_seconds: int, offset_seconds: int, cadence: str, hours: Hours) -> schedule.Grid:
    """Return the slots that these columns of a node and its job mean, for those who load columns and no rows."""
    is_fixed_delay = cadence == Cadence.FIXED_DELAY
    return schedule.Grid(interval_seconds, offset_seconds, build_window(hours), is_fixed_delay=is_fixed_delay)


def window_of(job: SnmpJob) -> schedule.Window | None:
    """Return the hours in which a job may run, in the installation's time zone; None for always."""
    return build_window((job.hours_from, job.hours_to))


def build_window(hours: Hours) -> schedule.Window | None:
    """Return the hours of every day on the installation's clock; None where one end is missing."""
    opens, closes = hours
    return None if opens is None or closes is None else schedule.Window(opens, closes, ZoneInfo(settings.TIME_ZONE))


ReasonOf = Callable[[WorkflowNode], SkipReason]

# For how long a busy coordinator may look: what it finds disabled may have been so only after it asked for the time.
LONGEST_LOOK = timedelta(seconds=60)


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
STARTING = (
    *_GRID,
    "run_requested_at",
    "job__slug",
    "job__query_type",
    "workflow__olt__address",
    "workflow__olt__port",
)


_MOVED = ("next_run_at", "run_requested_at", "slots_skipped")
_CHANGED = ("enabled", "interval_seconds", "priority", "offset_seconds", *_MOVED, "updated_at")


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
class NodeChange:
    """Changes to nodes; None leaves a value. `offset_seconds` takes effect after the next run (decision D12)."""

    enabled: bool | None = None
    interval_seconds: int | None = None
    priority: int | None = None
    offset_seconds: int | None = None

    @property
    def values(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if value is not None}


def change_nodes(nodes: QuerySet[WorkflowNode], change: NodeChange, *, now: datetime) -> int:
    """Change nodes and their next runs; returns how many nodes changed.

    Enabled nodes start within a minute, spread; disabled nodes lose their next run. Another interval moves the next
    run only where `plan_change` says so. A master of a disabled OLT has no next run until its OLT is enabled.
    """
    wanted = change.values
    if not wanted:
        return 0
    with transaction.atomic(savepoint=False):
        held = _hold(nodes.exclude(**wanted))
        # One that was disabled starts over, even if it has a next run.
        befores = [grid_of(node) if node.enabled else None for node in held]
        for node in held:
            node.updated_at = now
            for name, value in wanted.items():
                setattr(node, name, value)
        _save_rescheduled(held, befores, now)
    return len(held)


def change_schedule_of_job(job: SnmpJob, *, cadence: str, hours: Hours, now: datetime) -> None:
    """Move the masters of a job to its new cadence and hours; the former ones are given."""
    masters = WorkflowNode.objects.filter(job=job, is_chain_node=False, next_run_at__isnull=False)
    with transaction.atomic(savepoint=False):
        held = _hold(masters)
        befores = [build_grid(node.interval_seconds, node.offset_seconds, cadence, hours) for node in held]
        _save_rescheduled(held, befores, now)


def give_first_slots(nodes: QuerySet[WorkflowNode], now: datetime) -> int:
    """Put masters that begin, or start over, on their grid, spread; former slots are passed. Returns how many."""
    beginning = nodes.filter(is_chain_node=False, enabled=True, workflow__olt__enabled=True)
    with transaction.atomic(savepoint=False):
        masters = _hold(beginning)
        _save_rescheduled(masters, [None] * len(masters), now)
    return len(masters)


def save_ended(node_id: int, *, now: datetime, failures_in_a_row: int | None = None) -> None:
    """Record the end of a run or, of a master, that of its chain; slots that passed meanwhile are never caught up."""
    _save_moved(node_id, now, last_run_at=now, failures_in_a_row=failures_in_a_row)


def save_failures(node_id: int, failures_in_a_row: int, *, now: datetime) -> None:
    """Count the failed tries of a run that continues later, and skip the slots that passed during this one."""
    _save_moved(node_id, now, failures_in_a_row=failures_in_a_row)


def suspend(nodes: QuerySet[WorkflowNode], *, reason: str, now: datetime) -> None:
    """Give these nodes no further slot until a probe or a person brings them back; `enabled` stays as it is."""
    nodes.filter(suspended_at__isnull=True).update(suspended_at=now, suspend_reason=reason)


def return_to_schedule(nodes: QuerySet[WorkflowNode], *, now: datetime) -> int:
    """End the suspension of nodes: each continues at its next slot, and has one try."""
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


def _suspended_and_due(now: datetime | Given) -> QuerySet[WorkflowNode]:
    return WorkflowNode.objects.filter(
        suspended_at__isnull=False, next_run_at__lte=now, enabled=True, workflow__olt__enabled=True
    )


_ANY_PASSING = Select(lambda: _suspended_and_due(Given("now", DateTimeField())).order_by().values_list("id")[:1])


def pass_suspended(now: datetime) -> None:
    """Let suspended masters pass the slots that have come: they stay owed, and the quotas see them skipped at once."""
    if _ANY_PASSING.rows(now=now):
        _save_on_grid(_suspended_and_due(now), now, _reason_of_suspension)


def pass_undiscovered(node_ids: Sequence[int], now: datetime) -> None:
    """Let masters pass the slots that have come whose OLT has no first discovery coming: they stay owed, and missed."""
    overdue = WorkflowNode.objects.filter(id__in=node_ids, suspended_at__isnull=True, next_run_at__lte=now)
    _save_on_grid(overdue, now, lambda _node: SkipReason.NO_DISCOVERY)


def put_all_on_grid(now: datetime, shard: Shard = WHOLE) -> None:
    """After a jump of the wall clock, let every master continue from its next slot: no burst and no stall."""
    masters = WorkflowNode.objects.filter(
        in_shard("workflow__olt_id", shard), is_chain_node=False, next_run_at__isnull=False
    )
    _save_on_grid(masters, now, lambda _node: SkipReason.CLOCK)


def pull_back_to_grid(now: datetime, shard: Shard = WHOLE) -> None:
    """Let masters that wait for longer than their interval, as after a clock set back, continue."""
    masters = WorkflowNode.objects.filter(in_shard("workflow__olt_id", shard), is_chain_node=False)
    intervals = set(masters.values_list("interval_seconds", flat=True).distinct().order_by())
    is_ahead = Q(pk__in=[])
    for seconds in intervals:
        is_ahead |= Q(interval_seconds=seconds, next_run_at__gt=now + timedelta(seconds=seconds))
    _save_on_grid(masters.filter(is_ahead), now, lambda _node: SkipReason.CLOCK)


def begin_onu_reads(olt_id: int, now: datetime) -> int:
    """Give the masters that waited for the first discovery of their OLT their first slot: this very second.

    Their grids begin here, so that the run which comes at once and the next are an interval apart. What came before was
    not owed. Every master of the OLT is held, in order: the caller moves the discovery's own.
    """
    masters = _hold(WorkflowNode.objects.filter(workflow__olt_id=olt_id, is_chain_node=False))
    waits = load_waits([olt_id])
    waiting = [node for node in masters if node.id in waits and node.next_run_at is not None]
    slot = now.replace(microsecond=0)
    _pass_what_came(waiting, until=slot - INSTANT, now=now, reason=SkipReason.FIRST_DISCOVERY)
    for node in waiting:
        node.offset_seconds = schedule.offset_of(slot, interval_seconds=node.interval_seconds)
        window = window_of(node.job)
        node.next_run_at = slot if window is None or window.contains(slot) else grid_of(node).next_after(now)
    WorkflowNode.objects.bulk_update(waiting, ["offset_seconds", "next_run_at", "slots_skipped"])
    return len(waiting)


def take_off_grid(nodes: QuerySet[WorkflowNode], now: datetime) -> None:
    """Clear the next run of nodes, so that they start over when enabled; slots due until now count as passed."""
    with transaction.atomic(savepoint=False):
        timed = _hold(nodes.filter(Q(next_run_at__isnull=False) | Q(run_requested_at__isnull=False)))
        _pass_what_came(timed, until=now + LONGEST_LOOK, now=now)
        for node in timed:
            node.next_run_at = node.run_requested_at = None
        WorkflowNode.objects.bulk_update(timed, _MOVED, batch_size=500)


def request_runs(nodes: QuerySet[WorkflowNode], *, now: datetime) -> int:
    """Ask for a run of each enabled master among these; a chain member runs with its master."""
    masters = WorkflowNode.objects.filter(
        pk__in=nodes.order_by().values("pk"), is_chain_node=False, enabled=True, workflow__olt__enabled=True
    )
    return masters.update(run_requested_at=now)


def request_run(node_id: int, *, now: datetime) -> WorkflowNode:
    """Ask for a run as soon as the OLT is free; the request is a column, so a restart does not lose it."""
    node = WorkflowNode.objects.select_related("job", "workflow__olt").only(*STARTING).filter(id=node_id).first()
    if node is None:
        raise UnknownNode(node_id)
    if node.master_node_id is not None:
        raise IsChainNode(node.master_node_id)
    WorkflowNode.objects.filter(id=node_id).update(run_requested_at=now)
    return node


def next_slot_after_try(node: WorkflowNode, now: datetime) -> datetime | None:
    """Return the slot that follows a try which ends now; None for a node without a time of its own."""
    return schedule.plan_end(grid_of(node), node.next_run_at, now=now).next_run_at if node.next_run_at else None


def _save_on_grid(masters: QuerySet[WorkflowNode], now: datetime, reason_of: ReasonOf) -> None:
    # With nothing to move, do not take SQLite's write lock.
    if not masters.exists():
        return
    with transaction.atomic(savepoint=False):
        nodes = _hold(masters)
        _put_on_grid(nodes, now, reason_of)
        WorkflowNode.objects.bulk_update(nodes, ["next_run_at", "slots_skipped"], batch_size=500)


def _hold(nodes: QuerySet[WorkflowNode]) -> list[WorkflowNode]:
    """Load nodes as they are, locked until the end of the transaction."""
    of_enabled_olts = nodes.select_related("job").annotate(is_olt_enabled=F("workflow__olt__enabled"))
    return list(of_enabled_olts.select_for_update(of=("self",), no_key=True).order_by("id"))


def _save_rescheduled(nodes: Sequence[WorkflowNode], befores: Sequence[schedule.Grid | None], now: datetime) -> None:
    """Save changed nodes with the offset and the next run that follow from their former grids; None starts over."""
    passages: list[Passage] = []
    for node, before in zip(nodes, befores, strict=True):
        if node.is_chain_node:
            continue
        due_at, after = node.next_run_at, grid_of(node)
        reason = SkipReason.RESCHEDULED
        if not (node.enabled and node.is_olt_enabled):  # type: ignore[attr-defined]  # annotated by `_hold`
            node.next_run_at = node.run_requested_at = None
        elif before is None or due_at is None:
            # Many that are enabled together are spread.
            node.offset_seconds = schedule.first_offset(node.id, interval_seconds=node.interval_seconds, now=now)
            node.next_run_at = schedule.next_slot_in(
                window_of(node.job),
                now,
                interval_seconds=node.interval_seconds,
                offset_seconds=node.offset_seconds,
            )
        else:
            grid, node.next_run_at = schedule.plan_change(before, after, due_at, now=now)
            node.offset_seconds = grid.offset_seconds
            reason = reason if after.window == before.window else SkipReason.OUT_OF_HOURS
        last = min(now, node.next_run_at - INSTANT) if node.next_run_at else now
        if due_at is not None and due_at <= last:
            passages += _pass(node, before or after, due_at, last, reason)
    WorkflowNode.objects.bulk_update(nodes, _CHANGED, batch_size=500)
    # Rows of nodes first, then those of their slots: the opposite order would deadlock.
    save_skipped(passages, now)


def _put_on_grid(nodes: Iterable[WorkflowNode], now: datetime, reason_of: ReasonOf) -> None:
    """Set, without saving, each master's next run to its next slot from now, and store the passed slots."""
    passages: list[Passage] = []
    for node in nodes:
        if node.next_run_at is not None:
            grid = grid_of(node)
            passages += passed_until_now(node.id, grid, node.next_run_at, now, reason_of(node))
            move = schedule.plan_rejoin(grid, node.next_run_at, now=now)
            node.next_run_at = move.next_run_at
            node.slots_skipped += move.slots_skipped
    save_skipped(passages, now)


def _pass_what_came(
    nodes: Iterable[WorkflowNode],
    *,
    until: datetime,
    now: datetime,
    reason: SkipReason = SkipReason.RESCHEDULED,
) -> None:
    """Write down, without moving the nodes, the slots that came and will have no run, since their schedule changes."""
    passages: list[Passage] = []
    for node in nodes:
        if node.next_run_at is not None and node.next_run_at <= until:
            passages += _pass(node, grid_of(node), node.next_run_at, until, reason)
    save_skipped(passages, now)


def _pass(
    node: WorkflowNode, grid: schedule.Grid, due_at: datetime, until: datetime, reason: SkipReason
) -> Iterable[Passage]:
    """Count, without saving, the slots that passed without a run, and describe them."""
    node.slots_skipped += grid.count(due_at, until)
    return passed_until_now(node.id, grid, due_at, until, reason)


def _reason_of_suspension(node: WorkflowNode) -> SkipReason:
    return SkipReason.OLT_UNREACHABLE if node.suspend_reason == UNREACHABLE else SkipReason.SUSPENDED


# The next slot of most runs has not come when they end; one that follows its runs' ends is moved by each.
_END_BEFORE_NEXT_SLOT = Update(
    lambda: WorkflowNode.objects.filter(
        Q(next_run_at__isnull=True)
        | Q(
            next_run_at__gt=Given("now", DateTimeField()), job__in=SnmpJob.objects.exclude(cadence=Cadence.FIXED_DELAY)
        ),
        id=Given("node_id"),
    ),
    last_run_at=Coalesce(Given("last_run_at", DateTimeField()), F("last_run_at")),
    consecutive_failures=Coalesce(Given("failures", IntegerField()), F("consecutive_failures")),
)


def _save_moved(
    node_id: int, now: datetime, *, last_run_at: datetime | None = None, failures_in_a_row: int | None = None
) -> None:
    """Move a node past the end of its run; held, since others put nodes on their grids or take them off meanwhile."""
    if _END_BEFORE_NEXT_SLOT.run(node_id=node_id, now=now, last_run_at=last_run_at, failures=failures_in_a_row):
        return
    held = WorkflowNode.objects.select_related("job").only(*_GRID).select_for_update(of=("self",), no_key=True)
    node = held.filter(id=node_id).first()
    if node is None:
        return
    given = {"last_run_at": last_run_at, "consecutive_failures": failures_in_a_row}
    values: dict[str, object] = {name: value for name, value in given.items() if value is not None}
    passages: list[Passage] = []
    if node.next_run_at is not None:
        grid = grid_of(node)
        move = schedule.plan_end(grid, node.next_run_at, now=now)
        if move.slots_skipped:
            passages = passed_until_now(node_id, grid, node.next_run_at, now, SkipReason.OWN_RUN)
        values["next_run_at"], values["slots_skipped"] = move.next_run_at, F("slots_skipped") + move.slots_skipped
    WorkflowNode.objects.filter(id=node_id).update(**values)
    save_skipped(passages, now)


@transaction.atomic
def ask_run(user: AbstractBaseUser | AnonymousUser, node_id: int, *, now: datetime) -> WorkflowNode:
    """Request a run and audit it; raises UnknownNode and IsChainNode like `request_run`."""
    node = request_run(node_id, now=now)
    record(user, node, Action.CHANGED, gettext_lazy("run now"))
    return node


@transaction.atomic
def resume(user: AbstractBaseUser | AnonymousUser, node: WorkflowNode, *, now: datetime) -> bool:
    """Return a suspended node to its schedule: it continues at its next slot. False when it is not suspended."""
    is_resumed = bool(return_to_schedule(WorkflowNode.objects.filter(id=node.id), now=now))
    if is_resumed:
        record(user, node, Action.CHANGED, gettext_lazy("resumed"))
    return is_resumed


def load_intervals(now: datetime) -> dict[int, int]:
    """Return the OLTs that are polled, and how many seconds lie between two questions to each."""
    masters = WorkflowNode.objects.filter(
        ~is_paused("workflow__olt_id", now), enabled=True, is_chain_node=False, workflow__olt__enabled=True
    )
    return dict(masters.order_by().values_list("workflow__olt_id").annotate(Min("interval_seconds")))


class NamedRead(NamedTuple):
    """An OID, what it is called, and the unit of its raw values where somebody gave one."""

    oid: str
    name: str
    unit: str


NAMELESS = NamedRead("", "", "")


def load_named_reads(vendor: str) -> list[NamedRead]:
    """Return the operator's own OIDs and the columns of a vendor; raw values of a column have no known unit."""
    own = SnmpJobOid.objects.exclude(oid="").order_by("id").values_list("oid", "name", "unit")
    definition = load_definitions().get(vendor)
    columns = definition.columns.values() if definition else ()
    return [
        *(NamedRead(oid.removeprefix("."), name, unit) for oid, name, unit in own),
        *(NamedRead(format_oid(column.oid), column.key, "") for column in columns if not column.shares),
    ]


def load_kept_reads() -> frozenset[str]:
    """Return the columns and OIDs of which somebody wants the history, whichever job reads them."""
    kept = SnmpJobOid.objects.filter(keeps_history=True).order_by().values_list("column_key", "oid")
    return frozenset(key or oid.removeprefix(".") for key, oid in kept)


def load_job_names(olt_id: int | None = None) -> dict[str, str]:
    """Load what people call the jobs, or those of one OLT, by task type; of several the oldest names it; one query."""
    jobs = SnmpJob.objects.order_by("-id").only("name", "slug", "query_type")
    if olt_id is not None:
        jobs = jobs.filter(nodes__workflow__olt_id=olt_id)
    return {job.task_type: job.name for job in jobs}


def name_read(oid: str, reads: Iterable[NamedRead]) -> NamedRead:
    """Find the read that an OID comes from: the same, or the closest one above it."""
    above = [read for read in reads if oid == read.oid or oid.startswith(f"{read.oid}.")]
    return max(above, key=lambda read: len(read.oid), default=NAMELESS)
