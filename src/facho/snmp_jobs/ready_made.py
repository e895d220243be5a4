"""Applies a vendor definition's ready-made jobs to an OLT: jobs once, nodes for each OLT."""

from collections.abc import Mapping
from datetime import datetime

from django.conf import settings
from django.db import transaction
from django.utils import translation
from django.utils.translation import gettext, gettext_noop

from facho.hosts.models import Brand, Olt
from facho.polling.vendors.definition import Definition, Job
from facho.polling.vendors.loader import load_definitions
from facho.snmp_jobs.application import misfit, own_slug
from facho.snmp_jobs.models import SnmpJob, SnmpJobOid, Workflow, WorkflowNode
from facho.snmp_jobs.store import give_first_slots


@transaction.atomic
def apply_ready_made_jobs(olt: Olt, *, now: datetime, intervals: Mapping[str, int] | None = None) -> int:
    """Give the OLT a node for each job of its vendor that it lacks, or for those in `intervals`; returns how many."""
    definition = load_definitions().get(olt.vendor)
    if definition is None:
        return 0
    workflow, _ = Workflow.objects.get_or_create(olt=olt)
    nodes: dict[str, WorkflowNode] = {}
    # A job that the OLT has for itself takes the place of the ready-made one.
    own = {node.job.slug: node for node in workflow.nodes.select_related("job")}
    added = 0
    # Masters first: a chained node points at its master's node.
    for job in sorted(definition.jobs, key=lambda job: job.chain_of is not None):
        if intervals is not None and job.slug not in intervals:
            continue
        if node := own.get(own_slug(job.slug, olt.pk)):
            nodes[job.slug] = node
            continue
        row = _job_row(definition, job)
        # Somebody may have given the job to another brand since it was made.
        if misfit(row, olt):
            continue
        seconds = row.interval_seconds if intervals is None else intervals[job.slug]
        nodes[job.slug], is_new = _node(workflow, row, nodes.get(job.chain_of or ""), now, seconds)
        added += is_new
    return added


def job_name(job: Job) -> str:
    """Put a ready-made job's name into the installation's language; it is a name from then on, and may be changed."""
    with translation.override(settings.LANGUAGE_CODE):
        return gettext(job.name)


# What the definitions call their jobs, so that the names find their way into the catalogues.
JOB_NAMES = (
    gettext_noop("Discover ONUs"),
    gettext_noop("Read descriptions"),
    gettext_noop("Read states"),
    gettext_noop("Read optical power"),
    gettext_noop("Read models and firmware"),
    gettext_noop("Read the system group"),
    gettext_noop("Read interfaces"),
    gettext_noop("List ONUs that wait for authorisation"),
    gettext_noop("Read the hardware of the OLT"),
    gettext_noop("Read PON ports"),
)


def _job_row(definition: Definition, job: Job) -> SnmpJob:
    brand, _ = Brand.objects.get_or_create(name=definition.brand)
    master = SnmpJob.objects.filter(vendor=definition.key, slug=job.chain_of).first() if job.chain_of else None
    row, is_new = SnmpJob.objects.select_related("brand").get_or_create(
        vendor=definition.key,
        slug=job.slug,
        defaults={
            "name": job_name(job),
            "brand": brand,
            "query_type": job.query_type.value,
            "interval_seconds": job.interval_seconds,
            "master_job": master,
            **({} if job.priority is None else {"priority": job.priority}),
        },
    )
    if is_new:
        SnmpJobOid.objects.bulk_create(
            SnmpJobOid(job=row, position=position, column_key=key) for position, key in enumerate(job.columns)
        )
    return row


def _node(
    workflow: Workflow, job: SnmpJob, master: WorkflowNode | None, now: datetime, interval_seconds: int
) -> tuple[WorkflowNode, bool]:
    node, is_new = WorkflowNode.objects.get_or_create(
        workflow=workflow,
        job=job,
        defaults={
            "interval_seconds": interval_seconds,
            "priority": job.priority,
            "is_chain_node": master is not None,
            "master_node": master,
        },
    )
    if is_new and master is None:
        give_first_slots(WorkflowNode.objects.filter(id=node.id), now)
    return node, is_new
