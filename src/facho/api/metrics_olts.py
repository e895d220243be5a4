"""The series about OLTs, their nodes, ONUs and quotas. Those that name an OLT exist while it is enabled."""

from collections.abc import Callable
from datetime import datetime

from facho.api.metrics_family import Family, Samples
from facho.api.metrics_read_model import Quota, Snapshot
from facho.hosts.models import Reachability
from facho.onus.models import RunState
from facho.polling.domain.quota import Severity


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
        for state in RunState.values:
            yield (name, state), snapshot.onus.get((olt_id, state), 0)


def _quotas(figure: Callable[[Quota], int]) -> Callable[[Snapshot], Samples]:
    def samples(snapshot: Snapshot) -> Samples:
        names = snapshot.names
        for (olt_id, kind), quota in snapshot.quotas.items():
            if olt_id in names:
                yield (names[olt_id], kind), figure(quota)

    return samples


def _violations(snapshot: Snapshot) -> Samples:
    return (((severity.value,), snapshot.violations.get(severity, 0)) for severity in Severity)


OLT_FAMILIES = (
    Family("facho_olts", "OLTs by reachability, and those that are disabled.", ("state",), _olts),
    Family(
        "facho_olt_up",
        "1 if the OLT answered its last operation; 0 if not, or if it was never asked.",
        ("olt",),
        _olt_up,
    ),
    Family("facho_olt_last_answer_age_seconds", "Time since the OLT last answered.", ("olt",), _olt_answer_age),
    Family(
        "facho_last_success_timestamp_seconds",
        "When a run of this kind last succeeded on the OLT.",
        ("olt", "task_type"),
        _last_successes,
    ),
    Family("facho_nodes", "Nodes by state: enabled, suspended after failures, or disabled.", ("state",), _nodes),
    Family(
        "facho_node_suspended_timestamp_seconds",
        "The list of suspended nodes: since when, and why.",
        ("olt", "task_type", "reason"),
        _suspended_nodes,
    ),
    Family(
        "facho_onus",
        "Present ONUs of the OLT by state; all of a silent or disabled OLT are unknown.",
        ("olt", "state"),
        _onus,
    ),
    Family(
        "facho_quota_required",
        "Runs that the OLT owes in this clock hour.",
        ("olt", "task_type"),
        _quotas(lambda quota: quota.required),
    ),
    Family(
        "facho_quota_completed",
        "Owed runs of this hour that succeeded.",
        ("olt", "task_type"),
        _quotas(lambda quota: quota.completed),
    ),
    Family(
        "facho_quota_failed",
        "Owed runs of this hour that failed.",
        ("olt", "task_type"),
        _quotas(lambda quota: quota.failed),
    ),
    Family(
        "facho_quota_skipped",
        "Owed runs of this hour whose slot went by.",
        ("olt", "task_type"),
        _quotas(lambda quota: quota.skipped),
    ),
    Family(
        "facho_quota_pending",
        "Owed runs of this hour that are still to come or under way.",
        ("olt", "task_type"),
        _quotas(lambda quota: quota.pending),
    ),
    Family(
        "facho_quota_violations_last_day",
        "Quota violations raised in the last 24 hours.",
        ("severity",),
        _violations,
    ),
)
