"""The page of one OLT, in parts that refresh themselves as often as what they show changes."""

from datetime import datetime
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.functional import SimpleLazyObject
from django.views.decorators.http import require_safe

from facho.accounts.scope import scope_of
from facho.dashboard.hour_quotas import load_olt_quotas
from facho.dashboard.hour_timeline import load_timeline
from facho.dashboard.job_names import load_job_names
from facho.dashboard.olt_events import load_events
from facho.dashboard.olt_health import load_health
from facho.dashboard.olt_light import load_heat_map
from facho.dashboard.olt_nodes import load_nodes
from facho.dashboard.olt_rows import load_olt_row
from facho.dashboard.olt_runs import load_run_groups
from facho.dashboard.olt_snmp import load_snmp_figures
from facho.dashboard.outages_now import load_outages_of
from facho.dashboard.parts import Part, for_users, load_parts, may_operate, part_called
from facho.hosts.models import Olt

OUTAGE_LINES = 8
RUN_LINES = 12
EVENT_LINES = 12


@require_safe
@for_users
def olt_page(request: HttpRequest, olt_id: int) -> HttpResponse:
    """Show everything about one OLT."""
    olt, now = find_olt(request, olt_id), timezone.now()
    context = _context(request, olt, now) | load_parts(PARTS, request, olt, now)
    return render(request, "dashboard/olt.html", context)


@require_safe
@for_users
def olt_part(request: HttpRequest, olt_id: int, name: str) -> HttpResponse:
    """Show one part of the page of an OLT."""
    part, olt = part_called(name, PARTS), find_olt(request, olt_id)
    return render(request, part.template, load_part(request, olt, part))


def load_part(request: HttpRequest, olt: Olt, part: Part[Olt]) -> dict[str, Any]:
    """Load what one part of the page shows now."""
    now = timezone.now()
    return _context(request, olt, now) | part.load(request, olt, now)


def find_olt(request: HttpRequest, olt_id: int) -> Olt:
    """Return an OLT that the visitor may see; 404 for every other."""
    olt = scope_of(request.user).narrow(Olt.objects.filter(id=olt_id).only("name"), "").first()
    if olt is None:
        raise Http404
    return olt


def _context(request: HttpRequest, olt: Olt, now: datetime) -> dict[str, Any]:
    """Name the OLT, and who looks; a part without buttons does not ask for the role."""
    return {"now": now, "olt": olt, "may_operate": SimpleLazyObject(lambda: may_operate(request))}


def _state(request: HttpRequest, olt: Olt, now: datetime) -> dict[str, Any]:
    return {"row": load_olt_row(olt.id, now), "outages": load_outages_of(olt.id, OUTAGE_LINES)}


def _light(request: HttpRequest, olt: Olt, now: datetime) -> dict[str, Any]:
    return {"heat": load_heat_map(olt.id), "health": load_health(olt.id)}


def _events(request: HttpRequest, olt: Olt, now: datetime) -> dict[str, Any]:
    return {"events": load_events(olt.id, EVENT_LINES)}


def _work(request: HttpRequest, olt: Olt, now: datetime) -> dict[str, Any]:
    return {"nodes": load_nodes(olt.id, now), "groups": load_run_groups(olt.id, RUN_LINES)}


def _past(request: HttpRequest, olt: Olt, now: datetime) -> dict[str, Any]:
    return {
        "timeline": load_timeline([(olt.id, olt.name)], now),
        "quotas": load_olt_quotas(olt.id, now),
        "snmp": load_snmp_figures(olt.id, now),
        "job_names": load_job_names(olt.id),
    }


PARTS = {
    "state": Part("dashboard/olt_state.html", 2, _state),
    "light": Part("dashboard/olt_light.html", 10, _light),
    "events": Part("dashboard/olt_events.html", 10, _events),
    "work": Part("dashboard/olt_work.html", 2, _work),
    "past": Part("dashboard/olt_past.html", 10, _past),
}
