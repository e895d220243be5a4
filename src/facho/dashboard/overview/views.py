"""The overview page and its parts that refresh themselves, with the runs that come next and the suspended OLTs."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django.core.paginator import Page
from django.db.models import Count, F, Min, Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from facho.accounts.scope import OltScope, scope_of
from facho.alerts.store import load_is_no_one_notified
from facho.dashboard.first_run.progress import load_unfinished
from facho.dashboard.onu.list import listed_onus, load_latest_changes, plain_table
from facho.dashboard.shared import olt_rows
from facho.dashboard.shared.hour import load_hour_quotas, load_timeline
from facho.dashboard.shared.light import WEAKEST_CDBM
from facho.dashboard.shared.outages import load_outages_now
from facho.dashboard.shared.page import for_users
from facho.executions.run import FAILURES_IN_SHORT
from facho.hosts.models import Olt
from facho.onus.models import OnuReading, RunStateChoice
from facho.polling.domain.planning import SATURATED_ABOVE
from facho.snmp_jobs.due import startable_nodes
from facho.snmp_jobs.models import WorkflowNode
from facho.snmp_jobs.store import load_job_names
from facho.zabbix_pollers.poller_manager import PollerManager

SUSPENDED_LINES = 8
QUEUE_LINES = 6
CHANGE_LINES = 8
TIMELINE_LINES = 8
UNFINISHED_LINES = 5


def load_coming_runs(now: datetime, scope: OltScope, *, count: int) -> Iterable[Any]:
    """Load the next `count` runs that may start; no query if count is 0."""
    if count < 1:
        return []
    rows = scope.narrow(startable_nodes(now), "workflow__olt").filter(next_run_at__gt=now).order_by("next_run_at", "id")
    chained = rows.annotate(chained=Count("chain_nodes", filter=Q(chain_nodes__enabled=True)))
    return chained.values("workflow__olt__name", "job__name", "chained", "next_run_at")[:count]


def load_suspended(scope: OltScope) -> dict[str, Any]:
    """Load suspended nodes of enabled OLTs in scope, by OLT and reason, the earliest first; one query."""
    suspended = WorkflowNode.objects.filter(suspended_at__isnull=False, enabled=True, workflow__olt__enabled=True)
    rows = (
        scope.narrow(suspended, "workflow__olt")
        .order_by()
        .annotate(
            olt_id=F("workflow__olt_id"), olt=F("workflow__olt__name"), next_probe_at=F("workflow__olt__next_probe_at")
        )
        .values("olt_id", "olt", "next_probe_at", "suspend_reason")
        .annotate(nodes=Count("id"), since=Min("suspended_at"))
        .order_by("since")
    )
    shown = [row | {"why": FAILURES_IN_SHORT.get(row["suspend_reason"], row["suspend_reason"])} for row in rows]
    return {"rows": shown[:SUSPENDED_LINES], "nodes": sum(row["nodes"] for row in shown)}


@require_safe
@for_users
def overview(request: HttpRequest) -> HttpResponse:
    now, scope = timezone.now(), scope_of(request.user)
    page = olt_rows.load_olt_page(request.GET.get("page", ""), scope)
    context = _live_context(page, scope, now) | _hour_context(page, scope, now) | _undone_context(request, scope)
    return render(request, "overview/overview.html", context)


@require_safe
@for_users
def overview_live(request: HttpRequest) -> HttpResponse:
    scope = scope_of(request.user)
    context = _live_context(olt_rows.load_olt_page(request.GET.get("page", ""), scope), scope, timezone.now())
    return render(request, "overview/live.html", context | _undone_context(request, scope))


@require_safe
@for_users
def overview_hour(request: HttpRequest) -> HttpResponse:
    """Render quotas and plans, which change with each coordinator pass."""
    scope = scope_of(request.user)
    context = _hour_context(olt_rows.load_olt_page(request.GET.get("page", ""), scope), scope, timezone.now())
    return render(request, "overview/hour.html", context)


def _live_context(page: Page[Olt], scope: OltScope, now: datetime) -> dict[str, Any]:
    onu_counts, late = olt_rows.load_onu_counts(scope), olt_rows.load_late_olts(now)
    total = olt_rows.add_up(onu_counts.values())
    polling = PollerManager.get_stats(now, queue_count=QUEUE_LINES, scope=scope)
    paused = olt_rows.load_paused(now)
    lines_left = QUEUE_LINES - len(polling.queue.next_nodes)
    retries = polling.queue.retries[: max(lines_left, 0)]
    return {
        "here": "overview",
        "now": now,
        "olts": olt_rows.load_olt_counts(late, scope),
        "outages": load_outages_now(scope),
        "suspended": load_suspended(scope),
        "onus": total,
        "onu_shares": olt_rows.draw_shares(total),
        "polling": polling,
        "saturated_above": SATURATED_ABOVE,
        "saturation_width": 100 - SATURATED_ABOVE,
        "lateness": list(polling.queue.lateness.items()),
        "retries": retries,
        "coming": load_coming_runs(now, scope, count=lines_left - len(retries)),
        "page": page,
        "olt_rows": olt_rows.load_olt_rows(page, onu_counts, paused, late),
        "paused": paused,
        "changes": load_latest_changes(CHANGE_LINES, scope),
    }


def _undone_context(request: HttpRequest, scope: OltScope) -> dict[str, Any]:
    if not request.user.is_superuser:
        return {}
    return {"unfinished": load_unfinished(scope, UNFINISHED_LINES), "is_no_one_notified": load_is_no_one_notified()}


def _hour_context(page: Page[Olt], scope: OltScope, now: datetime) -> dict[str, Any]:
    return {
        "now": now,
        "quotas": load_hour_quotas(now, scope),
        "timeline": load_timeline([(olt.id, olt.name) for olt in page if olt.enabled][:TIMELINE_LINES], now),
        "job_names": load_job_names(),
        "names_olt": True,
    }


# As many as fit on a screen of 1080 lines.
WALL_LINES = 14


@require_safe
@for_users
def wall(request: HttpRequest) -> HttpResponse:
    return render(request, "overview/wall.html", _context(request))


@require_safe
@for_users
def wall_live(request: HttpRequest) -> HttpResponse:
    return render(request, "overview/_wall.html", _context(request))


def load_weakest(count: int, scope: OltScope) -> dict[str, Any]:
    """Load the ONUs online with the weakest light below the limit, the weakest first."""
    weak = OnuReading.objects.filter(run_state=RunStateChoice.ONLINE, rx_power_cdbm__lt=WEAKEST_CDBM)
    # The narrow table alone is sorted; twice as many leave room for ONUs that have gone since.
    weakest = scope.narrow(weak, "onu__olt").order_by("rx_power_cdbm", "onu_id")[: 2 * count]
    onus = listed_onus().filter(is_present=True, id__in=weakest.values("onu_id"))
    return plain_table(onus.order_by("reading__rx_power_cdbm", "id")[:count])


def _context(request: HttpRequest) -> dict[str, Any]:
    now, scope = timezone.now(), scope_of(request.user)
    onu_counts, late = olt_rows.load_onu_counts(scope), olt_rows.load_late_olts(now)
    total = olt_rows.add_up(onu_counts.values())
    return {
        "now": now,
        "olts": olt_rows.load_olt_counts(late, scope),
        "outages": load_outages_now(scope),
        "onus": total,
        "onu_shares": olt_rows.draw_shares(total),
        "polling": PollerManager.get_stats(now, queue_count=0, scope=scope),
        "saturated_above": SATURATED_ABOVE,
        "saturation_width": 100 - SATURATED_ABOVE,
        # Those in trouble come first.
        "olt_rows": olt_rows.load_olt_rows(
            olt_rows.load_olt_page("", scope), onu_counts, olt_rows.load_paused(now), late
        )[:WALL_LINES],
        "weakest": load_weakest(WALL_LINES, scope),
        "changes": load_latest_changes(WALL_LINES, scope),
    }
