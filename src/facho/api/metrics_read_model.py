"""Everything that /metrics tells, loaded from rows at the moment of the scrape, in a fixed number of statements.

Rows are deleted after their retention, so sums over all of them would shrink: what is counted is the last hour or day.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import (
    Count,
    DateTimeField,
    DurationField,
    ExpressionWrapper,
    F,
    Max,
    OuterRef,
    Subquery,
    Sum,
)

from facho.accounts.scope import EVERYTHING, OltScope
from facho.execution_coordinator.models import QuotaTracker, QuotaViolation
from facho.executions.models import Execution, ExecutionAttempt
from facho.executions.run_sums import Runs, load_run_sums
from facho.hosts.models import Olt
from facho.onus.shown_state import count_present
from facho.polling.domain.execution_state import ExecutionState
from facho.polling.domain.quota import hour_of
from facho.polling.domain.task_type import QueryType, task_type
from facho.snmp_jobs.models import WorkflowNode
from facho.zabbix_pollers.activity import load_is_polling
from facho.zabbix_pollers.models import LeaderLease
from facho.zabbix_pollers.queue_read_model import Candidates, load_candidates
from facho.zabbix_pollers.read_model import PollerView, load_pollers

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class OltFacts:
    """An OLT by the name that its series carry."""

    name: str
    enabled: bool
    reachability: str
    last_answer_at: datetime | None


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """A node: whether it runs, since when and why not, and when it last succeeded."""

    olt_id: int
    task_type: str
    enabled: bool
    suspended_at: datetime | None
    suspend_reason: str
    last_success_at: datetime | None


@dataclass(frozen=True, slots=True)
class Retries:
    """Tries after the first one, and the seconds between them and the try before, summed."""

    count: int
    waited_seconds: float


@dataclass(frozen=True, slots=True)
class Quota:
    """What an OLT owes of a task type in this hour, and what became of it so far."""

    required: int
    completed: int
    failed: int
    skipped: int
    pending: int


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The product at one moment."""

    now: datetime
    is_led: bool
    leader_renewed_at: datetime | None
    pollers: Sequence[PollerView]
    candidates: Candidates
    olts: Mapping[int, OltFacts]
    nodes: Sequence[NodeFacts]
    # Of the last hour: by task type and state, and by OLT and state.
    runs_of_types: Mapping[tuple[str, str], Runs]
    runs_of_olts: Mapping[tuple[int, str], Runs]
    # By task type; of runs that ended in the last hour.
    retries: Mapping[str, Retries]
    # By OLT and task type; of this hour.
    quotas: Mapping[tuple[int, str], Quota]
    # By severity; of the last day.
    violations: Mapping[str, int]
    # By OLT and state.
    onus: Mapping[tuple[int, str], int]

    @property
    def names(self) -> dict[int, str]:
        """The enabled OLTs; a row of one that appeared during the scrape has to wait for the next."""
        return {olt_id: olt.name for olt_id, olt in self.olts.items() if olt.enabled}

    @property
    def wanted_nodes(self) -> list[NodeFacts]:
        """The nodes that nobody switched off, neither themselves nor their OLT."""
        names = self.names
        return [node for node in self.nodes if node.enabled and node.olt_id in names]

    def seconds_since(self, moment: datetime) -> float:
        """Return how long ago that was; a moment ahead, after the clock was set back, is now."""
        return max((self.now - moment).total_seconds(), 0.0)


def load_snapshot(now: datetime, scope: OltScope = EVERYTHING) -> Snapshot:
    """Load what all series are made of; 18 statements, however many OLTs and nodes there are.

    Pollers and queue are those of all OLTs; everything else is that of the OLTs in scope.
    """
    olts = _load_olts(scope)
    runs_of_types, runs_of_olts = _load_runs(now - HOUR, olts)
    return Snapshot(
        now=now,
        is_led=load_is_polling(now),
        leader_renewed_at=LeaderLease.objects.aggregate(latest=Max("renewed_at"))["latest"],
        pollers=load_pollers(now),
        candidates=load_candidates(now),
        olts=olts,
        nodes=_load_nodes(scope),
        runs_of_types=runs_of_types,
        runs_of_olts=runs_of_olts,
        retries=_load_retries(now - HOUR, scope),
        quotas=_load_quotas(hour_of(now).start),
        violations=_load_violations(now - DAY, scope),
        onus=count_present(),
    )


def _load_olts(scope: OltScope) -> dict[int, OltFacts]:
    olts = scope.narrow(Olt.objects.order_by("name"), "")
    rows = olts.values_list("id", "name", "enabled", "reachability", "last_answer_at")
    return {
        olt_id: OltFacts(name, enabled, reachability, last_answer_at)
        for olt_id, name, enabled, reachability, last_answer_at in rows
    }


def _load_nodes(scope: OltScope) -> list[NodeFacts]:
    # Newest first along the index of the node's runs: the first success ends the look, however long the history is.
    succeeded = Execution.objects.filter(node=OuterRef("id"), status=ExecutionState.SUCCESS).order_by("-created_at")
    nodes = scope.narrow(WorkflowNode.objects.order_by("id"), "workflow__olt")
    rows = nodes.values_list(
        "workflow__olt_id",
        "job__query_type",
        "job__slug",
        "enabled",
        "suspended_at",
        "suspend_reason",
        Subquery(succeeded.values("finished_at")[:1]),
    )
    return [NodeFacts(olt_id, task_type(QueryType(query), slug), *values) for olt_id, query, slug, *values in rows]


def _load_runs(
    since: datetime, olts: Mapping[int, OltFacts]
) -> tuple[dict[tuple[str, str], Runs], dict[tuple[int, str], Runs]]:
    """Look once at the runs of the time since, and add them up in both ways."""
    of_types: dict[tuple[str, str], Runs] = defaultdict(Runs)
    of_olts: dict[tuple[int, str], Runs] = defaultdict(Runs)
    for summed in load_run_sums(since):
        if summed.olt_id in olts:
            of_types[summed.task_type, summed.status] += summed.runs
            of_olts[summed.olt_id, summed.status] += summed.runs
    return of_types, of_olts


def _load_retries(since: datetime, scope: OltScope) -> dict[str, Retries]:
    before = ExecutionAttempt.objects.filter(execution=OuterRef("execution"), number=OuterRef("number") - 1)
    ended_at = Subquery(before.values("finished_at")[:1], output_field=DateTimeField())
    rows = (
        # By the end of the run, which has an index: attempts alone have none that a scrape could use.
        ExecutionAttempt.objects.filter(
            scope.condition("execution__olt"), execution__finished_at__gt=since, execution__attempt__gt=1, number__gt=1
        )
        .order_by()
        .values_list("execution__task_type")
        .annotate(Count("id"), waited=Sum(ExpressionWrapper(F("started_at") - ended_at, DurationField())))
    )
    return {kind: Retries(count, waited.total_seconds() if waited else 0.0) for kind, count, waited in rows}


def _load_quotas(hour_start: datetime) -> dict[tuple[int, str], Quota]:
    rows = QuotaTracker.objects.filter(period_start=hour_start).values_list(
        "olt_id",
        "task_type",
        "quota_required",
        "quota_completed",
        "quota_failed",
        "quota_skipped",
        "quota_pending",
    )
    return {(olt_id, kind): Quota(*counts) for olt_id, kind, *counts in rows}


def _load_violations(since: datetime, scope: OltScope) -> dict[str, int]:
    rows = QuotaViolation.objects.filter(scope.condition(), created_at__gt=since).order_by().values_list("severity")
    return dict(rows.annotate(Count("id")))
