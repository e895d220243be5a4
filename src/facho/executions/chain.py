"""The chain after a master: which member follows, under the same poller, and what is skipped when none may."""

from collections.abc import Sequence
from datetime import datetime

from django.db.models import Q, QuerySet

from facho.executions.models import Execution
from facho.executions.outcome import Ending
from facho.executions.run import Run, open_attempt, run_of
from facho.executions.store import next_tokens
from facho.hosts.store import OLT_SECRETS
from facho.polling.domain.execution_state import ExecutionState
from facho.snmp_jobs.models import ChainCondition, WorkflowNode


def open_next(run: Run, ending: Ending, *, owner: str, now: datetime) -> Run | None:
    """Start the chain member after `run` under the same poller; call it right after `close`, in its transaction.

    When the OLT may not be asked any more, the members that are left are recorded as skipped.
    """
    if not ending.is_final:
        return None
    members = _members_after(run, master_succeeded=ending.failure is None)
    if not ending.allows_chain:
        _skip(run, members, ending, now)
        return None
    if not members:
        return None
    execution = _chain_execution(run, members[0], position=1)
    execution.status = ExecutionState.RUNNING
    execution.token = next_tokens([run.olt_id])[run.olt_id]
    execution.owner, execution.lease_counter = owner, 1
    execution.created_at = execution.started_at = now
    execution.save(force_insert=True)
    open_attempt(execution, now)
    return run_of(Execution.objects.select_related("olt", "node__job").defer(*OLT_SECRETS).get(id=execution.id))


def _members_after(run: Run, *, master_succeeded: bool) -> list[WorkflowNode]:
    """Return the enabled members after `run`, in the order (priority, id)."""
    if run.node_id is None:
        return []
    is_master = run.master_execution_id is None
    members = WorkflowNode.objects.filter(enabled=True, suspended_at__isnull=True).select_related("job")
    members = members.filter(master_node_id=run.node_id) if is_master else _after(members, run.node_id)
    if not master_succeeded:
        members = members.exclude(job__chain_condition=ChainCondition.ON_SUCCESS)
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
        master_execution_id=run.master_execution_id or run.execution_id,
        chain_position=run.chain_position + position,
    )


def _skip(run: Run, members: Sequence[WorkflowNode], ending: Ending, now: datetime) -> None:
    rows = [_chain_execution(run, node, position=number) for number, node in enumerate(members, start=1)]
    for row in rows:
        row.status, row.token, row.duration_ms = ExecutionState.SKIPPED, run.token, 0
        row.created_at = row.finished_at = now
        row.failure_kind = ending.failure.kind if ending.failure else ""
    Execution.objects.bulk_create(rows)
