"""Makes the rows that the coordinator writes, with values that a test did not name filled in."""

from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from api.rows import make_olt
from facho.execution_coordinator.models import CoordinatorLog, ExecutionPlan, QuotaTracker, QuotaViolation
from facho.hosts.models import Olt
from facho.polling.domain.schedule import hour_of

HOUR = timedelta(hours=1)


def this_hour() -> datetime:
    """Return the start of the present hour."""
    return hour_of(timezone.now()).start


def make_tracker(olt: Olt | None = None, *, hour: datetime | None = None, **fields: Any) -> QuotaTracker:
    """Make the quota of a task type in an hour, of 12 of which 5 are completed."""
    start = hour or this_hour()
    values: dict[str, Any] = {
        "task_type": "get_descripcion",
        "quota_required": 12,
        "quota_completed": 5,
        "quota_failed": 1,
        "quota_skipped": 2,
        "quota_pending": 4,
        **fields,
    }
    return QuotaTracker.objects.create(olt=olt or make_olt(), period_start=start, period_end=start + HOUR, **values)


def slot(at: datetime, outcome: str, reason: str = "", **more: Any) -> dict[str, Any]:
    """Write a slot as a violation's report does."""
    nothing = {"execution_id": None, "started_at": None, "finished_at": None, "busy_with": ""}
    return {"slot_at": at.isoformat(), "node_id": 7, "outcome": outcome, "reason": reason, **nothing, **more}


def make_report(hour: datetime, *, task_type: str = "discovery") -> dict[str, Any]:
    """Write the report of an hour with 2 of 4 discoveries and a pause."""
    quarter = timedelta(minutes=15)
    ran = {"started_at": hour.isoformat(), "finished_at": (hour + timedelta(seconds=40)).isoformat()}
    slots = [
        slot(hour, "completed", execution_id=41, **ran),
        slot(hour + quarter, "failed", "timeout", execution_id=42, **ran),
        slot(hour + 2 * quarter, "skipped", "olt_busy", busy_with="get_potencia"),
        slot(hour + 3 * quarter, "completed", execution_id=43, **ran),
    ]
    figures = {"required": 4, "completed": 2, "failed": 1, "skipped": 1, "pending": 0}
    paused = {"from": (hour + timedelta(minutes=50)).isoformat(), "to": (hour + timedelta(minutes=55)).isoformat()}
    task = {"task_type": task_type, "severity": "HIGH", **figures, "slots": slots}
    return {"hour": hour.isoformat(), "tasks": [task], "paused": [paused]}


def make_violation(olt: Olt | None = None, *, hour: datetime | None = None, **fields: Any) -> QuotaViolation:
    """Make the violation of an hour, HIGH as 2 of 4 is."""
    start = hour or this_hour() - HOUR
    values: dict[str, Any] = {"severity": "HIGH", "report": make_report(start), **fields}
    return QuotaViolation.objects.create(olt=olt or make_olt(), period_start=start, period_end=start + HOUR, **values)


def make_plan(olt: Olt | None = None, *, hour: datetime | None = None, **fields: Any) -> ExecutionPlan:
    """Make the plan of an hour with one run."""
    start = hour or this_hour()
    at = (start + timedelta(minutes=5)).isoformat()
    run = {"node_id": 7, "task_type": "discovery", "slot_at": at, "starts_at": at, "seconds": 40, "members": []}
    values: dict[str, Any] = {"plan_data": [run], "total_tasks": 1, **fields}
    return ExecutionPlan.objects.create(olt=olt or make_olt(), period_start=start, period_end=start + HOUR, **values)


def make_log(olt: Olt | None = None, **fields: Any) -> CoordinatorLog:
    """Make an entry of the log; without an OLT it concerns everything."""
    values: dict[str, Any] = {
        "event_type": "TASK_ADDED",
        "message": "discovery added",
        "details": {"task_type": "discovery", "interval_seconds": 900},
        **fields,
    }
    return CoordinatorLog.objects.create(olt=olt, **values)
