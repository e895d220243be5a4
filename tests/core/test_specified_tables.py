"""The specification's tables as the database has them and as the models say: names, columns, lengths, indexes, keys."""

from functools import cache

import pytest
from django.apps import apps
from django.db import connection
from django.db.migrations.autodetector import MigrationAutodetector
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState
from django.db.models import Model

from facho.execution_coordinator.models import CoordinatorLog, ExecutionPlan, PlanStatus, QuotaTracker, QuotaViolation
from facho.executions.models import Execution, ExecutionAttempt
from facho.onus.models import OnuData
from facho.snmp_jobs.models import SnmpJob, SnmpJobHost, SnmpJobOid

pytestmark = pytest.mark.django_db

TABLES: dict[str, type[Model]] = {
    "snmp_jobs": SnmpJob,
    "snmp_job_hosts": SnmpJobHost,
    "snmp_job_oids": SnmpJobOid,
    "snmp_executions": Execution,
    "execution_attempts": ExecutionAttempt,
    "onu_data": OnuData,
    "quota_tracker": QuotaTracker,
    "quota_violations": QuotaViolation,
    "coordinator_logs": CoordinatorLog,
    "execution_plans": ExecutionPlan,
}


@cache
def unmigrated() -> dict[str, list[Operation]]:
    """Return by app what the models say of their tables and the migrations did not make."""
    loader = MigrationLoader(connection)
    changes = MigrationAutodetector(loader.project_state(), ProjectState.from_apps(apps)).changes(loader.graph)
    return {app: [each for migration in found for each in migration.operations] for app, found in changes.items()}


def differences(model: type[Model]) -> list[str]:
    """Describe how the table is not what the model says."""
    names = {model._meta.model_name, model._meta.object_name}
    found = unmigrated().get(model._meta.app_label, [])
    return [each.describe() for each in found if {getattr(each, name, "") for name in ("model_name", "name")} & names]


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


def test_every_table_has_its_name_and_is_what_its_model_says() -> None:
    """S3-21: of jobs, their hosts and OIDs, executions, their attempts, and the values of ONUs."""
    made = set(connection.introspection.table_names())

    assert {name: model._meta.db_table for name, model in TABLES.items()} == {name: name for name in TABLES}
    assert set(TABLES) <= made
    assert [differences(model) for model in TABLES.values()] == [[]] * len(TABLES)


def test_the_hosts_of_a_job_have_a_time_that_is_found_by_an_index() -> None:
    """S4-05, S4-07: the job itself has none."""
    assert {"next_run_at": True, "last_run_at": True}.items() <= columns("snmp_job_hosts").items()
    assert ["next_run_at"] in keys("snmp_job_hosts", unique=False)
    assert differences(SnmpJobHost) == []
    assert not [name for name in columns("snmp_jobs") if name.endswith("run_at")]
    assert not [field.name for field in SnmpJob._meta.get_fields() if field.name.endswith("run_at")]


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
    assert differences(QuotaTracker) == []


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
    assert differences(QuotaViolation) == []


def test_the_log_has_the_columns_and_indexes_of_the_specification() -> None:
    """S4-03"""
    wanted = ["id", "olt_id", "event_type", "level", "message", "details", "timestamp"]

    assert sorted(columns("coordinator_logs")) == sorted(wanted)
    assert [name for name, may_be_empty in columns("coordinator_logs").items() if may_be_empty] == ["olt_id"]
    assert (length("coordinator_logs", "event_type"), length("coordinator_logs", "level")) == (30, 10)
    indexes = keys("coordinator_logs", unique=False)
    assert [[name, "timestamp"] in indexes for name in ("olt_id", "event_type", "level")] == [True] * 3
    assert differences(CoordinatorLog) == []


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
    assert differences(ExecutionPlan) == []
