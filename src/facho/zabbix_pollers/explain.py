"""Why a node does not run right now, or when it will: decided from loaded values alone."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from facho.polling.domain.first_discovery import FirstDiscovery
from facho.polling.domain.planning import DueNode, WaitReason
from facho.polling.domain.schedule import Window
from facho.zabbix_pollers.activity import Holder


class Situation(StrEnum):
    """Where a node stands; whatever is nearest to running comes first where several hold."""

    RUNNING = "running"
    OLT_DISABLED = "olt_disabled"
    DISABLED = "disabled"
    SUSPENDED = "suspended"
    CHAINED = "chained"
    PAUSED = "paused"
    RETRY = "waiting_for_retry"
    GAVE_WAY = "gave_way"
    AWAITS_DISCOVERY = "awaits_discovery"
    QUEUED = "queued"
    OUTSIDE_HOURS = "outside_hours"
    NOT_DUE = "not_due"
    NOT_SCHEDULED = "not_scheduled"


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """What the rows of a node, its job and its OLT say."""

    id: int
    name: str
    olt_id: int
    olt: str
    enabled: bool
    olt_enabled: bool
    next_run_at: datetime | None
    run_requested_at: datetime | None
    suspended_at: datetime | None
    suspend_reason: str
    next_probe_at: datetime | None
    window: Window | None
    master_node_id: int | None
    is_discovery: bool = False
    # Where the first discovery of its OLT stands; None when it does not wait for it.
    first_discovery: FirstDiscovery | None = None

    @property
    def due_at(self) -> datetime | None:
        """When it may start: at once if a person asked for it, at its slot otherwise."""
        return self.run_requested_at or self.next_run_at


@dataclass(frozen=True, slots=True)
class PauseFacts:
    """The pause of the OLT, or of everything, that ends last."""

    since: datetime
    until: datetime
    note: str


@dataclass(frozen=True, slots=True)
class QueuePlace:
    """A place in the queue, counted from 1: among all nodes, and among those of the same OLT."""

    number: int
    size: int
    on_olt: int
    reason: WaitReason | None


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything that decides about one node at one moment."""

    node: NodeFacts
    is_polling: bool
    holder: Holder | None = None
    pause: PauseFacts | None = None
    # Its run that let go of the OLT: after a failed try, or because it gave way.
    waiting: DueNode | None = None
    place: QueuePlace | None = None


@dataclass(frozen=True, slots=True)
class Explanation:
    """Where a node stands, since when and until when, and when it runs as far as anyone can know."""

    node_id: int
    name: str
    olt_id: int
    olt: str
    situation: Situation
    is_polling: bool
    is_discovery: bool = False
    since: datetime | None = None
    until: datetime | None = None
    runs_at: datetime | None = None
    reason: str = ""
    execution_id: int | None = None
    place: QueuePlace | None = None
    # Who holds the OLT; while the node runs, the member of its chain that runs.
    holder: Holder | None = None
    # Of a chain member: where the master stands, with which it runs.
    master: "Explanation | None" = None
    # Of a node that waits for the first discovery of its OLT: where that stands, if there is one.
    discovery: "Explanation | None" = None


_OFF = frozenset({Situation.DISABLED, Situation.SUSPENDED})
Rule = Callable[[Facts, datetime], Explanation | None]


def explain(facts: Facts, now: datetime) -> Explanation:
    """Say where the node stands: the first rule that applies."""
    for rule in _RULES:
        if found := rule(facts, now):
            return found
    return _explanation(facts, Situation.NOT_SCHEDULED)


def explain_member(facts: Facts, master: Explanation, now: datetime) -> Explanation:
    """Say where a chain member stands: with its master, unless it runs, was stopped or waits itself."""
    own = _running(facts, now) or _stopped(facts, now) or _suspended(facts, now)
    if own is None and master.situation is not Situation.AWAITS_DISCOVERY and not master.is_discovery:
        own = _awaits_discovery(facts, now)
    return own or replace(_explanation(facts, Situation.CHAINED), runs_at=master.runs_at, master=master)


def add_discovery(explained: Mapping[int, Explanation]) -> dict[int, Explanation]:
    """Say of those that wait for the first discovery of their OLT where that stands: the one that runs first."""
    found = [one for one in explained.values() if one.is_discovery]
    discovery = min(found, key=lambda one: (one.situation in _OFF, one.node_id), default=None)
    awaiting = {node_id: one for node_id, one in explained.items() if one.situation is Situation.AWAITS_DISCOVERY}
    runs_at = discovery.runs_at if discovery else None
    told = {node_id: replace(one, discovery=discovery, runs_at=runs_at) for node_id, one in awaiting.items()}
    members = {
        node_id: replace(one, master=told[one.master.node_id], runs_at=runs_at)
        for node_id, one in explained.items()
        if one.master is not None and one.master.node_id in told
    }
    return {**explained, **told, **members}


def _explanation(facts: Facts, situation: Situation) -> Explanation:
    node = facts.node
    return Explanation(
        node.id, node.name, node.olt_id, node.olt, situation, facts.is_polling, is_discovery=node.is_discovery
    )


def _running(facts: Facts, now: datetime) -> Explanation | None:
    holder = facts.holder
    if holder is None or facts.node.id not in (holder.node_id, holder.master_node_id):
        return None
    running = _explanation(facts, Situation.RUNNING)
    return replace(running, since=holder.since, execution_id=holder.execution_id, holder=holder)


def _stopped(facts: Facts, now: datetime) -> Explanation | None:
    if not facts.node.olt_enabled:
        return _explanation(facts, Situation.OLT_DISABLED)
    return None if facts.node.enabled else _explanation(facts, Situation.DISABLED)


def _suspended(facts: Facts, now: datetime) -> Explanation | None:
    node = facts.node
    if node.suspended_at is None:
        return None
    suspended = _explanation(facts, Situation.SUSPENDED)
    return replace(suspended, since=node.suspended_at, until=node.next_probe_at, reason=node.suspend_reason)


def _awaits_discovery(facts: Facts, now: datetime) -> Explanation | None:
    """Due or not, and asked for or not: before the first discovery there is no ONU that it could read."""
    first = facts.node.first_discovery
    if first is None:
        return None
    due_at = facts.node.due_at
    return replace(
        _explanation(facts, Situation.AWAITS_DISCOVERY),
        since=due_at if due_at and due_at <= now else None,
        reason=first.value,
        place=facts.place,
    )


def _going_on(facts: Facts, now: datetime) -> DueNode | None:
    """Return the run that waits, unless the node's next slot has come: that runs instead of a retry."""
    return None if facts.waiting is None or facts.waiting.is_superseded(now) else facts.waiting


def _due_at(facts: Facts, now: datetime) -> datetime | None:
    waiting = _going_on(facts, now)
    return waiting.due_at if waiting else facts.node.due_at


def _paused(facts: Facts, now: datetime) -> Explanation | None:
    if facts.pause is None:
        return None
    pause, due_at = facts.pause, _due_at(facts, now)
    return replace(
        _explanation(facts, Situation.PAUSED),
        since=pause.since,
        until=pause.until,
        runs_at=max(pause.until, due_at) if due_at else None,
        reason=pause.note,
    )


def _between_tries(facts: Facts, now: datetime) -> Explanation | None:
    waiting = _going_on(facts, now)
    if waiting is None or waiting.due_at <= now:
        return None
    retry = _explanation(facts, Situation.RETRY)
    return replace(retry, until=waiting.due_at, runs_at=waiting.due_at, execution_id=waiting.execution_id)


def _queued(facts: Facts, now: datetime) -> Explanation | None:
    waiting, due_at = _going_on(facts, now), _due_at(facts, now)
    if due_at is None or due_at > now:
        return None
    gave_way = waiting is not None and not waiting.is_retry
    return replace(
        _explanation(facts, Situation.GAVE_WAY if gave_way else Situation.QUEUED),
        since=due_at,
        reason=facts.place.reason or "" if facts.place else "",
        execution_id=waiting.execution_id if waiting else None,
        place=facts.place,
        holder=facts.holder,
    )


def _outside_hours(facts: Facts, now: datetime) -> Explanation | None:
    """A slot that has come runs however late it gets its turn; a run that continues later waits for the hours again."""
    node, waiting = facts.node, _going_on(facts, now)
    if node.window is None or node.window.contains(now) or node.run_requested_at:
        return None
    opens_at = node.window.next_opening(now)
    runs_at = max(opens_at, waiting.due_at) if waiting else node.next_run_at
    if runs_at is None or runs_at <= now:
        return None
    return replace(_explanation(facts, Situation.OUTSIDE_HOURS), until=opens_at, runs_at=runs_at)


def _not_due(facts: Facts, now: datetime) -> Explanation | None:
    if facts.node.next_run_at is None:
        return None
    return replace(_explanation(facts, Situation.NOT_DUE), runs_at=facts.node.next_run_at)


_RULES: tuple[Rule, ...] = (
    _running,
    _stopped,
    _suspended,
    _paused,
    _awaits_discovery,
    _outside_hours,
    _between_tries,
    _queued,
    _not_due,
)
