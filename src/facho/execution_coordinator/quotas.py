"""Counts the quotas of this hour and the one before from stored rows, and updates the trackers.

Every count starts from the rows and not from the last count, so nothing drifts.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.conf import settings

from facho.execution_coordinator.hour_facts import HourFacts, Key, Settled, load_facts
from facho.execution_coordinator.models import QuotaTracker
from facho.execution_coordinator.state import OltRow, TaskRow
from facho.polling.domain.quota import (
    OpenSlots,
    QuotaState,
    Record,
    Tally,
    count_hopeless,
    foresees_miss,
    is_at_risk,
    judge,
    open_slots,
)
from facho.polling.domain.schedule import HOUR, Span, hour_of

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
