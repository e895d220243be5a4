"""Draws runs on a line of time; those too close to be told apart become one mark that says how many they are."""

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
    """One drawn mark: its runs began at `starts_at` and ended at `ends_at`, and the worst of them gave it its kind."""

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
    stretches: Iterable[Stretch], scale: Scale, *, top: float, height: float, worst_first: Sequence[str] = ()
) -> list[Mark]:
    """Draw what can be seen, in the order of time."""
    seen = [stretch for stretch in stretches if scale.shows(stretch.starts_at, stretch.ends_at)]
    groups = _join(sorted(seen, key=lambda stretch: stretch.starts_at), scale)
    return [_mark(group, scale, top, height, worst_first) for group in groups]


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


def _mark(group: Sequence[Stretch], scale: Scale, top: float, height: float, worst_first: Sequence[str]) -> Mark:
    ranks = {kind: rank for rank, kind in enumerate(worst_first)}
    worst = min(group, key=lambda stretch: ranks.get(stretch.kind, len(ranks)))
    ends_at = max(stretch.ends_at for stretch in group)
    left = min(scale.x(group[0].starts_at), scale.width - MIN_WIDTH)
    width = max(scale.x(ends_at) - left, MIN_WIDTH)
    path = rectangle(left, top, width, height)
    return Mark(worst.kind, path, group[0].starts_at, ends_at, worst.name, len(group))
