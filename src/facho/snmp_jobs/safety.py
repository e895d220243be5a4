"""Keeps jobs from reading OLTs more often than their vendor definitions call safe, unless an operator allows it.

Asked before a job or a node is saved, by whatever saves it; what was allowed knowingly then simply runs.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

from django.core.exceptions import ValidationError
from django.db.models import OuterRef, Subquery
from django.utils.translation import gettext as _

from facho.polling.vendors.column import Column
from facho.polling.vendors.definition import Definition, oid_of
from facho.polling.vendors.loader import load_definitions
from facho.polling.vendors.vocabulary import Cost
from facho.snmp_jobs.models import SnmpJob, WorkflowNode


@dataclass(frozen=True, slots=True)
class Limit:
    """The shortest safe interval, and the column that asks for it."""

    minimum_seconds: int
    column: str


@dataclass(frozen=True, slots=True)
class Pace:
    """How often something is read of a vendor's devices (empty: of any vendor's); `olt` names a running node's."""

    interval_seconds: int
    vendor: str
    olt: str = ""


def find_limit(vendor: str, reads: Iterable[str]) -> Limit | None:
    """Return the limit of the dearest among columns and OIDs; without a vendor that of the most delicate family."""
    limits = (
        Limit(definition.safe_interval_seconds([column.key]), column.key)
        for definition, column in _columns(vendor, reads)
    )
    return max(limits, key=lambda limit: limit.minimum_seconds, default=None)


def find_live(vendor: str, reads: Iterable[str]) -> str | None:
    """Return the first column that an OLT has to ask its ONUs for."""
    return next((column.key for _family, column in _columns(vendor, reads) if column.cost is Cost.LIVE), None)


def find_live_below(vendor: str, oid: str) -> str | None:
    """Return the first such column that is below an OID, and is not at or above it."""
    length = len(oid_of(oid))
    columns = (column for _family, column in _columns(vendor, [oid] if length else []))
    return next((column.key for column in columns if column.cost is Cost.LIVE and len(column.oid) > length), None)


def check_job(job: SnmpJob, reads: Sequence[str]) -> None:
    """Raise ValidationError when the job, its nodes or what is chained to it would hurt an OLT by these reads."""
    suggested = job.master_job.interval_seconds if job.master_job else job.interval_seconds
    _check_stands_alone(job, job.vendor, reads)
    problems = _problems(job, reads, [Pace(suggested, job.vendor), *_node_paces(job)])
    chained_to = list(job.chain_jobs.prefetch_related("oids")) if job.pk else []
    for member in chained_to:
        problems += _problems(member, reads_of(member), [Pace(suggested, member.vendor), *_node_paces(member)])
    if problems:
        raise ValidationError(problems)


def check_node(node: WorkflowNode) -> None:
    """Raise ValidationError when the node, with what is chained to it, would hurt its OLT."""
    vendor = node.workflow.olt.vendor
    interval = node.master_node.interval_seconds if node.master_node else node.interval_seconds
    if node.master_node:
        _check_stands_alone(node.job, vendor or node.job.vendor, reads_of(node.job))
    problems = []
    for job in (node.job, *_chained_on(node)):
        problems += _problems(job, reads_of(job), [Pace(interval, vendor or job.vendor)])
    if problems:
        raise ValidationError(problems)


def check_change(node: WorkflowNode, values: Mapping[str, Any]) -> None:
    """Raise ValidationError when the node, enabled and with these values, would hurt its OLT."""
    changed = copy(node)
    for name, value in values.items():
        setattr(changed, name, value)
    if changed.enabled:
        check_node(changed)


def reads_of(job: SnmpJob) -> list[str]:
    """Return what a stored job reads: keys of columns, and OIDs of the operator's own."""
    return [read.column_key or read.oid for read in job.oids.all()]


def _problems(job: SnmpJob, reads: Sequence[str], paces: Iterable[Pace]) -> list[ValidationError]:
    limits = [] if job.ignores_safe_interval else [(pace, find_limit(pace.vendor, reads)) for pace in paces]
    return [_problem(pace, limit) for pace, limit in limits if limit and pace.interval_seconds < limit.minimum_seconds]


def _problem(pace: Pace, limit: Limit) -> ValidationError:
    words = {
        "column": limit.column,
        "minimum": limit.minimum_seconds,
        "interval": pace.interval_seconds,
        "olt": pace.olt,
    }
    sentence = _(
        "%(column)s must not be read more often than every %(minimum)s s, and this would be every %(interval)s s."
        " Choose a longer interval, or allow it on the job."
    )
    if pace.olt:
        sentence = _(
            "%(column)s must not be read more often than every %(minimum)s s, and OLT %(olt)s has it every"
            " %(interval)s s. Choose a longer interval there, or allow it on the job."
        )
    return ValidationError(sentence, code="interval_not_safe", params=words)


def _check_stands_alone(job: SnmpJob, vendor: str, reads: Sequence[str]) -> None:
    """Refuse a chained job that waits for each ONU: it would hold up its chain, and cannot give way in the middle."""
    live = find_live(vendor, reads) if job.master_job_id else None
    if live:
        raise ValidationError(
            _("%(column)s is queried from each ONU and takes long: put it in a job of its own, not in a chain."),
            code="live_job_chained",
            params={"column": live},
        )


def _columns(vendor: str, reads: Iterable[str]) -> Iterator[tuple[Definition, Column]]:
    known = load_definitions()
    families = [known[vendor]] if vendor in known else [] if vendor else list(known.values())
    for definition in families:
        for read in reads:
            # A column by its key, or by an OID in it or above it.
            is_key = definition.has_column(read)
            found = [definition.column(read)] if is_key else definition.columns_at(oid_of(read))
            yield from ((definition, column) for column in found)


def _chained_on(node: WorkflowNode) -> list[SnmpJob]:
    if not node.pk:
        return []
    members = node.chain_nodes.filter(enabled=True).select_related("job").prefetch_related("job__oids")
    return [member.job for member in members]


def _node_paces(job: SnmpJob) -> list[Pace]:
    """Return how often the job will run where it is: with the master that it is given, where that is too."""
    if not job.pk:
        return []
    masters = WorkflowNode.objects.filter(
        workflow=OuterRef("workflow"), job_id=job.master_job_id, is_chain_node=False
    ).values("interval_seconds")
    nodes = WorkflowNode.objects.filter(job=job, enabled=True).order_by("workflow__olt__name")
    rows = nodes.values_list("interval_seconds", Subquery(masters[:1]), "workflow__olt__vendor", "workflow__olt__name")
    return [Pace(of_master or own, vendor or job.vendor, olt) for own, of_master, vendor, olt in rows]
