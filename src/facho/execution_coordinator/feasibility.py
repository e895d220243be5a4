"""How long the work of OLTs takes, from past runs; whether it fits into an hour, and what to relax."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from types import MappingProxyType

from django.conf import settings
from django.db.models import Count, Max, Q, QuerySet
from django.db.models.functions import Coalesce
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from facho.execution_coordinator.state import OltRow, TaskRow, load_olts
from facho.executions.models import Execution
from facho.onus.models import Onu, RunStateChoice
from facho.polling.domain.execution_state import ACTIVE, RANK, ExecutionState, QueryType
from facho.polling.domain.feasibility import (
    MINUTES_PER_HOUR,
    RUNS_REMEMBERED,
    Feasibility,
    Going,
    Load,
    Master,
    Member,
    Need,
    PastRun,
    estimate_seconds,
    judge_feasibility,
)
from facho.polling.vendors.definition import Definition, Job, estimate_ports, estimate_read_seconds
from facho.polling.vendors.loader import load_definitions
from facho.polling.vendors.vocabulary import Cost, Scope
from facho.snmp_jobs.application import Work, ready_name
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


# A chain member runs as often as its master.
_PACE = Coalesce("master_node__interval_seconds", "interval_seconds")


def load_lengths(olt_ids: Collection[int] | None = None, *, as_if_enabled: Collection[int] = ()) -> dict[int, Length]:
    """Load the lengths of enabled nodes; one that never ran takes as long as the same job on OLTs of its vendor."""
    enabled = WorkflowNode.objects.filter(Q(enabled=True) | Q(id__in=as_if_enabled)).order_by()
    if olt_ids is not None:
        enabled = enabled.filter(workflow__olt_id__in=list(olt_ids))
    columns = ("id", "workflow__olt_id", "job_id", "workflow__olt__vendor", "job__query_type")
    nodes, sizes = list(enabled.values_list(*columns)), _load_sizes(olt_ids)
    reads = _load_reads({(job_id, vendor) for _node_id, _olt_id, job_id, vendor, _type in nodes})
    runs, peers = defaultdict(list), defaultdict(list)
    for node_id, _job_id, _vendor, run in _last_runs(enabled, RUNS_REMEMBERED):
        runs[node_id].append(run)
    unknown = {job_id for node_id, _olt_id, job_id, _vendor, _type in nodes if node_id not in runs}
    others = WorkflowNode.objects.filter(job_id__in=unknown).order_by()
    for _node_id, job_id, vendor, run in _last_runs(others, 1) if unknown else ():
        peers[job_id, vendor].append(run)
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
    for _node_id, job_id, _vendor, run in _last_runs(nodes, 1):
        runs[slugs[job_id]].append(run)
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


def _last_runs(nodes: QuerySet[WorkflowNode], slots: int) -> Iterator[tuple[int, int, str, PastRun]]:
    """Yield node, job, vendor and run of what ended well in the last slots, counted back from the latest run."""
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
            yield node_id, job_id, vendor, run


@dataclass(frozen=True, slots=True)
class TimedComposite:
    """A master, its chain in order, and how long each of them takes."""

    task: TaskRow
    chain: tuple[TaskRow, ...]
    lengths: Mapping[int, Length]

    @property
    def length(self) -> Length:
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
        """Its place on the grid; what has hours, gives way or reads live columns stays where it is."""
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


# Longer lists are not read; the API has them all.
OLTS_NAMED = 5
RELAXATIONS_NAMED = 3
SECONDS_PER_HOUR = 3_600


@dataclass(frozen=True, slots=True)
class NodeNeed:
    """What a master with its chain needs; without `seconds` it is not known yet and counts as nothing."""

    node_id: int
    name: str
    interval_seconds: int
    seconds: float | None
    minutes_per_hour: float


@dataclass(frozen=True, slots=True)
class OltFeasibility:
    olt_id: int
    olt: str
    needs: tuple[NodeNeed, ...]
    judged: Feasibility

    def name_of(self, node_id: int) -> str:
        """Name a master as lists of its OLT do."""
        return ready_name(next((need.name for need in self.needs if need.node_id == node_id), ""))


@dataclass(frozen=True, slots=True)
class NodeWish:
    """A node as it would be after a change that is being considered."""

    interval_seconds: int
    enabled: bool


def load_feasibility(
    olt_ids: Collection[int] | None = None, wishes: Mapping[int, NodeWish] = MappingProxyType({})
) -> dict[int, OltFeasibility]:
    """Judge all OLTs, or these, as they are set up now; a few queries, however many there are.

    With `wishes`, by node id, they are judged as if those changes were made; nothing is written.
    """
    added = [node_id for node_id, wish in wishes.items() if wish.enabled]
    olts = load_olts(None if olt_ids is None else list(olt_ids), as_if_enabled=added)
    lengths = load_lengths(olt_ids, as_if_enabled=added)
    masters = WorkflowNode.objects.filter(Q(enabled=True) | Q(id__in=added), is_chain_node=False).order_by()
    if olt_ids is not None:
        masters = masters.filter(workflow__olt_id__in=list(olt_ids))
    names = dict(masters.values_list("id", "job__name"))
    found = {}
    for olt in olts.values():
        composites = composites_of(_as_wished(olt, wishes), lengths) if olt.enabled else []
        needs = tuple(
            NodeNeed(
                each.task.node_id,
                names.get(each.task.node_id, each.task.task_type),
                each.task.grid.interval_seconds,
                None if each.length.seconds is None else each.seconds,
                each.as_need.minutes_per_hour,
            )
            for each in composites
        )
        judged = judge_feasibility([each.as_need for each in composites])
        found[olt.olt_id] = OltFeasibility(olt.olt_id, olt.name, needs, judged)
    return found


def _as_wished(olt: OltRow, wishes: Mapping[int, NodeWish]) -> OltRow:
    """Return the OLT with the requested intervals, and without the nodes that would be disabled."""
    gone = {node_id for node_id, wish in wishes.items() if not wish.enabled}
    tasks = []
    for task in olt.tasks:
        wish = wishes.get(task.node_id)
        if task.node_id in gone or task.master_id in gone:
            continue
        grid = replace(task.grid, interval_seconds=wish.interval_seconds) if wish else task.grid
        tasks.append(replace(task, grid=grid))
    return replace(olt, tasks=tuple(tasks)) if wishes else olt


def advise(olt_ids: Collection[int]) -> list[str]:
    """Describe which of these OLTs have more work than an hour holds, and whether all OLTs need more pollers."""
    everything = load_feasibility()
    chosen = [everything[olt_id] for olt_id in olt_ids if olt_id in everything]
    too_much = [found for found in chosen if not found.judged.fits]
    if not chosen:
        return []
    advice = [" ".join(words_of(found)) for found in too_much[:OLTS_NAMED]]
    more = len(too_much) - len(advice)
    if more:
        advice.append(ngettext("And %(n)s more OLT.", "And %(n)s more OLTs.", more) % {"n": more})
    minutes = sum(found.judged.minutes_per_hour for found in everything.values())
    pollers = settings.FACHO_POLLERS
    if minutes > pollers * MINUTES_PER_HOUR:
        words = {
            "minutes": _rounded(minutes),
            "pollers": pollers,
            "capacity": _rounded(pollers * MINUTES_PER_HOUR),
        }
        text = _(
            "All OLTs together need %(minutes)s min of SNMP per hour, and %(pollers)s pollers have %(capacity)s:"
            " set FACHO_POLLERS to more, or read less often."
        )
        advice.append(text % words)
    return advice


def load_work(olt_ids: Collection[int]) -> dict[int, Work]:
    """Sum up the work of these OLTs, for pages of rooms below."""
    return {
        olt_id: Work(
            found.judged.minutes_per_hour,
            sum(need.seconds is None for need in found.needs),
            found.judged.fits,
            () if found.judged.fits else tuple(words_of(found)),
        )
        for olt_id, found in load_feasibility(olt_ids).items()
    }


def words_of(found: OltFeasibility) -> Iterator[str]:
    """Describe how much work an OLT has and, when it does not fit, why not and what to relax."""
    judged = found.judged
    yield _("%(olt)s needs %(minutes)s min of SNMP per hour.") % {
        "olt": found.olt,
        "minutes": _rounded(judged.minutes_per_hour),
    }
    for blocked in judged.blocked[:1]:
        yield _('"%(longer)s" takes %(length)s at a time, longer than the interval of "%(shorter)s".') % {
            "longer": found.name_of(blocked.by_node_id),
            "length": _length(round(blocked.seconds)),
            "shorter": found.name_of(blocked.node_id),
        }
    if judged.relaxations:
        named = judged.relaxations if judged.are_needed_together else judged.relaxations[:RELAXATIONS_NAMED]
        changes = "; ".join(
            _("%(node)s every %(after)s instead of %(before)s saves %(minutes)s min")
            % {
                "node": found.name_of(relaxation.node_id),
                "after": _length(relaxation.interval_seconds),
                "before": _length(relaxation.interval_before_seconds),
                "minutes": _rounded(relaxation.saves_minutes_per_hour),
            }
            for relaxation in named
        )
        if judged.are_needed_together:
            yield _("What would make it fit, together: %(changes)s.") % {"changes": changes}
        else:
            yield _("What would make it fit: %(changes)s.") % {"changes": changes}


def _length(seconds: int) -> str:
    """Write a length in the largest unit that it is a whole number of."""
    if seconds % 3_600 == 0:
        return _("%(n)s h") % {"n": seconds // 3_600}
    return _("%(n)s min") % {"n": seconds // 60} if seconds % 60 == 0 else _("%(n)s s") % {"n": seconds}


def _rounded(minutes: float) -> str:
    return f"{minutes:.0f}" if minutes >= 10 else f"{minutes:.1f}".removesuffix(".0")


@dataclass(frozen=True, slots=True)
class OltSize:
    """What the cost of a read depends on."""

    onus: int
    round_trip_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class JobCost:
    """One run of a job: how long it takes, as measured on OLTs of the same vendor or else estimated."""

    slug: str
    seconds: float
    is_measured: bool
    ports: int = 1

    def seconds_per_hour(self, interval_seconds: int) -> float:
        return self.seconds * SECONDS_PER_HOUR / interval_seconds


def load_job_costs(definition: Definition, size: OltSize) -> dict[str, JobCost]:
    """Return the cost of each ready-made job, by its slug; a few queries."""
    measured, costs = load_peer_runs(definition.key), {}
    for job in definition.jobs:
        columns = [definition.column(key) for key in job.columns or definition.identity_columns()]
        reads_onus = any(column.index.scope is Scope.ONU for column in columns)
        seconds = estimate_seconds(measured.get(job.slug, []), onus=size.onus if reads_onus else None)
        is_measured = seconds is not None
        if seconds is None:
            trip = size.round_trip_seconds
            seconds = estimate_read_seconds(definition, job.columns, onus=size.onus, round_trip_seconds=trip)
        ports = estimate_ports(size.onus) if is_live(definition, job) else 1
        costs[job.slug] = JobCost(job.slug, seconds, is_measured=is_measured, ports=ports)
    return costs


def judge_choice(
    name: str, definition: Definition, intervals: Mapping[str, int], costs: Mapping[str, JobCost]
) -> OltFeasibility:
    """Add up the chosen jobs, given with their intervals, and judge them as an OLT's feasibility is judged."""
    masters = [job for job in definition.jobs if job.slug in intervals and job.chain_of is None]
    needs = []
    for number, master in enumerate(masters):
        own = costs[master.slug]
        chain = sum(costs[job.slug].seconds for job in members_of(definition, master.slug) if job.slug in intervals)
        holds = own.seconds + chain
        if own.ports > 1:
            holds = max(min(own.seconds, settings.FACHO_YIELD_SECONDS + own.seconds / own.ports), chain)
        needs.append(Need(number, intervals[master.slug], own.seconds + chain, holds))
    named = tuple(
        NodeNeed(need.node_id, ready_name(job.name), need.interval_seconds, need.seconds, need.minutes_per_hour)
        for need, job in zip(needs, masters, strict=True)
    )
    return OltFeasibility(0, name, named, judge_feasibility(needs))


def members_of(definition: Definition, master: str) -> list[Job]:
    return [job for job in definition.jobs if job.chain_of == master]


def safe_minimum_seconds(definition: Definition, jobs: Collection[Job]) -> int:
    """Return how often these jobs may be read together at most."""
    keys = [key for job in jobs for key in job.columns or definition.identity_columns()]
    return definition.safe_interval_seconds(keys)


def is_live(definition: Definition, job: Job) -> bool:
    """Return whether the OLT has to ask its ONUs for what a job reads."""
    return any(definition.column(key).cost is Cost.LIVE for key in job.columns)
