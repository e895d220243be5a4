"""Quotas: the slots that an OLT owes in an hour, what became of them, and whether it is or will be enough."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from math import sqrt

from facho.polling.domain.schedule import Grid
from facho.polling.domain.suspension import PROBE_PAUSES_SECONDS

HOUR = timedelta(hours=1)
# How far the completed share may lag behind the elapsed share of the hour before a quota is at risk.
RISK_SHARE = 0.2
# Fewer runs than this tell nothing about those to come.
MIN_OUTCOMES = 3
# How many standard deviations of luck a struggling quota is granted before it is given up.
GRANTED_LUCK = 1.5
# An outage is believed to go on for this part of the time that it has lasted.
OUTAGE_GROWTH = 0.2
_PROBE_PAUSE = timedelta(seconds=max(PROBE_PAUSES_SECONDS))
_INSTANT = timedelta(microseconds=1)


class SkipReason(StrEnum):
    """Why a slot went by without a run."""

    OLT_BUSY = "olt_busy"
    NO_POLLER = "no_poller"
    OWN_RUN = "own_run"
    OLT_UNREACHABLE = "olt_unreachable"
    SUSPENDED = "suspended"
    PAUSED = "paused"
    OUT_OF_HOURS = "out_of_hours"
    NOT_POLLING = "not_polling"
    CLOCK = "clock"


class QuotaState(StrEnum):
    """Where a quota of an hour stands; who takes work away adjusts it, who disables the OLT interrupts it."""

    IN_PROGRESS = "IN_PROGRESS"
    AT_RISK = "AT_RISK"
    COMPLETED = "COMPLETED"
    PARTIAL = "PARTIAL"
    FAILED = "FAILED"
    QUOTA_NOT_MET = "QUOTA_NOT_MET"
    INTERRUPTED = "INTERRUPTED"
    ADJUSTED = "ADJUSTED"


class Severity(StrEnum):
    """How much of a quota was lost, from a little to nearly all."""

    LOW = "LOW"
    MEDIUM = "MEDIUM"
    HIGH = "HIGH"
    CRITICAL = "CRITICAL"


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of time, its end excluded."""

    start: datetime
    end: datetime

    def contains(self, moment: datetime) -> bool:
        """Tell whether the moment lies in it."""
        return self.start <= moment < self.end


@dataclass(frozen=True, slots=True)
class Promise:
    """The slots that a node still owes: from its next run on, unless it is disabled and owes nothing."""

    grid: Grid
    next_run_at: datetime
    is_suspended: bool = False
    # A run of it goes on, and is no retry: slots that come meanwhile are passed when it ends.
    is_under_way: bool = False


@dataclass(frozen=True, slots=True)
class OpenSlots:
    """Slots of an hour that have no run yet: those that can get none any more, and those that can."""

    lost: tuple[datetime, ...] = ()
    pending: tuple[datetime, ...] = ()


@dataclass(frozen=True, slots=True)
class Tally:
    """What an OLT owes of one task type in an hour, and what became of it."""

    completed: int = 0
    failed: int = 0
    skipped: int = 0
    pending: int = 0
    total_duration_ms: int = 0

    @property
    def required(self) -> int:
        """Every slot that was due or will be."""
        return self.completed + self.failed + self.skipped + self.pending

    @property
    def avg_duration_ms(self) -> int:
        """The mean length of the runs that ended."""
        ended = self.completed + self.failed
        return self.total_duration_ms // ended if ended else 0

    @property
    def share_completed(self) -> float:
        """The completed part of what is required; nothing owed is all done."""
        return self.completed / self.required if self.required else 1.0

    @property
    def best_share(self) -> float:
        """The part that will be complete if everything pending succeeds."""
        return (self.completed + self.pending) / self.required if self.required else 1.0


def hour_of(moment: datetime) -> Span:
    """Return the clock hour that the moment lies in."""
    start = moment.replace(minute=0, second=0, microsecond=0)
    return Span(start, start + HOUR)


def open_slots(promise: Promise, hour: Span, now: datetime, *, paused: Collection[Span] = ()) -> OpenSlots:
    """List the slots of the hour from the node's next run on; only the latest that has come can still be served.

    A suspended node serves none of them, nor does one whose run goes on or whose hours are over. What lies in a pause
    is not owed.
    """
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
    """Return the time from which on slots can still get a run."""
    grid, due_at = promise.grid, promise.next_run_at
    if due_at > now or (grid.is_fixed_delay and promise.is_under_way):
        return due_at
    if promise.is_suspended or promise.is_under_way or not grid.may_serve(due_at, now):
        return now + _INSTANT
    return grid.latest(due_at, now)


def is_at_risk(tally: Tally, owed: Span, now: datetime) -> bool:
    """Tell whether the hour, or what is left of it when the quota began, goes by more than 20 points faster."""
    elapsed = min((now - owed.start) / (owed.end - owed.start), 1.0)
    return tally.completed < tally.required and elapsed > tally.share_completed + RISK_SHARE


def is_lost(tally: Tally, *, met_share: float) -> bool:
    """Tell whether the quota is missed whatever the pending runs bring."""
    return tally.required > 0 and tally.best_share < met_share


def judge(tally: Tally, hour: Span, now: datetime, *, met_share: float, patience: timedelta) -> QuotaState:
    """Tell where a quota stands; an hour is over when nothing of it is pending, at the latest `patience` after it."""
    if tally.completed >= tally.required:
        return QuotaState.COMPLETED
    is_over = now >= hour.end and (not tally.pending or is_lost(tally, met_share=met_share))
    if not is_over and now < hour.end + patience:
        return QuotaState.AT_RISK if is_at_risk(tally, hour, now) else QuotaState.IN_PROGRESS
    if tally.share_completed >= met_share:
        return QuotaState.PARTIAL
    return QuotaState.FAILED if tally.failed == tally.required else QuotaState.QUOTA_NOT_MET


def severity_of(tally: Tally) -> Severity:
    """Grade a violation by the share that was lost: 2 of 4 is HIGH."""
    lost = (tally.required - tally.completed) / tally.required if tally.required else 0.0
    if lost > 0.8:
        return Severity.CRITICAL
    if lost >= 0.5:
        return Severity.HIGH
    return Severity.MEDIUM if lost >= 0.2 else Severity.LOW


def forecast_share(tally: Tally, *, hopeless: int, success_rate: float) -> float:
    """Predict the share that will be complete at the end of the hour.

    Of the pending runs those that are not hopeless succeed as often as of late, and with some luck.
    """
    if not tally.required:
        return 1.0
    hopeful = tally.pending - hopeless
    luck = GRANTED_LUCK * sqrt(hopeful * success_rate * (1 - success_rate))
    return (tally.completed + min(hopeful * success_rate + luck, hopeful)) / tally.required


def count_hopeless(
    pending: Iterable[datetime], *, suspended_at: datetime, next_probe_at: datetime | None, now: datetime
) -> int:
    """Count the slots that come before a suspended node is expected back; all, if nobody asks for it any more."""
    if next_probe_at is None:
        return len(list(pending))
    back_at = _expect_back(suspended_at, next_probe_at, now)
    return sum(slot < back_at for slot in pending)


def _expect_back(suspended_at: datetime, next_probe_at: datetime, now: datetime) -> datetime:
    """Return the first probe after the expected end of an outage, of which no more is known than the last probe said.

    It gets no slot before a probe, so no slot before the next one has any hope. That an old outage goes on beyond it
    is a safe bet too; of a young one nothing is known.
    """
    last_probe_at = max(next_probe_at - _PROBE_PAUSE, suspended_at)
    ends_at = last_probe_at + OUTAGE_GROWTH * (last_probe_at - suspended_at)
    back_at = max(next_probe_at, now)
    while back_at < ends_at:
        back_at += _PROBE_PAUSE
    return back_at


def success_rate(completed: int, tried: int) -> float:
    """Return the share of what was tried that succeeded; of too few, nothing can be said against the rest."""
    return completed / tried if tried >= MIN_OUTCOMES else 1.0
