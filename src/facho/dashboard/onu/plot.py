"""Draws values over time: curves with their gaps, the range around them, bands of states, and events.

The drawing is stretched to the width of the page, so it has no text: labels are placed in percent of it.
"""

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from itertools import groupby, pairwise
from math import ceil, floor, isnan
from statistics import median
from types import MappingProxyType

import numpy as np
from django.http import HttpResponse
from django.urls import reverse
from django.utils.formats import date_format, get_format, number_format
from django.utils.functional import Promise
from django.utils.timezone import localtime
from django.utils.translation import get_language, gettext_lazy
from django.utils.translation import gettext as _

from facho.dashboard.onu.names import EventLine, code_of, name_of
from facho.dashboard.shared.light import STRONGEST_CDBM, WEAKEST_CDBM
from facho.dashboard.shared.page import coordinate
from facho.dashboard.shared.plot_range import PlotRange, PlotSpan
from facho.infrastructure.spreadsheet import guard
from facho.onus.history import Series
from facho.onus.history_models import Floats, Ints, Metric
from facho.onus.history_read_model import Detail, HistoryQuery, ask, load_onu_metrics
from facho.onus.models import Onu

# The drawing's own units.
WIDTH, HEIGHT = 1000.0, 200.0

# At (seconds of the epoch), average, lowest and highest; NaN is a gap.
Point = tuple[float, float, float, float]
WEAKEST, STRONGEST = WEAKEST_CDBM / 100, STRONGEST_CDBM / 100
# Narrow enough to find a moment, wide enough for a finger.
COLUMNS = 96
# No screen shows more points of a curve; of those that fall together the lowest and the highest are kept.
MAX_POINTS = 480
# More marks would hide each other: of those that fall together one is shown.
MARK_COLUMNS = 60
MAX_NAME_LETTERS = 40
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
    step = next(
        number * 10**power
        for power in range(20)
        for number in (1, 2, 5)
        if (highest - lowest) / (number * 10**power) <= 5
    )
    first = ceil(lowest / step) * step
    return [float(value) for value in range(first, floor(highest) + 1, step)]


@dataclass(frozen=True, slots=True)
class AxisLabel:
    """A grid line with its text; `at` is in percent, `where` in drawing units."""

    text: str
    at: str
    where: str


@dataclass(frozen=True, slots=True)
class PlotCurve:
    """Values to draw, with what they are called; `at` is where a value stands, in epoch seconds."""

    key: str
    name: str
    unit: str
    at: Floats
    average: Floats
    lowest: Floats
    highest: Floats
    # The page of what it shows.
    href: str = ""
    onu_id: int | None = None
    is_faint: bool = False

    @property
    def has_values(self) -> bool:
        return bool((~np.isnan(self.average)).any())


@dataclass(frozen=True, slots=True)
class PlotLine:
    key: str
    name: str
    curve: Curve
    words: str
    href: str
    # The address of the plot without it, if it can be taken out.
    without: str


@dataclass(frozen=True, slots=True)
class PlotColumn:
    x: str
    tip: str


@dataclass(frozen=True, slots=True)
class PlotMark:
    """An event at its time, in percent."""

    at: str
    look: str
    tip: str
    onu_id: int


@dataclass(frozen=True, slots=True)
class UsualBand:
    """What is normal for the ONU of a plot: a band over all of its time, and what it says."""

    y: str
    height: str
    words: str


@dataclass(frozen=True, slots=True)
class State:
    stretch: PlotStretch
    tip: str


@dataclass(frozen=True, slots=True)
class Plot:
    """The whole drawing; no lines if nothing was read in that period."""

    shown: PlotRange
    unit: str
    lines: list[PlotLine]
    limits: list[AxisLabel]
    values: list[AxisLabel]
    times: list[AxisLabel]
    columns: list[PlotColumn]
    column_width: str
    states: list[State] = field(default_factory=list)
    marks: list[PlotMark] = field(default_factory=list)
    usual: UsualBand | None = None

    @property
    def has_anything(self) -> bool:
        return bool(self.lines or self.states)


def curve_of(key: str, name: str, unit: str, series: Series, question: HistoryQuery) -> PlotCurve:
    """Place values; aggregated ones stand in the middle of their period."""
    at = series.at.astype(np.float64) + question.resolution / 2
    return PlotCurve(key, name, unit, at, series.average, series.lowest, series.highest)


def question_of(shown: PlotRange, metric: int = Metric.RX_POWER) -> HistoryQuery:
    return ask(metric, start=shown.start, end=shown.end, detail=Detail.AUTO, now=shown.now)


def load_curves(onu: Onu, compared: Sequence[Onu], question: HistoryQuery) -> tuple[list[PlotCurve], PlotCurve]:
    """Load the light of an ONU and of those it is compared with, and its state; a query for each ONU."""
    own = load_onu_metrics(onu.id, (*(metric for metric, _, _ in _CURVES), Metric.STATE), question)
    curves = [curve_of(key, str(name), "dBm", own[metric], question) for metric, key, name in _CURVES]
    for number, other in enumerate(compared, start=1):
        light = load_onu_metrics(other.id, (Metric.RX_POWER,), question)[Metric.RX_POWER]
        curves.append(light_of(other, f"other-{number}", light, question))
    return curves, curve_of("state", _("State"), "%", own[Metric.STATE], question)


def light_of(onu: Onu, key: str, light: Series, question: HistoryQuery) -> PlotCurve:
    """Name the light of an ONU among others: by the start of its customer or description, and its serial."""
    # Each of a hundred columns repeats it.
    name = f"{name_of(onu)[:MAX_NAME_LETTERS]} {code_of(onu)}".strip()
    curve = curve_of(key, name, "dBm", light, question)
    return replace(curve, href=reverse("onu", args=(onu.id,)), onu_id=onu.id)


def load_plot(
    onu: Onu,
    shown: PlotRange,
    compared: Sequence[Onu],
    events: Iterable[EventLine],
    usual: tuple[float, float] | None = None,
) -> Plot:
    question = question_of(shown)
    curves, state = load_curves(onu, compared, question)
    return draw_light(shown, curves, state=(state, question), events=events, usual=usual)


def draw_light(
    shown: PlotRange,
    curves: Sequence[PlotCurve],
    *,
    state: tuple[PlotCurve, HistoryQuery] | None = None,
    events: Iterable[EventLine] = (),
    usual: tuple[float, float] | None = None,
) -> Plot:
    """Draw receive powers with the limits of the optics, and the band of what is normal."""
    values = [value for curve in curves for column in (curve.lowest, curve.highest) for value in _ends(column)]
    values += usual or ()
    lowest, highest = span_values(values, always=WEAKEST, margin=1, least=8)
    highest = STRONGEST + 1 if STRONGEST - _NEAR_DB < highest <= STRONGEST else highest
    frame = Frame(shown.start.timestamp(), shown.end.timestamp(), lowest, highest)
    limits = [label_at(frame, limit, _limit_words(limit)) for limit in (WEAKEST, STRONGEST) if limit < frame.highest]
    drawn = _draw(shown, curves, frame, limits=limits, state=state, events=events)
    return replace(drawn, usual=_band_of(usual, frame)) if usual else drawn


def _band_of(usual: tuple[float, float], frame: Frame) -> UsualBand:
    top, bottom = frame.y(usual[1]), frame.y(usual[0])
    words = _("normal for this ONU: %(low)s to %(high)s dBm") % {"low": _number(usual[0]), "high": _number(usual[1])}
    return UsualBand(coordinate(top), coordinate(bottom - top), words)


def draw_amounts(shown: PlotRange, curves: Sequence[PlotCurve], *, least: float = 1.0) -> Plot:
    """Draw values that begin at zero: traffic, temperature, load."""
    values = [value for curve in curves for value in _ends(curve.highest)]
    frame = Frame(shown.start.timestamp(), shown.end.timestamp(), 0.0, max([least, *values]) * 1.05)
    return _draw(shown, curves, frame, limits=[])


def _ends(column: Floats) -> list[float]:
    known = column[~np.isnan(column)]
    return [float(known.min()), float(known.max())] if known.size else []


def _draw(
    shown: PlotRange,
    curves: Sequence[PlotCurve],
    frame: Frame,
    *,
    limits: list[AxisLabel],
    state: tuple[PlotCurve, HistoryQuery] | None = None,
    events: Iterable[EventLine] = (),
) -> Plot:
    known = [curve for curve in curves if curve.has_values]
    points = [thin_out(curve, frame) for curve in known]
    states = thin_out(state[0], frame) if state else []
    return Plot(
        shown,
        known[0].unit if known else "",
        lines=[
            PlotLine(
                curve.key,
                curve.name,
                draw_curve(drawn, frame),
                _in_words(curve),
                curve.href,
                _without(shown, curve.onu_id),
            )
            for curve, drawn in zip(known, points, strict=True)
        ],
        limits=limits,
        values=[
            label_at(frame, value, number_format(value, decimal_pos=0, force_grouping=True))
            for value in choose_lines(frame.lowest, frame.highest)
        ],
        times=list(draw_times(frame, shown.grid)),
        columns=list(_columns(list(zip(known, points, strict=True)), states, frame)),
        column_width=coordinate(WIDTH / COLUMNS),
        states=[
            State(each, f"{STATES[each.kind]}\n{from_to(each.start, each.end)}")
            for each in (_band(states, frame, state[1]) if state else ())
        ],
        marks=list(draw_marks(events, frame)),
    )


def _without(shown: PlotRange, onu_id: int | None) -> str:
    if onu_id not in shown.compared:
        return ""
    return shown.with_compared(each for each in shown.compared if each != onu_id).query


def thin_out(curve: PlotCurve, frame: Frame) -> list[Point]:
    """Return as many points as a screen can show; each stands for the lowest and highest that fall together there."""
    at, average, lowest, highest = curve.at, curve.average, curve.lowest, curve.highest
    if len(at) > MAX_POINTS:
        is_known = ~np.isnan(average)
        # A gap stays one: what is missing is kept between those that stand together before and after it.
        slices = ((at - frame.start) / (frame.end - frame.start) * MAX_POINTS).astype(np.int64) * 2 + ~is_known
        firsts = np.flatnonzero(np.diff(slices, prepend=slices[0] - 1))
        at = np.add.reduceat(at, firsts) / np.diff(firsts, append=len(at))
        average = np.add.reduceat(average, firsts) / np.diff(firsts, append=len(average))
        lowest, highest = np.minimum.reduceat(lowest, firsts), np.maximum.reduceat(highest, firsts)
    return list(zip(at.tolist(), average.tolist(), lowest.tolist(), highest.tolist(), strict=True))


def draw_marks(events: Iterable[EventLine], frame: Frame) -> Iterator[PlotMark]:
    """Place events that are in the frame; of those that fall together the latest stands for all."""
    inside = (event for event in events if frame.start <= event.at.timestamp() <= frame.end)
    width = (frame.end - frame.start) / MARK_COLUMNS
    for _slice, group in groupby(inside, key=lambda event: int((event.at.timestamp() - frame.start) / width)):
        same = list(group)
        more = [_("and %(number)s more") % {"number": len(same) - 3}] if len(same) > 3 else []
        lines = [f"{_moment(event.at.timestamp())} {event.place} {event.what}" for event in same[:3]]
        yield PlotMark(frame.left(same[0].at.timestamp()), same[0].look, "\n".join(lines + more), same[0].onu_id)


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


def _columns(
    curves: Sequence[tuple[PlotCurve, list[Point]]], states: Sequence[Point], frame: Frame
) -> Iterator[PlotColumn]:
    """Cut the time into equal slices with their values; empty slices are left out."""
    length = (frame.end - frame.start) / COLUMNS
    parts: dict[int, dict[int, list[Point]]] = {}
    series = [points for _, points in curves]
    for which, points in enumerate([*series, states]):
        for point in points:
            if not isnan(point[1]):
                number = min(max(int((point[0] - frame.start) / length), 0), COLUMNS - 1)
                parts.setdefault(number, {}).setdefault(which, []).append(point)
    # There are a hundred of them with several texts each: what they share is translated once.
    state_words = {kind: str(words) for kind, words in STATES.items()}
    between = _("%(low)s to %(high)s %(unit)s")
    for number, part in sorted(parts.items()):
        lines = [from_to(frame.start + number * length, frame.start + (number + 1) * length)]
        for which, (curve, _points) in enumerate(curves):
            if not curve.is_faint and (found := part.get(which)):
                low, high = _number(min(point[2] for point in found)), _number(max(point[3] for point in found))
                words = {"low": low, "high": high, "unit": curve.unit}
                lines.append(f"{curve.name}: {f'{low} {curve.unit}' if low == high else between % words}")
        if kinds := {_state_of(point[1]) for point in part.get(len(series), ())}:
            lines.append(state_words[kinds.pop() if len(kinds) == 1 else "partly"])
        yield PlotColumn(coordinate(number * WIDTH / COLUMNS), "\n".join(lines))


def _in_words(curve: PlotCurve) -> str:
    lowest, highest = float(np.nanmin(curve.lowest)), float(np.nanmax(curve.highest))
    return _("lowest %(low)s, highest %(high)s %(unit)s") % {
        "low": _number(lowest),
        "high": _number(highest),
        "unit": curve.unit,
    }


def _number(value: float) -> str:
    # Hundreds of them are on a page: the general way takes ten times as long.
    return f"{value:.2f}".replace(".", str(get_format("DECIMAL_SEPARATOR")))


def from_to(start: float, end: float) -> str:
    first, last = _moment(start), _moment(end)
    return first if first == last else f"{first} - {last}"


def _moment(at: float) -> str:
    local = localtime(datetime.fromtimestamp(at, UTC))
    return f"{_day(local.date(), get_language())} {local:%H:%M}"


@lru_cache(maxsize=1_000)
def _day(day: date, language: str | None) -> str:
    """Format a day in the present language, which is given to be remembered with it."""
    return date_format(day, "j M")


def csv_of(name: str, curves: Sequence[PlotCurve]) -> HttpResponse:
    """Answer with all values of these curves, not only those that a screen can show; times are in UTC."""
    answer = HttpResponse(content_type="text/csv; charset=utf-8")
    answer["Content-Disposition"] = f'attachment; filename="{name}.csv"'
    known = [curve for curve in curves if curve.has_values]
    columns = [column for curve in known for column in _csv_columns(curve)]
    writer = csv.writer(answer, lineterminator="\n")
    writer.writerow(["time", *(guard(title) for title, _, _ in columns)])
    times: Ints = np.unique(np.concatenate([curve.at for curve in known])) if known else np.zeros(0, dtype=np.int64)
    cells = np.full((len(columns), len(times)), np.nan)
    for number, (_title, at, values) in enumerate(columns):
        cells[number, np.searchsorted(times, at)] = values
    for number, at in enumerate(times.tolist()):
        row = ("" if isnan(value) else f"{value:.12g}" for value in cells[:, number].tolist())
        writer.writerow([datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"), *row])
    return answer


def _csv_columns(curve: PlotCurve) -> Iterator[tuple[str, Floats, Floats]]:
    title = f"{curve.name} ({curve.unit})"
    yield title, curve.at, curve.average
    if not np.array_equal(curve.lowest, curve.highest, equal_nan=True):
        yield f"{title} min", curve.at, curve.lowest
        yield f"{title} max", curve.at, curve.highest
