"""Carries a chain, which is declared between jobs, to the nodes of those jobs: who runs after whom, in which order."""

from collections.abc import Iterable
from datetime import datetime

from django.db.models import Q, QuerySet

from facho.snmp_jobs.models import SnmpJob, WorkflowNode
from facho.snmp_jobs.store import first_slot

_CARRIED = ("is_chain_node", "master_node", "priority", "offset_seconds", "next_run_at", "run_requested_at")


def possible_members(master: SnmpJob) -> QuerySet[SnmpJob]:
    """Select the jobs that could run after a master: those that are in no chain and fit its OLTs."""
    free = SnmpJob.objects.filter(master_job__isnull=True, chain_jobs__isnull=True, hours_from__isnull=True)
    fitting = free.filter(Q(vendor__in=["", master.vendor])) if master.vendor else free
    return fitting.exclude(pk=master.pk).order_by("name")


def carry_chain(jobs: Iterable[SnmpJob], *, now: datetime) -> int:
    """Let the nodes of these jobs run after the nodes of the jobs' masters, or by themselves; returns how many changed.

    On an OLT that lacks the master a node runs by itself.
    """
    return sum(_carry(job, now) for job in jobs)


def _carry(job: SnmpJob, now: datetime) -> int:
    masters = WorkflowNode.objects.filter(job_id=job.master_job_id, is_chain_node=False) if job.master_job_id else ()
    by_workflow = {master.workflow_id: master for master in masters}
    moved = []
    for node in WorkflowNode.objects.filter(job=job).select_related("job"):
        master = by_workflow.get(node.workflow_id)
        before = (node.master_node_id, node.priority)
        _put_after(node, master, now)
        if before != (node.master_node_id, node.priority):
            moved.append(node)
    WorkflowNode.objects.bulk_update(moved, _CARRIED, batch_size=500)
    return len(moved)


def _put_after(node: WorkflowNode, master: WorkflowNode | None, now: datetime) -> None:
    was_chained, node.is_chain_node, node.master_node = node.is_chain_node, master is not None, master
    if master is not None:
        # The order within a chain; a time of its own would start it alone.
        node.priority, node.next_run_at, node.run_requested_at = node.job.priority, None, None
    elif was_chained and node.enabled:
        node.offset_seconds, node.next_run_at = first_slot(node, now)
