"""What cards, uplinks and the chassis of an OLT did over time: traffic, temperature, load."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_safe
from django.views.decorators.vary import vary_on_headers

from facho.dashboard.olt.views import find_olt
from facho.dashboard.onu.plot import PlotCurve, csv_of, curve_of, draw_amounts, question_of
from facho.dashboard.shared.page import for_users, is_part
from facho.dashboard.shared.plot_range import PlotRange, lead_on, range_of
from facho.hosts.models import OltData
from facho.onus.history import Series
from facho.onus.history_read_model import load_olt_history
from facho.onus.value_history import find_metrics, find_rows

# Curves that can be told apart in one plot; the rest is in the file.
MAX_CURVES = 6
REFRESH_SECONDS = 60
# Bytes a second in Mbit/s.
_MBIT = 8 / 1e6


@dataclass(frozen=True, slots=True)
class FigureRow:
    """A row of an OLT's tables whose values over time are wanted, and what it is called."""

    name: str
    index: str
    title: str


@dataclass(frozen=True, slots=True)
class FigureGroup:
    """Figures that share a plot."""

    key: str
    title: Promise
    names: tuple[str, ...]


GROUPS = (
    FigureGroup("uplinks", gettext_lazy("Traffic of uplinks"), ("if.in_octets", "if.out_octets")),
    FigureGroup("temperature", gettext_lazy("Temperature"), ("chassis.temperature", "board.temperature")),
    FigureGroup("cpu", gettext_lazy("Processor load"), ("chassis.cpu", "board.control_cpu", "board.cpu")),
    FigureGroup("memory", gettext_lazy("Memory in use"), ("chassis.memory", "board.control_memory", "board.memory")),
)
_UNITS = {"octets": "Mbit/s", "temperature": "°C", "cpu": "%", "memory": "%"}
_WAYS: Mapping[str, Promise] = {
    "if.in_octets": gettext_lazy("received"),
    "if.out_octets": gettext_lazy("sent"),
}


def load_figure_curves(olt_id: int, rows: Sequence[FigureRow], shown: PlotRange) -> list[tuple[FigureRow, PlotCurve]]:
    """Load rows of an OLT's tables over time; three queries, none if there are no rows."""
    metrics = find_metrics({row.name for row in rows}) if rows else {}
    if not metrics:
        return []
    numbers, question = find_rows(olt_id), question_of(shown)
    read = load_olt_history(olt_id, metrics.values(), question)
    curves = []
    for row in rows:
        series, number = read.get(metrics.get(row.name, 0)), numbers.get(row.index)
        if series is None or number is None or number not in series.onu_ids:
            continue
        at = int(np.searchsorted(series.onu_ids, number))
        factor = _MBIT if row.name.endswith("octets") else 1.0
        values = (column[at] * factor for column in (series.average, series.lowest, series.highest))
        curve = curve_of(row.name, row.title, unit_of(row.name), Series(series.at, *values), question)
        if curve.has_values:
            curves.append((row, curve))
    return curves


def distinct_curves(curves: Iterable[PlotCurve]) -> list[PlotCurve]:
    """Give the first curves a look of their own each, and leave out the rest."""
    return [replace(curve, key=f"other-{n}") for n, curve in enumerate(islice(curves, MAX_CURVES), start=1)]


def unit_of(name: str) -> str:
    return next((unit for word, unit in _UNITS.items() if name.endswith(word)), "")


def load_figures(olt_id: int, names: Collection[str]) -> list[FigureRow]:
    """Name the rows of these figures as the page of the OLT does; one query."""
    rows = OltData.objects.filter(olt_id=olt_id, name__in=names).order_by("name", "id")
    return [
        FigureRow(row.name, row.index, " ".join(filter(None, (row.place or row.index, str(_WAYS.get(row.name, ""))))))
        for row in rows
        # PON ports have pages of their own.
        if not (row.name.startswith("if.") and "pon" in row.place.lower())
    ]


def load_plots(olt_id: int, shown: PlotRange) -> list[dict[str, Any]]:
    """Draw each group, the rows with the highest values first; four queries."""
    rows = load_figures(olt_id, [name for group in GROUPS for name in group.names])
    found = load_figure_curves(olt_id, rows, shown)
    plots = []
    for group in GROUPS:
        curves = [curve for row, curve in found if row.name in group.names]
        if curves:
            curves.sort(key=lambda curve: -float(np.nanmax(curve.highest)))
            plot = draw_amounts(shown, distinct_curves(curves))
            # Rows that have values and no curve.
            more = max(len(curves) - MAX_CURVES, 0)
            plots.append({"key": group.key, "title": group.title, "plot": plot, "more": more})
    return plots


@require_safe
@vary_on_headers("HX-Request")
@for_users
def olt_history(request: HttpRequest, olt_id: int) -> HttpResponse:
    olt, shown = find_olt(request, olt_id), range_of(request.GET, timezone.now())
    if not is_part(request) and (shared := lead_on(request, shown)) is not None:
        return shared
    plots = load_plots(olt.id, shown)
    context: dict[str, Any] = {
        "olt": olt,
        "now": shown.now,
        "plots": plots,
        # What the choice of a period asks, even if there is nothing to draw.
        "plot": plots[0]["plot"] if plots else draw_amounts(shown, ()),
        "seconds": REFRESH_SECONDS,
        "part_url": reverse("olt-history", args=(olt.id,)),
        "csv_url": reverse("olt-csv", args=(olt.id,)),
    }
    return render(request, "olt/_history.html" if is_part(request) else "olt/history.html", context)


@require_safe
@for_users
def olt_csv(request: HttpRequest, olt_id: int) -> HttpResponse:
    """Answer with all figures of the OLT in the period that the same query shows."""
    olt, shown = find_olt(request, olt_id), range_of(request.GET, timezone.now())
    titles = {name: str(group.title) for group in GROUPS for name in group.names}
    rows = load_figures(olt.id, list(titles))
    named = [FigureRow(row.name, row.index, f"{titles[row.name]} {row.title}") for row in rows]
    return csv_of(f"olt-{olt.id}", [curve for _, curve in load_figure_curves(olt.id, named, shown)])
