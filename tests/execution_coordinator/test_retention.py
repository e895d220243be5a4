"""Every growing table ends somewhere, and nothing that still holds an OLT is ever deleted. D23."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.apps import apps
from django.contrib.sessions.models import Session
from django.db import models

from facho.execution_coordinator.models import CoordinatorLog, ExecutionPlan, QuotaTracker, QuotaViolation
from facho.execution_coordinator.retention import KEPT, READ_WHOLE, RETENTIONS, Retention, delete_expired
from facho.executions.models import Execution, ExecutionAttempt
from facho.hosts.models import Olt
from facho.polling.domain.execution_state import ExecutionState

NOW = datetime(2030, 6, 1, 12, tzinfo=UTC)
pytestmark = pytest.mark.django_db


@pytest.fixture
def olt() -> Olt:
    return Olt.objects.create(name="north", host="192.0.2.1", address="192.0.2.1")


def clean_up() -> int:
    """Return how many rows went."""
    return sum(delete_expired(retention, NOW, 100) for retention in RETENTIONS)


def execution(olt: Olt, *, days: float, status: ExecutionState = ExecutionState.SUCCESS, **values: Any) -> Execution:
    created_at = NOW - timedelta(days=days)
    ended = status not in (ExecutionState.PENDING, ExecutionState.RUNNING, ExecutionState.WAITING)
    return Execution.objects.create(
        olt=olt,
        address=olt.address,
        port=olt.port,
        task_type="discovery",
        status=status,
        token=1,
        created_at=created_at,
        finished_at=created_at if ended else None,
        **values,
    )


def test_executions_stay_thirty_days_and_take_their_attempts_along(olt: Olt) -> None:
    old, young = execution(olt, days=30.1), execution(olt, days=29.9)
    for row in (old, young):
        ExecutionAttempt.objects.create(execution=row, number=1, status=row.status, started_at=row.created_at)

    assert clean_up() == 1
    assert list(Execution.objects.all()) == [young]
    assert ExecutionAttempt.objects.get().execution == young


@pytest.mark.parametrize("status", [ExecutionState.PENDING, ExecutionState.RUNNING, ExecutionState.WAITING])
def test_an_execution_that_has_not_ended_stays_whatever_the_clock_says(olt: Olt, status: ExecutionState) -> None:
    execution(olt, days=4000, status=status)

    assert clean_up() == 0
    assert Execution.objects.count() == 1


def test_a_master_stays_while_its_chain_runs(olt: Olt) -> None:
    master = execution(olt, days=40)
    execution(olt, days=40, status=ExecutionState.RUNNING, master_execution=master, chain_position=1)

    assert clean_up() == 0


def test_an_ended_chain_goes_with_its_master(olt: Olt) -> None:
    master = execution(olt, days=40)
    execution(olt, days=29, master_execution=master, chain_position=1)

    clean_up()

    assert not Execution.objects.exists()


def test_each_table_keeps_its_own_time(olt: Olt) -> None:
    def period(days: float) -> dict[str, datetime]:
        start = NOW - timedelta(days=days)
        return {"period_start": start, "period_end": start + timedelta(hours=1)}

    for days in (6, 8):
        CoordinatorLog.objects.create(event_type="OLT_BACK", message="", timestamp=NOW - timedelta(days=days))
    for days in (1, 3):
        ExecutionPlan.objects.create(olt=olt, **period(days))
    for days in (399, 401):
        QuotaTracker.objects.create(olt=olt, task_type="discovery", **period(days))
    for days in (729, 731):
        created_at = NOW - timedelta(days=days)
        QuotaViolation.objects.create(olt=olt, severity="LOW", created_at=created_at, **period(days))

    clean_up()

    assert CoordinatorLog.objects.get().timestamp == NOW - timedelta(days=6)
    assert ExecutionPlan.objects.get().period_start == NOW - timedelta(days=1)
    assert QuotaTracker.objects.get().period_start == NOW - timedelta(days=399)
    assert QuotaViolation.objects.get().created_at == NOW - timedelta(days=729)


def test_an_expired_session_goes_and_a_valid_one_stays() -> None:
    for key, hours in (("old", -1), ("valid", 1)):
        Session.objects.create(session_key=key, session_data="", expire_date=NOW + timedelta(hours=hours))

    clean_up()

    assert Session.objects.get().session_key == "valid"


def test_batches_are_small_oldest_first_and_end_with_less(olt: Olt) -> None:
    [executions] = [retention for retention in RETENTIONS if retention.model == "executions.Execution"]
    for days in (31, 33, 32):
        execution(olt, days=days)

    assert delete_expired(executions, NOW, 2) == 2
    assert Execution.objects.get().created_at == NOW - timedelta(days=31)
    assert delete_expired(executions, NOW, 2) == 1


def test_every_model_with_a_time_column_has_a_retention_or_a_reason() -> None:
    with_time = {
        model._meta.label
        for model in apps.get_models(include_auto_created=True)
        if any(isinstance(field, models.DateField) for field in model._meta.get_fields())
    }
    decided = [retention.model for retention in RETENTIONS] + list(KEPT)

    assert sorted(decided) == sorted(with_time)


def test_expired_rows_are_found_by_an_index_or_in_a_small_table() -> None:
    assert {retention.model for retention in RETENTIONS if not is_indexed(retention)} == set(READ_WHOLE)


def is_indexed(retention: Retention) -> bool:
    """Tell whether an index over all rows begins with the time."""
    model = apps.get_model(retention.model)
    first = {index.fields[0] for index in model._meta.indexes if index.fields and index.condition is None}
    return retention.time_field in first or model._meta.get_field(retention.time_field).db_index
