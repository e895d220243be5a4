"""Loads how long runs take: the middle of a node's last runs, scaled to the ONUs that its OLT has now."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta

from django.db.models import Count, Max, Q, QuerySet
from django.db.models.functions import Coalesce

from facho.executions.models import Execution
from facho.onus.models import Onu, RunState
from facho.polling.domain.execution_state import ExecutionState
from facho.polling.domain.run_length import RUNS_REMEMBERED, PastRun, estimate_seconds
from facho.polling.domain.task_type import QueryType
from facho.polling.vendors.loader import load_definitions
from facho.polling.vendors.vocabulary import Cost, Scope
from facho.snmp_jobs.models import SnmpJobOid, WorkflowNode


@dataclass(frozen=True, slots=True)
class Length:
    """How long a node's run takes, None when nobody knows; a long read may give way between its PON ports."""

    seconds: float | None = None
    ports: int = 1


@dataclass(frozen=True, slots=True)
class _Node:
    node_id: int
    olt_id: int
    job_id: int
    vendor: str
    query_type: QueryType


@dataclass(frozen=True, slots=True)
class _Size:
    present: int = 0
    online: int = 0
    ports: int = 0


@dataclass(frozen=True, slots=True)
class _Reads:
    """What a job reads of a vendor's OLT: whether its rows are ONUs, and whether the OLT asks each of them."""

    of_onus: bool = False
    is_live: bool = False


@dataclass(frozen=True, slots=True)
class _Row:
    node_id: int
    job_id: int
    vendor: str
    run: PastRun


# A chain member runs as often as its master.
_PACE = Coalesce("master_node__interval_seconds", "interval_seconds")


def load_lengths(olt_ids: Collection[int] | None = None) -> dict[int, Length]:
    """Load the lengths of all enabled nodes, or of those of these OLTs; a few queries, however many there are.

    A node that never ran takes as long as the same job on other OLTs of its vendor.
    """
    enabled = WorkflowNode.objects.filter(enabled=True).order_by()
    if olt_ids is not None:
        enabled = enabled.filter(workflow__olt_id__in=list(olt_ids))
    nodes, sizes = _load_nodes(enabled), _load_sizes(olt_ids)
    columns = _load_columns({node.job_id for node in nodes})
    runs = _load_runs(enabled)
    peers = _load_peers([node for node in nodes if node.node_id not in runs])
    lengths = {}
    for node in nodes:
        reads, size = _judge_reads(node.vendor, columns.get(node.job_id, [])), sizes.get(node.olt_id, _Size())
        known = runs.get(node.node_id) or peers.get((node.job_id, node.vendor), [])
        seconds = estimate_seconds(known, onus=_onus(reads, size))
        may_yield = reads.is_live and node.query_type is QueryType.GET
        lengths[node.node_id] = Length(seconds, max(size.ports, 1) if may_yield else 1)
    return lengths


def load_peer_runs(vendor: str) -> Mapping[str, list[PastRun]]:
    """Load the last runs that OLTs of a vendor had of its ready-made jobs, by the job's slug."""
    runs = defaultdict(list)
    nodes = WorkflowNode.objects.filter(job__vendor=vendor, workflow__olt__vendor=vendor).order_by()
    slugs = dict(nodes.values_list("job_id", "job__slug"))
    for row in _last_runs(nodes, 1):
        runs[slugs[row.job_id]].append(row.run)
    return runs


def _onus(reads: _Reads, size: _Size) -> int | None:
    """Return how many ONUs a run would read now; live values are asked of those that are online."""
    if not reads.of_onus:
        return None
    return size.online if reads.is_live else size.present


def _load_nodes(nodes: QuerySet[WorkflowNode]) -> list[_Node]:
    rows = nodes.values_list("id", "workflow__olt_id", "job_id", "workflow__olt__vendor", "job__query_type")
    return [_Node(node, olt, job, vendor, QueryType(query_type)) for node, olt, job, vendor, query_type in rows]


def _load_sizes(olt_ids: Collection[int] | None) -> dict[int, _Size]:
    present = Onu.objects.filter(is_present=True).order_by()
    if olt_ids is not None:
        present = present.filter(olt_id__in=list(olt_ids))
    counted = present.values("olt_id").annotate(
        present=Count("id"),
        online=Count("id", filter=Q(reading__run_state=RunState.ONLINE)),
        ports=Count("pon_port", distinct=True),
    )
    rows = counted.values_list("olt_id", "present", "online", "ports")
    return {olt_id: _Size(present, online, ports) for olt_id, present, online, ports in rows}


def _load_columns(job_ids: Collection[int]) -> dict[int, list[str]]:
    columns = defaultdict(list)
    rows = SnmpJobOid.objects.filter(job_id__in=job_ids).exclude(column_key="").order_by()
    for job_id, key in rows.values_list("job_id", "column_key"):
        columns[job_id].append(key)
    return columns


def _judge_reads(vendor: str, keys: Iterable[str]) -> _Reads:
    definition = load_definitions().get(vendor)
    columns = [definition.column(key) for key in keys if definition and definition.has_column(key)]
    return _Reads(
        any(column.index.scope is Scope.ONU for column in columns), any(column.cost is Cost.LIVE for column in columns)
    )


def _load_runs(nodes: QuerySet[WorkflowNode]) -> Mapping[int, list[PastRun]]:
    runs = defaultdict(list)
    for row in _last_runs(nodes, RUNS_REMEMBERED):
        runs[row.node_id].append(row.run)
    return runs


def _load_peers(unknown: Collection[_Node]) -> Mapping[tuple[int, str], list[PastRun]]:
    """Load the last runs that other OLTs had of the jobs of these nodes."""
    peers = defaultdict(list)
    nodes = WorkflowNode.objects.filter(job_id__in={node.job_id for node in unknown}).order_by()
    for row in _last_runs(nodes, 1) if unknown else ():
        peers[row.job_id, row.vendor].append(row.run)
    return peers


def _last_runs(nodes: QuerySet[WorkflowNode], slots: int) -> Iterator[_Row]:
    """Yield what ended well of the last so many slots of these nodes; a query for each interval in use.

    They are counted back from the latest run, not from now: nothing is forgotten while nobody polls. An OLT that was
    away for longer has none, as if it were new.
    """
    paces = nodes.annotate(pace=_PACE).values("pace").annotate(latest=Max("last_run_at"))
    for pace, latest in paces.values_list("pace", "latest"):
        if latest is None:
            continue
        rows = Execution.objects.filter(
            node__in=nodes.annotate(pace=_PACE).filter(pace=pace),
            status=ExecutionState.SUCCESS,
            created_at__gte=latest - timedelta(seconds=slots * pace),
        ).order_by()
        columns = ("node_id", "node__job_id", "node__workflow__olt__vendor", "duration_ms", "result__onus")
        for node_id, job_id, vendor, duration_ms, onus in rows.values_list(*columns).iterator():
            run = PastRun(duration_ms / 1000, onus if isinstance(onus, int) else 0)
            yield _Row(node_id, job_id, vendor, run)
