"""Draws values over time: curves with their gaps, the range around them, and bands of states.

The drawing is stretched to the width of the page, so it has no text: labels are placed in percent of it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import groupby, pairwise
from math import ceil, floor, isnan
from statistics import median
from types import MappingProxyType

from django.utils.formats import date_format, number_format
from django.utils.functional import Promise
from django.utils.timezone import localtime
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from facho.dashboard.shared.drawing import coordinate
from facho.dashboard.shared.light import STRONGEST_CDBM, WEAKEST_CDBM
from facho.onus.history_metrics import Metric
from facho.onus.history_read_model import Detail, HistoryQuery, ask, load_onu_history

# The drawing's own units.
WIDTH, HEIGHT = 1000.0, 200.0

# At (seconds of the epoch), average, lowest and highest; NaN is a gap.
Point = tuple[float, float, float, float]
WEAKEST, STRONGEST = WEAKEST_CDBM / 100, STRONGEST_CDBM / 100
# Narrow enough to find a moment, wide enough for a finger.
COLUMNS = 96
_USUAL_STEP_SECONDS = 300.0
# The bound for what is too strong is in view when somebody comes near it.
_NEAR_DB = 3
_CURVES = (
    (Metric.RX_POWER, "rx", gettext_lazy("The ONU receives")),
    (Metric.OLT_RX_POWER, "olt-rx", gettext_lazy("The OLT receives")),
)
STATES: Mapping[str, Promise] = MappingProxyType(
    {
        "online": gettext_lazy("online"),
        "partly": gettext_lazy("partly online"),
        "offline": gettext_lazy("offline"),
        "unknown": gettext_lazy("unknown"),
    }
)


@dataclass(frozen=True, slots=True)
class Frame:
    start: float
    end: float
    lowest: float
    highest: float

    def x(self, at: float) -> float:
        """Clamp times outside the frame to its edge."""
        share = (at - self.start) / (self.end - self.start)
        return min(max(share, 0.0), 1.0) * WIDTH

    def y(self, value: float) -> float:
        share = (self.highest - value) / (self.highest - self.lowest)
        return min(max(share, 0.0), 1.0) * HEIGHT

    def left(self, at: float) -> str:
        """Left position of a time's label, in percent."""
        return coordinate(self.x(at) / WIDTH * 100)

    def top(self, value: float) -> str:
        """Top position of a value's label, in percent."""
        return coordinate(self.y(value) / HEIGHT * 100)


@dataclass(frozen=True, slots=True)
class Curve:
    line: str
    area: str


@dataclass(frozen=True, slots=True)
class PlotStretch:
    """A period without change; times in epoch seconds."""

    kind: str
    start: float
    end: float
    x: str
    width: str


def draw_curve(points: Sequence[Point], frame: Frame) -> Curve:
    """Draw the curve; gaps stay empty, a single value becomes a dot."""
    line = area = ""
    for is_gap, group in groupby(points, key=lambda point: isnan(point[1])):
        if is_gap:
            continue
        run = list(group)
        line += "M" + "L".join(_at(frame.x(point[0]), frame.y(point[1])) for point in run)
        if len(run) == 1:
            line += "h0"
        elif any(lowest != highest for _, _, lowest, highest in run):
            above = [_at(frame.x(at), frame.y(highest)) for at, _, _, highest in run]
            below = [_at(frame.x(at), frame.y(lowest)) for at, _, lowest, _ in reversed(run)]
            area += f"M{'L'.join([*above, *below])}z"
    return Curve(line, area)


def _at(x: float, y: float) -> str:
    return f"{coordinate(x)} {coordinate(y)}"


def draw_band(points: Sequence[Point], kind_of: Callable[[float], str], frame: Frame, step: float) -> list[PlotStretch]:
    """Split time into stretches of one kind; a value holds until the next, the last for one step."""
    ends = [after[0] for _, after in pairwise(points)] + [min(points[-1][0] + step, frame.end)] if points else []
    pieces = [(kind_of(point[1]), point[0], end) for point, end in zip(points, ends, strict=True)]
    stretches = []
    for kind, group in groupby(pieces, key=lambda piece: piece[0]):
        same = list(group)
        start, end = max(same[0][1], frame.start), same[-1][2]
        left = frame.x(start)
        # A single poll in which it was down has to be seen.
        width = max(frame.x(end) - left, 2.0)
        stretches.append(PlotStretch(kind, start, end, coordinate(min(left, WIDTH - width)), coordinate(width)))
    return stretches


def span_values(values: Iterable[float], *, always: float, margin: float, least: float) -> tuple[float, float]:
    known = [value for value in values if not isnan(value)]
    lowest = floor(min([always, *known]) - margin)
    return float(lowest), float(max(ceil(max([always, *known]) + margin), lowest + least))


def choose_lines(lowest: float, highest: float) -> list[float]:
    """Choose four or five round grid values, at least 1 apart."""
    step = next((step for step in (1, 2, 5, 10) if (highest - lowest) / step <= 5), 20)
    first = ceil(lowest / step) * step
    return [float(value) for value in range(first, floor(highest) + 1, step)]


@dataclass(frozen=True, slots=True)
class PlotSpan:
    """A selectable period; the grid has a line every `step_hours`."""

    key: str
    name: Promise
    length: timedelta
    step_hours: int
    label: str


SPANS: Mapping[str, PlotSpan] = MappingProxyType(
    {
        span.key: span
        for span in (
            PlotSpan("day", gettext_lazy("Day"), timedelta(days=1), 4, "H:i"),
            PlotSpan("week", gettext_lazy("Week"), timedelta(days=7), 24, "D"),
            PlotSpan("month", gettext_lazy("Month"), timedelta(days=30), 120, "j M"),
        )
    }
)


@dataclass(frozen=True, slots=True)
class AxisLabel:
    """A grid line with its text; `at` is in percent, `where` in drawing units."""

    text: str
    at: str
    where: str


@dataclass(frozen=True, slots=True)
class PlotLine:
    key: str
    name: str
    curve: Curve
    words: str


@dataclass(frozen=True, slots=True)
class PlotColumn:
    x: str
    tip: str


@dataclass(frozen=True, slots=True)
class State:
    stretch: PlotStretch
    tip: str


@dataclass(frozen=True, slots=True)
class Plot:
    """The whole drawing; no lines if nothing was read in that period."""

    span: PlotSpan
    lines: list[PlotLine]
    limits: list[AxisLabel]
    values: list[AxisLabel]
    times: list[AxisLabel]
    columns: list[PlotColumn]
    column_width: str
    states: list[State]


def load_plot(onu_id: int, span: PlotSpan, now: datetime) -> Plot:
    """Load and draw; three queries."""
    since = now - span.length
    question = ask(Metric.RX_POWER, start=since, end=None, detail=Detail.AUTO, now=now)
    points = {metric: _points(onu_id, metric, question) for metric in (*(curve[0] for curve in _CURVES), Metric.STATE)}
    frame = _frame([point for metric, *_rest in _CURVES for point in points[metric]], since, now)
    return Plot(
        span,
        lines=[
            PlotLine(key, str(name), draw_curve(points[metric], frame), _in_words(points[metric]))
            for metric, key, name in _CURVES
            if _known(points[metric])
        ],
        limits=[label_at(frame, limit, _limit_words(limit)) for limit in (WEAKEST, STRONGEST) if limit < frame.highest],
        values=[
            label_at(frame, value, number_format(value, decimal_pos=0))
            for value in choose_lines(frame.lowest, frame.highest)
        ],
        times=list(draw_times(frame, span)),
        columns=list(_columns(points, frame, half=question.resolution / 2)),
        column_width=coordinate(WIDTH / COLUMNS),
        states=[
            State(each, f"{STATES[each.kind]}\n{from_to(each.start, each.end)}")
            for each in _band(points[Metric.STATE], frame, question)
        ],
    )


def _points(onu_id: int, metric: Metric, question: HistoryQuery) -> list[Point]:
    asked = HistoryQuery(metric, question.start, question.end, question.resolution)
    series = load_onu_history(onu_id, asked)
    # Return (time, value); aggregated values are placed in the middle of their period.
    at = (series.at + question.resolution / 2).tolist()
    return list(zip(at, series.average.tolist(), series.lowest.tolist(), series.highest.tolist(), strict=True))


def _known(points: Sequence[Point]) -> list[Point]:
    return [point for point in points if not isnan(point[1])]


def _frame(points: Sequence[Point], since: datetime, now: datetime) -> Frame:
    values = [value for _, _, lowest, highest in points for value in (lowest, highest)]
    lowest, highest = span_values(values, always=WEAKEST, margin=1, least=8)
    highest = STRONGEST + 1 if STRONGEST - _NEAR_DB < highest <= STRONGEST else highest
    return Frame(since.timestamp(), now.timestamp(), lowest, highest)


def label_at(frame: Frame, value: float, text: str) -> AxisLabel:
    return AxisLabel(text, frame.top(value), coordinate(frame.y(value)))


def _limit_words(limit: float) -> str:
    words = _("weak below %(limit)s dBm") if limit == WEAKEST else _("too strong above %(limit)s dBm")
    return words % {"limit": number_format(limit, decimal_pos=0)}


def draw_times(frame: Frame, span: PlotSpan) -> Iterator[AxisLabel]:
    """Return full hours of the local clock; DST days keep their lines."""
    moment = localtime(datetime.fromtimestamp(frame.start, UTC)).replace(hour=0, minute=0, second=0, microsecond=0)
    while moment.timestamp() < frame.end:
        at = moment.timestamp()
        if at >= frame.start:
            yield AxisLabel(date_format(moment, span.label), frame.left(at), coordinate(frame.x(at)))
        moment += timedelta(hours=span.step_hours)


def _band(points: Sequence[Point], frame: Frame, question: HistoryQuery) -> list[PlotStretch]:
    half = question.resolution / 2
    starts: list[Point] = [(at - half, average, lowest, highest) for at, average, lowest, highest in points]
    steps = [after[0] - before[0] for before, after in pairwise(starts)]
    step = question.resolution or (median(steps) if steps else _USUAL_STEP_SECONDS)
    return draw_band(starts, _state_of, frame, step)


def _state_of(share_online: float) -> str:
    if isnan(share_online):
        return "unknown"
    if share_online >= 100:
        return "online"
    return "partly" if share_online > 0 else "offline"


def _columns(points: Mapping[Metric, Sequence[Point]], frame: Frame, *, half: float) -> Iterator[PlotColumn]:
    """Cut the time into equal slices with their values; empty slices are left out."""
    length = (frame.end - frame.start) / COLUMNS
    parts: dict[int, dict[Metric, list[Point]]] = {}
    for metric, series in points.items():
        for point in _known(series):
            number = min(max(int((point[0] - frame.start) / length), 0), COLUMNS - 1)
            parts.setdefault(number, {}).setdefault(metric, []).append(point)
    for number, part in sorted(parts.items()):
        yield PlotColumn(coordinate(number * WIDTH / COLUMNS), "\n".join(_column_words(part, half)))


def _column_words(part: Mapping[Metric, Sequence[Point]], half: float) -> Iterator[str]:
    times = [point[0] for points in part.values() for point in points]
    yield from_to(min(times) - half, max(times) + half)
    for metric, _key, name in _CURVES:
        if metric in part:
            lowest, highest = min(point[2] for point in part[metric]), max(point[3] for point in part[metric])
            low_high = {"low": _dbm(lowest), "high": _dbm(highest)}
            words = f"{_dbm(lowest)} dBm" if lowest == highest else _("%(low)s to %(high)s dBm") % low_high
            yield f"{name}: {words}"
    if Metric.STATE in part:
        kinds = {_state_of(point[1]) for point in part[Metric.STATE]}
        yield str(STATES[kinds.pop() if len(kinds) == 1 else "partly"])


def _in_words(points: Sequence[Point]) -> str:
    known = _known(points)
    return _("lowest %(low)s, highest %(high)s dBm") % {
        "low": _dbm(min(point[2] for point in known)),
        "high": _dbm(max(point[3] for point in known)),
    }


def _dbm(value: float) -> str:
    return number_format(value, decimal_pos=2)


def from_to(start: float, end: float) -> str:
    first, last = _moment(start), _moment(end)
    return first if first == last else f"{first} - {last}"


def _moment(at: float) -> str:
    return date_format(localtime(datetime.fromtimestamp(at, UTC)), "j M H:i")
