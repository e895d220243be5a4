"""Counts the quotas of this hour and the one before from what is written down, and keeps the trackers so.

Nothing is added up along the way, so nothing drifts: whoever counts again comes to the same figures.
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
    HOUR,
    OpenSlots,
    QuotaState,
    Span,
    Tally,
    count_hopeless,
    forecast_share,
    hour_of,
    is_at_risk,
    judge,
    open_slots,
    success_rate,
)

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

    @property
    def share_at_the_end(self) -> float:
        completed = self.settled.completed + self.before.completed
        struggles = self.settled.struggles + self.before.struggles
        rate = success_rate(completed, completed + struggles)
        return forecast_share(self.tally, hopeless=self.hopeless, success_rate=rate)


@dataclass(frozen=True, slots=True)
class Refreshed:
    """The trackers of two hours after a count, and those whose quota will be missed as of this count."""

    trackers: tuple[QuotaTracker, ...]
    warned: tuple[QuotaTracker, ...]


def refresh_quotas(olts: Mapping[int, OltRow], now: datetime, *, is_all: bool) -> Refreshed:
    """Count the quotas of these OLTs and write what changed; `is_all` spares the database a list of all of them."""
    facts = load_facts(now, None if is_all else olts.keys())
    found = _count(olts, facts, now)
    trackers = _load_trackers(facts.hours, None if is_all else olts.keys())
    before = {key: _values(tracker) for key, tracker in trackers.items()}
    for key in found.keys() | trackers.keys():
        olt = olts.get(key[0])
        if olt is not None:
            _update(trackers, key, olt, found.get(key, _Quota()), now)
    changed = [tracker for key, tracker in trackers.items() if before.get(key) != _values(tracker)]
    _save(changed)
    warned = [tracker for tracker in changed if tracker.will_miss_at == now]
    return Refreshed(tuple(trackers.values()), tuple(warned))


def close_stale(now: datetime) -> list[QuotaTracker]:
    """Judge quotas of hours in which polling ended and nobody came back in time: what was pending is lost."""
    counted_since = hour_of(now).start - HOUR
    stale = list(QuotaTracker.objects.filter(period_start__lt=counted_since, status__in=sorted(_UNJUDGED)))
    for tracker in stale:
        tracker.quota_skipped, tracker.quota_pending = tracker.quota_skipped + tracker.quota_pending, 0
        tracker.status = _judge(tally_of(tracker), hour_of_tracker(tracker), now, timedelta(0))
    _save(stale)
    return stale


def tally_of(tracker: QuotaTracker) -> Tally:
    """Return a tracker's figures as values."""
    return Tally(
        tracker.quota_completed,
        tracker.quota_failed,
        tracker.quota_skipped,
        tracker.quota_pending,
        tracker.total_duration_ms,
    )


def hour_of_tracker(tracker: QuotaTracker) -> Span:
    """Return the hour that a tracker counts."""
    return Span(tracker.period_start, tracker.period_end)


def _count(olts: Mapping[int, OltRow], facts: HourFacts, now: datetime) -> dict[Key, _Quota]:
    quotas: dict[Key, _Quota] = defaultdict(_Quota)
    for key, settled in facts.settled.items():
        quotas[key].settled = settled
    for olt in olts.values():
        if olt.enabled:
            _add_open(quotas, olt, facts, now)
    return quotas


def _add_open(quotas: dict[Key, _Quota], olt: OltRow, facts: HourFacts, now: datetime) -> None:
    """Add the slots that an OLT's tasks have not had yet; a chain member owes what its master does."""
    masters = {task.node_id: task for task in olt.tasks if task.master_id is None}
    for hour in facts.hours:
        owed = {node_id: _open_slots(task, facts, hour, now) for node_id, task in masters.items()}
        for task in olt.tasks:
            master = masters.get(task.master_id or task.node_id)
            if master is None:
                continue
            quota = quotas[olt.olt_id, task.task_type, hour.start]
            slots = owed[master.node_id]
            quota.lost += len(slots.lost)
            quota.pending += [*slots.pending, *_still_to_come(task, facts, hour)]
            quota.hopeless += _count_hopeless(slots.pending, task.suspended_at or master.suspended_at, olt, now)
            quota.before = facts.settled.get((olt.olt_id, task.task_type, hour.start - HOUR), Settled())
            quota.patience = max(quota.patience, master.grid.interval)
            quota.is_wanted = True


def _open_slots(master: TaskRow, facts: HourFacts, hour: Span, now: datetime) -> OpenSlots:
    promise = master.promise(is_under_way=facts.is_under_way(master.node_id))
    return open_slots(promise, hour, now, paused=facts.paused(master.olt_id)) if promise else OpenSlots()


def _still_to_come(task: TaskRow, facts: HourFacts, hour: Span) -> Iterable[datetime]:
    """Give a chain member the slot that its master has served or serves, until its own turn comes."""
    run = facts.under_way.get(task.master_id or 0)
    if run is None or not hour.contains(run.slot_at) or run.node_id == task.node_id:
        return ()
    if facts.is_paused(task.olt_id, run.slot_at):
        return ()
    has_passed = run.node_id != run.master_node_id and task.place <= run.place
    return () if has_passed else (run.slot_at,)


def _count_hopeless(pending: Iterable[datetime], suspended_at: datetime | None, olt: OltRow, now: datetime) -> int:
    if suspended_at is None:
        return 0
    next_probe_at = olt.next_probe_at if settings.FACHO_SUSPENDED_RETURN == "probe" else None
    return count_hopeless(pending, suspended_at=suspended_at, next_probe_at=next_probe_at, now=now)


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
    _set_counts(tracker, quota.tally)
    if not is_over and (not quota.is_wanted or tracker.quota_required == 0):
        tracker.status, tracker.quota_pending = QuotaState.ADJUSTED, 0
        tracker.quota_required = tracker.quota_completed
        return
    _set_judgement(tracker, quota, now)


def _set_counts(tracker: QuotaTracker, tally: Tally) -> None:
    tracker.quota_required = tally.required
    tracker.quota_completed = tally.completed
    tracker.quota_failed = tally.failed
    tracker.quota_skipped = tally.skipped
    tracker.quota_pending = tally.pending
    tracker.total_duration_ms = tally.total_duration_ms
    tracker.avg_duration_ms = tally.avg_duration_ms


def _set_judgement(tracker: QuotaTracker, quota: _Quota, now: datetime) -> None:
    hour = hour_of_tracker(tracker)
    judged = _judge(quota.tally, hour, now, quota.patience)
    # Who is enabled in the middle of an hour has not fallen behind by what was before.
    owed = Span(max(hour.start, tracker.created_at), hour.end)
    if judged is QuotaState.AT_RISK and now < hour.end and not is_at_risk(quota.tally, owed, now):
        judged = QuotaState.IN_PROGRESS
    # What was raised as a violation stays one, also when its last run ends well after all.
    if tracker.status not in VIOLATED or judged in VIOLATED:
        tracker.status = judged
    if now < hour.end:
        will_miss = quota.share_at_the_end < settings.FACHO_QUOTA_PERCENT / 100
        tracker.will_miss_at = (tracker.will_miss_at or now) if will_miss else None


def _judge(tally: Tally, hour: Span, now: datetime, patience: timedelta) -> QuotaState:
    return judge(tally, hour, now, met_share=settings.FACHO_QUOTA_PERCENT / 100, patience=patience)


def _load_trackers(hours: Iterable[Span], olt_ids: Iterable[int] | None) -> dict[Key, QuotaTracker]:
    rows = QuotaTracker.objects.filter(period_start__in=[hour.start for hour in hours]).order_by()
    if olt_ids is not None:
        rows = rows.filter(olt_id__in=list(olt_ids))
    return {(row.olt_id, row.task_type, row.period_start): row for row in rows}


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
