"""The light of an ONU over a day, a week or a month, with its state below: loaded, drawn and put into words."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from math import isnan
from statistics import median
from types import MappingProxyType

from django.utils.formats import date_format, number_format
from django.utils.functional import Promise
from django.utils.timezone import localtime
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from facho.dashboard.light import STRONGEST_CDBM, WEAKEST_CDBM
from facho.dashboard.svg import coordinate
from facho.dashboard.svg_plot import (
    WIDTH,
    Curve,
    Frame,
    Point,
    Stretch,
    choose_lines,
    draw_band,
    draw_curve,
    span_values,
)
from facho.onus.history import Resolution, Series
from facho.onus.history_metrics import Metric
from facho.onus.history_read_model import Detail, Question, ask, load_onu_history

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
class Span:
    """A length of time that can be chosen; the grid has a line every `step_hours` of the clock."""

    key: str
    name: Promise
    length: timedelta
    step_hours: int
    label: str


SPANS: Mapping[str, Span] = MappingProxyType(
    {
        span.key: span
        for span in (
            Span("day", gettext_lazy("Day"), timedelta(days=1), 4, "H:i"),
            Span("week", gettext_lazy("Week"), timedelta(days=7), 24, "D"),
            Span("month", gettext_lazy("Month"), timedelta(days=30), 120, "j M"),
        )
    }
)


@dataclass(frozen=True, slots=True)
class Label:
    """A line of the grid and the words beside it; `at` is in percent, `where` in the drawing's own units."""

    text: str
    at: str
    where: str


@dataclass(frozen=True, slots=True)
class Line:
    """A curve with its name, and what there is to say of it without the drawing."""

    key: str
    name: str
    curve: Curve
    words: str


@dataclass(frozen=True, slots=True)
class Column:
    """A part of the time under the pointer, and what was then."""

    x: str
    tip: str


@dataclass(frozen=True, slots=True)
class State:
    """A stretch of the band, and its words."""

    stretch: Stretch
    tip: str


@dataclass(frozen=True, slots=True)
class Plot:
    """The whole drawing; without lines nothing was read in that time."""

    span: Span
    lines: list[Line]
    limits: list[Label]
    values: list[Label]
    times: list[Label]
    columns: list[Column]
    column_width: str
    states: list[State]


def load_plot(onu_id: int, span: Span, now: datetime) -> Plot:
    """Load and draw; three queries."""
    since = now - span.length
    question = ask(Metric.RX_POWER, start=since, end=None, detail=Detail.AUTO, now=now)
    points = {metric: _points(onu_id, metric, question) for metric in (*(curve[0] for curve in _CURVES), Metric.STATE)}
    frame = _frame([point for metric, *_rest in _CURVES for point in points[metric]], since, now)
    return Plot(
        span,
        lines=[
            Line(key, str(name), draw_curve(points[metric], frame), _in_words(points[metric]))
            for metric, key, name in _CURVES
            if _known(points[metric])
        ],
        limits=[_label(frame, limit, _limit_words(limit)) for limit in (WEAKEST, STRONGEST) if limit < frame.highest],
        values=[
            _label(frame, value, number_format(value, decimal_pos=0))
            for value in choose_lines(frame.lowest, frame.highest)
        ],
        times=list(_times(frame, span)),
        columns=list(_columns(points, frame, half=question.resolution / 2)),
        column_width=coordinate(WIDTH / COLUMNS),
        states=[State(each, _state_words(each)) for each in _band(points[Metric.STATE], frame, question)],
    )


def _points(onu_id: int, metric: Metric, question: Question) -> list[Point]:
    asked = Question(metric, question.start, question.end, question.resolution)
    series = load_onu_history(onu_id, asked)
    return _from_series(series, question.resolution)


def _from_series(series: Series, resolution: Resolution) -> list[Point]:
    """Return values at their times; what was summed up stands in the middle of its time."""
    at = (series.at + resolution / 2).tolist()
    return list(zip(at, series.average.tolist(), series.lowest.tolist(), series.highest.tolist(), strict=True))


def _known(points: Sequence[Point]) -> list[Point]:
    return [point for point in points if not isnan(point[1])]


def _frame(points: Sequence[Point], since: datetime, now: datetime) -> Frame:
    values = [value for _, _, lowest, highest in points for value in (lowest, highest)]
    lowest, highest = span_values(values, always=WEAKEST, margin=1, least=8)
    highest = STRONGEST + 1 if STRONGEST - _NEAR_DB < highest <= STRONGEST else highest
    return Frame(since.timestamp(), now.timestamp(), lowest, highest)


def _label(frame: Frame, value: float, text: str) -> Label:
    return Label(text, frame.top(value), coordinate(frame.y(value)))


def _limit_words(limit: float) -> str:
    words = _("weak below %(limit)s dBm") if limit == WEAKEST else _("too strong above %(limit)s dBm")
    return words % {"limit": number_format(limit, decimal_pos=0)}


def _times(frame: Frame, span: Span) -> Iterator[Label]:
    """Return the full steps of the local clock; a day that is an hour longer or shorter keeps its lines."""
    moment = localtime(datetime.fromtimestamp(frame.start, UTC)).replace(hour=0, minute=0, second=0, microsecond=0)
    while moment.timestamp() < frame.end:
        at = moment.timestamp()
        if at >= frame.start:
            yield Label(date_format(moment, span.label), frame.left(at), coordinate(frame.x(at)))
        moment += timedelta(hours=span.step_hours)


def _band(points: Sequence[Point], frame: Frame, question: Question) -> list[Stretch]:
    """Draw states from the beginning of each time that was summed up."""
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


def _state_words(stretch: Stretch) -> str:
    return f"{STATES[stretch.kind]}\n{_from_to(stretch.start, stretch.end)}"


def _columns(points: Mapping[Metric, Sequence[Point]], frame: Frame, *, half: float) -> Iterator[Column]:
    """Cut the time into equal parts and say of each what was read in it; where nothing was, nothing is said."""
    length = (frame.end - frame.start) / COLUMNS
    parts: dict[int, dict[Metric, list[Point]]] = {}
    for metric, series in points.items():
        for point in _known(series):
            number = min(max(int((point[0] - frame.start) / length), 0), COLUMNS - 1)
            parts.setdefault(number, {}).setdefault(metric, []).append(point)
    for number, part in sorted(parts.items()):
        yield Column(coordinate(number * WIDTH / COLUMNS), "\n".join(_column_words(part, half)))


def _column_words(part: Mapping[Metric, Sequence[Point]], half: float) -> Iterator[str]:
    times = [point[0] for points in part.values() for point in points]
    yield _from_to(min(times) - half, max(times) + half)
    for metric, _key, name in _CURVES:
        if metric in part:
            yield f"{name}: {_range(part[metric])}"
    if Metric.STATE in part:
        kinds = {_state_of(point[1]) for point in part[Metric.STATE]}
        yield str(STATES[kinds.pop() if len(kinds) == 1 else "partly"])


def _range(points: Sequence[Point]) -> str:
    lowest, highest = min(point[2] for point in points), max(point[3] for point in points)
    if lowest == highest:
        return f"{_dbm(lowest)} dBm"
    return _("%(low)s to %(high)s dBm") % {"low": _dbm(lowest), "high": _dbm(highest)}


def _in_words(points: Sequence[Point]) -> str:
    known = _known(points)
    return _("lowest %(low)s, highest %(high)s dBm") % {
        "low": _dbm(min(point[2] for point in known)),
        "high": _dbm(max(point[3] for point in known)),
    }


def _dbm(value: float) -> str:
    return number_format(value, decimal_pos=2)


def _from_to(start: float, end: float) -> str:
    first, last = _moment(start), _moment(end)
    return first if first == last else f"{first} - {last}"


def _moment(at: float) -> str:
    return date_format(localtime(datetime.fromtimestamp(at, UTC)), "j M H:i")
