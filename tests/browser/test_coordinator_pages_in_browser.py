"""The coordinator's admin pages in a real Chromium: they fit a phone, and text that means harm stays text."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from playwright.sync_api import expect
from pytest_django.live_server_helper import LiveServer

from api.coordinator_rows import HOUR, make_log, make_plan, make_report, make_tracker, make_violation, this_hour
from api.rows import PASSWORD, make_execution, make_node, make_olt, make_user
from browser.conftest import DESKTOP, PHONE, Visitor
from facho.accounts.roles import Role
from facho.hosts.models import Olt
from facho.polling.domain.execution_state import ExecutionState
from facho.snmp_jobs.models import SkippedSlot

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

HOSTILE = '<script>alert(1)</script><img src=x onerror="alert(2)">'
QUOTAS: list[dict[str, Any]] = [
    {"task_type": "discovery", "quota_required": 4, "quota_completed": 4, "status": "COMPLETED"},
    {"task_type": "get_descripcion", "status": "IN_PROGRESS", "quota_failed": 0, "quota_skipped": 0},
    {"task_type": "get_estado", "status": "AT_RISK", "quota_completed": 2},
    {"task_type": "get_potencia", "status": "AT_RISK", "quota_completed": 0, "quota_failed": 6},
    {"task_type": HOSTILE[:50], "status": "QUOTA_NOT_MET", "quota_completed": 1},
]
PAGES = ["quotatracker", "quotaviolation", "coordinatorlog", "executionplan"]


def make_quotas(olt: Olt) -> None:
    for number, quota in enumerate(QUOTAS):
        done = {"quota_failed": 0, "quota_skipped": 0, "quota_pending": 0} if quota["status"] == "COMPLETED" else {}
        will_miss = {"will_miss_at": timezone.now()} if number == 3 else {}
        make_tracker(olt, avg_duration_ms=1234 * number, **{**done, **will_miss, **quota})
    make_tracker(olt, hour=this_hour() - HOUR, status="QUOTA_NOT_MET", will_miss_at=this_hour() - HOUR / 2)


def make_runs(olt: Olt) -> None:
    """Make a plan whose runs succeeded, failed, were skipped, wait and are to come."""
    node, now = make_node(olt, query_type="discovery"), timezone.now()
    start = now - timedelta(minutes=10)
    slots = [start + timedelta(minutes=4) * number for number in range(5)]
    make_execution(node, ExecutionState.SUCCESS, at=slots[0], slot_at=slots[0])
    make_execution(node, ExecutionState.FAILED, at=slots[1], slot_at=slots[1], failure_kind="timeout")
    runs = [
        {"node_id": node.id, "task_type": "discovery", "slot_at": at.isoformat(), "starts_at": at.isoformat()}
        | {"seconds": 41.6, "members": [{"task_type": "get_descripcion"}, {"task_type": HOSTILE}]}
        for at in slots
    ]
    SkippedSlot.objects.create(node=node, slot_at=slots[2], reason="olt_busy")
    fields = {"plan_data": runs, "total_tasks": 5, "completed_tasks": 1, "failed_tasks": 1}
    make_plan(olt, hour=start, **fields)
    make_plan(olt, hour=this_hour() + HOUR, status="SUPERSEDED")


@pytest.fixture
def url(live_server: LiveServer) -> str:
    """A product with something to say on every page of the coordinator."""
    make_user(Role.ADMIN, "ana")
    olt = make_olt("North")
    make_quotas(olt)
    report = make_report(this_hour() - HOUR)
    report["tasks"] += make_report(this_hour() - HOUR, task_type=HOSTILE)["tasks"]
    make_violation(olt, report=report)
    for number, severity in enumerate(("LOW", "MEDIUM", "CRITICAL")):
        make_violation(make_olt(), severity=severity, hour=this_hour() - number * HOUR)
    make_runs(olt)
    hour = {"hour": this_hour().isoformat(), "completed": 2, "required": 4, "task_type": "discovery"}
    make_log(olt)
    make_log(olt, event_type="QUOTA_VIOLATION", level="CRITICAL", details=hour | {"severity": "HIGH"})
    make_log(olt, event_type="QUOTA_WARNING", level="WARNING", details=hour)
    make_log(event_type="EMERGENCY_REPLAN", level="ERROR", details={"reason": HOSTILE})
    return str(live_server.url)


@pytest.mark.parametrize("width", [pytest.param(DESKTOP, marks=pytest.mark.thorough), PHONE])
@pytest.mark.parametrize("page", PAGES)
def test_a_page_of_the_coordinator_fits_and_runs_nothing_foreign(
    url: str, visitor: Visitor, page: str, width: int
) -> None:
    visit = visitor(language="es", width=width, dark=width == PHONE)
    visit.log_in(url, "ana", PASSWORD)

    visit.page.goto(f"{url}/admin/execution_coordinator/{page}/")
    visit.keep(f"coordinator-{page}-{width}")
    list_width = visit.width()
    visit.page.locator("#result_list th a").last.click()
    visit.page.wait_for_load_state("networkidle")
    expect(visit.page.locator(".readonly").first).to_be_visible()
    visit.keep(f"coordinator-{page}-row-{width}")

    assert (list_width, visit.width()) == (width, width)
    assert visit.complaints == []
    assert visit.strangers(url) == []
