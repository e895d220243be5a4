"""The admin pages of quotas, violations, the coordinator's log and plans: what they show, and of whom."""

import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from api.coordinator_rows import HOUR, make_log, make_plan, make_report, make_tracker, make_violation, this_hour
from api.rows import make_execution, make_node, make_olt
from facho.execution_coordinator.coordinator import ExecutionCoordinator
from facho.execution_coordinator.models import ExecutionPlan, QuotaStatus, ViolationSeverity
from facho.polling.domain.execution_state import ExecutionState
from facho.snmp_jobs.models import SkippedSlot

pytestmark = [pytest.mark.django_db, pytest.mark.thorough("postgresql")]

HOSTILE = "<script>alert(1)</script>"
LISTS = ["quotatracker", "quotaviolation", "coordinatorlog", "executionplan"]


def page(client: Client, path: str) -> str:
    answer = client.get(f"/admin/execution_coordinator/{path}")
    assert answer.status_code == 200
    return answer.content.decode()


def rows(client: Client, path: str) -> list[str]:
    """Return the words of each row of a list, without its markup."""
    body = re.search(r'<table id="result_list">.*?<tbody>(.*)</tbody>', page(client, path), re.DOTALL)
    return [words(row) for row in body.group(1).split("</tr>")[:-1]] if body else []


def words(html: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", html)).split())


def test_a_quota_has_a_bar_a_badge_and_its_risk(administrator: Client) -> None:
    """S1-19"""
    make_tracker(make_olt("North"), status="AT_RISK", will_miss_at=timezone.now())

    html = page(administrator, "quotatracker/")
    (row,) = rows(administrator, "quotatracker/")

    bar = re.findall(r'<rect class="(\w+)" x="(\d+)".*?width="(\d+)"', html)
    assert bar == [("completed", "0", "5"), ("failed", "5", "1"), ("failed", "5", "1"), ("skipped", "6", "2")]
    assert 'viewBox="0 0 12 12"' in html
    assert "5/12 1 failed , 2 skipped , 4 pending" in row
    assert '<span class="facho-badge warn">at risk</span>' in html
    assert f"will miss, since {timezone.localtime():%H:%M}" in row


@pytest.mark.parametrize("status", QuotaStatus)
def test_every_status_has_a_badge(administrator: Client, status: QuotaStatus) -> None:
    make_tracker(status=status)

    assert re.search(rf'<span class="facho-badge \w+">{status.label}</span>', page(administrator, "quotatracker/"))


def test_the_forecast_of_an_hour_that_is_over_says_when_it_was_made(administrator: Client) -> None:
    make_tracker(hour=this_hour() - 2 * HOUR, status="QUOTA_NOT_MET", will_miss_at=this_hour() - HOUR)

    (row,) = rows(administrator, "quotatracker/")

    assert f"quota not met forecast at {timezone.localtime(this_hour() - HOUR):%H:%M}" in row


def test_the_present_hour_comes_first_and_can_be_asked_for_alone(administrator: Client) -> None:
    """S1-27"""
    make_tracker(hour=this_hour() - 30 * HOUR, task_type="long ago")
    make_tracker(hour=this_hour() - HOUR, task_type="earlier")
    make_tracker(task_type="now")

    def shown(query: str) -> list[str]:
        listed = " ".join(rows(administrator, f"quotatracker/{query}"))
        return re.findall("long ago|now|earlier", listed)

    assert shown("") == ["now", "earlier", "long ago"]
    assert shown("?period=hour") == ["now"]
    assert shown("?period=day") == ["now", "earlier"]


def test_quotas_are_filtered_by_status_olt_and_forecast(administrator: Client) -> None:
    olt = make_olt("North")
    make_tracker(olt, status="COMPLETED")
    make_tracker(make_olt("South"), status="AT_RISK", will_miss_at=timezone.now())

    assert [row.split()[0] for row in rows(administrator, "quotatracker/?status__exact=AT_RISK")] == ["South"]
    assert [row.split()[0] for row in rows(administrator, f"quotatracker/?olt={olt.id}")] == ["North"]
    assert [row.split()[0] for row in rows(administrator, "quotatracker/?will_miss=1")] == ["South"]


def test_a_violation_has_a_badge_tables_and_its_json(administrator: Client) -> None:
    """S1-20"""
    violation = make_violation(make_olt("North"))

    (row,) = rows(administrator, "quotaviolation/")
    html = page(administrator, f"quotaviolation/{violation.id}/change/")

    assert row.startswith("North high")
    assert "discovery 2/4" in row
    assert '<span class="facho-badge bad">high</span>' in html
    table = words(html[html.index('class="facho-report"') : html.index("<pre>")])
    assert table.count("the OLT was busy with other work: get_potencia") == 2  # counted, and at its slot
    assert "failed #42" in table
    assert "skipped — the OLT was busy with other work: get_potencia" in table
    assert "Paused; these slots do not count:" in table
    assert '"outcome": "skipped"' in unescape(html)


@pytest.mark.parametrize("severity", ViolationSeverity)
def test_every_severity_has_a_badge(administrator: Client, severity: ViolationSeverity) -> None:
    make_violation(severity=severity)

    assert re.search(rf'<span class="facho-badge \w+">{severity.label}</span>', page(administrator, "quotaviolation/"))


def test_the_violations_of_the_last_day_can_be_asked_for_alone(administrator: Client) -> None:
    """S1-28"""
    make_violation(make_olt("Old"), created_at=timezone.now() - timedelta(hours=24, minutes=1))
    make_violation(make_olt("New"), created_at=timezone.now() - timedelta(hours=23, minutes=59), severity="LOW")

    assert [row.split()[0] for row in rows(administrator, "quotaviolation/?hours=24")] == ["New"]
    assert [row.split()[0] for row in rows(administrator, "quotaviolation/?severity__exact=HIGH")] == ["Old"]


def test_the_log_is_filtered_searched_and_shows_its_details(administrator: Client) -> None:
    """S1-21"""
    make_log(make_olt("North"), level="CRITICAL", event_type="QUOTA_VIOLATION", message="violated")
    entry = make_log(make_olt("South"))

    def shown(query: str) -> list[str]:
        return re.findall("North|South", " ".join(rows(administrator, f"coordinatorlog/{query}")))

    assert shown("") == ["South", "North"]
    assert shown("?level__exact=CRITICAL") == ["North"]
    assert shown("?event_type__exact=TASK_ADDED") == ["South"]
    assert shown("?hours=1") == ["South", "North"]
    assert shown("?q=violated") == ["North"]
    assert shown("?q=south") == ["South"]
    assert '"interval_seconds": 900' in unescape(page(administrator, f"coordinatorlog/{entry.id}/change/"))


def test_the_log_is_reported_in_the_readers_language(administrator: Client) -> None:
    make_log(event_type="TASK_REMOVED", details={}, message="as it was written down")

    (english,) = rows(administrator, "coordinatorlog/")
    administrator.defaults["HTTP_ACCEPT_LANGUAGE"] = "es"
    (spanish,) = rows(administrator, "coordinatorlog/")

    assert "GLOBAL Task removed" in english
    assert "GLOBAL Tarea eliminada" in spanish


def test_a_plan_shows_its_runs_and_what_became_of_each(administrator: Client) -> None:
    now = timezone.now()
    node = make_node(make_olt("North"), query_type="discovery")
    slots = [now + timedelta(minutes=minute) for minute in (-9, -6, -3, 3)]
    run = make_execution(node, ExecutionState.FAILED, at=slots[0], slot_at=slots[0])
    SkippedSlot.objects.create(node=node, slot_at=slots[1], reason="no_poller")
    planned = [
        {"node_id": node.id, "task_type": "discovery", "slot_at": at.isoformat(), "starts_at": at.isoformat()}
        | {"seconds": 42.4, "members": [{"task_type": "get_estado"}]}
        for at in slots
    ]
    plan = make_plan(node.workflow.olt, hour=slots[0], plan_data=planned, total_tasks=4, failed_tasks=1)

    html = page(administrator, f"executionplan/{plan.id}/change/")

    table = html[html.index('class="facho-report"') :]
    fates = [words(row) for row in table.split("</tr>")[1:5]]
    clock = [f"{timezone.localtime(at):%H:%M:%S}" for at in slots]
    assert fates == [
        f"{clock[0]} {clock[0]} 42 s discovery → get_estado failed #{run.id}",
        f"{clock[1]} {clock[1]} 42 s discovery → get_estado every poller was busy",
        f"{clock[2]} {clock[2]} 42 s discovery → get_estado waits",
        f"{clock[3]} {clock[3]} 42 s discovery → get_estado to come",
    ]


def test_the_plans_of_the_coordinator_are_shown_under_their_name(administrator: Client) -> None:
    """S1-11"""
    now = timezone.now()
    make_node(make_olt("North"), slug="estado", next_run_at=now + timedelta(minutes=1), interval_seconds=60)

    ExecutionCoordinator().run_pass(now)

    listed = rows(administrator, "executionplan/?status__exact=ACTIVE")
    plan = ExecutionPlan.objects.filter(status="ACTIVE").latest("period_start")
    shown = words(page(administrator, f"executionplan/{plan.id}/change/"))
    index = administrator.get("/admin/", headers={"accept-language": "es"}).content.decode()
    assert [row.split()[0] for row in listed] == ["North", "North"]  # this hour and the next
    assert shown.count("get_estado to come") == plan.total_tasks == 60
    assert "Planes de Ejecución" in index


@pytest.mark.parametrize("status", ["COMPLETED", "SUPERSEDED", "ABORTED"])
def test_a_plan_that_no_longer_holds_promises_nothing(administrator: Client, status: str) -> None:
    plan = make_plan(status=status)

    shown = words(page(administrator, f"executionplan/{plan.id}/change/"))

    assert "to come" not in shown
    assert "waits" not in shown
    assert "pending" not in shown


@pytest.mark.parametrize("path", LISTS)
def test_hostile_text_is_escaped(administrator: Client, path: str) -> None:
    olt = make_olt(HOSTILE)
    members = [{"task_type": HOSTILE}, HOSTILE]
    run = {"task_type": HOSTILE, "members": members, "slot_at": HOSTILE, "seconds": HOSTILE, "node_id": HOSTILE}
    made = {
        "quotatracker": make_tracker(olt, task_type=HOSTILE),
        "quotaviolation": make_violation(olt, report=make_report(this_hour(), task_type=HOSTILE)),
        "coordinatorlog": make_log(olt, event_type="EMERGENCY_REPLAN", details={"reason": HOSTILE}),
        "executionplan": make_plan(olt, plan_data=[run]),
    }

    for shown in (page(administrator, f"{path}/"), page(administrator, f"{path}/{made[path].pk}/change/")):
        assert "&lt;script&gt;alert(1)" in shown
        assert HOSTILE not in shown


@pytest.mark.parametrize("path", LISTS)
def test_nobody_changes_what_the_engine_writes(administrator: Client, path: str) -> None:
    row = {
        "quotatracker": make_tracker,
        "quotaviolation": make_violation,
        "coordinatorlog": make_log,
        "executionplan": make_plan,
    }[path]()
    address = f"/admin/execution_coordinator/{path}"

    assert administrator.get(f"{address}/add/").status_code == 403
    assert administrator.post(f"{address}/{row.pk}/change/", {}).status_code == 403
    assert administrator.post(f"{address}/{row.pk}/delete/", {"post": "yes"}).status_code == 403


@pytest.mark.parametrize("runs", [1, 60])
def test_a_plan_costs_the_same_however_long_it_is(
    administrator: Client, runs: int, django_assert_max_num_queries: Callable[[int], AbstractContextManager[Any]]
) -> None:
    plan = make_plan()
    plan.plan_data *= runs
    plan.save()

    # Two of them for the bar: who sees what, and the badge.
    with django_assert_max_num_queries(8):
        page(administrator, f"executionplan/{plan.id}/change/")
