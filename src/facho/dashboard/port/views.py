"""The page of one PON port: the light of all its ONUs now and over time, the worst and the falling, traffic, faults."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from facho.accounts.scope import scope_of
from facho.dashboard.light.tree import load_port_tree
from facho.dashboard.light.views import load_port_findings
from facho.dashboard.olt.history import FigureRow, distinct_curves, load_figure_curves
from facho.dashboard.onu import plot
from facho.dashboard.onu.list import OnuLine, listed_onus, rows_of
from facho.dashboard.onu.names import load_latest
from facho.dashboard.onu.views import find_compared, marked_events, outages_of_place
from facho.dashboard.shared.light import STRONGEST_CDBM, WEAKEST_CDBM, Light
from facho.dashboard.shared.outages import with_names
from facho.dashboard.shared.page import (
    PagePart,
    coordinate,
    for_users,
    load_parts,
    may_operate,
    part_called,
    stack,
)
from facho.dashboard.shared.plot_range import PlotRange, lead_on, range_of
from facho.dashboard.traps.views import load_said_of_port
from facho.hosts.models import OltData, WaitingOnu
from facho.hosts.olt_data import shown_growth, shown_value, title_of
from facho.hosts.store import OLT_SECRETS
from facho.onus.history import PortSeries, Series
from facho.onus.history_models import Floats
from facho.onus.history_read_model import HistoryQuery, load_port_history
from facho.onus.models import Onu, Outage, PonPort
from facho.plant.models import LightFinding

EVENT_LINES = 15
OUTAGE_LINES = 8
FINDING_LINES = 8
WORST_LINES = 6
# Next to the band of all; more lines could not be told apart.
DRAWN_WORST = 3
# The least fall, from the first to the last quarter of what is shown, that is no noise of a cheap sensor.
FALLING_DB = 1.0
# What the largest splitters in use serve.
MOST_ONUS = 128
_PORT_VALUES = ("pon.status", "pon.tx_power", "pon.temperature", "pon.voltage", "pon.bias")
_TRAFFIC = ("pon.in_octets", "pon.out_octets", "if.in_octets", "if.out_octets")
# What the numbers of a place are stored as.
MAX_NUMBER = 32_767


@dataclass(frozen=True, slots=True)
class FallingOnu:
    """An ONU that receives less at the end of a period than at its start."""

    onu: Onu
    before_dbm: float
    after_dbm: float

    @property
    def by_db(self) -> float:
        return self.before_dbm - self.after_dbm


def load_sheet(port: PonPort) -> dict[str, Any]:
    """Judge the ONUs of a port, the weakest first; four queries."""
    lines = rows_of(listed_onus().filter(pon_port=port, is_present=True))
    lit = sorted(
        (line for line in lines if not line.is_old_light and line.power_dbm is not None),
        key=lambda line: (line.power_dbm or 0.0, line.id),
    )
    powers = [line.power_dbm for line in lit if line.power_dbm is not None]
    counts = {state: sum(line.state == state for line in lines) for state in ("online", "offline", "unknown")}
    total = sum(counts.values())
    frame = plot.Frame(0, max(len(lit), 1), *plot.span_values(powers, always=WEAKEST_CDBM / 100, margin=1, least=8))
    limits = [limit / 100 for limit in (WEAKEST_CDBM, STRONGEST_CDBM) if limit / 100 < frame.highest]
    now_out = Outage.objects.filter(outages_of_place(port), ended_at__isnull=True).order_by("-affected", "id")
    return {
        **counts,
        "total": total,
        # 0 if there are more than a splitter serves.
        "most": MOST_ONUS if total <= MOST_ONUS else 0,
        "weak": sum(line.light is Light.WEAK for line in lit),
        "lowest_dbm": min(powers, default=None),
        "average_dbm": sum(powers) / len(powers) if powers else None,
        "highest_dbm": max(powers, default=None),
        "waiting": WaitingOnu.objects.filter(
            olt_id=port.olt_id, frame=port.frame, slot=port.slot, port=port.port
        ).count(),
        "bars": stack(counts.items(), total=max(len(lines), MOST_ONUS)),
        "worst": lit[:WORST_LINES],
        "dots": [_dot(number, line, frame) for number, line in enumerate(lit)],
        "limits": [plot.label_at(frame, limit, f"{limit:.0f} dBm") for limit in limits],
        "values": [
            plot.label_at(frame, value, f"{value:.0f}") for value in plot.choose_lines(frame.lowest, frame.highest)
        ],
        "optics": [(title_of(row.name), _value(row)) for row in _load_values(port, (*_PORT_VALUES, *_TRAFFIC))],
        "outages_now": list(with_names(now_out)[:1]),
    }


def _dot(number: int, line: OnuLine, frame: plot.Frame) -> dict[str, Any]:
    power = line.power_dbm or 0.0
    words = " · ".join(filter(None, (line.place, line.code, line.name, f"{power:.2f} dBm", line.light_words)))
    left = coordinate((number + 0.5) / frame.end * 100)
    return {"onu_id": line.id, "left": left, "top": frame.top(power), "kind": line.light.value, "tip": words}


def _value(row: OltData) -> str:
    is_counter = row.name.endswith("_octets")
    return shown_growth(row.per_second, row.unit) if is_counter else shown_value(row.name, row.value, row.unit)


def _load_values(port: PonPort, names: Sequence[str]) -> list[OltData]:
    """Load what the OLT reports about a port; an interface is the port's if its name ends with it. One query."""
    rows = OltData.objects.filter(olt_id=port.olt_id, name__in=names, place__endswith=str(port)).order_by("name", "id")
    of_interface = re.compile(rf".*pon\D*{port}", re.IGNORECASE | re.DOTALL)
    found = [row for row in rows if row.place == str(port) or of_interface.fullmatch(row.place)]
    # The counters of interfaces say the same once more.
    has_own = any(row.name == "pon.in_octets" for row in found)
    return [row for row in found if not (has_own and row.name.startswith("if."))]


def load_light(
    port: PonPort, shown: PlotRange, compared: Sequence[Onu]
) -> tuple[list[plot.PlotCurve], list[FallingOnu], HistoryQuery]:
    """Load the light of all ONUs over time as a band with the worst, the falling and the chosen ones; two queries."""
    question = plot.question_of(shown)
    series = load_port_history(port.id, question)
    onus = {onu.id: onu for onu in listed_onus().filter(id__in=series.onu_ids.tolist())}
    falling = find_falling(series, onus)
    curves = [_band(series, question)] if series.at.size else []
    chosen = [*compared, *(each.onu for each in falling[:DRAWN_WORST]), *_worst(series, onus)[:DRAWN_WORST]]
    rows = {onu_id: number for number, onu_id in enumerate(series.onu_ids.tolist())}
    drawn = [onu for onu in dict.fromkeys(chosen) if onu.id in rows][: 2 * DRAWN_WORST]
    curves += [
        plot.light_of(onu, f"other-{n}", _row(series, rows[onu.id]), question) for n, onu in enumerate(drawn, start=1)
    ]
    return curves, falling, question


def _row(series: PortSeries, number: int) -> Series:
    return Series(series.at, series.average[number], series.lowest[number], series.highest[number])


def _band(series: PortSeries, question: HistoryQuery) -> plot.PlotCurve:
    """Return the median of all ONUs with the lowest and the highest around it."""
    is_known = ~np.isnan(series.average).all(axis=0)
    middle, lowest, highest = (np.full(len(series.at), np.nan) for _ in range(3))
    middle[is_known] = np.nanmedian(series.average[:, is_known], axis=0)
    lowest[is_known] = np.nanmin(series.lowest[:, is_known], axis=0)
    highest[is_known] = np.nanmax(series.highest[:, is_known], axis=0)
    return plot.curve_of("rx", _("All ONUs, their median"), "dBm", Series(series.at, middle, lowest, highest), question)


def _worst(series: PortSeries, onus: Mapping[int, Onu]) -> list[Onu]:
    """Return the ONUs by what they received last in the period, the weakest first."""
    last = []
    for number, onu_id in enumerate(series.onu_ids.tolist()):
        values = series.average[number]
        known = values[~np.isnan(values)]
        if known.size and onu_id in onus:
            last.append((float(known[-1]), onu_id))
    return [onus[onu_id] for _, onu_id in sorted(last)]


def find_falling(series: PortSeries, onus: Mapping[int, Onu]) -> list[FallingOnu]:
    """Compare the first with the last quarter of each ONU's values; those that fell most first."""
    found = []
    for number, onu_id in enumerate(series.onu_ids.tolist()):
        values = series.average[number]
        known: Floats = values[~np.isnan(values)]
        quarter = len(known) // 4
        if quarter and onu_id in onus:
            before, after = float(known[:quarter].mean()), float(known[-quarter:].mean())
            if before - after >= FALLING_DB:
                found.append(FallingOnu(onus[onu_id], before, after))
    return sorted(found, key=lambda each: (-each.by_db, each.onu.id))[:WORST_LINES]


def load_traffic(port: PonPort, shown: PlotRange) -> list[plot.PlotCurve]:
    """Load what went through the port; four queries."""
    rows = _load_values(port, _TRAFFIC)
    titles = {"in_octets": _("received from ONUs"), "out_octets": _("sent to ONUs")}
    wanted = [FigureRow(row.name, row.index, titles[row.name.partition(".")[2]]) for row in rows]
    return distinct_curves(curve for _row_of, curve in load_figure_curves(port.olt_id, wanted, shown))


@require_safe
@for_users
def port_page(request: HttpRequest, olt_id: int, frame: int, slot: int, port: int) -> HttpResponse:
    found, now = find_port(request, olt_id, (frame, slot, port)), timezone.now()
    shown, _compared = find_compared(request, range_of(request.GET, now), None)
    if (shared := lead_on(request, shown)) is not None:
        return shared
    context = {"here": "onus", "now": now, "port": found, "olt": found.olt}
    return render(request, "port/port.html", context | load_parts(PARTS, request, found, now))


@require_safe
@for_users
def port_part(request: HttpRequest, olt_id: int, frame: int, slot: int, port: int, name: str) -> HttpResponse:
    part, found = part_called(name, PARTS), find_port(request, olt_id, (frame, slot, port))
    now = timezone.now()
    context = {"now": now, "port": found, "olt": found.olt, "parts": PARTS}
    return render(request, part.template, context | part.load(request, found, now))


@require_safe
@for_users
def port_csv(request: HttpRequest, olt_id: int, frame: int, slot: int, port: int) -> HttpResponse:
    """Answer with the light of every ONU of the port in the period that the same query shows."""
    found = find_port(request, olt_id, (frame, slot, port))
    question = plot.question_of(range_of(request.GET, timezone.now()))
    series = load_port_history(found.id, question)
    onus = {onu.id: onu for onu in listed_onus().filter(id__in=series.onu_ids.tolist())}
    curves = [
        plot.light_of(onus[onu_id], "rx", _row(series, number), question)
        for number, onu_id in enumerate(series.onu_ids.tolist())
        if onu_id in onus
    ]
    return plot.csv_of(f"port-{found.olt_id}-{frame}-{slot}-{port}", curves)


def find_port(request: HttpRequest, olt_id: int, place: Iterable[int]) -> PonPort:
    """Return a port in the user's scope, else raise 404; one query. Where ONUs of unknown ports stand is none."""
    numbers = dict(zip(("frame", "slot", "port"), place, strict=True))
    ports = scope_of(request.user).narrow(PonPort.objects.select_related("olt").defer(*OLT_SECRETS))
    # Larger numbers are no place, and not every database looks for them.
    if max(numbers.values()) > MAX_NUMBER:
        ports = ports.none()
    return get_object_or_404(ports, olt_id=olt_id, is_known=True, **numbers)


def _address(port: PonPort, name: str, *more: str) -> str:
    return reverse(name, args=(port.olt_id, port.frame, port.slot, port.port, *more))


def _light(request: HttpRequest, port: PonPort, now: datetime) -> dict[str, Any]:
    shown, compared = find_compared(request, range_of(request.GET, now), None)
    curves, falling, _question = load_light(port, shown, compared)
    events = marked_events(Q(pon_port_id=port.id), shown)
    traffic = load_traffic(port, shown)
    return {
        "plot": plot.draw_light(shown, curves, events=events),
        "traffic": plot.draw_amounts(shown, traffic) if traffic else None,
        "falling": falling,
        "compared_words": request.GET.get("with", "") if shown.problem else " ".join(onu.serial for onu in compared),
        "part_url": _address(port, "port-part", "light"),
        "csv_url": _address(port, "port-csv"),
    }


def _past(request: HttpRequest, port: PonPort, now: datetime) -> dict[str, Any]:
    """Load what happened at the port, what its OLT said of it, and what its light shows."""
    here = Q(pon_port_id=port.id) | Q(other_port_id=port.id)
    outages = Outage.objects.filter(outages_of_place(port)).order_by("-started_at", "-id")
    return {
        "events": load_latest(here, LightFinding.objects.filter(pon_port=port), EVENT_LINES),
        "outages": with_names(outages)[:OUTAGE_LINES],
        "findings": load_port_findings(port, now, FINDING_LINES),
        "traps": load_said_of_port(port.olt_id, (port.frame, port.slot, port.port), EVENT_LINES),
    }


def _tree(request: HttpRequest, port: PonPort, now: datetime) -> dict[str, Any]:
    return {"tree": load_port_tree(port, now), "may_operate": may_operate(request)}


PARTS = {
    "state": PagePart("port/state.html", 5, lambda request, port, now: {"sheet": load_sheet(port)}),
    "light": PagePart("port/light.html", 30, _light),
    "past": PagePart("port/past.html", 10, _past),
    # A form is filled in there, so it does not refresh itself.
    "tree": PagePart("light/tree.html", 60, _tree),
}
