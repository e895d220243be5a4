"""Quotas: the slots an OLT owes in an hour, their results, and whether they are or will be enough."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from math import sqrt

from facho.polling.domain.retry import PROBE_PAUSES_SECONDS
from facho.polling.domain.schedule import Grid, Span

# How far the completed share may lag behind the elapsed share of the hour before a quota is at risk.
RISK_SHARE = 0.2
# Fewer runs than this predict nothing, nor do the first minutes after a start.
MIN_OUTCOMES = 3
MIN_WATCHED = timedelta(minutes=10)
# A struggle counts once it has cost this part of the slots that a quota can afford to lose.
EVIDENT_SHARE = 0.5
# How many standard deviations above the expected number of runs a quota may still need before it counts as lost.
GRANTED_LUCK = 1.5
# An outage is expected to last for this share of its duration so far.
OUTAGE_GROWTH = 0.2
_PROBE_PAUSE = timedelta(seconds=max(PROBE_PAUSES_SECONDS))
_INSTANT = timedelta(microseconds=1)


class SkipReason(StrEnum):
    OLT_BUSY = "olt_busy"
    NO_POLLER = "no_poller"
    OWN_RUN = "own_run"
    OLT_UNREACHABLE = "olt_unreachable"
    SUSPENDED = "suspended"
    PAUSED = "paused"
    OUT_OF_HOURS = "out_of_hours"
    NOT_POLLING = "not_polling"
    CLOCK = "clock"
    # Disabled, put into a chain or given another rhythm before its turn came: no longer wanted.
    RESCHEDULED = "rescheduled"
    # Before the first discovery of the OLT: not owed while that is coming, owed where none is.
    FIRST_DISCOVERY = "first_discovery"
    NO_DISCOVERY = "no_discovery"


# These slots were not wanted, or could not be served.
NOT_OWED = frozenset({SkipReason.RESCHEDULED, SkipReason.FIRST_DISCOVERY})


class QuotaState(StrEnum):
    """State of an hourly quota; removing work adjusts it, disabling the OLT interrupts it."""

    IN_PROGRESS = "IN_PROGRESS"
    AT_RISK = "AT_RISK"
    COMPLETED = "COMPLETED"
    PARTIAL = "PARTIAL"
    FAILED = "FAILED"
    QUOTA_NOT_MET = "QUOTA_NOT_MET"
    INTERRUPTED = "INTERRUPTED"
    ADJUSTED = "ADJUSTED"


class LossSeverity(StrEnum):
    LOW = "LOW"
    MEDIUM = "MEDIUM"
    HIGH = "HIGH"
    CRITICAL = "CRITICAL"


@dataclass(frozen=True, slots=True)
class Promise:
    """The slots a node still owes, from its next run on; none if disabled."""

    grid: Grid
    next_run_at: datetime
    is_suspended: bool = False
    # It is running, not a retry: slots in the meantime are skipped when it ends.
    is_under_way: bool = False


@dataclass(frozen=True, slots=True)
class OpenSlots:
    """Slots of an hour without a run: those that can no longer get one, and those that can."""

    lost: tuple[datetime, ...] = ()
    pending: tuple[datetime, ...] = ()


@dataclass(frozen=True, slots=True)
class Tally:
    """Slots an OLT owes of one task type in an hour, by result."""

    completed: int = 0
    failed: int = 0
    skipped: int = 0
    pending: int = 0
    total_duration_ms: int = 0

    @property
    def required(self) -> int:
        return self.completed + self.failed + self.skipped + self.pending

    @property
    def avg_duration_ms(self) -> int:
        ended = self.completed + self.failed
        return self.total_duration_ms // ended if ended else 0

    @property
    def share_completed(self) -> float:
        """Completed share of the required slots; 1 if nothing is owed."""
        return self.completed / self.required if self.required else 1.0

    @property
    def best_share(self) -> float:
        return (self.completed + self.pending) / self.required if self.required else 1.0


def open_slots(promise: Promise, hour: Span, now: datetime, *, paused: Collection[Span] = ()) -> OpenSlots:
    """List the hour's slots from the next run on, without paused ones; only the latest past one can be served."""
    grid, since = promise.grid, _servable_since(promise, now)
    slots = [
        slot
        for slot in grid.slots(promise.next_run_at, hour.start, hour.end)
        if not any(span.contains(slot) for span in paused)
    ]
    lost = tuple(slot for slot in slots if slot < since)
    pending = tuple(slot for slot in slots if slot >= since)
    if grid.is_fixed_delay:
        # It owes no more than the next one: those after it follow the end of a run.
        coming = next(grid.slots(promise.next_run_at, since, hour.end), None)
        pending = tuple(slot for slot in pending if slot == coming)
    return OpenSlots(lost, pending)


def _servable_since(promise: Promise, now: datetime) -> datetime:
    grid, due_at = promise.grid, promise.next_run_at
    if due_at > now or (grid.is_fixed_delay and promise.is_under_way):
        return due_at
    if promise.is_suspended or promise.is_under_way or not grid.may_serve(due_at, now):
        return now + _INSTANT
    return grid.latest(due_at, now)


def is_at_risk(tally: Tally, owed: Span, now: datetime) -> bool:
    """Whether a slot was missed and time passes more than 20 points faster than the quota is met."""
    elapsed = min((now - owed.start) / (owed.end - owed.start), 1.0)
    has_missed = tally.failed + tally.skipped > 0 or now >= owed.end
    return has_missed and tally.completed < tally.required and elapsed > tally.share_completed + RISK_SHARE


def is_lost(tally: Tally, *, met_share: float) -> bool:
    """Whether the quota is missed even if all pending runs succeed."""
    return tally.required > 0 and tally.best_share < met_share


def judge(tally: Tally, hour: Span, now: datetime, *, met_share: float, patience: timedelta) -> QuotaState:
    """Return the quota's state; an hour is closed when nothing is pending, at the latest after `patience`."""
    if tally.completed >= tally.required:
        return QuotaState.COMPLETED
    is_over = now >= hour.end and (not tally.pending or is_lost(tally, met_share=met_share))
    if not is_over and now < hour.end + patience:
        return QuotaState.AT_RISK if is_at_risk(tally, hour, now) else QuotaState.IN_PROGRESS
    if tally.share_completed >= met_share:
        return QuotaState.PARTIAL
    return QuotaState.FAILED if tally.failed == tally.required else QuotaState.QUOTA_NOT_MET


def severity_of(tally: Tally) -> LossSeverity:
    """Grade a violation by the share lost: 2 of 4 is HIGH."""
    lost = (tally.required - tally.completed) / tally.required if tally.required else 0.0
    if lost > 0.8:
        return LossSeverity.CRITICAL
    if lost >= 0.5:
        return LossSeverity.HIGH
    return LossSeverity.MEDIUM if lost >= 0.2 else LossSeverity.LOW


@dataclass(frozen=True, slots=True)
class Record:
    """Results of a quota in this hour and the one before, while its OLT answered, and for how long it was observed."""

    completed: int = 0
    # Slots that an answering OLT had no time or no good answer for.
    struggles: int = 0
    watched: timedelta = timedelta(0)

    def is_evidence(self, required: int, *, met_share: float) -> bool:
        affordable = required * (1 - met_share)
        return self.watched >= MIN_WATCHED and self.struggles >= max(affordable * EVIDENT_SHARE, 1)


def foresees_miss(tally: Tally, record: Record, *, hopeless: int, met_share: float) -> bool:
    """Whether the hour will miss its quota, for certain or, with evidence, by the losses so far."""
    if forecast_share(tally, hopeless=hopeless, success_rate=1.0) < met_share:
        return True
    if not record.is_evidence(tally.required, met_share=met_share):
        return False
    rate = success_rate(record.completed, record.completed + record.struggles)
    return forecast_share(tally, hopeless=hopeless, success_rate=rate) < met_share


def forecast_share(tally: Tally, *, hopeless: int, success_rate: float) -> float:
    """Predict the final share; pending runs that are not hopeless succeed at the recent rate, or a bit better."""
    if not tally.required:
        return 1.0
    hopeful = tally.pending - hopeless
    luck = GRANTED_LUCK * sqrt(hopeful * success_rate * (1 - success_rate))
    return (tally.completed + min(hopeful * success_rate + luck, hopeful)) / tally.required


def count_hopeless(
    pending: Iterable[datetime], *, suspended_at: datetime, next_probe_at: datetime | None, now: datetime
) -> int:
    """Count the slots before a suspended node is expected back; all if no probe is scheduled."""
    if next_probe_at is None:
        return len(list(pending))
    # Return the first probe after the expected end of an outage. There is no run before a probe, so slots before it
    # are hopeless. An old outage is likely to continue; of a young one nothing is known.
    last_probe_at = max(next_probe_at - _PROBE_PAUSE, suspended_at)
    ends_at = last_probe_at + OUTAGE_GROWTH * (last_probe_at - suspended_at)
    back_at = max(next_probe_at, now)
    while back_at < ends_at:
        back_at += _PROBE_PAUSE
    return sum(slot < back_at for slot in pending)


def success_rate(completed: int, tried: int) -> float:
    return completed / tried if tried >= MIN_OUTCOMES else 1.0
