"""Runs that are over, as rows: what quotas are counted from."""

from datetime import datetime, timedelta

from facho.executions.models import Execution, Origin
from facho.polling.domain.execution_state import ACTIVE, TERMINAL, ExecutionState
from facho.snmp_jobs.models import WorkflowNode
from factories import NOW


def add_run(
    node: WorkflowNode,
    slot_at: datetime | None,
    status: ExecutionState = ExecutionState.SUCCESS,
    *,
    seconds: int = 5,
    started_at: datetime | None = None,
    failure_kind: str = "",
    master: Execution | None = None,
) -> Execution:
    """Add a run of a slot, or without one a run by hand; the second member of a chain when it has a master."""
    started_at = started_at or slot_at or NOW
    return Execution.objects.create(
        olt=node.workflow.olt,
        node=node,
        task_type=node.job.task_type,
        origin=Origin.SCHEDULE if slot_at else Origin.MANUAL,
        status=status,
        slot_at=slot_at,
        address=node.workflow.olt.address,
        port=node.workflow.olt.port,
        token=1,
        created_at=started_at,
        started_at=started_at,
        finished_at=started_at + timedelta(seconds=seconds) if status in TERMINAL else None,
        duration_ms=seconds * 1000,
        failure_kind=failure_kind,
        poller_id=0 if status in ACTIVE else None,
        master_execution=master,
        chain_position=1 if master else 0,
    )
