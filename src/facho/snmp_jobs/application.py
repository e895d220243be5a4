"""Puts jobs on OLTs: says first which OLT would get which nodes and why not, then does exactly that.

Rooms above register here what an operator should know before changing what an OLT is asked. A vendor definition has
ready-made jobs: an OLT of that vendor gets them at once.
"""

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import Q
from django.utils import translation
from django.utils.functional import Promise
from django.utils.translation import gettext, gettext_lazy, gettext_noop
from django.utils.translation import gettext as _

from facho.hosts.models import Brand, Olt
from facho.polling.domain.schedule import format_interval
from facho.polling.vendors.definition import Definition, Job
from facho.polling.vendors.loader import load_definitions
from facho.snmp_jobs.models import SnmpJob, SnmpJobOid, Workflow, WorkflowNode
from facho.snmp_jobs.safety import check_node
from facho.snmp_jobs.store import give_first_slots

MAX_SLUG = 40


@dataclass(frozen=True, slots=True)
class Work:
    """What an OLT's nodes need of it per hour; those not measured yet count as zero."""

    minutes_per_hour: float
    unmeasured: int
    fits: bool
    words: tuple[str, ...] = ()


Adviser = Callable[[Collection[int]], list[str]]
WorkLoader = Callable[[Collection[int]], Mapping[int, Work]]

_sources: list[tuple[Adviser, WorkLoader]] = []


def register_source(adviser: Adviser, work_loader: WorkLoader) -> None:
    """Let these be asked about the OLTs of each change, and how their work is summed up; once, at start."""
    if (adviser, work_loader) not in _sources:
        _sources.append((adviser, work_loader))


def advise(olt_ids: Collection[int]) -> list[str]:
    return [warning for adviser, _work_loader in _sources for warning in adviser(olt_ids)]


def load_work(olt_ids: Collection[int]) -> dict[int, Work]:
    """Load the present workload of these OLTs; empty without a registered source."""
    return {olt_id: work for _adviser, loader in _sources for olt_id, work in loader(olt_ids).items()}


class Overtaken(IntegrityError):
    """Somebody changed meanwhile what a plan was made from, as when two add the same node."""


@dataclass(frozen=True, slots=True)
class PlannedNode:
    """A node that an OLT would get; with problems it gets none."""

    job_id: int
    name: str
    interval_seconds: int
    is_chained: bool
    problems: tuple[str, ...] = ()

    @property
    def interval(self) -> str:
        return format_interval(self.interval_seconds)


@dataclass(frozen=True, slots=True)
class OltApplication:
    olt_id: int
    olt: str
    nodes: tuple[PlannedNode, ...]
    has: tuple[str, ...]

    @property
    def adds(self) -> tuple[PlannedNode, ...]:
        """The nodes that it would really get."""
        return tuple(node for node in self.nodes if not node.problems)


def brands_of(olt: Olt) -> set[str]:
    """Return the brands of an OLT: its model's, and its definition's, which an operator may have chosen."""
    definition = load_definitions().get(olt.vendor)
    names = (olt.model.brand.name if olt.model else "", definition.brand if definition else "")
    return {name for name in names if name}


def misfit(job: SnmpJob, olt: Olt) -> str:
    """Say why a job is not for an OLT; empty when it is."""
    brands = brands_of(olt)
    if job.vendor and not olt.vendor:
        return _("the vendor of this OLT is not recognised yet")
    if job.vendor and job.vendor != olt.vendor:
        return _("it is for another vendor")
    if job.brand and not brands:
        return _("it is for OLTs of %(brand)s, and the brand of this OLT is not known yet") % {"brand": job.brand}
    if job.brand and job.brand.name not in brands:
        words = {"brand": job.brand, "brands": ", ".join(sorted(brands))}
        return _("it is for OLTs of %(brand)s, and this one is of %(brands)s") % words
    return ""


def own_slug(slug: str, olt_id: int) -> str:
    """Return the slug of the copy of a job that one OLT has for itself."""
    ending = f"-olt{olt_id}"
    return f"{slug[: MAX_SLUG - len(ending)]}{ending}"


def with_chains(jobs: Sequence[SnmpJob]) -> list[SnmpJob]:
    """Return the jobs with everything that belongs to them: the chain of a master, the master of a member; in order."""
    own = [job.pk for job in jobs]
    masters = [job.master_job_id or job.pk for job in jobs]
    belonging = SnmpJob.objects.filter(Q(pk__in=[*own, *masters]) | Q(master_job_id__in=own))
    found = list(belonging.select_related("brand").prefetch_related("oids").order_by("priority", "pk"))
    heads = [job for job in found if not job.master_job_id]
    return [each for head in heads for each in (head, *(job for job in found if job.master_job_id == head.pk))]


def plan_application(jobs: Sequence[SnmpJob], olts: Sequence[Olt]) -> list[OltApplication]:
    """Say what each OLT would get of the jobs, which come with their chains; a few queries, however many there are."""
    stored = WorkflowNode.objects.filter(workflow__olt__in=[olt.pk for olt in olts], job__in=[job.pk for job in jobs])
    nodes = {(node.workflow.olt_id, node.job_id): node for node in stored.select_related("workflow")}
    return [_plan(jobs, olt, nodes) for olt in olts]


def fingerprint(plan: Sequence[OltApplication]) -> str:
    """Return a text that is another one as soon as the plan is."""
    return hashlib.sha256(repr(list(plan)).encode()).hexdigest()


@transaction.atomic
def apply_plan(plan: Sequence[OltApplication], jobs: Sequence[SnmpJob], *, now: datetime) -> int:
    """Give each OLT its planned nodes; returns how many. IntegrityError when somebody else was there first."""
    by_id = {job.pk: job for job in jobs}
    olt_ids = [each.olt_id for each in plan if each.adds]
    Workflow.objects.bulk_create([Workflow(olt_id=olt_id) for olt_id in olt_ids], ignore_conflicts=True)
    workflows = {workflow.olt_id: workflow for workflow in Workflow.objects.filter(olt_id__in=olt_ids)}
    for is_chained in (False, True):
        masters = _masters(workflows.values(), jobs) if is_chained else {}
        WorkflowNode.objects.bulk_create(
            [
                _node(workflows[each.olt_id], by_id[planned.job_id], planned, masters)
                for each in plan
                for planned in each.adds
                if planned.is_chained is is_chained
            ]
        )
    fresh = WorkflowNode.objects.filter(workflow__in=workflows.values(), job__in=by_id, next_run_at__isnull=True)
    give_first_slots(fresh.filter(enabled=True), now)
    return sum(len(each.adds) for each in plan)


def weigh(plan: Sequence[OltApplication], jobs: Sequence[SnmpJob], *, now: datetime) -> dict[int, tuple[Work, Work]]:
    """Return each OLT's work now and afterwards: the change is applied, measured and rolled back."""
    olt_ids = [each.olt_id for each in plan]
    before = load_work(olt_ids)
    try:
        with transaction.atomic():
            apply_plan(plan, jobs, now=now)
            after = load_work(olt_ids)
            transaction.set_rollback(True)
    except IntegrityError:
        return {}
    return {olt_id: (before[olt_id], after[olt_id]) for olt_id in olt_ids if olt_id in before and olt_id in after}


def _plan(jobs: Sequence[SnmpJob], olt: Olt, stored: Mapping[tuple[int, int], WorkflowNode]) -> OltApplication:
    has = tuple(job.name for job in jobs if (olt.pk, job.pk) in stored)
    ready = {job.pk: stored[olt.pk, job.pk] for job in jobs if (olt.pk, job.pk) in stored}
    planned = []
    for job in jobs:
        if job.pk not in ready:
            master = ready.get(job.master_job_id or 0)
            interval = master.interval_seconds if master else job.interval_seconds
            is_chained = job.master_job_id is not None
            node = WorkflowNode(
                workflow=Workflow(olt=olt),
                job=job,
                interval_seconds=interval,
                is_chain_node=is_chained,
                master_node=master,
            )
            problems = tuple(_problems(olt, job, node))
            planned.append(PlannedNode(job.pk, job.name, node.interval_seconds, bool(node.is_chain_node), problems))
            if not problems:
                ready[job.pk] = node
    return OltApplication(olt.pk, olt.name, tuple(planned), has)


def _problems(olt: Olt, job: SnmpJob, node: WorkflowNode) -> Iterator[str]:
    reason = misfit(job, olt)
    if reason:
        yield reason
    elif job.master_job_id and node.master_node is None:
        yield _("its master would be missing")
    else:
        try:
            check_node(node)
        except ValidationError as error:
            yield from error.messages


def _masters(workflows: Iterable[Workflow], jobs: Sequence[SnmpJob]) -> dict[tuple[int, int], WorkflowNode]:
    wanted = {job.master_job_id for job in jobs if job.master_job_id}
    nodes = WorkflowNode.objects.filter(workflow__in=list(workflows), job__in=wanted, is_chain_node=False)
    return {(node.workflow_id, node.job_id): node for node in nodes}


def _node(
    workflow: Workflow, job: SnmpJob, planned: PlannedNode, masters: Mapping[tuple[int, int], WorkflowNode]
) -> WorkflowNode:
    master = masters.get((workflow.pk, job.master_job_id or 0)) if planned.is_chained else None
    if planned.is_chained and master is None:
        raise Overtaken
    return WorkflowNode(
        workflow=workflow,
        job=job,
        interval_seconds=planned.interval_seconds,
        priority=job.priority,
        is_chain_node=planned.is_chained,
        master_node=master,
    )


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
        nodes[job.slug], is_new = _ready_node(workflow, row, nodes.get(job.chain_of or ""), now, seconds)
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
# What installations get under a translated name; rooms above register theirs.
_shipped_names: list[Promise] = [gettext_lazy(name) for name in JOB_NAMES]


def register_names(names: Iterable[Promise]) -> None:
    """Let `ready_name` translate these too; once, at start."""
    _shipped_names.extend(names)


def ready_name(stored: str) -> str:
    """Translate the name of a shipped job or rule, stored in the installation's language; others stay as written."""
    return str(_names_by_stored().get(stored, stored))


@cache
def _names_by_stored() -> dict[str, Promise]:
    found: dict[str, Promise] = {}
    for code, _language in settings.LANGUAGES:
        with translation.override(code):
            found |= {str(name): name for name in _shipped_names}
    return found


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


def _ready_node(
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
