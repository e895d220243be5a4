"""The page of one ONU, in parts that refresh themselves as often as what they show changes."""

from datetime import datetime
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from facho.dashboard.onu_plot import SPANS, load_plot
from facho.dashboard.onu_reading import find_onu, reading_context
from facho.dashboard.onu_sheet import load_onu_events, load_onu_outages, load_raw_values, load_sheet
from facho.dashboard.parts import Part, for_users, load_parts, part_called
from facho.onus.models import Onu

EVENT_LINES = 20
OUTAGE_LINES = 6
FIRST_SPAN = "day"


@require_safe
@for_users
def onu_page(request: HttpRequest, onu_id: int) -> HttpResponse:
    """Show everything about one ONU."""
    onu, now = find_onu(request, onu_id), timezone.now()
    context = load_parts(PARTS, request, onu, now) | reading_context(request, onu)
    return render(request, "dashboard/onu.html", {"here": "onus", "now": now, **context})


@require_safe
@for_users
def onu_part(request: HttpRequest, onu_id: int, name: str) -> HttpResponse:
    """Show one part of the page of an ONU."""
    part, onu, now = part_called(name, PARTS), find_onu(request, onu_id), timezone.now()
    context = {"now": now, "onu": onu, "parts": PARTS, **part.load(request, onu, now)}
    return render(request, part.template, context)


def _state(request: HttpRequest, onu: Onu, now: datetime) -> dict[str, Any]:
    return {"sheet": load_sheet(onu)}


def _light(request: HttpRequest, onu: Onu, now: datetime) -> dict[str, Any]:
    asked = request.GET.get("span", FIRST_SPAN)
    span = asked if asked in SPANS else FIRST_SPAN
    return {"span": span, "plot": load_plot(onu.id, SPANS[span], now), "spans": list(SPANS.values())}


def _past(request: HttpRequest, onu: Onu, now: datetime) -> dict[str, Any]:
    return {"events": load_onu_events(onu.id, EVENT_LINES), "outages": load_onu_outages(onu, OUTAGE_LINES)}


def _raw(request: HttpRequest, onu: Onu, now: datetime) -> dict[str, Any]:
    return {"raw_values": load_raw_values(onu)}


PARTS = {
    "state": Part("dashboard/onu_state.html", 2, _state),
    "light": Part("dashboard/onu_light.html", 30, _light),
    "past": Part("dashboard/onu_past.html", 10, _past),
    "raw": Part("dashboard/onu_raw.html", 30, _raw),
}
