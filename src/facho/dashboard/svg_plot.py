"""Draws values over time: curves with their gaps, the range around them, and bands of states.

The drawing is stretched to the width of the page, so no text stands in it: labels are placed by their share of it.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from math import ceil, floor, isnan

from facho.dashboard.svg import coordinate

# The drawing's own units.
WIDTH, HEIGHT = 1000.0, 200.0

# At (seconds of the epoch), average, lowest and highest; NaN is a gap.
Point = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class Frame:
    """Which times and values the drawing spans."""

    start: float
    end: float
    lowest: float
    highest: float

    def x(self, at: float) -> float:
        """Return where a time lies; what is outside lies on the edge."""
        share = (at - self.start) / (self.end - self.start)
        return min(max(share, 0.0), 1.0) * WIDTH

    def y(self, value: float) -> float:
        """Return how deep a value lies."""
        share = (self.highest - value) / (self.highest - self.lowest)
        return min(max(share, 0.0), 1.0) * HEIGHT

    def left(self, at: float) -> str:
        """Return where the label of a time stands, in percent of the width."""
        return coordinate(self.x(at) / WIDTH * 100)

    def top(self, value: float) -> str:
        """Return where the label of a value stands, in percent of the height."""
        return coordinate(self.y(value) / HEIGHT * 100)


@dataclass(frozen=True, slots=True)
class Curve:
    """A curve as paths: its line, and the area between what was lowest and highest."""

    line: str
    area: str


@dataclass(frozen=True, slots=True)
class Stretch:
    """A time in which nothing changed; times are seconds of the epoch."""

    kind: str
    start: float
    end: float
    x: str
    width: str


def draw_curve(points: Sequence[Point], frame: Frame) -> Curve:
    """Draw what was read; a gap stays empty, and a lone value is a dot."""
    runs = list(_runs(points))
    return Curve("".join(_line(run, frame) for run in runs), "".join(_area(run, frame) for run in runs if len(run) > 1))


def _runs(points: Sequence[Point]) -> Iterator[list[Point]]:
    for is_gap, run in groupby(points, key=lambda point: isnan(point[1])):
        if not is_gap:
            yield list(run)


def _line(run: Sequence[Point], frame: Frame) -> str:
    path = "M" + "L".join(_at(frame.x(point[0]), frame.y(point[1])) for point in run)
    return f"{path}h0" if len(run) == 1 else path


def _area(run: Sequence[Point], frame: Frame) -> str:
    if all(lowest == highest for _, _, lowest, highest in run):
        return ""
    above = [_at(frame.x(at), frame.y(highest)) for at, _, _, highest in run]
    below = [_at(frame.x(at), frame.y(lowest)) for at, _, lowest, _ in reversed(run)]
    return f"M{'L'.join([*above, *below])}z"


def _at(x: float, y: float) -> str:
    return f"{coordinate(x)} {coordinate(y)}"


def draw_band(points: Sequence[Point], kind_of: Callable[[float], str], frame: Frame, step: float) -> list[Stretch]:
    """Cut the time into stretches of one kind each; a value holds until the next one, the last for a step."""
    ends = [after[0] for _, after in pairwise(points)] + [min(points[-1][0] + step, frame.end)] if points else []
    pieces = [(kind_of(point[1]), point[0], end) for point, end in zip(points, ends, strict=True)]
    return [_stretch(kind, list(group), frame) for kind, group in groupby(pieces, key=lambda piece: piece[0])]


def _stretch(kind: str, pieces: Sequence[tuple[str, float, float]], frame: Frame) -> Stretch:
    start, end = max(pieces[0][1], frame.start), pieces[-1][2]
    left = frame.x(start)
    # A single poll in which it was down has to be seen.
    width = max(frame.x(end) - left, 2.0)
    return Stretch(kind, start, end, coordinate(min(left, WIDTH - width)), coordinate(width))


def span_values(values: Iterable[float], *, always: float, margin: float, least: float) -> tuple[float, float]:
    """Choose whole bounds that show all values, and one that is always in view, with some room around them."""
    known = [value for value in values if not isnan(value)]
    lowest = floor(min([always, *known]) - margin)
    return float(lowest), float(max(ceil(max([always, *known]) + margin), lowest + least))


def choose_lines(lowest: float, highest: float) -> list[float]:
    """Choose the round values at which the grid has a line: four or five, but never closer than one."""
    step = next((step for step in (1, 2, 5, 10) if (highest - lowest) / step <= 5), 20)
    first = ceil(lowest / step) * step
    return [float(value) for value in range(first, floor(highest) + 1, step)]
