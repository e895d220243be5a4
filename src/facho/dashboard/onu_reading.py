"""Reading one ONU now: the button, and the line that says how far it has come. No packet leaves from here."""

from datetime import timedelta
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from facho.accounts.scope import scope_of
from facho.dashboard.onu_sheet import load_onu
from facho.dashboard.parts import for_users, is_part, may_operate, must_operate
from facho.executions.onu_reads import NotThere, TooManyReads, request_read_for
from facho.onus.models import Onu
from facho.zabbix_pollers.read_progress import load_progress
from facho.zabbix_pollers.read_words import describe_read, describe_refusal

# What was read then is not new any more.
FORGOTTEN_AFTER = timedelta(minutes=10)
TEMPLATE = "dashboard/onu_reading.html"


@require_POST
@for_users
def onu_read(request: HttpRequest, onu_id: int) -> HttpResponse:
    """Leave the wish to have the ONU read; operators and admins only."""
    must_operate(request)
    onu, refused = find_onu(request, onu_id), ""
    try:
        request_read_for(request.user, onu, now=timezone.now())
    except (NotThere, TooManyReads) as error:
        refused = describe_refusal(error)
    if is_part(request):
        return render(request, TEMPLATE, {**reading_context(request, onu), "refused": refused})
    return redirect("onu", onu_id=onu.id)


@require_safe
@for_users
def onu_reading(request: HttpRequest, onu_id: int) -> HttpResponse:
    """Show how far the latest wish has come."""
    return render(request, TEMPLATE, reading_context(request, find_onu(request, onu_id)))


def find_onu(request: HttpRequest, onu_id: int) -> Onu:
    """Return an ONU that the visitor may see; 404 for every other."""
    onu = load_onu(onu_id, scope_of(request.user))
    if onu is None:
        raise Http404
    return onu


def reading_context(request: HttpRequest, onu: Onu) -> dict[str, Any]:
    """Load what the button and its line show."""
    now = timezone.now()
    progress = load_progress(onu.id, olt_id=onu.olt_id, now=now)
    if progress and not progress.is_open and now - (progress.finished_at or progress.requested_at) > FORGOTTEN_AFTER:
        progress = None
    return {
        "onu": onu,
        "may_read": may_operate(request),
        "progress": progress,
        "progress_words": describe_read(progress) if progress else "",
    }
