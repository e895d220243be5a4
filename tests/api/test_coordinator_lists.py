"""Quotas, violations, plans and the coordinator's log over the API."""

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from api.coordinator_rows import HOUR, make_log, make_plan, make_tracker, make_violation, this_hour
from api.rows import make_olt
from facho.execution_coordinator.models import CoordinatorLog, ExecutionPlan, QuotaTracker, QuotaViolation

LISTS = ["quotas", "violations", "plans", "coordinator/logs", "coordinator/state"]
ROWS = LISTS[:4]
HOSTILE = '<script>alert(1)</script>"\x1b[31m'
MODELS = {
    "quotas": QuotaTracker,
    "violations": QuotaViolation,
    "plans": ExecutionPlan,
    "coordinator/logs": CoordinatorLog,
}


def results(client: APIClient, path: str) -> list[dict[str, Any]]:
    answer = client.get(f"/api/v1/{path}")
    assert answer.status_code == 200, answer.content
    rows: list[dict[str, Any]] = answer.json()["results"]
    return rows


def populate() -> None:
    olt = make_olt()
    make_tracker(olt)
    make_violation(olt)
    make_plan(olt)
    make_log(olt)


@pytest.mark.parametrize("path", LISTS)
def test_nobody_reads_without_logging_in(anonymous: APIClient, path: str, db: None) -> None:
    answer = anonymous.get(f"/api/v1/{path}/")

    assert (answer.status_code, answer["Content-Type"]) == (401, "application/problem+json")


@pytest.mark.parametrize("path", LISTS)
def test_a_list_has_pages(viewer: APIClient, path: str) -> None:
    for _ in range(2):
        populate()

    body = viewer.get(f"/api/v1/{path}/?page_size=1").json()

    assert list(body) == ["count", "next", "previous", "results"]
    assert (body["count"], len(body["results"])) == (2, 1)
    assert body["next"] == f"http://testserver/api/v1/{path}/?page=2&page_size=1"


@pytest.mark.parametrize("path", ROWS)
def test_a_detail_is_a_row_of_its_list(viewer: APIClient, path: str) -> None:
    populate()
    (row,) = results(viewer, f"{path}/")

    detail = viewer.get(f"/api/v1/{path}/{row['id']}/").json()

    assert detail | row == detail


@pytest.mark.parametrize("path", LISTS)
def test_no_secret_is_in_any_answer(viewer: APIClient, path: str, settings: Any) -> None:
    """Nor is one even read: what cannot be decrypted hides nothing else."""
    populate()
    settings.FACHO_ENCRYPTION_KEYS = ("Jx3QbnrjJgKn4JhcmxgVqrJKAGQIb8XYEq9XpQqz0hE=",)

    body = json.dumps(results(viewer, f"{path}/"))

    assert "canary" not in body
    assert "community" not in body


@pytest.mark.parametrize("path", ROWS)
def test_the_number_of_queries_does_not_grow(
    viewer: APIClient, path: str, django_assert_max_num_queries: Callable[[int], AbstractContextManager[Any]]
) -> None:
    for _ in range(5):
        populate()

    with django_assert_max_num_queries(5):  # session, user, scope, count, rows
        assert len(results(viewer, f"{path}/")) == 5


@pytest.mark.parametrize("path", ROWS)
def test_every_column_of_the_table_is_reported(viewer: APIClient, path: str) -> None:
    populate()
    (listed,) = results(viewer, f"{path}/")

    detail = viewer.get(f"/api/v1/{path}/{listed['id']}/").json()

    columns = {field.attname for field in MODELS[path]._meta.concrete_fields}
    assert columns <= set(detail)


def test_a_quota_tells_its_share_its_risk_and_since_when_it_will_miss(viewer: APIClient) -> None:
    since = this_hour() + timedelta(minutes=20)
    make_tracker(make_olt("North"), status="AT_RISK", will_miss_at=since)

    (row,) = results(viewer, "quotas/")

    assert (row["olt"], row["share_completed"], row["at_risk"]) == ("North", 0.417, True)
    assert datetime.fromisoformat(row["will_miss_at"]) == since


def test_a_quota_without_slots_lacks_nothing(viewer: APIClient) -> None:
    make_tracker(quota_required=0, quota_completed=0, quota_failed=0, quota_skipped=0, quota_pending=0)

    (row,) = results(viewer, "quotas/")

    assert (row["share_completed"], row["at_risk"], row["will_miss_at"]) == (1.0, False, None)


@pytest.mark.parametrize("by", ["hour=current", "period_start={}"])
def test_the_quotas_of_this_hour_are_found(viewer: APIClient, by: str) -> None:
    """S1-27"""
    make_tracker(hour=this_hour() - HOUR, task_type="earlier")
    make_tracker(task_type="now")

    rows = results(viewer, "quotas/?" + by.format(f"{this_hour():%Y-%m-%dT%H:%M:%SZ}"))

    assert [row["task_type"] for row in rows] == ["now"]


def test_the_violations_of_the_last_day_are_found(viewer: APIClient) -> None:
    """S1-28"""
    now = timezone.now()
    make_violation(make_olt("Old"), created_at=now - timedelta(hours=24, minutes=1))
    make_violation(make_olt("New"), created_at=now - timedelta(hours=23, minutes=59))

    by_hours = results(viewer, "violations/?since=24")
    by_time = results(viewer, f"violations/?since={now - timedelta(hours=24):%Y-%m-%dT%H:%M:%SZ}")

    assert [row["olt"] for row in by_hours] == [row["olt"] for row in by_time] == ["New"]


def test_a_violation_has_its_report(viewer: APIClient) -> None:
    violation = make_violation()

    (row,) = results(viewer, "violations/")

    assert row["report"] == violation.report


def test_the_runs_of_a_plan_are_on_its_own_page(viewer: APIClient) -> None:
    plan = make_plan()

    (row,) = results(viewer, "plans/")
    detail = viewer.get(f"/api/v1/plans/{plan.id}/").json()

    assert "plan_data" not in row
    assert detail["plan_data"] == plan.plan_data


def test_the_log_is_newest_first_and_names_no_olt_for_what_concerns_all(viewer: APIClient) -> None:
    make_log(make_olt("North"))
    make_log(event_type="EMERGENCY_REPLAN", details={})

    rows = results(viewer, "coordinator/logs/")

    assert [(row["event_type"], row["olt"]) for row in rows] == [("EMERGENCY_REPLAN", None), ("TASK_ADDED", "North")]


def test_the_log_is_reported_in_the_language_of_the_request(viewer: APIClient) -> None:
    entry = make_log(event_type="TASK_REMOVED", details={}, message="as it was written down")

    reported = [
        viewer.get(f"/api/v1/coordinator/logs/{entry.id}/", headers={"accept-language": language}).json()["message"]
        for language in ("en", "es")
    ]

    assert reported == ["Task removed", "Tarea eliminada"]


def test_hostile_text_stays_text(viewer: APIClient) -> None:
    make_log(make_olt(HOSTILE[:100]), details={"task_type": HOSTILE})

    (row,) = results(viewer, "coordinator/logs/")

    assert (row["olt"], row["details"]) == (HOSTILE, {"task_type": HOSTILE})


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("quotas/?olt=South", ["South"]),
        ("quotas/?status=AT_RISK", ["South"]),
        ("quotas/?task_type=DESCRIP&olt=North", ["North"]),
        ("quotas/?period_start=2030-05-06T12:00:00Z", []),
        ("violations/?severity=LOW", ["South"]),
        ("violations/?notified=false", ["North"]),
        ("violations/?olt=North", ["North"]),
        ("plans/?status=ABORTED", ["South"]),
        ("plans/?olt=North&status=ACTIVE", ["North"]),
        ("plans/?period_start=2030-05-06T12:00:00Z", []),
        ("coordinator/logs/?level=ERROR", ["South"]),
        ("coordinator/logs/?event_type=OLT_BACK", ["South"]),
        ("coordinator/logs/?since=1", ["North"]),
        ("coordinator/logs/?olt=North", ["North"]),
        ("coordinator/state/?olt=North", ["North"]),
        ("coordinator/state/?enabled=false", ["South"]),
    ],
)
def test_lists_are_narrowed_by_query_string(viewer: APIClient, query: str, expected: list[str]) -> None:
    north, south = make_olt("North"), make_olt("South", enabled=False)
    make_tracker(north)
    make_tracker(south, status="AT_RISK")
    make_violation(north)
    make_violation(south, severity="LOW", notified=True)
    make_plan(north)
    make_plan(south, status="ABORTED")
    make_log(north)
    make_log(south, level="ERROR", event_type="OLT_BACK", timestamp=timezone.now() - 2 * HOUR)

    assert [row["olt"] for row in results(viewer, query)] == expected


@pytest.mark.parametrize(
    "query",
    [
        "quotas/?status=GREEN",
        "quotas/?hour=next",
        "quotas/?period_start=yesterday",
        "quotas/?period_start=2030-02-30T12:00:00Z",
        "quotas/?period_start=0001-01-01T00:00:00%2B14:00",
        "violations/?since=999999999999999999",
        "violations/?severity=high",
        "plans/?olt=%00",
        "coordinator/logs/?level=LOUD",
        "coordinator/state/?enabled=1",
    ],
)
def test_a_value_that_cannot_be_meant_is_an_error(viewer: APIClient, query: str) -> None:
    answer = viewer.get(f"/api/v1/{query}")

    assert (answer.status_code, answer["Content-Type"]) == (400, "application/problem+json")


def test_a_time_without_an_offset_is_in_the_zone_of_the_product(viewer: APIClient, settings: Any) -> None:
    settings.TIME_ZONE = "America/Bogota"
    make_tracker(hour=datetime(2030, 5, 6, 12, tzinfo=UTC))

    assert len(results(viewer, "quotas/?period_start=2030-05-06T07:00:00")) == 1
