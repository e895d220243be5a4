"""Puts an OLT's work into the values that prediction, packing and feasibility take."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Count, Max, Q, QuerySet
from django.db.models.functions import Coalesce

from facho.execution_coordinator.state import OltRow, TaskRow
from facho.executions.models import Execution
from facho.onus.models import Onu, RunStateChoice
from facho.polling.domain.execution_state import ACTIVE, RANK, ExecutionState, QueryType
from facho.polling.domain.feasibility import Need
from facho.polling.domain.packing import Load
from facho.polling.domain.prediction import RUNS_REMEMBERED, Going, Master, Member, PastRun, estimate_seconds
from facho.polling.vendors.loader import load_definitions
from facho.polling.vendors.vocabulary import Cost
from facho.snmp_jobs.models import SnmpJobOid, WorkflowNode


@dataclass(frozen=True, slots=True)
class Length:
    """How long a node's run takes, None if unknown; a long read may give way between its PON ports."""

    seconds: float | None = None
    ports: int = 1


_UNKNOWN = Length()


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
    columns = ("id", "workflow__olt_id", "job_id", "workflow__olt__vendor", "job__query_type")
    nodes, sizes = list(enabled.values_list(*columns)), _load_sizes(olt_ids)
    reads = _load_reads({(job_id, vendor) for _node_id, _olt_id, job_id, vendor, _type in nodes})
    runs, peers = defaultdict(list), defaultdict(list)
    for row in _last_runs(enabled, RUNS_REMEMBERED):
        runs[row.node_id].append(row.run)
    unknown = {job_id for node_id, _olt_id, job_id, _vendor, _type in nodes if node_id not in runs}
    for row in _last_runs(WorkflowNode.objects.filter(job_id__in=unknown).order_by(), 1) if unknown else ():
        peers[row.job_id, row.vendor].append(row.run)
    lengths = {}
    for node_id, olt_id, job_id, vendor, query_type in nodes:
        read, size = reads[job_id, vendor], sizes.get(olt_id, _Size())
        # Live values are asked of ONUs that are online.
        onus = (size.online if read.is_live else size.present) if read.of_onus else None
        seconds = estimate_seconds(runs.get(node_id) or peers.get((job_id, vendor), []), onus=onus)
        may_yield = read.is_live and query_type == QueryType.GET
        lengths[node_id] = Length(seconds, max(size.ports, 1) if may_yield else 1)
    return lengths


def load_peer_runs(vendor: str) -> Mapping[str, list[PastRun]]:
    """Load the last runs that OLTs of a vendor had of its ready-made jobs, by the job's slug."""
    runs = defaultdict(list)
    nodes = WorkflowNode.objects.filter(job__vendor=vendor, workflow__olt__vendor=vendor).order_by()
    slugs = dict(nodes.values_list("job_id", "job__slug"))
    for row in _last_runs(nodes, 1):
        runs[slugs[row.job_id]].append(row.run)
    return runs


def _load_sizes(olt_ids: Collection[int] | None) -> dict[int, _Size]:
    present = Onu.objects.filter(is_present=True).order_by()
    if olt_ids is not None:
        present = present.filter(olt_id__in=list(olt_ids))
    counted = present.values("olt_id").annotate(
        present=Count("id"),
        online=Count("id", filter=Q(reading__run_state=RunStateChoice.ONLINE)),
        ports=Count("pon_port", distinct=True),
    )
    rows = counted.values_list("olt_id", "present", "online", "ports")
    return {olt_id: _Size(present, online, ports) for olt_id, present, online, ports in rows}


def _load_reads(jobs: Collection[tuple[int, str]]) -> dict[tuple[int, str], _Reads]:
    """Load what each job reads of OLTs of a vendor."""
    columns, reads = defaultdict(list), {}
    rows = SnmpJobOid.objects.filter(job_id__in={job_id for job_id, _vendor in jobs}).exclude(column_key="").order_by()
    for job_id, key in rows.values_list("job_id", "column_key"):
        columns[job_id].append(key)
    for job_id, vendor in jobs:
        keys, definition = columns[job_id], load_definitions().get(vendor)
        if definition is None:
            reads[job_id, vendor] = _Reads()
            continue
        known = [definition.column(key) for key in keys if definition.has_column(key)]
        is_live = any(column.cost is Cost.LIVE for column in known)
        reads[job_id, vendor] = _Reads(definition.reads_onus(keys), is_live)
    return reads


def _last_runs(nodes: QuerySet[WorkflowNode], slots: int) -> Iterator[_Row]:
    """Yield what ended well of the last so many slots of these nodes; a query for each interval in use.

    They are counted back from the latest run and not from now, so nothing is forgotten while polling is stopped. An
    OLT that was away for longer has none, as if it were new.
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
            run = PastRun(duration_ms / 1000, onus if isinstance(onus, int) else None)
            yield _Row(node_id, job_id, vendor, run)


@dataclass(frozen=True, slots=True)
class TimedComposite:
    """A master, its chain in order, and how long each of them takes."""

    task: TaskRow
    chain: tuple[TaskRow, ...]
    lengths: Mapping[int, Length]

    @property
    def length(self) -> Length:
        """How long the master alone takes."""
        return self.lengths.get(self.task.node_id, _UNKNOWN)

    @property
    def seconds(self) -> float:
        """How long the known runs of master and chain take."""
        return sum(self.lengths.get(task.node_id, _UNKNOWN).seconds or 0.0 for task in (self.task, *self.chain))

    @property
    def holds_seconds(self) -> float:
        """For how long it keeps others waiting at most; a long read gives way at a port's border."""
        own, ports = self.length.seconds or 0.0, self.length.ports
        if ports == 1:
            return self.seconds
        return max(min(own, settings.FACHO_YIELD_SECONDS + own / ports), self.seconds - own)

    @property
    def as_need(self) -> Need:
        return Need(self.task.node_id, self.task.grid.interval_seconds, self.seconds, self.holds_seconds)

    @property
    def as_load(self) -> Load:
        """Its place on the grid; what has hours or gives way stays where it is.

        A long read is of live columns, which devices bear no more often than its interval says: it never moves closer.
        """
        grid = self.task.grid
        is_movable = grid.window is None and self.length.ports == 1
        return Load(
            self.task.node_id, grid.interval_seconds, grid.offset_seconds, self.holds_seconds, is_movable=is_movable
        )

    def as_master(self, next_run_at: datetime) -> Master:
        task = self.task
        return Master(
            node_id=task.node_id,
            grid=task.grid,
            next_run_at=next_run_at,
            rank=RANK[QueryType(task.task_type.partition("_")[0])],
            priority=task.priority,
            seconds=self.length.seconds,
            members=tuple(Member(t.node_id, self.lengths.get(t.node_id, _UNKNOWN).seconds) for t in self.chain),
            ports=self.length.ports,
        )


def composites_of(olt: OltRow, lengths: Mapping[int, Length]) -> list[TimedComposite]:
    """Group an OLT's tasks into masters with their chains; a suspended member is passed over."""
    chains = defaultdict(list)
    for task in sorted(olt.tasks, key=lambda task: task.place):
        if task.master_id is not None and task.suspended_at is None:
            chains[task.master_id].append(task)
    return [TimedComposite(task, tuple(chains[task.node_id]), lengths) for task in olt.tasks if task.master_id is None]


def masters_of(composites: Iterable[TimedComposite]) -> list[Master]:
    """Return those that will run: a suspended master does not, nor one that never got a time or awaits a discovery."""
    return [
        composite.as_master(composite.task.next_run_at)
        for composite in composites
        if composite.task.next_run_at is not None
        and composite.task.suspended_at is None
        and composite.task.first_discovery is None
    ]


def load_going(olt_ids: Collection[int], masters: Mapping[int, Master]) -> dict[int, list[Going]]:
    """Load what is not over on these OLTs, of these masters by their node; in one query."""
    going = defaultdict(list)
    rows = Execution.objects.filter(finished_at__isnull=True, olt_id__in=olt_ids).select_related("master_execution")
    columns = ("olt_id", "node_id", "slot_at", "status", "attempt", "duration_ms", "failure_kind", "resume_at")
    times = ("created_at", "started_at", "master_execution__node_id", "master_execution__created_at")
    for row in rows.only(*columns, *times).order_by():
        first = row.master_execution or row
        master, held_since = masters.get(first.node_id or 0), row.started_at or row.created_at
        is_retry = row.status not in ACTIVE and bool(row.failure_kind)
        # The time of failed tries says nothing about how far the run has come.
        done_seconds = 0.0 if row.attempt > 1 or is_retry else row.duration_ms / 1000
        seconds, ports_done = 0.0, 0
        if master is not None:
            following = [member.node_id for member in master.members]
            seconds = master.composite_seconds
            if row.node_id in following:
                rest = master.members[following.index(row.node_id) :]
                seconds = sum(member.seconds or 0.0 for member in rest)
            if master.seconds:
                ports_done = min(round(done_seconds * master.ports / master.seconds), master.ports - 1)
        going[row.olt_id].append(
            Going(
                node_id=first.node_id or 0,
                slot_at=first.slot_at,
                starts_at=first.created_at,
                seconds_left=max(seconds - done_seconds, 0.0),
                resume_at=row.resume_at or held_since,
                held_since=held_since if row.status in ACTIVE else None,
                ports_done=ports_done,
                is_retry=is_retry,
            )
        )
    return going
