"""The coordinator's tables as the database has them: columns, lengths, indexes and keys."""

import pytest
from django.db import connection

from facho.execution_coordinator.models import PlanStatus

pytestmark = pytest.mark.django_db


def columns(table: str) -> dict[str, bool]:
    """Return the columns of a table, each with whether it may be empty."""
    with connection.cursor() as cursor:
        described = connection.introspection.get_table_description(cursor, table)
    return {column.name: bool(column.null_ok) for column in described}


def length(table: str, name: str) -> int | None:
    """Return how long a text may be."""
    with connection.cursor() as cursor:
        described = connection.introspection.get_table_description(cursor, table)
    (found,) = (column.display_size or column.internal_size for column in described if column.name == name)
    return found


def keys(table: str, *, unique: bool) -> list[list[str]]:
    """Return the columns of each index that is, or is not, unique."""
    with connection.cursor() as cursor:
        constraints = connection.introspection.get_constraints(cursor, table)
    return [
        found["columns"]
        for found in constraints.values()
        if found["index" if not unique else "unique"] and found["unique"] is unique and not found["primary_key"]
    ]


def test_quotas_have_the_columns_indexes_and_key_of_the_specification() -> None:
    """S1-08, S4-01."""
    wanted = {
        "id",
        "olt_id",
        "task_type",
        "period_start",
        "period_end",
        "quota_required",
        "quota_completed",
        "quota_failed",
        "quota_skipped",
        "quota_pending",
        "total_duration_ms",
        "avg_duration_ms",
        "status",
        "created_at",
        "updated_at",
    }

    assert len(wanted) == 15
    assert set(columns("quota_tracker")) - {"will_miss_at"} == wanted
    assert (length("quota_tracker", "task_type"), length("quota_tracker", "status")) == (50, 20)
    indexes = keys("quota_tracker", unique=False)
    assert ["olt_id", "period_start"] in indexes
    assert ["status"] in indexes
    assert ["olt_id", "task_type", "period_start"] in keys("quota_tracker", unique=True)


def test_violations_have_the_columns_and_indexes_of_the_specification() -> None:
    """S1-09, S4-02."""
    wanted = [
        "id",
        "olt_id",
        "period_start",
        "period_end",
        "report",
        "severity",
        "notified",
        "notified_at",
        "created_at",
    ]

    ours = ["acknowledged_at", "acknowledged_by_id", "acknowledgement"]
    assert sorted(columns("quota_violations")) == sorted(wanted + ours)
    indexes = keys("quota_violations", unique=False)
    assert [index in indexes for index in (["olt_id", "created_at"], ["severity"], ["notified"])] == [True] * 3


def test_the_log_has_the_columns_and_indexes_of_the_specification() -> None:
    """S4-03"""
    wanted = ["id", "olt_id", "event_type", "level", "message", "details", "timestamp"]

    assert sorted(columns("coordinator_logs")) == sorted(wanted)
    assert [name for name, may_be_empty in columns("coordinator_logs").items() if may_be_empty] == ["olt_id"]
    assert (length("coordinator_logs", "event_type"), length("coordinator_logs", "level")) == (30, 10)
    indexes = keys("coordinator_logs", unique=False)
    assert [[name, "timestamp"] in indexes for name in ("olt_id", "event_type", "level")] == [True] * 3


def test_plans_have_the_columns_indexes_and_states_of_the_specification() -> None:
    """S4-04"""
    wanted = {
        "id",
        "olt_id",
        "period_start",
        "period_end",
        "plan_data",
        "status",
        "total_tasks",
        "completed_tasks",
        "failed_tasks",
        "created_at",
        "updated_at",
    }

    assert len(wanted) == 11
    assert set(columns("execution_plans")) == wanted
    indexes = keys("execution_plans", unique=False)
    assert ["olt_id", "period_start"] in indexes
    assert ["status"] in indexes
    assert PlanStatus.values == ["ACTIVE", "COMPLETED", "SUPERSEDED", "ABORTED"]
