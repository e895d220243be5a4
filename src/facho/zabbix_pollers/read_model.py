"""What pollers and queue look like now, computed from rows alone, so that every process gives the same answer.

Below: the pollers' figures minute by minute, for a look back, and the sums of runs that ended.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import (
    Avg,
    Case,
    Count,
    F,
    FloatField,
    Func,
    IntegerField,
    Max,
    Min,
    OuterRef,
    Q,
    Subquery,
    Sum,
    When,
)
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast
from django.db.models.sql.compiler import SQLCompiler

from facho.accounts.scope import EVERYTHING, OltScope
from facho.executions.models import Execution
from facho.executions.store import load_unfinished
from facho.polling.domain.execution_state import ExecutionState
from facho.polling.domain.planning import (
    DueNode,
    NodeQueue,
    WaitReason,
    choose_candidates,
    is_saturated,
    lateness_histogram,
    order_between_olts,
    plan_groups,
)
from facho.snmp_jobs.due import load_due_nodes
from facho.snmp_jobs.models import WorkflowNode
from facho.zabbix_pollers.activity import (
    active_executions,
    load_busy_percentages,
    load_is_polling,
    load_was_saturated,
    our_shards,
)
from facho.zabbix_pollers.composite_node import CompositeNode, Step
from facho.zabbix_pollers.models import Poller, PollerStats, PollerStatus
from facho.zabbix_pollers.store import load_free_pollers


@dataclass(frozen=True, slots=True)
class Queue:
    """Every node that may start or continue: `due` as pollers take them, `retries` in the order of their time."""

    due: tuple[DueNode, ...]
    reasons: Mapping[int, WaitReason]
    retries: tuple[DueNode, ...]


@dataclass(frozen=True, slots=True)
class QueueState:
    """The length of the queue, how late its nodes are, its first ones, and the retries that are not due yet."""

    size: int
    is_overload: bool
    # An overload that more pollers would not end.
    is_held_by_silence: bool
    # Seconds, and how many nodes are at least that late.
    lateness: Mapping[int, int]
    next_nodes: tuple[CompositeNode, ...]
    retries: tuple[CompositeNode, ...]


def load_queue(now: datetime, *, count: int = 10, scope: OltScope = EVERYTHING) -> QueueState:
    """Look at the queue without disturbing it; six queries, however long it is. Only OLTs in scope are named."""
    candidates = load_candidates(now)
    queue = NodeQueue(candidates.due)
    seen = scope.visible(node.olt_id for node in (*candidates.due, *candidates.retries))
    first = NodeQueue(node for node in candidates.due if node.olt_id in seen).peek(count, now=now)
    retries = [node for node in candidates.retries if node.olt_id in seen][:count]
    shown = _load_composites([*first, *retries], candidates.reasons, now)
    return QueueState(
        size=queue.qsize(),
        is_overload=queue.is_overload(now=now),
        is_held_by_silence=queue.is_held_by_silence(now=now),
        lateness=lateness_histogram(node.delay(now) for node in candidates.due),
        next_nodes=tuple(shown[node.node_id] for node in first if node.node_id in shown),
        retries=tuple(shown[node.node_id] for node in retries if node.node_id in shown),
    )


def load_candidates(now: datetime) -> Queue:
    """Load every waiting node and its reason, as a tick at this moment would find them; three queries."""
    unfinished = load_unfinished(now)
    running = {run.node_id for run in unfinished.active}
    idle = [node for node in load_due_nodes(now) if node.node_id not in running]
    chosen = choose_candidates(idle, unfinished.waiting, now)
    due = order_between_olts(chosen.ready, now)
    free = load_free_pollers(unfinished.busy_pollers)
    busy, reasons = unfinished.busy_olts, dict[int, WaitReason]()
    for shard in our_shards():
        own = (node for node in due if shard.holds(node.olt_id))
        plan = plan_groups(own, free_pollers=shard.share(free), busy_olts=busy, now=now)
        reasons |= {node.node_id: reason for node, reason in plan.waiting}
    return Queue(tuple(due), reasons, chosen.later)


def _load_composites(
    nodes: Sequence[DueNode], reasons: Mapping[int, WaitReason], now: datetime
) -> dict[int, CompositeNode]:
    """Describe nodes for people, by their ids; three queries, and none of a node that was deleted meanwhile."""
    if not nodes:
        return {}
    due = {node.node_id: node for node in nodes}
    ended = Execution.objects.filter(node=OuterRef("id"), master_execution__isnull=True, finished_at__isnull=False)
    last = Subquery(ended.order_by("-created_at", "-id").values("id")[:1])
    names = {"name": F("job__name"), "olt": F("workflow__olt__name")}
    times = {"nextcheck": F("next_run_at"), "lastcheck": F("last_run_at")}
    found = WorkflowNode.objects.filter(id__in=due).values("enabled", node_id=F("id"), last=last, **names, **times)
    rows: list[Any] = list(found)
    chains = load_chains(due)
    # Sum the time of each master's run and of the chain that followed it.
    execution_ids = [row["last"] for row in rows if row["last"] is not None]
    milliseconds: dict[int, int] = defaultdict(int)
    if execution_ids:
        runs = Execution.objects.filter(Q(id__in=execution_ids) | Q(master_execution_id__in=execution_ids)).order_by()
        for run_id, master_id, duration_ms in runs.values_list("id", "master_execution_id", "duration_ms"):
            milliseconds[master_id or run_id] += duration_ms
    composites = {}
    for row in rows:
        node_id, last_id = row.pop("node_id"), row.pop("last")
        took = milliseconds[last_id] / 1000 if last_id in milliseconds else None
        reason, chain = reasons.get(node_id), tuple(chains[node_id])
        composites[node_id] = CompositeNode(due[node_id], now, reason, **row, execution_time=took, chain_nodes=chain)
    return composites


def load_chains(master_ids: Collection[int]) -> dict[int | None, list[Step]]:
    """Load the enabled members of each master's chain, in their order."""
    chains: dict[int | None, list[Step]] = defaultdict(list)
    members = WorkflowNode.objects.filter(master_node_id__in=master_ids, enabled=True).order_by("priority", "id")
    for master_id, node_id, name in members.values_list("master_node_id", "id", "job__name"):
        chains[master_id].append(Step(node_id, name))
    return chains


@dataclass(frozen=True, slots=True)
class Composite:
    """A master and its chain under one poller: what ran, what runs, what is still to come."""

    olt_id: int
    olt: str
    master_execution_id: int
    current_execution_id: int
    current_node_id: int | None
    current_node_name: str
    # As its execution has it: the master's is 0.
    chain_position: int
    # Of the present slice: a run that waited in between held nothing meanwhile.
    held_since: datetime
    steps: tuple[Step, ...]

    @property
    def step_number(self) -> int:
        """Which of the steps runs, as people count: the master is the first."""
        ids = [step.execution_id for step in self.steps]
        return ids.index(self.current_execution_id) + 1

    @property
    def execution_ids(self) -> tuple[int, ...]:
        """The executions of the composite so far, in the order in which they ran."""
        return tuple(step.execution_id for step in self.steps if step.execution_id is not None)


@dataclass(frozen=True, slots=True)
class PollerView:
    """A poller as its active execution proves it; a run out of scope has no composite, but its time counts."""

    poller_id: int
    group: str
    busy_percentage: float
    tasks_completed: int
    tasks_delayed: int
    composite: Composite | None
    elapsed_seconds: float | None

    @property
    def status(self) -> PollerStatus:
        """BUSY from the claim of the master to the end of the last chain member."""
        return PollerStatus.FREE if self.elapsed_seconds is None else PollerStatus.BUSY


@dataclass(frozen=True, slots=True)
class GroupStats:
    """The pollers of one group together; the default group has the empty name."""

    group: str
    total_pollers: int
    busy_pollers: int
    busy_percentage: float

    @property
    def is_saturated(self) -> bool:
        """Whether its OLTs wait for want of pollers, however idle those of other groups are."""
        return is_saturated(self.busy_percentage, was_saturated=False)


@dataclass(frozen=True, slots=True)
class GlobalStats:
    """All pollers together; saturation has a memory, so that it does not flicker around its bound."""

    total_pollers: int
    busy_pollers: int
    busy_percentage: float
    queue_size: int
    is_overload: bool
    is_saturated: bool
    is_polling: bool
    # Seconds, and how many waiting nodes are at least that late.
    lateness: Mapping[int, int]
    total_tasks_completed: int
    total_tasks_delayed: int
    groups: tuple[GroupStats, ...]

    @property
    def free_pollers(self) -> int:
        return self.total_pollers - self.busy_pollers


@dataclass(frozen=True, slots=True)
class Overview:
    pollers: tuple[PollerView, ...]
    queue: QueueState
    global_stats: GlobalStats


def load_overview(now: datetime, *, queue_count: int = 0, scope: OltScope = EVERYTHING) -> Overview:
    """Load everything about pollers and the first nodes of the queue; OLTs out of scope are counted, but not named."""
    pollers = load_pollers(now)
    seen = scope.visible(poller.composite.olt_id for poller in pollers if poller.composite)
    pollers = [
        replace(poller, composite=None) if poller.composite and poller.composite.olt_id not in seen else poller
        for poller in pollers
    ]
    queue = load_queue(now, count=queue_count, scope=scope)
    stats = _summarise(pollers, queue, was_saturated=load_was_saturated(), is_polling=load_is_polling(now))
    return Overview(tuple(pollers), queue, stats)


def load_pollers(now: datetime) -> list[PollerView]:
    """Load every poller with the composite it runs; five queries, however many pollers there are."""
    composites = load_composites()
    busy = load_busy_percentages(now)
    rows = Poller.objects.only("poller_id", "group", "tasks_completed", "tasks_delayed")
    pollers = []
    for row in rows:
        composite = composites.get(row.poller_id)
        elapsed = round(max((now - composite.held_since).total_seconds(), 0.0), 1) if composite else None
        figures = busy.get(row.poller_id, 0.0), row.tasks_completed, row.tasks_delayed
        pollers.append(PollerView(row.poller_id, row.group, *figures, composite, elapsed))
    return pollers


def load_composites() -> dict[int, Composite]:
    """Load what runs now, by poller: from a master its chain, from a chain member its master and siblings."""
    active = list(active_executions().filter(poller_id__isnull=False).only("poller_id", "master_execution_id"))
    masters = {execution.master_execution_id or execution.id for execution in active}
    members = _members_by_master(masters)
    coming = load_chains({rows[0].node_id for rows in members.values() if rows[0].node_id})
    composites = {}
    for execution in active:
        rows = members.get(execution.master_execution_id or execution.id, [])
        if execution.poller_id is not None and any(row.id == execution.id for row in rows):
            composites[execution.poller_id] = _composite(execution.id, rows, coming[rows[0].node_id])
    return composites


def _summarise(
    pollers: Sequence[PollerView], queue: QueueState, *, was_saturated: bool, is_polling: bool
) -> GlobalStats:
    busy_percentage = _average_busy(pollers)
    return GlobalStats(
        total_pollers=len(pollers),
        busy_pollers=_count_busy(pollers),
        busy_percentage=busy_percentage,
        queue_size=queue.size,
        is_overload=queue.is_overload,
        is_saturated=is_saturated(busy_percentage, was_saturated=was_saturated),
        is_polling=is_polling,
        lateness=queue.lateness,
        total_tasks_completed=sum(poller.tasks_completed for poller in pollers),
        total_tasks_delayed=sum(poller.tasks_delayed for poller in pollers),
        groups=tuple(
            GroupStats(name, len(own), _count_busy(own), _average_busy(own))
            for name in sorted({poller.group for poller in pollers})
            if (own := [poller for poller in pollers if poller.group == name])
        ),
    )


def _count_busy(pollers: Sequence[PollerView]) -> int:
    return sum(poller.status is PollerStatus.BUSY for poller in pollers)


def _average_busy(pollers: Sequence[PollerView]) -> float:
    shares = [poller.busy_percentage for poller in pollers]
    return round(sum(shares) / len(shares), 1) if shares else 0.0


def _members_by_master(master_ids: set[int]) -> dict[int, list[Execution]]:
    related = Q(id__in=master_ids) | Q(master_execution_id__in=master_ids)
    rows = (
        Execution.objects.filter(related)
        .select_related("olt", "node__job")
        .only(
            "status",
            "master_execution_id",
            "chain_position",
            "task_type",
            "created_at",
            "started_at",
            "olt__name",
            "node__job__name",
        )
        .order_by("chain_position", "id")
    )
    members: dict[int, list[Execution]] = defaultdict(list)
    for row in rows:
        members[row.master_execution_id or row.id].append(row)
    return members


def _composite(current_id: int, members: Sequence[Execution], chain: Sequence[Step]) -> Composite:
    master, current = members[0], next(row for row in members if row.id == current_id)
    ran = [Step(row.node_id, _name(row), row.id, ExecutionState(row.status)) for row in members]
    begun = {row.node_id for row in members}
    coming = [step for step in chain if step.node_id not in begun]
    return Composite(
        olt_id=master.olt_id,
        olt=master.olt.name,
        master_execution_id=master.id,
        current_execution_id=current.id,
        current_node_id=current.node_id,
        current_node_name=_name(current),
        chain_position=current.chain_position,
        held_since=master.started_at or master.created_at,
        steps=(*ran, *coming),
    )


def _name(execution: Execution) -> str:
    return execution.node.job.name if execution.node else execution.task_type


# A look back has as many points at most, whatever its length: the database sums them up. Rows come a little less
# often than each minute, so that a shorter step would have gaps.
STEPS_SECONDS = (120, 300, 900, 1_800, 3_600, 10_800)
MOST_POINTS = 360
LONGEST = timedelta(days=31)


def save_poller_stats(now: datetime) -> PollerStats:
    """Add one row to the series; its saturation is what the next look remembers."""
    stats = load_overview(now, queue_count=0).global_stats
    names = {field.name for field in PollerStats._meta.concrete_fields} - {"id", "timestamp"}
    return PollerStats.objects.create(**{name: getattr(stats, name) for name in names})


@dataclass(frozen=True, slots=True)
class LoadPoint:
    """All pollers in the step of time that begins at `at`; nothing was stored in a step without figures."""

    at: datetime
    total_pollers: int | None = None
    busy_percentage: float | None = None
    busy_percentage_min: float | None = None
    busy_percentage_max: float | None = None
    queue_size: float | None = None
    queue_size_max: int | None = None
    # Of the minutes in it.
    saturated_share: float | None = None


@dataclass(frozen=True, slots=True)
class LoadHistory:
    start: datetime
    end: datetime
    step_seconds: int
    points: tuple[LoadPoint, ...]


class _StepNumber(Func):
    """Counts steps of so many seconds since 1970; Django itself would do it in Python on SQLite, for each row."""

    output_field = IntegerField()
    template = "CAST(FLOOR(EXTRACT(EPOCH FROM %(expressions)s) / %(step)s) AS bigint)"

    def as_sqlite(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **context: Any) -> Any:
        """Ask SQLite's own reader of times; whole numbers are divided without a rest."""
        template = "CAST(strftime('%%%%s', %(expressions)s) AS integer) / %(step)s"
        return self.as_sql(compiler, connection, template=template, **context)


def load_history(start: datetime, end: datetime) -> LoadHistory:
    """Load the figures between two moments, summed up so that there are few; one query."""
    step = choose_step(end - start)
    is_saturated = Case(When(is_saturated=True, then=1.0), default=0.0, output_field=FloatField())
    rows = (
        PollerStats.objects.filter(timestamp__gte=start, timestamp__lte=end)
        .annotate(number=_StepNumber("timestamp", step=step))
        .order_by()
        .values("number")
        .annotate(
            pollers=Max("total_pollers"),
            busy=Avg("busy_percentage"),
            least_busy=Min("busy_percentage"),
            most_busy=Max("busy_percentage"),
            queue=Avg("queue_size"),
            longest_queue=Max("queue_size"),
            saturated=Avg(is_saturated),
        )
    )
    known = {row["number"]: row for row in rows}
    numbers = range(int(start.timestamp()) // step, int(end.timestamp()) // step + 1)
    return LoadHistory(start, end, step, tuple(_point(number * step, known.get(number)) for number in numbers))


def choose_step(length: timedelta) -> int:
    """Choose the shortest step that makes few enough points."""
    return next((step for step in STEPS_SECONDS if length.total_seconds() / step <= MOST_POINTS), STEPS_SECONDS[-1])


def _point(epoch: int, row: Mapping[str, Any] | None) -> LoadPoint:
    at = datetime.fromtimestamp(epoch, UTC)
    if row is None:
        return LoadPoint(at)
    return LoadPoint(
        at,
        total_pollers=row["pollers"],
        busy_percentage=round(row["busy"], 1),
        busy_percentage_min=row["least_busy"],
        busy_percentage_max=row["most_busy"],
        queue_size=round(float(row["queue"]), 1),
        queue_size_max=row["longest_queue"],
        saturated_share=round(row["saturated"], 3),
    )


@dataclass(frozen=True, slots=True)
class Runs:
    """Runs that have ended: how many, how long they held their OLT, what they sent, and how fast it was answered."""

    count: int = 0
    total_ms: int = 0
    longest_ms: int = 0
    packets: int = 0
    retransmissions: int = 0
    # Of questions that were sent once: what they took together, and the one that took longest.
    round_trips: int = 0
    round_trips_ms: int = 0
    longest_round_trip_ms: int = 0
    # Rejected datagrams: answers to no request of this process, with another community, or invalid SNMP.
    forged_answers: int = 0
    malformed_answers: int = 0

    @property
    def wrong_answers(self) -> int:
        """Datagrams from the OLT's address that were rejected."""
        return self.forged_answers + self.malformed_answers

    @property
    def mean_round_trip_ms(self) -> float | None:
        """How long the OLT takes to answer a packet; None when it was not measured."""
        return self.round_trips_ms / self.round_trips if self.round_trips else None

    def __add__(self, other: "Runs") -> "Runs":
        both = ((each.name, getattr(self, each.name), getattr(other, each.name)) for each in fields(self))
        return Runs(*(max(one, two) if name.startswith("longest") else one + two for name, one, two in both))


# Kept in the result of a run.
_IN_RESULT = [each.name for each in fields(Runs)][3:]


@dataclass(frozen=True, slots=True)
class RunSum:
    """What the runs of one task type on one OLT that ended in one state come to."""

    olt_id: int
    task_type: str
    status: str
    runs: Runs


def load_run_sums(since: datetime, olt_id: int | None = None) -> list[RunSum]:
    """Add up what ended since then, on all OLTs or on one; one query."""
    ended = Execution.objects.filter(finished_at__gt=since).order_by()
    if olt_id is not None:
        ended = ended.filter(olt_id=olt_id)
    rows = ended.values_list("olt_id", "task_type", "status").annotate(
        Count("id"),
        Sum("duration_ms"),
        Max("duration_ms"),
        **{name: (Max if name.startswith("longest") else Sum)(_number_in_result(name)) for name in _IN_RESULT},
    )
    # A run that sent nothing left no figures.
    return [RunSum(olt, kind, status, Runs(*(each or 0 for each in figures))) for olt, kind, status, *figures in rows]


def _number_in_result(key: str) -> Cast:
    return Cast(KeyTextTransform(key, "result"), IntegerField())
