"""The runs of a plan, each with what has become of its slot so far."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from django.utils.translation import gettext as _

from facho.execution_coordinator.models import ExecutionPlan, PlanStatus
from facho.execution_coordinator.report_words import read_time
from facho.executions.models import Execution, ExecutionStates
from facho.snmp_jobs.models import SkippedSlot, SkipReasons

# A node and one of its slots.
Key = tuple[object, datetime]


@dataclass(frozen=True, slots=True)
class Fate:
    """What became of a slot: a state of an execution, or why it got none."""

    state: str
    words: str
    execution_id: int | None = None


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """A run of the plan: its slot, when it should start, and how long it should take with its chain."""

    slot_at: datetime | None
    starts_at: datetime | None
    task_type: str
    members: tuple[str, ...]
    seconds: float | None
    fate: Fate


def load_planned_runs(plan: ExecutionPlan, now: datetime) -> list[PlannedRun]:
    """Load what became of each run that the plan holds; two queries."""
    fates = _load_skipped(plan) | _load_runs(plan)
    runs = plan.plan_data if isinstance(plan.plan_data, list) else []
    return [_planned(run, fates, plan, now) for run in runs if isinstance(run, Mapping)]


def _planned(run: Mapping[str, object], fates: Mapping[Key, Fate], plan: ExecutionPlan, now: datetime) -> PlannedRun:
    slot_at, seconds, members = read_time(run.get("slot_at")), run.get("seconds"), run.get("members")
    known = fates.get((run.get("node_id"), slot_at)) if slot_at else None
    return PlannedRun(
        slot_at=slot_at,
        starts_at=read_time(run.get("starts_at")),
        task_type=str(run.get("task_type", "")),
        members=_task_types(members),
        seconds=seconds if isinstance(seconds, int | float) else None,
        fate=known or _without_row(slot_at, plan, now),
    )


def _task_types(members: object) -> tuple[str, ...]:
    listed = members if isinstance(members, list) else []
    return tuple(str(member.get("task_type", "")) for member in listed if isinstance(member, Mapping))


def _without_row(slot_at: datetime | None, plan: ExecutionPlan, now: datetime) -> Fate:
    if plan.status != PlanStatus.ACTIVE or slot_at is None:
        return Fate("", "")
    return Fate("", _("to come")) if slot_at > now else Fate("", _("waits"))


def _load_runs(plan: ExecutionPlan) -> dict[Key, Fate]:
    rows = Execution.objects.filter(
        olt_id=plan.olt_id, slot_at__gte=plan.period_start, slot_at__lt=plan.period_end
    ).order_by()
    return {
        (node_id, slot_at): Fate(status, str(ExecutionStates(status).label), execution_id)
        for node_id, slot_at, status, execution_id in rows.values_list("node_id", "slot_at", "status", "id")
        if slot_at
    }


def _load_skipped(plan: ExecutionPlan) -> dict[Key, Fate]:
    rows = SkippedSlot.objects.filter(
        node__workflow__olt_id=plan.olt_id, slot_at__gte=plan.period_start, slot_at__lt=plan.period_end
    ).order_by()
    return {
        (node_id, slot_at): Fate(ExecutionStates.SKIPPED, str(SkipReasons(reason).label))
        for node_id, slot_at, reason in rows.values_list("node_id", "slot_at", "reason")
    }
