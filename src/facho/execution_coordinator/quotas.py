"""Loads what is stored about this hour and the one before, counts their quotas, and updates the trackers.

Every count starts from the rows and not from the last count, so nothing drifts.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import BooleanField, Case, Count, Exists, OuterRef, Q, Sum, When

from facho.execution_coordinator.models import QuotaTracker
from facho.execution_coordinator.state import OltRow, TaskRow
from facho.executions.models import Execution
from facho.hosts.store import polling_pauses
from facho.polling.domain.execution_state import ExecutionState, FailureKind, QueryType
from facho.polling.domain.quota import (
    OpenSlots,
    QuotaState,
    Record,
    SkipReason,
    Tally,
    count_hopeless,
    foresees_miss,
    is_at_risk,
    judge,
    open_slots,
)
from facho.polling.domain.retry import SILENCE
from facho.polling.domain.schedule import HOUR, Span, hour_of, task_type
from facho.snmp_jobs.store import owed_slots

# (OLT, task type, start of the hour)
Key = tuple[int, str, datetime]

# Work that did not fit, as opposed to an OLT that did not answer.
STRUGGLES = frozenset({SkipReason.OLT_BUSY, SkipReason.NO_POLLER, SkipReason.OWN_RUN})


@dataclass(slots=True)
class Settled:
    """The outcomes of the slots of one quota that are over."""

    completed: int = 0
    failed: int = 0
    skipped: int = 0
    running: int = 0
    total_duration_ms: int = 0
    # Of the failed and skipped those that an answering OLT had no time or no good answer for.
    struggles: int = 0


@dataclass(frozen=True, slots=True)
class UnderWay:
    """A composite that is not over: the member that runs or waits now, and the slot that it serves."""

    master_node_id: int
    node_id: int
    slot_at: datetime
    place: tuple[int, int]
    # A failed try waits for the next one: a slot that comes first takes its place.
    is_retry: bool


@dataclass(frozen=True, slots=True)
class HourFacts:
    """Everything stored about two hours."""

    hours: tuple[Span, Span]
    settled: dict[Key, Settled]
    under_way: dict[int, UnderWay]
    pauses: dict[int | None, list[Span]] = field(default_factory=dict)

    def is_under_way(self, master_node_id: int) -> bool:
        """Return whether a master skips the slots that come now, because its run has not ended."""
        return _passes_slots(self.under_way.get(master_node_id))

    def paused(self, olt_id: int) -> list[Span]:
        """Return when the OLT was or will be paused, itself or with everything."""
        return [*self.pauses.get(None, ()), *self.pauses.get(olt_id, ())]

    def is_paused(self, olt_id: int, moment: datetime) -> bool:
        """Return whether a slot at this moment is not owed."""
        return any(span.contains(moment) for span in self.paused(olt_id))


def load_facts(now: datetime, olt_ids: Collection[int] | None) -> HourFacts:
    """Load the hour of `now` and the one before, of these OLTs or of all, in four queries."""
    hour = hour_of(now)
    both = Span(hour.start - HOUR, hour.end)
    hours = (Span(both.start, hour.start), hour)
    facts = HourFacts(hours, defaultdict(Settled), _load_under_way(olt_ids), load_pauses(both))
    _add_runs(facts, both, olt_ids)
    rows = owed_slots(both)
    if olt_ids is not None:
        rows = rows.filter(node__workflow__olt_id__in=olt_ids)
    columns = rows.values_list(
        "node__workflow__olt_id", "node__job__query_type", "node__job__slug", "slot_at", "reason"
    )
    for olt_id, query_type, slug, slot_at, reason in columns.iterator():
        if facts.is_paused(olt_id, slot_at):
            continue
        quota = facts.settled[olt_id, task_type(QueryType(query_type), slug), hour_of(slot_at).start]
        quota.skipped += 1
        quota.struggles += SkipReason(reason) in STRUGGLES
    return facts


def load_pauses(span: Span) -> dict[int | None, list[Span]]:
    """Load when OLTs are paused in a span, in one query; what pauses everything stands under None."""
    pauses: dict[int | None, list[Span]] = defaultdict(list)
    rows = polling_pauses().filter(starts_at__lt=span.end, ends_at__gt=span.start)
    for olt_id, starts_at, ends_at in rows.values_list("olt_id", "starts_at", "ends_at"):
        pauses[olt_id].append(Span(starts_at, ends_at))
    return pauses


def _add_runs(facts: HourFacts, span: Span, olt_ids: Collection[int] | None) -> None:
    before, present = facts.hours
    executions = Execution.objects.filter(slot_at__gte=span.start, slot_at__lt=span.end).order_by()
    if olt_ids is not None:
        executions = executions.filter(olt_id__in=olt_ids)
    if facts.pauses:
        # Right after a pause its last slot is served, but it was not owed.
        pauses = polling_pauses().filter(starts_at__lte=OuterRef("slot_at"), ends_at__gt=OuterRef("slot_at"))
        executions = executions.filter(~Exists(pauses.filter(Q(olt__isnull=True) | Q(olt=OuterRef("olt_id")))))
    is_present = Case(When(slot_at__gte=present.start, then=True), default=False, output_field=BooleanField())
    groups = (
        executions.annotate(is_present=is_present)
        .values_list("is_present", "olt_id", "task_type", "status", "failure_kind")
        .annotate(Count("id"), Sum("duration_ms"))
    )
    for in_present, olt_id, kind, status, failure_kind, count, duration_ms in groups:
        quota = facts.settled[olt_id, kind, (present if in_present else before).start]
        if status == ExecutionState.SUCCESS:
            quota.completed += count
            quota.total_duration_ms += duration_ms
        elif status in (ExecutionState.FAILED, ExecutionState.INTERRUPTED):
            quota.failed += count
            quota.total_duration_ms += duration_ms
            quota.struggles += 0 if failure_kind in SILENCE else count
        elif status == ExecutionState.SKIPPED:
            # Where no ONU is known there was nothing to owe.
            quota.skipped += 0 if failure_kind == FailureKind.NO_ONUS else count
        else:
            quota.running += count


def load_busy_masters(olt_id: int) -> set[int]:
    """Load the masters of an OLT that skip the slots that come now, because their runs have not ended."""
    return {node_id for node_id, run in _load_under_way([olt_id]).items() if _passes_slots(run)}


def _passes_slots(run: UnderWay | None) -> bool:
    return run is not None and not run.is_retry


def _load_under_way(olt_ids: Collection[int] | None) -> dict[int, UnderWay]:
    rows = Execution.objects.filter(finished_at__isnull=True, node__isnull=False, slot_at__isnull=False).order_by()
    if olt_ids is not None:
        rows = rows.filter(olt_id__in=olt_ids)
    columns = rows.values_list(
        "node_id", "master_execution__node_id", "slot_at", "node__priority", "status", "failure_kind"
    )
    return {
        master or node: UnderWay(
            master or node,
            node,
            slot,
            (priority, node),
            is_retry=status == ExecutionState.WAITING and failure_kind != "",
        )
        for node, master, slot, priority, status, failure_kind in columns
        if slot is not None
    }


VIOLATED = frozenset({QuotaState.QUOTA_NOT_MET, QuotaState.FAILED})
# Decided by a person in that hour: what the next hour brings does not change it.
_SET_ASIDE = frozenset({QuotaState.ADJUSTED, QuotaState.INTERRUPTED})
_UNJUDGED = frozenset({QuotaState.IN_PROGRESS, QuotaState.AT_RISK})

_COUNTED = (
    "quota_required",
    "quota_completed",
    "quota_failed",
    "quota_skipped",
    "quota_pending",
    "total_duration_ms",
    "avg_duration_ms",
    "status",
    "will_miss_at",
)


@dataclass(slots=True)
class _Quota:
    """One quota as it is counted: what is over, what is open, and what the forecast has to know."""

    settled: Settled = field(default_factory=Settled)
    # The same quota in the hour before.
    before: Settled = field(default_factory=Settled)
    lost: int = 0
    pending: list[datetime] = field(default_factory=list)
    patience: timedelta = timedelta(0)
    hopeless: int = 0
    is_wanted: bool = False

    @property
    def tally(self) -> Tally:
        over = self.settled
        return Tally(
            over.completed,
            over.failed,
            over.skipped + self.lost,
            over.running + len(self.pending),
            over.total_duration_ms,
        )

    def record(self, owed: Span, now: datetime) -> Record:
        """Return how it did, counted from the hour before if it was polled then."""
        completed = self.settled.completed + self.before.completed
        struggles = self.settled.struggles + self.before.struggles
        was_polled = self.before.completed + self.before.struggles > 0
        return Record(completed, struggles, now - owed.start + (HOUR if was_polled else timedelta(0)))


@dataclass(frozen=True, slots=True)
class Refreshed:
    """The trackers of two hours after a count, and those whose quota will be missed as of this count."""

    trackers: tuple[QuotaTracker, ...]
    warned: tuple[QuotaTracker, ...]


def refresh_quotas(olts: Mapping[int, OltRow], now: datetime, *, is_all: bool) -> Refreshed:
    """Count the quotas of these OLTs and write what changed; `is_all` spares the database a list of all of them."""
    facts = load_facts(now, None if is_all else olts.keys())
    found: dict[Key, _Quota] = defaultdict(_Quota)
    for key, settled in facts.settled.items():
        found[key].settled = settled
    for olt in olts.values():
        if olt.enabled:
            _add_open(found, olt, facts, now)
    rows = QuotaTracker.objects.filter(period_start__in=[hour.start for hour in facts.hours]).order_by()
    if not is_all:
        rows = rows.filter(olt_id__in=list(olts))
    trackers = {(row.olt_id, row.task_type, row.period_start): row for row in rows}
    before = {key: _values(tracker) for key, tracker in trackers.items()}
    for key in found.keys() | trackers.keys():
        if key[0] in olts:
            _update(trackers, key, olts[key[0]], found.get(key, _Quota()), now)
    changed = [tracker for key, tracker in trackers.items() if before.get(key) != _values(tracker)]
    _save(changed)
    warned = [tracker for tracker in changed if tracker.will_miss_at == now]
    return Refreshed(tuple(trackers.values()), tuple(warned))


def close_stale(now: datetime) -> list[QuotaTracker]:
    """Judge quotas of hours in which polling ended and did not resume in time: what was pending is lost."""
    counted_since = hour_of(now).start - HOUR
    stale = list(QuotaTracker.objects.filter(period_start__lt=counted_since, status__in=sorted(_UNJUDGED)))
    for tracker in stale:
        tracker.quota_skipped, tracker.quota_pending = tracker.quota_skipped + tracker.quota_pending, 0
        tracker.status = _judge(tally_of(tracker), hour_of_tracker(tracker), now, timedelta(0))
    _save(stale)
    return stale


def tally_of(tracker: QuotaTracker) -> Tally:
    return Tally(
        tracker.quota_completed,
        tracker.quota_failed,
        tracker.quota_skipped,
        tracker.quota_pending,
        tracker.total_duration_ms,
    )


def hour_of_tracker(tracker: QuotaTracker) -> Span:
    return Span(tracker.period_start, tracker.period_end)


def _add_open(quotas: dict[Key, _Quota], olt: OltRow, facts: HourFacts, now: datetime) -> None:
    """Add the slots that an OLT's tasks have not had yet; a chain member owes what its master does."""
    masters = {task.node_id: task for task in olt.tasks if task.master_id is None}
    next_probe_at = olt.next_probe_at if settings.FACHO_SUSPENDED_RETURN == "probe" else None
    for hour in facts.hours:
        owed = {}
        for node_id, task in masters.items():
            promise = task.promise(is_under_way=facts.is_under_way(node_id))
            owed[node_id] = open_slots(promise, hour, now, paused=facts.paused(olt.olt_id)) if promise else OpenSlots()
        for task in olt.tasks:
            master = masters.get(task.master_id or task.node_id)
            if master is None or not task.owes_slots:
                continue
            quota = quotas[olt.olt_id, task.task_type, hour.start]
            slots, suspended_at = owed[master.node_id], task.suspended_at or master.suspended_at
            quota.lost += len(slots.lost)
            quota.pending += [*slots.pending, *_still_to_come(task, facts, hour)]
            if suspended_at is not None:
                quota.hopeless += count_hopeless(
                    slots.pending, suspended_at=suspended_at, next_probe_at=next_probe_at, now=now
                )
            quota.before = facts.settled.get((olt.olt_id, task.task_type, hour.start - HOUR), Settled())
            quota.patience = max(quota.patience, master.grid.interval)
            quota.is_wanted = True


def _still_to_come(task: TaskRow, facts: HourFacts, hour: Span) -> Iterable[datetime]:
    """Give a chain member the slot that its master has served or serves, until its own turn comes."""
    run = facts.under_way.get(task.master_id or 0)
    if run is None or not hour.contains(run.slot_at) or run.node_id == task.node_id:
        return ()
    if facts.is_paused(task.olt_id, run.slot_at):
        return ()
    has_passed = run.node_id != run.master_node_id and task.place <= run.place
    return () if has_passed else (run.slot_at,)


def _update(trackers: dict[Key, QuotaTracker], key: Key, olt: OltRow, quota: _Quota, now: datetime) -> None:
    tracker, hour = trackers.get(key), hour_of(key[2])
    is_over = now >= hour.end
    if tracker is None:
        if quota.tally.required == 0 or not quota.is_wanted:
            return
        tracker = QuotaTracker(
            olt_id=key[0], task_type=key[1], period_start=hour.start, period_end=hour.end, created_at=now
        )
        trackers[key] = tracker
    if is_over and tracker.status in _SET_ASIDE:
        return
    if not olt.enabled:
        tracker.status = QuotaState.INTERRUPTED if tracker.status in _UNJUDGED else tracker.status
        return
    tally = quota.tally
    tracker.quota_required = tally.required
    tracker.quota_completed = tally.completed
    tracker.quota_failed = tally.failed
    tracker.quota_skipped = tally.skipped
    tracker.quota_pending = tally.pending
    tracker.total_duration_ms = tally.total_duration_ms
    tracker.avg_duration_ms = tally.avg_duration_ms
    is_owed = tracker.quota_required > 0 and (is_over or quota.is_wanted)
    if not is_owed and tracker.status not in VIOLATED:
        tracker.status, tracker.quota_pending = QuotaState.ADJUSTED, 0
        tracker.quota_required = tracker.quota_completed
        return
    _set_judgement(tracker, quota, now)


def _set_judgement(tracker: QuotaTracker, quota: _Quota, now: datetime) -> None:
    hour = hour_of_tracker(tracker)
    judged = _judge(quota.tally, hour, now, quota.patience)
    # An OLT that was enabled in the middle of an hour owes nothing for the time before.
    owed = Span(max(hour.start, tracker.created_at), hour.end)
    if judged is QuotaState.AT_RISK and now < hour.end and not is_at_risk(quota.tally, owed, now):
        judged = QuotaState.IN_PROGRESS
    # What was raised as a violation stays one, also when its last run ends well after all.
    if tracker.status not in VIOLATED or judged in VIOLATED:
        tracker.status = judged
    if now < hour.end:
        met_share = settings.FACHO_QUOTA_PERCENT / 100
        record = quota.record(owed, now)
        will_miss = foresees_miss(quota.tally, record, hopeless=quota.hopeless, met_share=met_share)
        tracker.will_miss_at = (tracker.will_miss_at or now) if will_miss else None


def _judge(tally: Tally, hour: Span, now: datetime, patience: timedelta) -> QuotaState:
    return judge(tally, hour, now, met_share=settings.FACHO_QUOTA_PERCENT / 100, patience=patience)


def _values(tracker: QuotaTracker) -> tuple[object, ...]:
    return tuple(getattr(tracker, name) for name in _COUNTED)


def _save(trackers: list[QuotaTracker]) -> None:
    """Insert or overwrite, in one statement for 500: the natural key decides, not the id."""
    for tracker in trackers:
        tracker.pk = None
    QuotaTracker.objects.bulk_create(
        trackers,
        batch_size=500,
        update_conflicts=True,
        unique_fields=["olt", "task_type", "period_start"],
        update_fields=[*_COUNTED, "updated_at"],
    )
