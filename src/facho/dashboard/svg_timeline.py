"""Draws runs on a line of time; those of a kind that cannot be told apart become one mark that says how many."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from facho.dashboard.svg import coordinate, rectangle

# Of the drawing's own units: a narrower mark cannot be hit, and a narrower gap cannot be seen.
MIN_WIDTH = 3.0
MIN_GAP = 3.0


@dataclass(frozen=True, slots=True)
class Scale:
    """Maps a span of time to a width."""

    start: datetime
    end: datetime
    width: float

    def x(self, moment: datetime) -> float:
        """Return where a moment lies; what is before or after lies on the edge."""
        share = (moment - self.start) / (self.end - self.start)
        return min(max(share, 0.0), 1.0) * self.width

    def shows(self, starts_at: datetime, ends_at: datetime) -> bool:
        """Tell whether any of a stretch of time can be seen."""
        return starts_at < self.end and ends_at >= self.start


@dataclass(frozen=True, slots=True)
class Stretch:
    """A run, planned or real: how it went and what it is called."""

    starts_at: datetime
    ends_at: datetime
    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class Mark:
    """One drawn mark: the first of its runs has this name and began at `starts_at`, the last ended at `ends_at`."""

    kind: str
    path: str
    starts_at: datetime
    ends_at: datetime
    name: str
    runs: int


@dataclass(frozen=True, slots=True)
class Tick:
    """A line of the grid."""

    x: str
    moment: datetime


def draw_marks(
    stretches: Iterable[Stretch], scale: Scale, *, top: float, height: float, kinds: Sequence[str]
) -> list[Mark]:
    """Draw what can be seen, one kind after the other: the last lies on top of those before it."""
    seen = sorted((each for each in stretches if scale.shows(each.starts_at, each.ends_at)), key=lambda s: s.starts_at)
    return [
        _mark(group, scale, top, height)
        for kind in kinds
        for group in _join([stretch for stretch in seen if stretch.kind == kind], scale)
    ]


def draw_ticks(scale: Scale, step: timedelta) -> list[Tick]:
    """Draw the full steps of the clock within the span."""
    midnight = scale.start.replace(hour=0, minute=0, second=0, microsecond=0)
    steps = (scale.start - midnight) // step + 1
    moments = (midnight + number * step for number in range(steps, steps + (scale.end - scale.start) // step + 1))
    return [Tick(coordinate(scale.x(moment)), moment) for moment in moments if moment < scale.end]


def _join(ordered: Sequence[Stretch], scale: Scale) -> Iterator[list[Stretch]]:
    group: list[Stretch] = []
    right = 0.0
    for stretch in ordered:
        left = scale.x(stretch.starts_at)
        if group and left - right >= MIN_GAP:
            yield group
            group = []
        right = max(scale.x(stretch.ends_at), left + MIN_WIDTH, right if group else 0.0)
        group.append(stretch)
    if group:
        yield group


def _mark(group: Sequence[Stretch], scale: Scale, top: float, height: float) -> Mark:
    first, ends_at = group[0], max(stretch.ends_at for stretch in group)
    left = min(scale.x(first.starts_at), scale.width - MIN_WIDTH)
    path = rectangle(left, top, max(scale.x(ends_at) - left, MIN_WIDTH), height)
    return Mark(first.kind, path, first.starts_at, ends_at, first.name, len(group))
