"""The page of one outage: what, where, since when, why, whom it took down, and who has taken note."""

from collections.abc import Callable
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
from facho.dashboard.parts import for_users
from facho.onus.models import Outage

Loader = Callable[[HttpRequest, Outage], dict[str, Any]]


@require_safe
@for_users
def outage_page(request: HttpRequest, outage_id: int) -> HttpResponse:
    """Show everything about one outage."""
    outage = _find(request, outage_id)
    context = {"here": "outages", "outage": outage, **acknowledgement_context(request, outage)}
    for load in PARTS.values():
        context |= load(request, outage)
    return render(request, "dashboard/outage.html", context)


@require_safe
@for_users
def outage_part(request: HttpRequest, outage_id: int, name: str) -> HttpResponse:
    """Show one part of the page of an outage."""
    if name not in PARTS:
        raise Http404
    outage = _find(request, outage_id)
    return render(request, f"dashboard/outage_{name}.html", {"outage": outage, **PARTS[name](request, outage)})


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


def _state(request: HttpRequest, outage: Outage) -> dict[str, Any]:
    now = timezone.now()
    return {"now": now, "sheet": load_sheet(outage, scope_of(request.user), now)}


def _onus(request: HttpRequest, outage: Outage) -> dict[str, Any]:
    return {"now": timezone.now(), "onus": load_outage_onus(outage, request.GET.get("page", ""))}


PARTS: dict[str, Loader] = {"state": _state, "onus": _onus}
