"""The chain after a master: which member follows, under the same poller, and what is skipped when none may."""

from collections.abc import Sequence
from datetime import datetime

from django.db.models import Q, QuerySet

from facho.executions.models import Execution
from facho.executions.outcome import Ending
from facho.executions.run import Run, open_attempt, run_of, runs
from facho.executions.store import next_tokens
from facho.polling.domain.execution_state import ExecutionState
from facho.snmp_jobs.models import ChainCondition, WorkflowNode


def open_next(run: Run, ending: Ending, *, owner: str, now: datetime) -> Run | None:
    """Start the chain member after `run` under the same poller; call it right after `close`, in its transaction.

    Members that may not run, because the OLT is silent or the master failed, are recorded as skipped.
    """
    if not ending.is_final:
        return None
    members = _members_after(run)
    number = _first_allowed(run, ending, members)
    skip(run, members[:number], ending, now)
    if number == len(members):
        return None
    execution = _chain_execution(run, members[number], position=number + 1)
    execution.status = ExecutionState.RUNNING
    execution.token = next_tokens([run.olt_id])[run.olt_id]
    execution.owner, execution.lease_counter = owner, 1
    execution.created_at = execution.started_at = now
    execution.save(force_insert=True)
    open_attempt(execution, now)
    return run_of(runs(Execution.objects.all()).get(id=execution.id))


def skip_chain(run: Run, ending: Ending, now: datetime) -> None:
    """Record every member after `run` as skipped."""
    skip(run, _members_after(run), ending, now)


def _first_allowed(run: Run, ending: Ending, members: Sequence[WorkflowNode]) -> int:
    """Return the position of the first member that may run; their number when none may."""
    if not ending.allows_chain:
        return len(members)
    able = [number for number, node in enumerate(members) if node.suspended_at is None]
    always = [number for number in able if members[number].job.chain_condition == ChainCondition.ALWAYS]
    if able[:1] != always[:1] and _master_succeeded(run, ending):
        return able[0]
    return next(iter(always), len(members))


def _master_succeeded(run: Run, ending: Ending) -> bool:
    if run.master_execution_id is None:
        return ending.failure is None
    return Execution.objects.filter(id=run.master_execution_id, status=ExecutionState.SUCCESS).exists()


def _members_after(run: Run) -> list[WorkflowNode]:
    """Return the enabled members after `run`, in the order (priority, id); a suspended one is passed in its turn."""
    if run.node_id is None:
        return []
    is_master = run.master_execution_id is None
    members = WorkflowNode.objects.filter(enabled=True).select_related("job")
    members = members.only("suspended_at", "job__slug", "job__query_type", "job__chain_condition")
    members = members.filter(master_node_id=run.node_id) if is_master else _after(members, run.node_id)
    return list(members.order_by("priority", "id"))


def _after(members: QuerySet[WorkflowNode], node_id: int) -> QuerySet[WorkflowNode]:
    current = WorkflowNode.objects.filter(id=node_id).first()
    if current is None:
        return members.none()
    after = Q(priority=current.priority, id__gt=current.id) | Q(priority__gt=current.priority)
    return members.filter(after, master_node_id=current.master_node_id)


def _chain_execution(run: Run, node: WorkflowNode, *, position: int) -> Execution:
    return Execution(
        olt_id=run.olt_id,
        address=run.request.address,
        port=run.request.port,
        node=node,
        task_type=node.job.task_type,
        origin=run.origin,
        slot_at=run.slot_at,
        poller_id=run.poller_id,
        poller_group=run.poller_group,
        master_execution_id=run.master_execution_id or run.execution_id,
        chain_position=run.chain_position + position,
    )


def skip(run: Run, members: Sequence[WorkflowNode], ending: Ending, now: datetime) -> None:
    """Record members that get no run in this slot."""
    rows = [_chain_execution(run, node, position=number) for number, node in enumerate(members, start=1)]
    for row in rows:
        row.status, row.token, row.duration_ms = ExecutionState.SKIPPED, run.token, 0
        row.created_at = row.finished_at = now
        row.failure_kind = ending.failure.kind if ending.failure else ""
    Execution.objects.bulk_create(rows)
