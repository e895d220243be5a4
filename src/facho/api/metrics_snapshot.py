"""What the metrics show, loaded at once: every figure of one scrape comes from the same moment."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Avg, Count, DateTimeField, F, Min, OuterRef, Subquery, Sum

from facho.accounts.scope import EVERYTHING, OltScope
from facho.alerts.models import Alert, AlertState
from facho.execution_coordinator.models import QuotaTracker, QuotaViolation
from facho.executions.models import Execution, ExecutionAttempt
from facho.hosts.models import Olt, OltData
from facho.onus.models import OnuReading, Outage, RunStateChoice, name_port
from facho.onus.shown_state import count_present
from facho.polling.domain.execution_state import ExecutionState, QueryType
from facho.polling.domain.lease import Shard
from facho.polling.domain.schedule import hour_of, task_type
from facho.snmp_jobs.models import WorkflowNode
from facho.traps.models import OltTraps, TrapSender
from facho.zabbix_pollers.activity import our_shards
from facho.zabbix_pollers.read_model import PollerView, Queue, Runs, load_candidates, load_pollers, load_run_sums
from facho.zabbix_pollers.store import Leader, load_leaders

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
# Kind of port and direction, by the names that the vendor definitions give to counters.
TRAFFIC = {
    "pon.in_octets": ("pon", "in"),
    "pon.out_octets": ("pon", "out"),
    "if.in_octets": ("interface", "in"),
    "if.out_octets": ("interface", "out"),
}
MOST_TRAFFIC_PORTS = 128
QUOTA_COLUMNS = ("quota_required", "quota_completed", "quota_failed", "quota_skipped", "quota_pending")


@dataclass(frozen=True, slots=True)
class NodeMetrics:
    """A node's state: running, waiting or suspended, and its last success."""

    olt_id: int
    task_type: str
    enabled: bool
    suspended_at: datetime | None
    suspend_reason: str
    last_success_at: datetime | None


@dataclass(frozen=True, slots=True)
class LightSum:
    """Receive power of the online ONUs of a PON port, in dBm, and at the OLT where it measures them."""

    rx_power_lowest: float
    rx_power_mean: float
    olt_rx_power_lowest: float | None


@dataclass(frozen=True, slots=True)
class Snapshot:
    now: datetime
    # By engine, or of the one scheduler.
    leaders: Mapping[Shard, Leader]
    pollers: Sequence[PollerView]
    candidates: Queue
    olts: Mapping[int, Olt]
    nodes: Sequence[NodeMetrics]
    # Of the last hour: by task type and state, and by OLT and state.
    runs_of_types: Mapping[tuple[str, str], Runs]
    runs_of_olts: Mapping[tuple[int, str], Runs]
    # By task type, of runs that ended in the last hour: tries after the first one, and the seconds waited before them.
    retries: Mapping[str, tuple[int, float]]
    # By OLT and task type; of this hour.
    quotas: Mapping[tuple[int, str], QuotaTracker]
    # By severity; of the last day.
    violations: Mapping[str, int]
    # By OLT and state.
    onus: Mapping[tuple[int, str], int]
    # By OLT; and, where every OLT is in scope, those that did not count, by reason.
    traps: Mapping[int, int]
    refused_traps: Mapping[str, int]
    # By OLT and PON port.
    light: Mapping[tuple[int, str], LightSum]
    # By scope and cause how many are open, and the ONUs down in them; and, by severity, alerts that fire.
    outages: Mapping[tuple[str, str], tuple[int, int]]
    alerts: Mapping[str, int]
    # By OLT, kind of port, its place and the direction: bytes a second.
    traffic: Mapping[tuple[int, str, str, str], float]

    @property
    def names(self) -> dict[int, str]:
        """Enabled OLTs; rows of an OLT added during the scrape are left to the next one."""
        return {olt_id: olt.name for olt_id, olt in self.olts.items() if olt.enabled}

    @property
    def wanted_nodes(self) -> list[NodeMetrics]:
        names = self.names
        return [node for node in self.nodes if node.enabled and node.olt_id in names]

    def seconds_since(self, moment: datetime) -> float:
        """Return the age in seconds, 0 for a time in the future (the clock was set back)."""
        return max((self.now - moment).total_seconds(), 0.0)


def load_snapshot(now: datetime, scope: OltScope = EVERYTHING) -> Snapshot:
    """Load everything in 23 statements, however many OLTs and nodes there are.

    Pollers and queue cover all OLTs, everything else those in scope.
    """
    rows = Olt.objects.only("name", "enabled", "reachability", "last_answer_at").order_by("name")
    olts = scope.narrow(rows, "").in_bulk()
    # Load the runs since a time once, and add them up in both ways.
    runs_of_types: dict[tuple[str, str], Runs] = defaultdict(Runs)
    runs_of_olts: dict[tuple[int, str], Runs] = defaultdict(Runs)
    for summed in load_run_sums(now - HOUR):
        if summed.olt_id in olts:
            runs_of_types[summed.task_type, summed.status] += summed.runs
            runs_of_olts[summed.olt_id, summed.status] += summed.runs
    refused = TrapSender.objects.order_by().values_list("reason").annotate(Sum("count"))
    violations = QuotaViolation.objects.filter(scope.condition(), created_at__gt=now - DAY).order_by()
    firing = Alert.objects.filter(scope.condition(), state=AlertState.FIRING).order_by()
    quotas = QuotaTracker.objects.filter(period_start=hour_of(now).start)
    return Snapshot(
        now=now,
        leaders=load_leaders(our_shards()),
        pollers=load_pollers(now),
        candidates=load_candidates(now),
        olts=olts,
        nodes=_load_nodes(scope),
        runs_of_types=runs_of_types,
        runs_of_olts=runs_of_olts,
        retries=_load_retries(now - HOUR, scope),
        quotas={(row.olt_id, row.task_type): row for row in quotas.only("olt_id", "task_type", *QUOTA_COLUMNS)},
        violations=dict(violations.values_list("severity").annotate(Count("id"))),
        onus=count_present(),
        traps=dict(OltTraps.objects.values_list("olt_id", "heard")),
        refused_traps=dict(refused) if scope.is_everything else {},
        light=_load_light(scope),
        outages=_load_outages(scope),
        alerts=dict(firing.values_list("severity").annotate(Count("id"))),
        traffic=_load_traffic(scope),
    )


def _load_light(scope: OltScope) -> dict[tuple[int, str], LightSum]:
    """Sum the light up by port; one query over the readings of the ONUs that are online."""
    online = OnuReading.objects.filter(
        scope.condition("onu__olt"),
        onu__is_present=True,
        onu__pon_port__is_known=True,
        run_state=RunStateChoice.ONLINE,
        rx_power_cdbm__isnull=False,
    )
    ports = online.order_by().values_list(
        "onu__olt_id", "onu__pon_port__frame", "onu__pon_port__slot", "onu__pon_port__port"
    )
    summed = ports.annotate(Min("rx_power_cdbm"), Avg("rx_power_cdbm"), Min("olt_rx_power_cdbm"))
    return {
        (olt_id, name_port(*place, is_known=True)): LightSum(low / 100, round(mean / 100, 2), at_olt and at_olt / 100)
        for olt_id, *place, low, mean, at_olt in summed
    }


def _load_outages(scope: OltScope) -> dict[tuple[str, str], tuple[int, int]]:
    # A part of a larger one is counted there.
    open_now = Outage.objects.filter(scope.condition(), ended_at=None, part_of=None).order_by()
    rows = open_now.values_list("scope", "cause").annotate(Count("id"), Sum("down"))
    return {(scope_, cause): (count, down) for scope_, cause, count, down in rows}


def _load_traffic(scope: OltScope) -> dict[tuple[int, str, str, str], float]:
    """Load the rates of ports; of an OLT with thousands of service ports the first ones, PON ports before others."""
    counters = OltData.objects.filter(scope.condition(), name__in=TRAFFIC, per_second__isnull=False)
    rows = counters.order_by("olt_id", "-name", "place", "index").values_list(
        "olt_id", "name", "place", "index", "per_second"
    )
    traffic: dict[tuple[int, str, str, str], float] = {}
    places: dict[int, set[tuple[str, str]]] = defaultdict(set)
    for olt_id, name, place, index, rate in rows.iterator():
        kind, direction = TRAFFIC[name]
        port, known = (kind, place or index), places[olt_id]
        if port in known or len(known) < MOST_TRAFFIC_PORTS:
            known.add(port)
            traffic.setdefault((olt_id, *port, direction), rate or 0.0)
    return traffic


def _load_nodes(scope: OltScope) -> list[NodeMetrics]:
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
    return [NodeMetrics(olt_id, task_type(QueryType(query), slug), *values) for olt_id, query, slug, *values in rows]


def _load_retries(since: datetime, scope: OltScope) -> dict[str, tuple[int, float]]:
    before = ExecutionAttempt.objects.filter(execution=OuterRef("execution"), number=OuterRef("number") - 1)
    ended_at = Subquery(before.values("finished_at")[:1], output_field=DateTimeField())
    rows = (
        # By the end of the run, which has an index: attempts alone have none that a scrape could use.
        ExecutionAttempt.objects.filter(
            scope.condition("execution__olt"), execution__finished_at__gt=since, execution__attempt__gt=1, number__gt=1
        )
        .order_by()
        .values_list("execution__task_type")
        .annotate(Count("id"), waited=Sum(F("started_at") - ended_at))
    )
    return {kind: (count, waited.total_seconds() if waited else 0.0) for kind, count, waited in rows}
