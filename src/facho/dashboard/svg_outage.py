"""Draws an outage on a line of time: how many ONUs were down at each moment, and what was done about it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils.timezone import localtime

from facho.dashboard.svg import coordinate
from facho.dashboard.svg_timeline import Scale, draw_ticks

# The words of moments stand in rows above the area.
WIDTH, TOP, BASE = 960.0, 50.0, 140.0
SHORTEST = timedelta(minutes=10)
MOST_TICKS = 8
# Marks nearer than this write their words below one another.
LABEL_WIDTH = 110.0
# Times nearer to an edge would be cut off.
EDGE = 36.0
LABEL_ROWS, LABEL_HEIGHT = 3, 14.0
_STEPS = tuple(
    timedelta(minutes=minutes) for minutes in (1, 2, 5, 10, 30, 60, 180, 360, 720, 1440, 2880, 10_080, 43_200)
)
_DAY = timedelta(days=1)

Step = tuple[datetime, int]


@dataclass(frozen=True, slots=True)
class Moment:
    """Something that happened to an outage, and its words."""

    at: datetime
    words: str


@dataclass(frozen=True, slots=True)
class DrawnMoment:
    """A mark on the line; its words end at the line where they would leave the drawing otherwise."""

    x: str
    y: str
    anchor: str
    words: str
    tip: str


@dataclass(frozen=True, slots=True)
class DrawnTick:
    """A line of the grid with its time."""

    x: str
    words: str


@dataclass(frozen=True, slots=True)
class OutageDrawing:
    """The drawing: an area under the number of ONUs that were down, or a full band where nobody could count."""

    area: str
    highest: int
    ticks: list[DrawnTick]
    moments: list[DrawnMoment]
    width: int = int(WIDTH)
    top: str = coordinate(TOP)
    base: str = coordinate(BASE)


def draw_outage(
    steps: Sequence[Step], moments: Sequence[Moment], *, starts_at: datetime, ends_at: datetime
) -> OutageDrawing:
    """Draw the steps of a count, in order, from its start to its end; without steps it is out all the time."""
    scale = _scale(starts_at, ends_at)
    highest = max((number for _at, number in steps), default=0)
    known = list(steps) if highest else [(starts_at, 1)]
    area = _area([(at, number / (highest or 1)) for at, number in known], scale, ends_at)
    return OutageDrawing(area, highest, _draw_ticks(scale), _draw_moments(moments, scale))


def _scale(starts_at: datetime, ends_at: datetime) -> Scale:
    length = max(ends_at - starts_at, SHORTEST)
    return Scale(starts_at - length / 12, starts_at + length + length / 12, WIDTH)


def _area(steps: Sequence[tuple[datetime, float]], scale: Scale, ends_at: datetime) -> str:
    path = f"M{coordinate(scale.x(steps[0][0]))} {coordinate(BASE)}"
    for at, share in steps:
        path += f"H{coordinate(scale.x(at))}V{coordinate(BASE - share * (BASE - TOP))}"
    return f"{path}H{coordinate(scale.x(max(ends_at, steps[-1][0])))}V{coordinate(BASE)}z"


def _draw_ticks(scale: Scale) -> list[DrawnTick]:
    length = scale.end - scale.start
    step = next((step for step in _STEPS if length / step <= MOST_TICKS), _STEPS[-1])
    form = "%H:%M" if length < _DAY else "%m-%d %H:%M" if step < _DAY else "%Y-%m-%d"
    ticks = [tick for tick in draw_ticks(scale, step) if EDGE < scale.x(tick.moment) < WIDTH - EDGE]
    return [DrawnTick(tick.x, f"{localtime(tick.moment):{form}}") for tick in ticks]


def _draw_moments(moments: Sequence[Moment], scale: Scale) -> list[DrawnMoment]:
    drawn, row, before = [], 0, -LABEL_WIDTH
    for moment in sorted(moments, key=lambda each: each.at):
        x = scale.x(moment.at)
        row, before = ((row + 1) % LABEL_ROWS if x - before < LABEL_WIDTH else 0), x
        anchor = "end" if x > WIDTH - LABEL_WIDTH else "start"
        tip = f"{moment.words} · {localtime(moment.at):%Y-%m-%d %H:%M:%S}"
        drawn.append(DrawnMoment(coordinate(x), coordinate((row + 1) * LABEL_HEIGHT), anchor, moment.words, tip))
    return drawn
