"""What follows from a change: runs that nobody wants any more end, and what is new gets its first slot."""

from datetime import datetime

from django.db.models import Q, QuerySet

from facho.executions import store as executions
from facho.executions.models import Execution
from facho.executions.waiting import end_forsaken
from facho.polling.domain.changes import Change, ChangeType, Task
from facho.polling.domain.execution_state import ExecutionState
from facho.snmp_jobs.models import WorkflowNode
from facho.snmp_jobs.ready_made import schedule_first_run
from facho.snmp_jobs.store import pull_node_back
from facho.zabbix_pollers.recovery import release_as_seen


def act_on(olt_id: int, change: Change, now: datetime) -> None:
    """Do what a change calls for; what it asks of quotas and plans is done when they are counted and built anew."""
    if change.type is ChangeType.TASK_ADDED and change.task:
        _give_first_slots(WorkflowNode.objects.filter(id=change.task.node_id), now)
    elif change.type is ChangeType.TASK_REMOVED and change.task:
        _remove_task(change.task, now)
    elif change.type is ChangeType.TASK_INTERVAL_CHANGED and change.task:
        pull_node_back(change.task.node_id, now)
    elif change.type is ChangeType.OLT_ENABLED:
        _give_first_slots(WorkflowNode.objects.filter(workflow__olt_id=olt_id, enabled=True), now)
    elif change.type is ChangeType.OLT_DISABLED:
        _clear_olt(olt_id, now)


def _give_first_slots(nodes: QuerySet[WorkflowNode], now: datetime) -> None:
    """Put masters without a time on their grid, whoever enabled them and wherever."""
    for node in nodes.filter(is_chain_node=False, next_run_at__isnull=True).select_related("job"):
        schedule_first_run(node, now)


def _remove_task(task: Task, now: datetime) -> None:
    """End what was claimed or waits for a task that no longer runs; what talks to the OLT already may finish."""
    _abort(Q(node_id=task.node_id), "its task was disabled", now)
    _take_off_grid(WorkflowNode.objects.filter(id=task.node_id, enabled=False))


def _clear_olt(olt_id: int, now: datetime) -> None:
    """End everything of an OLT that was disabled: what runs stops before its next packet."""
    _abort(Q(olt_id=olt_id), "its OLT was disabled", now)
    for execution_id in Execution.objects.filter(olt_id=olt_id, status=ExecutionState.RUNNING).values_list(
        "id", flat=True
    ):
        executions.request_cancel(execution_id, now=now)
    _take_off_grid(WorkflowNode.objects.filter(workflow__olt_id=olt_id))


def _abort(which: Q, reason: str, now: datetime) -> None:
    claimed = [run for run in executions.load_active(which) if run.status is ExecutionState.PENDING]
    release_as_seen(claimed, reason=reason, now=now)
    end_forsaken(which, now=now)


def _take_off_grid(nodes: QuerySet[WorkflowNode]) -> None:
    """Let nodes forget their time: when they are enabled again they begin anew, and never with a burst."""
    nodes.update(next_run_at=None, run_requested_at=None)
