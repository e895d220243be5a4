"""The list of ONUs, and the page of one, in parts that refresh themselves as often as what they show changes."""

from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from django.core.paginator import Page, Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe
from django.views.decorators.vary import vary_on_headers

from facho.accounts.scope import scope_of
from facho.dashboard.onu.list import OnuFilterForm, rows_of
from facho.dashboard.onu.plot import SPANS, load_plot
from facho.dashboard.onu.sheet import load_onu, load_onu_events, load_onu_outages, load_raw_values, load_sheet
from facho.dashboard.shared.page import PagePart, for_users, is_part, load_parts, may_operate, must_operate, part_called
from facho.executions.onu_reads import NotThere, TooManyReads, request_read_for
from facho.onus.models import Onu
from facho.onus.search import MANY
from facho.zabbix_pollers.read_progress import describe_read, describe_refusal, load_progress

ONUS_PER_PAGE = 50
EVENT_LINES = 20
OUTAGE_LINES = 6
FIRST_SPAN = "day"
# What was read then is not new any more.
FORGOTTEN_AFTER = timedelta(minutes=10)
TEMPLATE = "onu/reading.html"


@require_safe
@vary_on_headers("HX-Request")
@for_users
def onus(request: HttpRequest) -> HttpResponse:
    """List ONUs, narrowed by the form; htmx gets the list alone."""
    scope = scope_of(request.user)
    form = OnuFilterForm(request.GET, scope)
    # It is counted and sliced, which is all that a paginator does.
    found: Any = form.find()
    page: Page[Onu] = Paginator(found, ONUS_PER_PAGE).get_page(request.GET.get("page"))
    chosen = {name: value for name in form.fields if (value := request.GET.get(name))}
    context = {
        "here": "onus",
        "now": timezone.now(),
        "form": form,
        "page": page,
        "rows": rows_of(page),
        "many": MANY,
        "page_query": f"{urlencode(chosen)}&" if chosen else "",
        "refresh_query": urlencode({**chosen, "page": page.number}),
        "export_query": form.export_query(),
    }
    return render(request, "onu/list.html" if is_part(request) else "onu/onus.html", context)


@require_safe
@for_users
def onu_page(request: HttpRequest, onu_id: int) -> HttpResponse:
    onu, now = find_onu(request, onu_id), timezone.now()
    context = load_parts(PARTS, request, onu, now) | reading_context(request, onu)
    return render(request, "onu/onu.html", {"here": "onus", "now": now, **context})


@require_safe
@for_users
def onu_part(request: HttpRequest, onu_id: int, name: str) -> HttpResponse:
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
    "state": PagePart("onu/state.html", 2, _state),
    "light": PagePart("onu/light.html", 30, _light),
    "past": PagePart("onu/past.html", 10, _past),
    "raw": PagePart("onu/raw.html", 30, _raw),
}


@require_POST
@for_users
def onu_read(request: HttpRequest, onu_id: int) -> HttpResponse:
    """Request a read of this ONU; operators and administrators only."""
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
    return render(request, TEMPLATE, reading_context(request, find_onu(request, onu_id)))


def find_onu(request: HttpRequest, onu_id: int) -> Onu:
    """Return an ONU in the user's scope, else raise 404."""
    onu = load_onu(onu_id, scope_of(request.user))
    if onu is None:
        raise Http404
    return onu


def reading_context(request: HttpRequest, onu: Onu) -> dict[str, Any]:
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
