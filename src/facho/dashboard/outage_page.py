"""The page of one outage: what, where, since when, why, whom it took down, and who has taken note."""

from datetime import datetime
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from facho.accounts.scope import scope_of
from facho.dashboard.acknowledging import acknowledgement_context, answer_acknowledgement
from facho.dashboard.outage_onus import load_outage_onus
from facho.dashboard.outage_sheet import load_sheet
from facho.dashboard.outages_now import with_names
from facho.dashboard.parts import Part, for_users, load_parts, part_called
from facho.onus.models import Outage


@require_safe
@for_users
def outage_page(request: HttpRequest, outage_id: int) -> HttpResponse:
    """Show everything about one outage."""
    outage, now = _find(request, outage_id), timezone.now()
    context = acknowledgement_context(request, outage) | load_parts(PARTS, request, outage, now)
    return render(request, "dashboard/outage.html", {"here": "outages", "now": now, "outage": outage, **context})


@require_safe
@for_users
def outage_part(request: HttpRequest, outage_id: int, name: str) -> HttpResponse:
    """Show one part of the page of an outage."""
    part, outage, now = part_called(name, PARTS), _find(request, outage_id), timezone.now()
    return render(request, part.template, {"now": now, "outage": outage, **part.load(request, outage, now)})


@require_POST
@for_users
def outage_acknowledge(request: HttpRequest, outage_id: int) -> HttpResponse:
    """Take note of an outage, or take that back."""
    return answer_acknowledgement(request, _find(request, outage_id), "outage")


def _find(request: HttpRequest, outage_id: int) -> Outage:
    outage = with_names(scope_of(request.user).narrow(Outage.objects.filter(pk=outage_id))).first()
    if outage is None:
        raise Http404
    return outage


def _state(request: HttpRequest, outage: Outage, now: datetime) -> dict[str, Any]:
    return {"sheet": load_sheet(outage, scope_of(request.user), now)}


def _onus(request: HttpRequest, outage: Outage, now: datetime) -> dict[str, Any]:
    return {"onus": load_outage_onus(outage, request.GET.get("page", ""))}


PARTS = {
    "state": Part("dashboard/outage_state.html", 5, _state),
    "onus": Part("dashboard/outage_onus.html", 10, _onus),
}
