"""Turns many nodes on and off, and asks for their runs: one statement each, whatever their number."""

from datetime import datetime

from django.db.models import QuerySet

from facho.snmp_jobs.models import WorkflowNode


def switch(nodes: QuerySet[WorkflowNode], *, enabled: bool, now: datetime) -> int:
    """Enable or disable nodes and return how many changed; the coordinator sees it and gives or takes their slots."""
    changed = WorkflowNode.objects.filter(pk__in=nodes.order_by().values("pk"), enabled=not enabled)
    return changed.update(enabled=enabled, updated_at=now)


def request_runs(nodes: QuerySet[WorkflowNode], *, now: datetime) -> int:
    """Ask for a run of each enabled master among these; a chain member runs with its master."""
    masters = WorkflowNode.objects.filter(
        pk__in=nodes.order_by().values("pk"), is_chain_node=False, enabled=True, workflow__olt__enabled=True
    )
    return masters.update(run_requested_at=now)
