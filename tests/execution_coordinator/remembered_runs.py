"""Histories of nodes: how long their last runs took, and how many ONUs they read."""

from datetime import datetime, timedelta

from past_runs import add_run

from facho.executions.models import Execution
from facho.snmp_jobs.models import WorkflowNode
from factories import NOW


def remember(node: WorkflowNode, *seconds: int, until: datetime = NOW, onus: int | None = None) -> None:
    """Let a node have had runs of these lengths, the latest first, one in each slot before."""
    for number, length in enumerate(seconds, start=1):
        run = add_run(node, until - number * timedelta(seconds=node.interval_seconds), seconds=length)
        if onus is not None:
            Execution.objects.filter(id=run.id).update(result={"onus": onus, "packets": 7})
    WorkflowNode.objects.filter(id=node.id).update(last_run_at=until)
