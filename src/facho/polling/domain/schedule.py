"""Moves a node along its grid: which slot a start serves, and how many slots an end or a return passes over."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from facho.polling.domain.slots import count_slots, slot_at_or_before
from facho.polling.domain.window import Window, is_outside_hours, next_slot_in

_INSTANT = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Grid:
    """When a node's slots are: every interval from an offset on, in its hours; or an interval after each end."""

    interval_seconds: int
    offset_seconds: int = 0
    window: Window | None = None
    is_fixed_delay: bool = False

    @property
    def interval(self) -> timedelta:
        """The time between two slots."""
        return timedelta(seconds=self.interval_seconds)

    def next_after(self, moment: datetime) -> datetime:
        """Return the first slot after the moment at which the node may start."""
        if self.is_fixed_delay:
            return moment + self.interval
        return next_slot_in(
            self.window, moment, interval_seconds=self.interval_seconds, offset_seconds=self.offset_seconds
        )

    def latest(self, due_at: datetime, now: datetime) -> datetime:
        """Return the latest slot up to now of a node that is due since `due_at`."""
        if self.is_fixed_delay:
            return due_at + (now - due_at) // self.interval * self.interval
        slot = slot_at_or_before(now, interval_seconds=self.interval_seconds, offset_seconds=self.offset_seconds)
        # A changed offset may leave a due time off the grid and after its latest slot: it is served all the same.
        return max(slot, due_at)

    def count(self, due_at: datetime, now: datetime) -> int:
        """Count the slots from `due_at` to now, both included, at which the node might have started."""
        if self.is_fixed_delay:
            return (now - due_at) // self.interval + 1
        if self.window is None or not self.window.contains(due_at):
            return count_slots(
                due_at - _INSTANT, now, interval_seconds=self.interval_seconds, offset_seconds=self.offset_seconds
            )
        return self._count_in_hours(self.window, due_at, now)

    def slots(self, due_at: datetime, start: datetime, end: datetime) -> Iterator[datetime]:
        """List the slots of [start, end) that a node has whose next one is at `due_at`, itself included."""
        slot = due_at if due_at >= start else self._first_from(due_at, start)
        while slot < end:
            yield slot
            slot = self.next_after(slot)

    def may_serve(self, due_at: datetime, now: datetime) -> bool:
        """Tell whether a node that is late may still start: not in the morning what was due at night."""
        latest = self.latest(due_at, now)
        return not any(is_outside_hours(self.window, due_at, moment) for moment in (now, latest))

    def _first_from(self, due_at: datetime, start: datetime) -> datetime:
        if self.is_fixed_delay:
            return due_at - (due_at - start) // self.interval * self.interval
        return self.next_after(start - _INSTANT)

    def _count_in_hours(self, window: Window, due_at: datetime, now: datetime) -> int:
        slot, count = self.next_after(due_at - _INSTANT), 0
        while slot <= now:
            count += window.contains(slot)
            slot += self.interval
        return count


@dataclass(frozen=True, slots=True)
class Start:
    """What a start does to its node; without `slot_at` the run serves no slot, because a person asked for it.

    A node that may not start any more, since its hours are over, only moves on: `is_run` is False.
    """

    slot_at: datetime | None
    next_run_at: datetime | None
    slots_skipped: int = 0
    is_run: bool = True


@dataclass(frozen=True, slots=True)
class Move:
    """Where a node goes on, and how many slots went by without a run."""

    next_run_at: datetime
    slots_skipped: int = 0


def plan_start(grid: Grid, next_run_at: datetime | None, *, is_asked_for: bool, now: datetime) -> Start | None:
    """Decide which slot a node serves that starts now: the latest one; None when nothing calls for a run.

    The node moves to its first slot after now. Slots before the served one are skipped, never made up for.
    """
    if next_run_at is None or next_run_at > now:
        return Start(None, next_run_at) if is_asked_for else None
    count = grid.count(next_run_at, now)
    if not grid.may_serve(next_run_at, now):
        return Start(None, grid.next_after(now), count, is_run=is_asked_for)
    return Start(grid.latest(next_run_at, now), grid.next_after(now), max(count - 1, 0))


def plan_end(grid: Grid, next_run_at: datetime, *, now: datetime) -> Move:
    """Decide where a node goes on whose run ended: past the slots that went by during the run."""
    if grid.is_fixed_delay:
        return Move(grid.next_after(now))
    if next_run_at > now:
        return Move(next_run_at)
    return Move(grid.next_after(now), grid.count(next_run_at, now))


def plan_rejoin(grid: Grid, next_run_at: datetime, *, now: datetime) -> Move:
    """Decide where a node goes on that stood outside its grid, suspended or because the clock jumped."""
    skipped = grid.count(next_run_at, now) if next_run_at <= now else 0
    return Move(grid.next_after(now), skipped)
