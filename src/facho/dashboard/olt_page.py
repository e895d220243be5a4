"""The page of one OLT: how it is, what is out, the light of its ONUs, its nodes and what their runs brought."""

from datetime import datetime
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from facho.dashboard.olt_rows import OltRow, load_olt_row
from facho.dashboard.outages_now import load_outages_of
from facho.dashboard.parts import for_users

OUTAGE_LINES = 8


@require_safe
@for_users
def olt_page(request: HttpRequest, olt_id: int) -> HttpResponse:
    """Show everything about one OLT."""
    now = timezone.now()
    olt = _find(olt_id, now)
    return render(request, "dashboard/olt.html", _live_context(olt, now))


@require_safe
@for_users
def olt_live(request: HttpRequest, olt_id: int) -> HttpResponse:
    """Show the part of an OLT's page that changes at every moment."""
    now = timezone.now()
    return render(request, "dashboard/olt_live.html", _live_context(_find(olt_id, now), now))


def _find(olt_id: int, now: datetime) -> OltRow:
    olt = load_olt_row(olt_id, now)
    if olt is None:
        raise Http404
    return olt


def _live_context(olt: OltRow, now: datetime) -> dict[str, Any]:
    return {
        "here": "olt",
        "now": now,
        "olt": olt,
        "outages": load_outages_of(olt.id, OUTAGE_LINES),
    }
