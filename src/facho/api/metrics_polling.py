"""The series about polling itself: the leader, the pollers and the queue."""

from collections.abc import Callable, Iterable
from datetime import timedelta
from importlib.metadata import version

from facho.api.metrics_family import Family, Samples
from facho.api.metrics_read_model import Snapshot
from facho.polling.domain.lateness import lateness_histogram
from facho.polling.domain.planning import WaitReason
from facho.zabbix_pollers.models import PollerStatus
from facho.zabbix_pollers.read_model import PollerView


def _build(snapshot: Snapshot) -> Samples:
    yield (version("facho"),), 1


def _leader(snapshot: Snapshot) -> Samples:
    yield (), snapshot.is_led


def _leader_age(snapshot: Snapshot) -> Samples:
    if snapshot.leader_renewed_at:
        yield (), snapshot.seconds_since(snapshot.leader_renewed_at)


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
    Family("facho_build_info", "The version that answers; always 1.", ("version",), _build),
    Family("facho_leader_present", "1 while a scheduler leads; at 0 nothing starts.", (), _leader),
    Family("facho_leader_renewal_age_seconds", "Time since a leader last renewed its lease.", (), _leader_age),
    Family(
        "facho_scheduler_lag_seconds",
        "How late the most overdue node is that could start at once, its OLT and a poller being free.",
        (),
        _scheduler_lag,
    ),
    Family("facho_pollers", "Pollers by state, FREE or BUSY.", ("state",), _pollers),
    Family(
        "facho_poller_busy_ratio",
        "Share of the last 60 seconds in which a run held the poller.",
        ("poller",),
        _each_poller(lambda poller: round(poller.busy_percentage / 100, 3)),
    ),
    Family(
        "facho_poller_tasks_completed_total",
        "Composites, a master with its chain, that the poller has completed.",
        ("poller",),
        _each_poller(lambda poller: poller.tasks_completed),
    ),
    Family(
        "facho_poller_tasks_delayed_total",
        "Composites that the poller began later than their interval.",
        ("poller",),
        _each_poller(lambda poller: poller.tasks_delayed),
    ),
    Family("facho_queue_length", "Nodes that are due and not running.", (), _queue_length),
    Family(
        "facho_queue_late_nodes",
        "Nodes in the queue that are at least so many seconds late.",
        ("at_least_seconds",),
        _queue_lateness,
    ),
    Family("facho_queue_longest_wait_seconds", "How late the most overdue node in the queue is.", (), _longest_wait),
    Family(
        "facho_queue_waiting_nodes",
        "Nodes in the queue by what they wait for; those that the next tick starts wait for nothing.",
        ("reason",),
        _queue_reasons,
    ),
    Family("facho_retries_waiting", "Failed runs that wait for their next try.", (), _retries_waiting),
)
