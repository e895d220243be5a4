"""Keeps one ACTIVE plan per OLT and hour: the runs that the schedule will bring, for this hour and the next."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from django.db import transaction

from facho.execution_coordinator.models import ExecutionPlan, PlanStatus
from facho.execution_coordinator.state import OltRow, TaskRow, load_olts
from facho.polling.domain.quota import Span, hour_of


def keep_plans(olts: Mapping[int, OltRow], now: datetime) -> None:
    """Have a plan for this hour and the next of every enabled OLT with tasks; close those of hours gone by."""
    hour = hour_of(now)
    active = ExecutionPlan.objects.filter(status=PlanStatus.ACTIVE)
    active.filter(period_end__lte=now).update(status=PlanStatus.COMPLETED)
    known = set(active.values_list("olt_id", "period_start"))
    for span in (hour, hour_of(hour.end)):
        _create([olt for olt in olts.values() if (olt.olt_id, span.start) not in known], span)


@transaction.atomic
def rebuild_plans(olt_ids: Iterable[int], now: datetime) -> None:
    """Replace the plans of OLTs whose tasks changed; a disabled OLT gets none."""
    olts = load_olts(list(olt_ids))
    for olt in olts.values():
        active = ExecutionPlan.objects.filter(olt_id=olt.olt_id, status=PlanStatus.ACTIVE, period_end__gt=now)
        active.update(status=PlanStatus.SUPERSEDED if olt.enabled else PlanStatus.ABORTED)
    hour = hour_of(now)
    for span in (hour, hour_of(hour.end)):
        _create(olts.values(), span)


def _create(olts: Iterable[OltRow], span: Span) -> None:
    planned = [(olt.olt_id, _runs(olt, span)) for olt in olts if olt.enabled and olt.tasks]
    ExecutionPlan.objects.bulk_create(
        ExecutionPlan(
            olt_id=olt_id, period_start=span.start, period_end=span.end, plan_data=runs, total_tasks=len(runs)
        )
        for olt_id, runs in planned
    )


def _runs(olt: OltRow, span: Span) -> list[dict[str, Any]]:
    masters = [task for task in olt.tasks if task.master_id is None and task.next_run_at is not None]
    runs = [_run(task, slot) for task in masters for slot in _slots(task, span)]
    return sorted(runs, key=lambda run: str(run["slot_at"]))


def _slots(task: TaskRow, span: Span) -> Iterable[datetime]:
    return task.grid.slots(task.next_run_at, span.start, span.end) if task.next_run_at else ()


def _run(task: TaskRow, slot: datetime) -> dict[str, Any]:
    at = slot.isoformat()
    return {
        "node_id": task.node_id,
        "task_type": task.task_type,
        "slot_at": at,
        "starts_at": at,
        "seconds": 0,
        "members": [],
    }
