"""The pages: what runs and what is wrong, and the list of ONUs. Each refreshes a part of itself every two seconds."""

from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django.core.paginator import Page, Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe
from django.views.decorators.vary import vary_on_headers

from facho.accounts.scope import OltScope, scope_of
from facho.alerts.untold import load_is_nobody_told
from facho.dashboard.coming_runs import load_coming_runs
from facho.dashboard.first_run.progress import load_unfinished
from facho.dashboard.hour_quotas import load_hour_quotas
from facho.dashboard.hour_timeline import load_timeline
from facho.dashboard.job_names import load_job_names
from facho.dashboard.late_olts import load_late_olts
from facho.dashboard.olt_rows import load_olt_counts, load_olt_page, load_olt_rows
from facho.dashboard.onu_counts import add_up, draw_shares, load_onu_counts
from facho.dashboard.onu_filter import OnuFilter
from facho.dashboard.onu_rows import load_latest_changes, rows_of
from facho.dashboard.outages_now import load_outages_now
from facho.dashboard.parts import for_users, is_part
from facho.dashboard.paused import load_paused
from facho.dashboard.suspended import load_suspended
from facho.hosts.models import Olt
from facho.onus.models import Onu
from facho.onus.search import MANY
from facho.polling.domain.poller_load import SATURATED_ABOVE
from facho.zabbix_pollers.read_model import load_overview

ONUS_PER_PAGE = 50
QUEUE_LINES = 6
CHANGE_LINES = 8
TIMELINE_LINES = 8
UNFINISHED_LINES = 5


@require_safe
@for_users
def overview(request: HttpRequest) -> HttpResponse:
    """Show the network at a glance."""
    now, scope = timezone.now(), scope_of(request.user)
    page = load_olt_page(request.GET.get("page", ""), scope)
    context = _live_context(page, scope, now) | _hour_context(page, scope, now) | _undone_context(request, scope)
    return render(request, "dashboard/overview.html", context)


@require_safe
@for_users
def overview_live(request: HttpRequest) -> HttpResponse:
    """Show the part of the overview that changes at every moment."""
    scope = scope_of(request.user)
    context = _live_context(load_olt_page(request.GET.get("page", ""), scope), scope, timezone.now())
    return render(request, "dashboard/overview_live.html", context | _undone_context(request, scope))


@require_safe
@for_users
def overview_hour(request: HttpRequest) -> HttpResponse:
    """Show the part of the overview that the coordinator's passes change: quotas and plans."""
    scope = scope_of(request.user)
    context = _hour_context(load_olt_page(request.GET.get("page", ""), scope), scope, timezone.now())
    return render(request, "dashboard/overview_hour.html", context)


@require_safe
@vary_on_headers("HX-Request")
@for_users
def onus(request: HttpRequest) -> HttpResponse:
    """List ONUs, narrowed by the form; htmx gets the list alone."""
    scope = scope_of(request.user)
    form = OnuFilter(request.GET, scope)
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
    return render(request, "dashboard/onu_list.html" if is_part(request) else "dashboard/onus.html", context)


def _live_context(page: Page[Olt], scope: OltScope, now: datetime) -> dict[str, Any]:
    onu_counts, late = load_onu_counts(scope), load_late_olts(now)
    total = add_up(onu_counts.values())
    polling = load_overview(now, queue_count=QUEUE_LINES, scope=scope)
    paused = load_paused(now)
    lines_left = QUEUE_LINES - len(polling.queue.next_nodes)
    retries = polling.queue.retries[: max(lines_left, 0)]
    return {
        "here": "overview",
        "now": now,
        "olts": load_olt_counts(late, scope),
        "outages": load_outages_now(scope),
        "suspended": load_suspended(scope),
        "onus": total,
        "onu_shares": draw_shares(total),
        "polling": polling,
        "saturated_above": SATURATED_ABOVE,
        "saturation_width": 100 - SATURATED_ABOVE,
        "lateness": list(polling.queue.lateness.items()),
        "retries": retries,
        "coming": load_coming_runs(now, scope, count=lines_left - len(retries)),
        "page": page,
        "olt_rows": load_olt_rows(page, onu_counts, paused, late),
        "paused": paused,
        "changes": load_latest_changes(CHANGE_LINES, scope),
    }


def _undone_context(request: HttpRequest, scope: OltScope) -> dict[str, Any]:
    """Tell who may finish it which OLTs were added and left without jobs, and that alerts have no channel."""
    if not request.user.is_superuser:
        return {}
    return {"unfinished": load_unfinished(scope, UNFINISHED_LINES), "is_nobody_told": load_is_nobody_told()}


def _hour_context(page: Page[Olt], scope: OltScope, now: datetime) -> dict[str, Any]:
    return {
        "now": now,
        "quotas": load_hour_quotas(now, scope),
        "timeline": load_timeline([(olt.id, olt.name) for olt in page if olt.enabled][:TIMELINE_LINES], now),
        "job_names": load_job_names(),
        "names_olt": True,
    }
