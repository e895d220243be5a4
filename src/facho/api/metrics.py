"""Metrics for Prometheus at /metrics: every process reads the same rows, so every process gives the same answer."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from importlib.metadata import version
from operator import attrgetter

from django.http import HttpResponse
from django.utils import timezone
from django.utils.decorators import method_decorator
from django.views.decorators.cache import never_cache
from prometheus_client.core import CollectorRegistry, CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from rest_framework.request import Request
from rest_framework.views import APIView

from facho.accounts.scope import EVERYTHING, OltScope, scope_of
from facho.alerts.models import Severity
from facho.api.metrics_snapshot import Snapshot, load_snapshot
from facho.api.shared.permissions import AnyAccepted, FromThisMachine, ReadOrOperate
from facho.hosts.models import Reachability
from facho.onus.models import RunStateChoice
from facho.polling.domain.execution_state import ExecutionState
from facho.polling.domain.planning import WaitReason, lateness_histogram
from facho.polling.domain.quota import LossSeverity
from facho.zabbix_pollers.activity import is_scheduling
from facho.zabbix_pollers.models import PollerStatus
from facho.zabbix_pollers.read_model import PollerView, Runs

# The values of the labels, in their order, and the figure; no two have the same labels.
Samples = Iterable[tuple[tuple[str, ...], float]]


@dataclass(frozen=True, slots=True)
class MetricFamily:
    """All series of one name; a name ending in `_total` is a counter."""

    name: str
    meaning: str
    labels: tuple[str, ...]
    samples: Callable[[Snapshot], Samples]


def build_metric(family: MetricFamily, snapshot: Snapshot) -> Metric:
    """Add the samples; a family without any still has its help text."""
    kind = CounterMetricFamily if family.name.endswith("_total") else GaugeMetricFamily
    metric = kind(family.name, family.meaning, labels=family.labels)
    for labels, value in family.samples(snapshot):
        metric.add_metric(labels, value)
    return metric


def _olts(snapshot: Snapshot) -> Samples:
    states = [olt.reachability if olt.enabled else "disabled" for olt in snapshot.olts.values()]
    return (((state,), states.count(state)) for state in (*Reachability.values, "disabled"))


def _olt_up(snapshot: Snapshot) -> Samples:
    for olt in snapshot.olts.values():
        if olt.enabled:
            yield (olt.name,), olt.reachability == Reachability.UP


def _olt_answer_age(snapshot: Snapshot) -> Samples:
    for olt in snapshot.olts.values():
        if olt.enabled and olt.last_answer_at:
            yield (olt.name,), snapshot.seconds_since(olt.last_answer_at)


def _last_successes(snapshot: Snapshot) -> Samples:
    names = snapshot.names
    # Two nodes of an OLT may be of one task type, as all discoveries are: a series exists once.
    latest: dict[tuple[str, ...], datetime] = {}
    for node in snapshot.wanted_nodes:
        if node.last_success_at:
            labels = names[node.olt_id], node.task_type
            latest[labels] = max(node.last_success_at, latest.get(labels, node.last_success_at))
    return ((labels, at.timestamp()) for labels, at in latest.items())


def _nodes(snapshot: Snapshot) -> Samples:
    wanted = snapshot.wanted_nodes
    suspended = sum(node.suspended_at is not None for node in wanted)
    yield ("enabled",), len(wanted) - suspended
    yield ("suspended",), suspended
    yield ("disabled",), len(snapshot.nodes) - len(wanted)


def _suspended_nodes(snapshot: Snapshot) -> Samples:
    names = snapshot.names
    since: dict[tuple[str, ...], datetime] = {}
    for node in snapshot.wanted_nodes:
        if node.suspended_at:
            labels = names[node.olt_id], node.task_type, node.suspend_reason
            since[labels] = min(node.suspended_at, since.get(labels, node.suspended_at))
    return ((labels, at.timestamp()) for labels, at in since.items())


def _onus(snapshot: Snapshot) -> Samples:
    for olt_id, name in snapshot.names.items():
        for state in RunStateChoice.values:
            yield (name, state), snapshot.onus.get((olt_id, state), 0)


def _quotas(figure: str) -> Callable[[Snapshot], Samples]:
    def samples(snapshot: Snapshot) -> Samples:
        names = snapshot.names
        for (olt_id, kind), quota in snapshot.quotas.items():
            if olt_id in names:
                yield (names[olt_id], kind), getattr(quota, f"quota_{figure}")

    return samples


def _violations(snapshot: Snapshot) -> Samples:
    return (((severity.value,), snapshot.violations.get(severity, 0)) for severity in LossSeverity)


def _light(figure: str) -> Callable[[Snapshot], Samples]:
    def samples(snapshot: Snapshot) -> Samples:
        names = snapshot.names
        for (olt_id, port), light in snapshot.light.items():
            value: float | None = getattr(light, figure)
            if olt_id in names and value is not None:
                yield (names[olt_id], port), value

    return samples


def _open_outages(snapshot: Snapshot) -> Samples:
    return ((labels, count) for labels, (count, _down) in snapshot.outages.items())


def _outage_onus(snapshot: Snapshot) -> Samples:
    return ((labels, down) for labels, (_count, down) in snapshot.outages.items())


def _alerts(snapshot: Snapshot) -> Samples:
    return (((severity,), snapshot.alerts.get(severity, 0)) for severity in Severity.values)


def _traffic(snapshot: Snapshot) -> Samples:
    names = snapshot.names
    for (olt_id, *labels), rate in snapshot.traffic.items():
        if olt_id in names:
            yield (names[olt_id], *labels), rate


OLT_FAMILIES = (
    MetricFamily("facho_olts", "OLTs by reachability, and those that are disabled.", ("state",), _olts),
    MetricFamily(
        "facho_olt_up",
        "1 if the OLT answered its last operation; 0 if not, or if it was never asked.",
        ("olt",),
        _olt_up,
    ),
    MetricFamily("facho_olt_last_answer_age_seconds", "Time since the OLT last answered.", ("olt",), _olt_answer_age),
    MetricFamily(
        "facho_last_success_timestamp_seconds",
        "When a run of this kind last succeeded on the OLT.",
        ("olt", "task_type"),
        _last_successes,
    ),
    MetricFamily("facho_nodes", "Nodes by state: enabled, suspended after failures, or disabled.", ("state",), _nodes),
    MetricFamily(
        "facho_node_suspended_timestamp_seconds",
        "The list of suspended nodes: since when, and why.",
        ("olt", "task_type", "reason"),
        _suspended_nodes,
    ),
    MetricFamily(
        "facho_onus",
        "Present ONUs of the OLT by state; all of a silent or disabled OLT are unknown.",
        ("olt", "state"),
        _onus,
    ),
    *(
        MetricFamily(f"facho_quota_{figure}", meaning, ("olt", "task_type"), _quotas(figure))
        for figure, meaning in (
            ("required", "Runs that the OLT owes in this clock hour."),
            ("completed", "Owed runs of this hour that succeeded."),
            ("failed", "Owed runs of this hour that failed."),
            ("skipped", "Owed runs of this hour whose slot has passed."),
            ("pending", "Owed runs of this hour that are pending or running."),
        )
    ),
    MetricFamily(
        "facho_quota_violations_last_day",
        "Quota violations raised in the last 24 hours.",
        ("severity",),
        _violations,
    ),
    *(
        MetricFamily(f"facho_pon_{figure}_dbm", meaning, ("olt", "port"), _light(figure))
        for figure, meaning in (
            ("rx_power_lowest", "Weakest receive power of an online ONU of the PON port."),
            ("rx_power_mean", "Mean receive power of the online ONUs of the PON port."),
            ("olt_rx_power_lowest", "Weakest receive power of one of them at the OLT, where it measures that."),
        )
    ),
    MetricFamily(
        "facho_outages_open",
        "Open outages by scope and probable cause; parts of a larger one are not counted.",
        ("scope", "cause"),
        _open_outages,
    ),
    MetricFamily(
        "facho_outage_onus_down",
        "ONUs that are down in these outages.",
        ("scope", "cause"),
        _outage_onus,
    ),
    MetricFamily("facho_alerts_firing", "Alerts that fire, by severity.", ("severity",), _alerts),
    MetricFamily(
        "facho_port_traffic_bytes_per_second",
        "Rate of a port's counter between its last two reads; of an OLT at most 128 ports, PON ports first.",
        ("olt", "kind", "port", "direction"),
        _traffic,
    ),
)


def _build(snapshot: Snapshot) -> Samples:
    yield (version("facho"),), 1


def _leader(snapshot: Snapshot) -> Samples:
    yield (), all(is_scheduling(leader, snapshot.now) for leader in snapshot.leaders.values())


def _leader_age(snapshot: Snapshot) -> Samples:
    renewals = [leader.renewed_at for leader in snapshot.leaders.values() if leader.renewed_at]
    if renewals:
        yield (), snapshot.seconds_since(min(renewals))


def _engines(snapshot: Snapshot) -> Samples:
    for shard, leader in snapshot.leaders.items():
        yield (str(shard.number),), is_scheduling(leader, snapshot.now)


def _scheduler_lag(snapshot: Snapshot) -> Samples:
    waiting = snapshot.candidates.reasons
    startable = (node for node in snapshot.candidates.due if node.node_id not in waiting)
    yield (), _longest(node.delay(snapshot.now) for node in startable)


def _pollers(snapshot: Snapshot) -> Samples:
    for status in PollerStatus:
        yield (status.value,), sum(poller.status is status for poller in snapshot.pollers)


def _each_poller(figure: Callable[[PollerView], float]) -> Callable[[Snapshot], Samples]:
    return lambda snapshot: (((str(poller.poller_id),), figure(poller)) for poller in snapshot.pollers)


def _queue_length(snapshot: Snapshot) -> Samples:
    yield (), len(snapshot.candidates.due)


def _queue_lateness(snapshot: Snapshot) -> Samples:
    late = lateness_histogram(node.delay(snapshot.now) for node in snapshot.candidates.due)
    return (((str(bound),), count) for bound, count in late.items())


def _longest_wait(snapshot: Snapshot) -> Samples:
    yield (), _longest(node.delay(snapshot.now) for node in snapshot.candidates.due)


def _queue_reasons(snapshot: Snapshot) -> Samples:
    reasons = list(snapshot.candidates.reasons.values())
    return (((reason.value,), reasons.count(reason)) for reason in WaitReason)


def _retries_waiting(snapshot: Snapshot) -> Samples:
    yield (), len(snapshot.candidates.retries)


def _longest(delays: Iterable[timedelta]) -> float:
    return max((delay.total_seconds() for delay in delays), default=0.0)


POLLING_FAMILIES = (
    MetricFamily("facho_build_info", "The version that answers; always 1.", ("version",), _build),
    MetricFamily("facho_leader_present", "1 while every engine leads and can store; at 0 OLTs wait.", (), _leader),
    MetricFamily("facho_leader_renewal_age_seconds", "Time since the oldest lease was renewed.", (), _leader_age),
    MetricFamily("facho_engine_present", "1 while this engine leads and can store.", ("engine",), _engines),
    MetricFamily(
        "facho_scheduler_lag_seconds",
        "How late the most overdue node is that could start at once, its OLT and a poller being free.",
        (),
        _scheduler_lag,
    ),
    MetricFamily("facho_pollers", "Pollers by state, FREE or BUSY.", ("state",), _pollers),
    MetricFamily(
        "facho_poller_busy_ratio",
        "Share of the last 60 seconds in which a run held the poller.",
        ("poller",),
        _each_poller(lambda poller: round(poller.busy_percentage / 100, 3)),
    ),
    *(
        MetricFamily(f"facho_poller_{figure}_total", meaning, ("poller",), _each_poller(attrgetter(figure)))
        for figure, meaning in (
            ("tasks_completed", "Composites, a master with its chain, that the poller has completed."),
            ("tasks_delayed", "Composites that the poller began later than their interval."),
        )
    ),
    MetricFamily("facho_queue_length", "Nodes that are due and not running.", (), _queue_length),
    MetricFamily(
        "facho_queue_late_nodes",
        "Nodes in the queue that are at least so many seconds late.",
        ("at_least_seconds",),
        _queue_lateness,
    ),
    MetricFamily(
        "facho_queue_longest_wait_seconds", "How late the most overdue node in the queue is.", (), _longest_wait
    ),
    MetricFamily(
        "facho_queue_waiting_nodes",
        "Nodes in the queue by what they wait for; those that the next tick starts wait for nothing.",
        ("reason",),
        _queue_reasons,
    ),
    MetricFamily("facho_retries_waiting", "Failed runs that wait for their next try.", (), _retries_waiting),
)


def _of_types(figure: Callable[[Runs], float]) -> Callable[[Snapshot], Samples]:
    return lambda snapshot: ((labels, figure(runs)) for labels, runs in snapshot.runs_of_types.items())


def _retries(snapshot: Snapshot) -> Samples:
    return (((kind,), count) for kind, (count, _waited) in snapshot.retries.items())


def _retry_waits(snapshot: Snapshot) -> Samples:
    return (((kind,), waited) for kind, (_count, waited) in snapshot.retries.items())


def _olt_executions(snapshot: Snapshot) -> Samples:
    names = snapshot.names
    for (olt_id, state), runs in snapshot.runs_of_olts.items():
        if olt_id in names:
            yield (names[olt_id], state), runs.count


def _success_ratio(snapshot: Snapshot) -> Samples:
    """Divide by runs the device decided: interrupted and skipped ones say nothing about it."""
    runs = snapshot.runs_of_olts
    for olt_id, name in snapshot.names.items():
        succeeded = runs.get((olt_id, ExecutionState.SUCCESS), Runs()).count
        decided = succeeded + runs.get((olt_id, ExecutionState.FAILED), Runs()).count
        if decided:
            yield (name,), succeeded / decided


def _of_olts(figure: Callable[[Runs], float]) -> Callable[[Snapshot], Samples]:
    def samples(snapshot: Snapshot) -> Samples:
        sums: dict[str, Runs] = {}
        names = snapshot.names
        for (olt_id, _state), runs in snapshot.runs_of_olts.items():
            if olt_id in names:
                sums[names[olt_id]] = sums.get(names[olt_id], Runs()) + runs
        return (((name,), figure(total)) for name, total in sums.items())

    return samples


def _olt_figures(**meanings: str) -> Iterator[MetricFamily]:
    for figure, meaning in meanings.items():
        yield MetricFamily(f"facho_olt_{figure}_last_hour", meaning, ("olt",), _of_olts(attrgetter(figure)))


FROM_OLT = "Datagrams from the OLT's address to these runs"
RUN_FAMILIES = (
    MetricFamily(
        "facho_executions_last_hour",
        "Runs that ended in the last hour, by kind and final state.",
        ("task_type", "state"),
        _of_types(lambda runs: runs.count),
    ),
    MetricFamily(
        "facho_execution_duration_last_hour_seconds",
        "Time for which the runs that ended in the last hour held their OLT, summed.",
        ("task_type", "state"),
        _of_types(lambda runs: runs.total_ms / 1000),
    ),
    MetricFamily(
        "facho_execution_duration_max_last_hour_seconds",
        "The longest time for which one of these runs held its OLT.",
        ("task_type", "state"),
        _of_types(lambda runs: runs.longest_ms / 1000),
    ),
    MetricFamily(
        "facho_retries_last_hour",
        "Tries after the first one of runs that ended in the last hour.",
        ("task_type",),
        _retries,
    ),
    MetricFamily(
        "facho_retry_wait_last_hour_seconds",
        "Time between these tries and the failed ones before them, summed.",
        ("task_type",),
        _retry_waits,
    ),
    MetricFamily(
        "facho_olt_executions_last_hour",
        "Runs on the OLT that ended in the last hour, by final state.",
        ("olt", "state"),
        _olt_executions,
    ),
    MetricFamily(
        "facho_olt_success_ratio_last_hour",
        "Successful share of the OLT's runs of the last hour that succeeded or failed.",
        ("olt",),
        _success_ratio,
    ),
    *_olt_figures(
        packets="Packets sent to the OLT by the runs that ended in the last hour.",
        retransmissions="Those of these packets that were sent again because no answer came in time.",
        round_trips="Those of these packets that were sent once and answered, so that their round trip is known.",
    ),
    MetricFamily(
        "facho_olt_round_trip_last_hour_seconds",
        "Time from these packets to their answers, summed.",
        ("olt",),
        _of_olts(lambda runs: runs.round_trips_ms / 1000),
    ),
    MetricFamily(
        "facho_olt_round_trip_max_last_hour_seconds",
        "The longest of these round trips.",
        ("olt",),
        _of_olts(lambda runs: runs.longest_round_trip_ms / 1000),
    ),
    *_olt_figures(
        forged_answers=f"{FROM_OLT} with an unknown id, or a wrong community or signature.",
        malformed_answers=f"{FROM_OLT} that were not valid SNMP.",
    ),
    MetricFamily(
        "facho_olt_traps_total",
        "Traps and informs of the OLT that counted.",
        ("olt",),
        lambda snapshot: [((name,), snapshot.traps.get(olt_id, 0)) for olt_id, name in snapshot.names.items()],
    ),
    MetricFamily(
        "facho_traps_refused_total",
        "Traps and informs that did not count, by reason.",
        ("reason",),
        lambda snapshot: [((reason,), count) for reason, count in snapshot.refused_traps.items()],
    ),
)


FAMILIES: tuple[MetricFamily, ...] = (*POLLING_FAMILIES, *RUN_FAMILIES, *OLT_FAMILIES)


@method_decorator(never_cache, name="dispatch")
class MetricsView(APIView):
    """Metrics in Prometheus text format, for this machine, any token, and any logged-in user."""

    permission_classes = [FromThisMachine | ReadOrOperate]
    content_negotiation_class = AnyAccepted
    # Not a part of the API's document: Prometheus knows the format.
    schema = None

    def get(self, request: Request) -> HttpResponse:
        """Return all series; a token or login sees only the OLTs of its scope."""
        scope = scope_of(request.user) if request.user.is_authenticated else EVERYTHING
        return HttpResponse(render_metrics(timezone.now(), scope), content_type=CONTENT_TYPE_PLAIN_0_0_4)


def render_metrics(now: datetime, scope: OltScope = EVERYTHING) -> bytes:
    registry = CollectorRegistry()
    registry.register(_Scrape(now, scope))
    return generate_latest(registry)


@dataclass(frozen=True, slots=True)
class _Scrape:
    """One scrape as a collector of prometheus_client."""

    now: datetime
    scope: OltScope

    def collect(self) -> Iterable[Metric]:
        snapshot = load_snapshot(self.now, self.scope)
        return (build_metric(family, snapshot) for family in FAMILIES)
