"""Hours in which a job may run, in local time: heavy jobs at night, without moving them off their grid."""

from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

from facho.polling.domain.slots import next_slot_after

# A grid that meets its window less often than this never meets it in practice.
_DAYS_TO_LOOK_AHEAD = 60


@dataclass(frozen=True, slots=True)
class Window:
    """From `opens` (included) to `closes` (excluded) on the local clock; it may go past midnight."""

    opens: time
    closes: time
    zone: ZoneInfo

    def contains(self, moment: datetime) -> bool:
        """Tell whether a job may start at this moment; equal hours mean the whole day."""
        local = moment.astimezone(self.zone).time()
        if self.opens < self.closes:
            return self.opens <= local < self.closes
        return local >= self.opens or local < self.closes

    def next_opening(self, moment: datetime) -> datetime:
        """Return when the window opens next, after the moment."""
        local = moment.astimezone(self.zone)
        opening = datetime.combine(local.date(), self.opens, self.zone)
        if opening <= local:
            opening = datetime.combine(local.date() + timedelta(days=1), self.opens, self.zone)
        return opening.astimezone(UTC)


def is_outside_hours(window: Window | None, next_run_at: datetime | None, now: datetime) -> bool:
    """Tell whether a node has to wait for its hours; one that is due outside of them has a grid that never meets them.

    Such a node runs all the same, rather than never.
    """
    if window is None or window.contains(now):
        return False
    return next_run_at is None or window.contains(next_run_at)


def next_slot_in(window: Window | None, moment: datetime, *, interval_seconds: int, offset_seconds: int) -> datetime:
    """Return the first slot after the moment at which the job may start.

    A grid that misses its window for two months (a day's interval beside it) gives its next slot outside of it.
    """
    slot = next_slot_after(moment, interval_seconds=interval_seconds, offset_seconds=offset_seconds)
    if window is None or window.contains(slot):
        return slot
    opening = moment
    for _ in range(_DAYS_TO_LOOK_AHEAD):
        opening = window.next_opening(opening)
        just_before = opening - timedelta(microseconds=1)
        candidate = next_slot_after(just_before, interval_seconds=interval_seconds, offset_seconds=offset_seconds)
        if window.contains(candidate):
            return candidate
    return slot
