"""Moves a node along its grid: which slot a start serves, how many slots an end or a return passes over, and where a
node continues when an operator changes its interval, its cadence or its hours."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time, timedelta
from zlib import crc32
from zoneinfo import ZoneInfo

from facho.polling.domain.execution_state import QueryType

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)

# Enabling a node gives the operator a minute to think again, and spreads a batch of nodes over five.
FIRST_RUN_DELAY_SECONDS = 60
MAX_SPREAD_SECONDS = 300


@dataclass(frozen=True, slots=True)
class Span:
    """A time span, end excluded."""

    start: datetime
    end: datetime

    def contains(self, moment: datetime) -> bool:
        return self.start <= moment < self.end


def hour_of(moment: datetime) -> Span:
    start = moment.replace(minute=0, second=0, microsecond=0)
    return Span(start, start + HOUR)


def task_type(query_type: QueryType, slug: str) -> str:
    """Return the quota unit: all discoveries share one, other jobs have their slug."""
    return QueryType.DISCOVERY.value if query_type is QueryType.DISCOVERY else f"{query_type.value}_{slug}"


def slot_at_or_before(moment: datetime, *, interval_seconds: int, offset_seconds: int) -> datetime:
    interval, offset = timedelta(seconds=interval_seconds), timedelta(seconds=offset_seconds)
    return EPOCH + offset + ((moment - EPOCH - offset) // interval) * interval


def next_slot_after(moment: datetime, *, interval_seconds: int, offset_seconds: int) -> datetime:
    """Return the first slot after `moment`, never `moment` itself."""
    latest = slot_at_or_before(moment, interval_seconds=interval_seconds, offset_seconds=offset_seconds)
    return latest + timedelta(seconds=interval_seconds)


def count_slots(after: datetime, until: datetime, *, interval_seconds: int, offset_seconds: int) -> int:
    """Count the slots in (after, until]; 0 for an empty span."""
    first = slot_at_or_before(after, interval_seconds=interval_seconds, offset_seconds=offset_seconds)
    last = slot_at_or_before(until, interval_seconds=interval_seconds, offset_seconds=offset_seconds)
    return max((last - first) // timedelta(seconds=interval_seconds), 0)


def offset_of(moment: datetime, *, interval_seconds: int) -> int:
    """Return the offset of the grid with a slot at this time, to the second."""
    return int((moment - EPOCH).total_seconds()) % interval_seconds


def first_offset(node_id: int, *, interval_seconds: int, now: datetime) -> int:
    """Choose the offset of a newly enabled node, so that nodes enabled together do not start together."""
    spread = crc32(str(node_id).encode()) % min(interval_seconds, MAX_SPREAD_SECONDS)
    first_at = now + timedelta(seconds=FIRST_RUN_DELAY_SECONDS + spread)
    return offset_of(first_at, interval_seconds=interval_seconds)


# A grid that meets its window less often than this never meets it in practice.
_DAYS_TO_LOOK_AHEAD = 60


@dataclass(frozen=True, slots=True)
class Window:
    """From `opens` (included) to `closes` (excluded) in local time; may pass midnight."""

    opens: time
    closes: time
    zone: ZoneInfo

    def contains(self, moment: datetime) -> bool:
        """Whether a job may start at this time; equal times mean all day."""
        local = moment.astimezone(self.zone).time()
        if self.opens < self.closes:
            return self.opens <= local < self.closes
        return local >= self.opens or local < self.closes

    def next_opening(self, moment: datetime) -> datetime:
        local = moment.astimezone(self.zone)
        opening = datetime.combine(local.date(), self.opens, self.zone)
        if opening <= local:
            opening = datetime.combine(local.date() + timedelta(days=1), self.opens, self.zone)
        return opening.astimezone(UTC)


def is_outside_hours(window: Window | None, next_run_at: datetime | None, now: datetime) -> bool:
    """Whether a node has to wait for its hours; a grid that never meets them runs anyway, rather than never."""
    if window is None or window.contains(now):
        return False
    return next_run_at is None or window.contains(next_run_at)


def next_slot_in(window: Window | None, moment: datetime, *, interval_seconds: int, offset_seconds: int) -> datetime:
    """Return the first slot in the window; a grid that misses it for two months returns its next slot anyway."""
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


_INSTANT = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Grid:
    """The slots of a node: every interval from an offset, within its hours; or an interval after each end."""

    interval_seconds: int
    offset_seconds: int = 0
    window: Window | None = None
    is_fixed_delay: bool = False

    @property
    def interval(self) -> timedelta:
        return timedelta(seconds=self.interval_seconds)

    def through(self, moment: datetime) -> "Grid":
        return replace(self, offset_seconds=offset_of(moment, interval_seconds=self.interval_seconds))

    def next_after(self, moment: datetime) -> datetime:
        """Return the first slot after a time at which the node may start."""
        if self.is_fixed_delay:
            return moment + self.interval
        return next_slot_in(
            self.window, moment, interval_seconds=self.interval_seconds, offset_seconds=self.offset_seconds
        )

    def latest(self, due_at: datetime, now: datetime) -> datetime:
        """Return the latest slot up to now of a node due since `due_at`."""
        if self.is_fixed_delay:
            return due_at + (now - due_at) // self.interval * self.interval
        slot = slot_at_or_before(now, interval_seconds=self.interval_seconds, offset_seconds=self.offset_seconds)
        # A changed offset may leave a due time off the grid and after its latest slot: it is still served.
        return max(slot, due_at)

    def count(self, due_at: datetime, now: datetime) -> int:
        """Count the `slots` from `due_at` to now, both included; a due time off the grid counts too."""
        if self.is_fixed_delay:
            return (now - due_at) // self.interval + 1
        if self.window is None:
            return 1 + count_slots(
                due_at, now, interval_seconds=self.interval_seconds, offset_seconds=self.offset_seconds
            )
        return sum(1 for _ in self.slots(due_at, due_at, now + _INSTANT))

    def slots(self, due_at: datetime, start: datetime, end: datetime) -> Iterator[datetime]:
        """List the slots in [start, end) of a node whose next one is `due_at`, that included."""
        slot = due_at
        if due_at < start and self.is_fixed_delay:
            slot = due_at - (due_at - start) // self.interval * self.interval
        elif due_at < start:
            slot = self.next_after(start - _INSTANT)
        while slot < end:
            yield slot
            slot = self.next_after(slot)

    def may_serve(self, due_at: datetime, now: datetime) -> bool:
        """Whether a late node may still start: nothing due at night starts in the morning."""
        latest = self.latest(due_at, now)
        return not any(is_outside_hours(self.window, due_at, moment) for moment in (now, latest))


@dataclass(frozen=True, slots=True)
class Start:
    """What a start does to its node: `slot_at` None was requested by an operator; past its hours `is_run` is False."""

    slot_at: datetime | None
    next_run_at: datetime | None
    slots_skipped: int = 0
    is_run: bool = True


@dataclass(frozen=True, slots=True)
class Move:
    next_run_at: datetime
    slots_skipped: int = 0


def plan_start(grid: Grid, next_run_at: datetime | None, *, is_asked_for: bool, now: datetime) -> Start | None:
    """Decide which slot a node starting now serves: the latest; None if nothing is due.

    The node moves to its first slot after now. Earlier slots are skipped, never made up for.
    """
    if next_run_at is None or next_run_at > now:
        return Start(None, next_run_at) if is_asked_for else None
    count = grid.count(next_run_at, now)
    if not grid.may_serve(next_run_at, now):
        return Start(None, grid.next_after(now), count, is_run=is_asked_for)
    return Start(grid.latest(next_run_at, now), grid.next_after(now), max(count - 1, 0))


def plan_end(grid: Grid, next_run_at: datetime, *, now: datetime) -> Move:
    """Move a node whose run ended past the slots that passed during the run."""
    if grid.is_fixed_delay:
        return Move(grid.next_after(now))
    if next_run_at > now:
        return Move(next_run_at)
    return Move(grid.next_after(now), grid.count(next_run_at, now))


def plan_rejoin(grid: Grid, next_run_at: datetime, *, now: datetime) -> Move:
    """Move a node back onto its grid after a suspension or a clock jump.

    Future slots are not skipped: a due time off a changed grid is kept, within its hours.
    """
    following = grid.next_after(now)
    if next_run_at <= now:
        return Move(following, grid.count(next_run_at, now))
    is_in_hours = grid.window is None or grid.window.contains(next_run_at)
    return Move(min(next_run_at, following) if is_in_hours else following)


def plan_change(before: Grid, after: Grid, next_run_at: datetime, *, now: datetime) -> tuple[Grid, datetime]:
    """Return grid and next run after an operator changed the schedule.

    A planned run stays, and the new rhythm counts from it: a longer interval brings no run forward. A shorter interval
    may: the new rhythm then counts from the last slot. So two runs are a new interval apart, and spread nodes stay
    spread. What is due stays due unless its hours are over.
    """
    is_same_rhythm = (before.interval, before.is_fixed_delay) == (after.interval, after.is_fixed_delay)
    grid = after if is_same_rhythm else after.through(next_run_at)
    is_in_hours = after.window in (None, before.window) or after.window.contains(max(next_run_at, now))
    if next_run_at <= now:
        if is_in_hours and grid.may_serve(next_run_at, now):
            # Slots of the new rhythm before the change do not count as missed.
            return grid, next_run_at if is_same_rhythm else grid.latest(next_run_at, now)
    elif is_in_hours and (after.interval >= before.interval or next_run_at <= now + after.interval):
        return grid, next_run_at
    if after.interval < before.interval:
        grid = after.through(next_run_at - before.interval)
    # Also where runs follow their ends: an interval from now would start all that are changed together at once.
    return grid, replace(grid, is_fixed_delay=False).next_after(now)


# A year: what runs less often needs no schedule.
MAX_INTERVAL_SECONDS = 366 * 86_400

_UNITS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
_TEXT = re.compile(r"(?:(\d{1,5})d)?(?:(\d{1,6})h)?(?:(\d{1,8})m)?(?:(\d{1,9})s?)?", re.ASCII)


def parse_interval(text: str) -> int:
    """Parse an interval to seconds; ValueError if invalid."""
    compact = "".join(text.lower().split())
    match = _TEXT.fullmatch(compact)
    if not compact or match is None:
        raise ValueError("an interval is a number with d, h, m or s")
    return sum(int(number or 0) * seconds for number, seconds in zip(match.groups(), _UNITS.values(), strict=True))


def format_interval(seconds: int) -> str:
    """Format seconds in their largest units; `parse_interval` reads the same number."""
    parts, left = [], seconds
    for unit, size in _UNITS.items():
        number, left = divmod(left, size)
        parts += [f"{number}{unit}"] if number else []
    return "".join(parts) or "0s"
