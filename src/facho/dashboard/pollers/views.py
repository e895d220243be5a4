"""How busy the pollers were over hours, a day, a week or a month: their load, when it was too much, and the queue."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from math import ceil, nan
from types import MappingProxyType

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_safe
from django.views.decorators.vary import vary_on_headers

from facho.dashboard.onu.plot import (
    COLUMNS,
    WIDTH,
    AxisLabel,
    Curve,
    Frame,
    PlotColumn,
    PlotSpan,
    Point,
    State,
    choose_lines,
    draw_band,
    draw_curve,
    draw_times,
    from_to,
    label_at,
)
from facho.dashboard.onu.plot import SPANS as LONG_SPANS
from facho.dashboard.shared.drawing import coordinate
from facho.dashboard.shared.page import for_users, is_part
from facho.polling.domain.planning import SATURATED_ABOVE
from facho.zabbix_pollers.statistics import LoadHistory, LoadPoint, load_history

FIRST_SPAN = "hours"
# The figures are of each minute.
REFRESH_SECONDS = 60
SPANS: Mapping[str, PlotSpan] = MappingProxyType(
    {FIRST_SPAN: PlotSpan(FIRST_SPAN, gettext_lazy("6 hours"), timedelta(hours=6), 1, "H:i"), **LONG_SPANS}
)
_BAND = {
    "load-high": gettext_lazy("saturated"),
    "load-normal": gettext_lazy("not saturated"),
    "load-gap": gettext_lazy("no data"),
}


@dataclass(frozen=True, slots=True)
class LoadPlot:
    name: str
    unit: str
    words: str
    curve: Curve
    values: list[AxisLabel]
    limits: list[AxisLabel]
    times: list[AxisLabel]


@dataclass(frozen=True, slots=True)
class LoadSheet:
    """Both plots over the same period, with their summary and hover slices."""

    plots: list[LoadPlot]
    band: list[State]
    columns: list[PlotColumn]
    column_width: str
    saturated: str


@require_safe
@vary_on_headers("HX-Request")
@for_users
def pollers_page(request: HttpRequest) -> HttpResponse:
    asked = request.GET.get("span", FIRST_SPAN)
    span, now = SPANS.get(asked, SPANS[FIRST_SPAN]), timezone.now()
    context = {
        "here": "overview",
        "now": now,
        "span": span.key,
        "spans": list(SPANS.values()),
        "sheet": draw_sheet(load_history(now - span.length, now), span),
        "refresh_seconds": REFRESH_SECONDS,
    }
    return render(request, "pollers/load.html" if is_part(request) else "pollers/pollers.html", context)


def draw_sheet(history: LoadHistory, span: PlotSpan) -> LoadSheet | None:
    """None when nothing was stored in that period."""
    known = [point for point in history.points if point.busy_percentage is not None]
    if not known:
        return None
    times = history.start.timestamp(), history.end.timestamp()
    # Room above the longest queue; an empty queue is drawn at the bottom.
    top = float(max(ceil(max(point.queue_size_max or 0 for point in known) * 1.1), 5))
    busy, queue = Frame(*times, 0, 100), Frame(*times, 0, top)
    shares = [nan if point.saturated_share is None else point.saturated_share for point in history.points]
    steps = [(point.at.timestamp(), share, share, share) for point, share in zip(history.points, shares, strict=True)]
    band = draw_band(steps, _kind, busy, history.step_seconds)
    saturated = sum(point.saturated_share or 0 for point in known) / len(known) * 100
    limit = label_at(busy, SATURATED_ABOVE, _("saturated above %(percent)s %%") % {"percent": _number(SATURATED_ABOVE)})
    return LoadSheet(
        plots=[
            LoadPlot(
                _("Pollers busy"),
                "%",
                _busy_words(known),
                draw_curve([_busy(point, history.step_seconds) for point in history.points], busy),
                [label_at(busy, value, _number(value)) for value in (0, 25, 50, 100)],
                [limit],
                list(draw_times(busy, span)),
            ),
            LoadPlot(
                _("Queue"),
                "",
                _queue_words(known),
                draw_curve([_queue(point, history.step_seconds) for point in history.points], queue),
                [label_at(queue, value, _number(value)) for value in choose_lines(0, queue.highest)],
                [],
                list(draw_times(queue, span)),
            ),
        ],
        band=[State(each, f"{_BAND[each.kind]}\n{from_to(each.start, each.end)}") for each in band],
        columns=list(_columns(history, busy)),
        column_width=coordinate(_column_size(history) * history.step_seconds / (times[1] - times[0]) * WIDTH),
        saturated=_("saturated in %(percent)s %% of the time") % {"percent": number_format(saturated, 1)},
    )


def _busy(point: LoadPoint, step_seconds: int) -> Point:
    at = point.at.timestamp() + step_seconds / 2
    if point.busy_percentage is None:
        return at, nan, nan, nan
    return at, point.busy_percentage, point.busy_percentage_min or 0, point.busy_percentage_max or 0


def _queue(point: LoadPoint, step_seconds: int) -> Point:
    at = point.at.timestamp() + step_seconds / 2
    if point.queue_size is None:
        return at, nan, nan, nan
    return at, point.queue_size, point.queue_size, point.queue_size_max or 0


def _kind(saturated_share: float) -> str:
    if saturated_share > 0:
        return "load-high"
    return "load-normal" if saturated_share == 0 else "load-gap"


def _columns(history: LoadHistory, frame: Frame) -> Iterator[PlotColumn]:
    """Group steps into slices with their values; empty slices are left out."""
    size = _column_size(history)
    for number in range(0, len(history.points), size):
        part = history.points[number : number + size]
        known = [point for point in part if point.busy_percentage is not None]
        if known:
            start, end = part[0].at.timestamp(), part[-1].at.timestamp() + history.step_seconds
            yield PlotColumn(
                coordinate(frame.x(start)), "\n".join([from_to(start, end), _busy_words(known), _queue_words(known)])
            )


def _column_size(history: LoadHistory) -> int:
    return ceil(len(history.points) / COLUMNS)


def _busy_words(known: Sequence[LoadPoint]) -> str:
    average = sum(point.busy_percentage or 0 for point in known) / len(known)
    highest = max(point.busy_percentage_max or 0 for point in known)
    return _("busy %(average)s %%, highest %(highest)s %%") % {"average": _number(average), "highest": _number(highest)}


def _queue_words(known: Sequence[LoadPoint]) -> str:
    longest = max(point.queue_size_max or 0 for point in known)
    return _("longest queue %(longest)s") % {"longest": _number(longest)}


def _number(value: float | None) -> str:
    return str(number_format(round(value or 0)))
