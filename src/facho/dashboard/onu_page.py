"""The page of one ONU, in parts that refresh themselves as often as what they show changes."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from facho.dashboard.onu_plot import SPANS, load_plot
from facho.dashboard.onu_reading import find_onu, reading_context
from facho.dashboard.onu_sheet import load_onu_events, load_onu_outages, load_raw_values, load_sheet
from facho.dashboard.parts import for_users
from facho.onus.models import Onu

EVENT_LINES = 20
OUTAGE_LINES = 6
FIRST_SPAN = "day"


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the page: what it loads of an ONU, and after how many seconds it does so again."""

    name: str
    seconds: int
    load: Callable[[Onu, str, datetime], dict[str, Any]]

    @property
    def template(self) -> str:
        """What draws it."""
        return f"dashboard/onu_{self.name}.html"


@require_safe
@for_users
def onu_page(request: HttpRequest, onu_id: int) -> HttpResponse:
    """Show everything about one ONU."""
    context = _context(request, onu_id)
    context |= reading_context(request, context["onu"])
    for part in PARTS.values():
        context |= part.load(context["onu"], context["span"], context["now"])
    return render(request, "dashboard/onu.html", context)


@require_safe
@for_users
def onu_part(request: HttpRequest, onu_id: int, name: str) -> HttpResponse:
    """Show one part of the page of an ONU."""
    part = PARTS.get(name)
    if part is None:
        raise Http404
    context = _context(request, onu_id)
    context |= part.load(context["onu"], context["span"], context["now"])
    return render(request, part.template, context)


def _context(request: HttpRequest, onu_id: int) -> dict[str, Any]:
    span = request.GET.get("span", FIRST_SPAN)
    return {
        "here": "onu",
        "now": timezone.now(),
        "onu": find_onu(request, onu_id),
        "span": span if span in SPANS else FIRST_SPAN,
    }


def _state(onu: Onu, span: str, now: datetime) -> dict[str, Any]:
    return {"sheet": load_sheet(onu)}


def _light(onu: Onu, span: str, now: datetime) -> dict[str, Any]:
    return {"plot": load_plot(onu.id, SPANS[span], now), "spans": list(SPANS.values())}


def _past(onu: Onu, span: str, now: datetime) -> dict[str, Any]:
    return {"events": load_onu_events(onu.id, EVENT_LINES), "outages": load_onu_outages(onu, OUTAGE_LINES)}


def _raw(onu: Onu, span: str, now: datetime) -> dict[str, Any]:
    return {"raw_values": load_raw_values(onu)}


PARTS = {
    part.name: part
    for part in (
        Part("state", 2, _state),
        Part("light", 30, _light),
        Part("past", 10, _past),
        Part("raw", 30, _raw),
    )
}
