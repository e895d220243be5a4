"""Counts what became of planned runs, by the executions of their slots, and closes the plans of hours gone by."""

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta

from facho.execution_coordinator.models import ExecutionPlan, PlanStatus
from facho.executions.models import Execution
from facho.polling.domain.execution_state import TERMINAL, ExecutionState
from facho.polling.domain.quota import hour_of

# Two counts of a minute's interval overlap, so that a pass that came late misses nothing.
ENDED_LATELY = timedelta(seconds=130)
PLANS_PER_PASS = 200

# A node and its slot, to how the run ended.
Outcomes = Mapping[tuple[int, str], ExecutionState]


def close_plans(now: datetime) -> None:
    """Complete plans whose hour is over, so many in a pass; a run that ends later is counted all the same."""
    over = ExecutionPlan.objects.filter(status=PlanStatus.ACTIVE, period_end__lte=now).order_by("period_start", "id")
    plans = list(over[:PLANS_PER_PASS])
    for plan in plans:
        plan.status = PlanStatus.COMPLETED
    _count(plans)
    ExecutionPlan.objects.bulk_update(plans, ["status", "completed_tasks", "failed_tasks"], batch_size=500)


def count_lately_ended(now: datetime) -> None:
    """Count the plans of the runs that ended in the last minutes; one query when none did."""
    ended = Execution.objects.filter(
        finished_at__gte=now - ENDED_LATELY, slot_at__isnull=False, master_execution__isnull=True
    ).order_by()
    touched = {
        (olt_id, hour_of(slot_at).start) for olt_id, slot_at in ended.values_list("olt_id", "slot_at") if slot_at
    }
    if not touched:
        return
    rows = ExecutionPlan.objects.filter(
        olt_id__in={olt_id for olt_id, _ in touched},
        period_start__in={start for _, start in touched},
        status__in=[PlanStatus.ACTIVE, PlanStatus.COMPLETED],
    )
    plans = [plan for plan in rows if (plan.olt_id, plan.period_start) in touched]
    changed = _count(plans)
    ExecutionPlan.objects.bulk_update(changed, ["completed_tasks", "failed_tasks"], batch_size=500)


def _count(plans: Collection[ExecutionPlan]) -> list[ExecutionPlan]:
    """Set, without saving, the counts of these plans; returns those whose counts changed."""
    outcomes, changed = _load_outcomes(plans), []
    for plan in plans:
        before = plan.completed_tasks, plan.failed_tasks
        states = list(_states(plan, outcomes))
        plan.completed_tasks = states.count(ExecutionState.SUCCESS)
        plan.failed_tasks = len(states) - plan.completed_tasks
        if before != (plan.completed_tasks, plan.failed_tasks):
            changed.append(plan)
    return changed


def _states(plan: ExecutionPlan, outcomes: Outcomes) -> Iterable[ExecutionState]:
    for run in plan.plan_data:
        state = outcomes.get((run["node_id"], run["slot_at"]))
        if state is not None:
            yield state


def _load_outcomes(plans: Collection[ExecutionPlan]) -> Outcomes:
    if not plans:
        return {}
    rows = Execution.objects.filter(
        olt_id__in={plan.olt_id for plan in plans},
        slot_at__gte=min(plan.period_start for plan in plans),
        slot_at__lt=max(plan.period_end for plan in plans),
        master_execution__isnull=True,
        status__in=sorted(TERMINAL),
        node__isnull=False,
    ).order_by()
    return {
        (node_id or 0, slot_at.isoformat()): ExecutionState(status)
        for node_id, slot_at, status in rows.values_list("node_id", "slot_at", "status")
        if slot_at
    }
