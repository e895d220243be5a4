"""Carries a chain, which is declared between jobs, to the nodes of those jobs: who runs after whom, in which order."""

from collections.abc import Iterable
from datetime import datetime

from django.db import transaction
from django.db.models import Q, QuerySet

from facho.snmp_jobs.models import SnmpJob, WorkflowNode
from facho.snmp_jobs.store import give_first_slots, take_off_grid


def possible_members(master: SnmpJob) -> QuerySet[SnmpJob]:
    """Select the jobs that could run after a master: those that are in no chain and fit its OLTs."""
    free = SnmpJob.objects.filter(master_job__isnull=True, chain_jobs__isnull=True, hours_from__isnull=True)
    fitting = free.filter(Q(vendor__in=["", master.vendor])) if master.vendor else free
    return fitting.exclude(pk=master.pk).order_by("name")


@transaction.atomic
def carry_chain(jobs: Iterable[SnmpJob], *, now: datetime) -> int:
    """Let the nodes of these jobs run after the nodes of the jobs' masters, or by themselves; returns how many changed.

    On an OLT that lacks the master a node runs by itself.
    """
    return sum(_carry(job, now) for job in jobs)


def _carry(job: SnmpJob, now: datetime) -> int:
    masters = WorkflowNode.objects.filter(job_id=job.master_job_id, is_chain_node=False) if job.master_job_id else ()
    by_workflow = {master.workflow_id: master for master in masters}
    moved, freed = [], []
    for node in WorkflowNode.objects.filter(job=job).select_related("job"):
        master = by_workflow.get(node.workflow_id)
        before = (node.master_node_id, node.priority)
        node.is_chain_node, node.master_node = master is not None, master
        if master is not None:
            # The order within a chain.
            node.priority = node.job.priority
        if before != (node.master_node_id, node.priority):
            moved.append(node)
            freed += [] if master else [node.pk]
    nodes = WorkflowNode.objects.all()
    # A time of its own would start a member alone.
    take_off_grid(nodes.filter(id__in=[node.pk for node in moved if node.is_chain_node], is_chain_node=False), now)
    nodes.bulk_update(moved, ("is_chain_node", "master_node", "priority"), batch_size=500)
    give_first_slots(nodes.filter(id__in=freed, enabled=True), now)
    return len(moved)
