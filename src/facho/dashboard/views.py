"""The pages: what runs and what is wrong, and the list of ONUs. Each refreshes a part of itself every two seconds."""

from collections.abc import Callable
from functools import wraps
from typing import Any
from urllib.parse import urlencode

from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe
from django.views.decorators.vary import vary_on_headers
from django_htmx.http import HttpResponseClientRefresh

from facho.dashboard.coming_runs import load_coming_runs
from facho.dashboard.olt_rows import load_olt_counts, load_olt_page, load_olt_rows
from facho.dashboard.onu_counts import add_up, load_onu_counts, segments
from facho.dashboard.onu_filter import OnuFilter
from facho.dashboard.onu_rows import listed_onus, load_latest_changes, rows_of
from facho.dashboard.paused import load_paused
from facho.zabbix_pollers.read_model import load_overview

ONUS_PER_PAGE = 50
QUEUE_LINES = 6
CHANGE_LINES = 8

View = Callable[..., HttpResponse]


def for_users(view: View) -> View:
    """Ask visitors to log in; a part that refreshes itself makes its page do so, instead of showing a login inside."""
    page = login_required(view)

    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if _is_part(request) and not request.user.is_authenticated:
            return HttpResponseClientRefresh()
        return page(request, *args, **kwargs)

    return guarded


@require_safe
@for_users
def overview(request: HttpRequest) -> HttpResponse:
    """Show the network at a glance."""
    return render(request, "dashboard/overview.html", _overview_context(request))


@require_safe
@for_users
def overview_live(request: HttpRequest) -> HttpResponse:
    """Show the part of the overview that changes."""
    return render(request, "dashboard/overview_live.html", _overview_context(request))


@require_safe
@vary_on_headers("HX-Request")
@for_users
def onus(request: HttpRequest) -> HttpResponse:
    """List ONUs, narrowed by the form; htmx gets the list alone."""
    form = OnuFilter(request.GET)
    page = Paginator(form.narrow(listed_onus()), ONUS_PER_PAGE).get_page(request.GET.get("page"))
    chosen = {name: value for name in form.fields if (value := request.GET.get(name))}
    context = {
        "here": "onus",
        "now": timezone.now(),
        "form": form,
        "page": page,
        "rows": rows_of(page),
        "page_query": f"{urlencode(chosen)}&" if chosen else "",
        "refresh_query": urlencode({**chosen, "page": page.number}),
    }
    return render(request, "dashboard/onu_list.html" if _is_part(request) else "dashboard/onus.html", context)


def _overview_context(request: HttpRequest) -> dict[str, Any]:
    now = timezone.now()
    onu_counts = load_onu_counts()
    total = add_up(onu_counts.values())
    page = load_olt_page(request.GET.get("page", ""))
    polling = load_overview(now, queue_count=QUEUE_LINES)
    paused = load_paused(now)
    lines_left = QUEUE_LINES - len(polling.queue.next_nodes)
    retries = polling.queue.retries[: max(lines_left, 0)]
    return {
        "here": "overview",
        "now": now,
        "olts": load_olt_counts(),
        "onus": total,
        "onu_segments": list(segments(total)),
        "polling": polling,
        "retries": retries,
        "coming": load_coming_runs(now, count=lines_left - len(retries)),
        "page": page,
        "olt_rows": load_olt_rows(page, onu_counts, paused),
        "paused": paused,
        "changes": load_latest_changes(CHANGE_LINES),
    }


def _is_part(request: HttpRequest) -> bool:
    return request.headers.get("HX-Request") == "true" and "HX-History-Restore-Request" not in request.headers
