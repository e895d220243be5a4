"""Why a node does not run now, or when it will: loaded from rows, decided by rules on values, said in sentences."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from django.db.models import QuerySet
from django.utils.functional import Promise
from django.utils.timezone import localtime
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from facho.executions.models import Execution, Origin
from facho.hosts.models import Pause
from facho.hosts.store import load_pause
from facho.polling.domain.execution_state import ExecutionState, QueryType
from facho.polling.domain.lease import shard_of
from facho.polling.domain.planning import DueNode, FirstDiscovery, WaitReason, order_within_olt
from facho.polling.domain.schedule import Window
from facho.snmp_jobs.application import ready_name
from facho.snmp_jobs.due import load_waits
from facho.snmp_jobs.models import WorkflowNode
from facho.snmp_jobs.store import UnknownNode, window_of
from facho.zabbix_pollers.activity import Holder, load_holder, load_is_polling, our_shards
from facho.zabbix_pollers.read_model import load_candidates


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
class QueuePlace:
    """A place in the queue, counted from 1: among all nodes, and among those of the same OLT."""

    number: int
    size: int
    on_olt: int
    reason: WaitReason | None


@dataclass(frozen=True, slots=True)
class Facts:
    """What decides about one node at one moment: its row with job and OLT, and what was looked up for it."""

    node: WorkflowNode
    is_polling: bool
    window: Window | None = None
    # Where the first discovery of its OLT stands; None when it does not wait for it.
    first_discovery: FirstDiscovery | None = None
    holder: Holder | None = None
    # Of the OLT, or of everything: the one that ends last.
    pause: Pause | None = None
    # Its run that let go of the OLT: after a failed try, or because it gave way.
    waiting: DueNode | None = None
    place: QueuePlace | None = None

    @property
    def due_at(self) -> datetime | None:
        """When it may start: at once if a person asked for it, at its slot otherwise."""
        return self.node.run_requested_at or self.node.next_run_at


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
    # The execution that holds the OLT; while the node runs, the chain member that runs.
    holder: Holder | None = None
    # Of a chain member: where the master stands, with which it runs.
    master: "Explanation | None" = None
    # Of a node that waits for the first discovery of its OLT: where that stands, if there is one.
    discovery: "Explanation | None" = None


_OFF = frozenset({Situation.DISABLED, Situation.SUSPENDED})
Rule = Callable[[Facts, datetime], Explanation | None]


def explain(facts: Facts, now: datetime) -> Explanation:
    """Return the explanation of the first rule that applies."""
    found = (explanation for rule in _RULES if (explanation := rule(facts, now)))
    return next(found, None) or _explanation(facts, Situation.NOT_SCHEDULED)


def explain_member(facts: Facts, master: Explanation, now: datetime) -> Explanation:
    """Explain a chain member by its master, unless it runs, was stopped or waits itself."""
    own = _running(facts, now) or _stopped(facts, now) or _suspended(facts, now)
    if own is None and master.situation is not Situation.AWAITS_DISCOVERY and not master.is_discovery:
        own = _awaits_discovery(facts, now)
    return own or _explanation(facts, Situation.CHAINED, runs_at=master.runs_at, master=master)


def add_discovery(explained: Mapping[int, Explanation]) -> dict[int, Explanation]:
    """Add how the first discovery stands to the nodes that wait for it."""
    found = [one for one in explained.values() if one.is_discovery]
    discovery = min(found, key=lambda one: (one.situation in _OFF, one.node_id), default=None)
    awaiting = {node_id: one for node_id, one in explained.items() if one.situation is Situation.AWAITS_DISCOVERY}
    runs_at = discovery.runs_at if discovery else None
    awaited = {node_id: replace(one, discovery=discovery, runs_at=runs_at) for node_id, one in awaiting.items()}
    members = {
        node_id: replace(one, master=awaited[one.master.node_id], runs_at=runs_at)
        for node_id, one in explained.items()
        if one.master is not None and one.master.node_id in awaited
    }
    return {**explained, **awaited, **members}


def _explanation(facts: Facts, situation: Situation, **details: Any) -> Explanation:
    node, job, olt = facts.node, facts.node.job, facts.node.workflow.olt
    details["is_discovery"] = job.query_type == QueryType.DISCOVERY
    return Explanation(node.id, ready_name(job.name), olt.id, olt.name, situation, facts.is_polling, **details)


def _running(facts: Facts, now: datetime) -> Explanation | None:
    holder = facts.holder
    if holder is None or facts.node.id not in (holder.node_id, holder.master_node_id):
        return None
    return _explanation(facts, Situation.RUNNING, since=holder.since, execution_id=holder.execution_id, holder=holder)


def _stopped(facts: Facts, now: datetime) -> Explanation | None:
    if not facts.node.workflow.olt.enabled:
        return _explanation(facts, Situation.OLT_DISABLED)
    return None if facts.node.enabled else _explanation(facts, Situation.DISABLED)


def _suspended(facts: Facts, now: datetime) -> Explanation | None:
    node = facts.node
    if node.suspended_at is None:
        return None
    until, reason = node.workflow.olt.next_probe_at, node.suspend_reason
    return _explanation(facts, Situation.SUSPENDED, since=node.suspended_at, until=until, reason=reason)


def _awaits_discovery(facts: Facts, now: datetime) -> Explanation | None:
    """Due or not, and asked for or not: before the first discovery there is no ONU that it could read."""
    first, due_at = facts.first_discovery, facts.due_at
    if first is None:
        return None
    since = due_at if due_at and due_at <= now else None
    return _explanation(facts, Situation.AWAITS_DISCOVERY, since=since, reason=first.value, place=facts.place)


def _going_on(facts: Facts, now: datetime) -> DueNode | None:
    """Return the run that waits, unless the node's next slot has come: that runs instead of a retry."""
    return None if facts.waiting is None or facts.waiting.is_superseded(now) else facts.waiting


def _due_at(facts: Facts, now: datetime) -> datetime | None:
    waiting = _going_on(facts, now)
    return waiting.due_at if waiting else facts.due_at


def _paused(facts: Facts, now: datetime) -> Explanation | None:
    if facts.pause is None:
        return None
    pause, due_at = facts.pause, _due_at(facts, now)
    since, until = pause.starts_at, pause.ends_at
    runs_at = max(until, due_at) if due_at else None
    return _explanation(facts, Situation.PAUSED, since=since, until=until, runs_at=runs_at, reason=pause.note)


def _between_tries(facts: Facts, now: datetime) -> Explanation | None:
    waiting = _going_on(facts, now)
    if waiting is None or waiting.due_at <= now:
        return None
    at, run = waiting.due_at, waiting.execution_id
    return _explanation(facts, Situation.RETRY, until=at, runs_at=at, execution_id=run)


def _queued(facts: Facts, now: datetime) -> Explanation | None:
    waiting, due_at = _going_on(facts, now), _due_at(facts, now)
    if due_at is None or due_at > now:
        return None
    gave_way = waiting is not None and not waiting.is_retry
    return _explanation(
        facts,
        Situation.GAVE_WAY if gave_way else Situation.QUEUED,
        since=due_at,
        reason=facts.place.reason or "" if facts.place else "",
        execution_id=waiting.execution_id if waiting else None,
        place=facts.place,
        holder=facts.holder,
    )


def _outside_hours(facts: Facts, now: datetime) -> Explanation | None:
    """A slot that has come runs however late it gets its turn; a run that continues later waits for the hours again."""
    window, waiting = facts.window, _going_on(facts, now)
    if window is None or window.contains(now) or facts.node.run_requested_at:
        return None
    opens_at = window.next_opening(now)
    runs_at = max(opens_at, waiting.due_at) if waiting else facts.node.next_run_at
    if runs_at is None or runs_at <= now:
        return None
    return _explanation(facts, Situation.OUTSIDE_HOURS, until=opens_at, runs_at=runs_at)


def _not_due(facts: Facts, now: datetime) -> Explanation | None:
    at = facts.node.next_run_at
    return _explanation(facts, Situation.NOT_DUE, runs_at=at) if at else None


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


def sentences(explanation: Explanation) -> list[str]:
    """Return sentences on what the node does or waits for, the most important first; times are local."""
    situation = explanation.situation
    if situation in _PLAIN:
        words = {"since": _time(explanation.since), "at": _time(explanation.until)}
        lines = [str(_PLAIN[situation]) % words]
    else:
        lines = _SAY[situation](explanation)
    if situation in (Situation.GAVE_WAY, Situation.QUEUED):
        lines += _waits(explanation)
    if situation in (Situation.PAUSED, Situation.OUTSIDE_HOURS, Situation.NOT_DUE) and explanation.runs_at:
        lines.append(_("Next run: %(at)s.") % {"at": _time(explanation.runs_at)})
    if not explanation.is_polling and explanation.situation in _WOULD_START:
        lines.append(_("Polling is stopped: nothing starts until the engine runs."))
    return lines


def describe_holder(holder: Holder) -> str:
    words = {"name": ready_name(holder.name), "since": _time(holder.since), "poller": holder.poller_id}
    if holder.node_id is None and holder.origin == Origin.PROBE:
        return _("a probe has held it since %(since)s") % words
    if holder.node_id is None:
        return _('a manual query ("%(name)s") has held it since %(since)s') % words
    if holder.poller_id is None:
        return _("%(name)s has held it since %(since)s") % words
    return _("%(name)s has held it since %(since)s, on poller #%(poller)s") % words


def _say_running(explanation: Explanation) -> list[str]:
    holder = explanation.holder
    words = {"since": _time(explanation.since), "poller": holder.poller_id if holder else "-"}
    lines = [_("Running since %(since)s, on poller #%(poller)s.") % words]
    if holder and holder.node_id != holder.master_node_id:
        lines.append(_("Chain member running now: %(name)s.") % {"name": ready_name(holder.name)})
    return lines


def _say_suspended(explanation: Explanation) -> list[str]:
    words = {"since": _time(explanation.since), "reason": explanation.reason, "probe": _time(explanation.until)}
    lines = [_("It has been suspended since %(since)s, after failing too often (%(reason)s).") % words]
    if explanation.until:
        return [*lines, _("Its OLT is asked next at %(probe)s; if it answers, the node continues.") % words]
    return [*lines, _("It must be resumed by hand.")]


def _say_chained(explanation: Explanation) -> list[str]:
    if explanation.master is None:
        return []
    words = {"id": explanation.master.node_id, "name": explanation.master.name}
    with_master = _("It runs after its master, node %(id)s (%(name)s). Of the master:") % words
    return [with_master, *sentences(explanation.master)]


def _say_paused(explanation: Explanation) -> list[str]:
    words = {"until": _time(explanation.until), "note": explanation.reason}
    text = _("It is paused until %(until)s: %(note)s.") if explanation.reason else _("It is paused until %(until)s.")
    return [text % words]


def _say_awaits_discovery(explanation: Explanation) -> list[str]:
    """Say that the discovery comes first, where that stands, and what to do when it does not come by itself."""
    lines = [_("It reads ONUs and waits for the first complete discovery of its OLT; it runs right after that.")]
    discovery = explanation.discovery
    if discovery is None:
        return [*lines, _("This OLT has no discovery: put a discovery job on it.")]
    words = {"id": discovery.node_id, "name": discovery.name}
    lines += [_("The discovery is node %(id)s (%(name)s):") % words, *sentences(discovery)]
    if explanation.reason == FirstDiscovery.DISABLED:
        lines.append(_("Enable the discovery, or no ONU of this OLT is read."))
    if explanation.reason == FirstDiscovery.SUSPENDED:
        lines.append(_("Find out why the discovery fails: until it succeeds, no ONU of this OLT is read."))
    return lines


def _waits(explanation: Explanation) -> list[str]:
    if explanation.place is None:
        return []
    place = _("Place %(number)s of %(size)s in the queue, %(on_olt)s on its OLT.") % asdict(explanation.place)
    return [_for_what(explanation.place, explanation.holder), place]


def _for_what(place: QueuePlace, holder: Holder | None) -> str:
    if place.reason is WaitReason.OLT_BUSY and holder:
        return _("Its OLT is busy: %(holder)s.") % {"holder": describe_holder(holder)}
    is_alone = len(our_shards()) == 1
    return {
        None: _("Nothing holds it back: it starts at once."),
        WaitReason.OLT_BUSY: _("Another node of its OLT goes first."),
        WaitReason.NO_POLLER: _("No poller is free.") if is_alone else _("No poller of its engine is free."),
        WaitReason.FIRST_DISCOVERY: _("The first discovery of its OLT comes first."),
        WaitReason.OLT_UNREACHABLE: _("Its OLT does not answer; another node is checking whether it is back."),
    }[place.reason]


def _time(moment: datetime | None) -> str:
    return f"{localtime(moment):%Y-%m-%d %H:%M:%S}" if moment else "-"


_PLAIN: dict[Situation, Promise] = {
    Situation.OLT_DISABLED: gettext_lazy("Its OLT is disabled."),
    Situation.DISABLED: gettext_lazy("It is disabled."),
    Situation.RETRY: gettext_lazy("Its last try failed; it is tried again at %(at)s."),
    Situation.GAVE_WAY: gettext_lazy("It yielded to other runs and continues as soon as its OLT is free."),
    Situation.QUEUED: gettext_lazy("It has been due since %(since)s and is waiting."),
    Situation.OUTSIDE_HOURS: gettext_lazy("It is outside the hours in which it may run; they begin at %(at)s."),
    Situation.NOT_DUE: gettext_lazy("It is not due yet."),
    Situation.NOT_SCHEDULED: gettext_lazy("It has no next run: enable it again to give it one."),
}
_SAY: dict[Situation, Callable[[Explanation], list[str]]] = {
    Situation.RUNNING: _say_running,
    Situation.SUSPENDED: _say_suspended,
    Situation.CHAINED: _say_chained,
    Situation.PAUSED: _say_paused,
    Situation.AWAITS_DISCOVERY: _say_awaits_discovery,
}
_WOULD_START = frozenset(
    {Situation.RETRY, Situation.GAVE_WAY, Situation.QUEUED, Situation.OUTSIDE_HOURS, Situation.NOT_DUE}
)


_OF_WAITING = ("run_requested_at", "next_run_at", "interval_seconds", "priority")


def load_explanation(node_id: int, now: datetime) -> Explanation:
    """Explain a node; UnknownNode when there is none. A chain member is explained with its master."""
    olt_id = WorkflowNode.objects.filter(id=node_id).values_list("workflow__olt_id", flat=True).first()
    if olt_id is None:
        raise UnknownNode(node_id)
    return load_explanations(olt_id, now)[node_id]


def load_explanations(olt_id: int, now: datetime) -> dict[int, Explanation]:
    """Explain every node of an OLT; nine queries, however many there are, and three more before it is discovered."""
    nodes = _load_nodes(olt_id)
    waits = load_waits({olt_id} if any(node.workflow.olt.discovered_at is None for node in nodes) else ())
    is_polling, holder, pause = load_is_polling(now, olt_id=olt_id), load_holder(olt_id), load_pause(olt_id, now)
    waiting, places = _load_waiting(olt_id), _load_places(olt_id, now)
    facts = [
        Facts(
            node,
            is_polling,
            window=window_of(node.job),
            first_discovery=waits.get(node.id),
            holder=holder,
            pause=pause,
            waiting=waiting.get(node.id),
            place=places.get(node.id),
        )
        for node in nodes
    ]
    masters = {each.node.id: explain(each, now) for each in facts if each.node.master_node_id is None}
    members = {
        each.node.id: explain_member(each, masters[each.node.master_node_id], now)
        for each in facts
        if each.node.master_node_id is not None
    }
    return add_discovery(masters | members)


def _load_nodes(olt_id: int) -> QuerySet[WorkflowNode]:
    return (
        WorkflowNode.objects.select_related("job", "workflow__olt")
        .only(
            "enabled",
            "master_node_id",
            "next_run_at",
            "run_requested_at",
            "suspended_at",
            "suspend_reason",
            "job__name",
            "job__hours_from",
            "job__hours_to",
            "job__query_type",
            "workflow__olt__discovered_at",
            "workflow__olt__name",
            "workflow__olt__enabled",
            "workflow__olt__next_probe_at",
        )
        .filter(workflow__olt_id=olt_id)
    )


def _load_waiting(olt_id: int) -> dict[int, DueNode]:
    """Load the runs that let go of the OLT, the latest of each node."""
    waiting = Execution.objects.filter(olt_id=olt_id, finished_at__isnull=True, status=ExecutionState.WAITING)
    rows = waiting.filter(node__isnull=False, resume_at__isnull=False).select_related("node").order_by("id")
    runs: dict[int, DueNode] = {}
    for row in rows.only("olt_id", "failure_kind", "resume_at", *(f"node__{name}" for name in _OF_WAITING)):
        if (node := row.node) and row.resume_at:
            runs[node.id] = DueNode(
                node_id=node.id,
                olt_id=row.olt_id,
                due_at=node.run_requested_at or row.resume_at,
                interval_seconds=node.interval_seconds,
                priority=node.priority,
                rank=0,
                execution_id=row.id,
                is_retry=bool(row.failure_kind),
                next_run_at=node.next_run_at,
            )
    return runs


def _load_places(olt_id: int, now: datetime) -> dict[int, QueuePlace]:
    candidates, shard = load_candidates(now), shard_of(olt_id, our_shards())
    # The nodes of other engines wait for other pollers.
    queue = [waiting for waiting in candidates.due if shard.holds(waiting.olt_id)]
    rivals = order_within_olt([waiting for waiting in queue if waiting.olt_id == olt_id], now)
    on_olt = {waiting.node_id: number for number, waiting in enumerate(rivals, start=1)}
    return {
        waiting.node_id: QueuePlace(
            number, len(queue), on_olt[waiting.node_id], candidates.reasons.get(waiting.node_id)
        )
        for number, waiting in enumerate(queue, start=1)
        if waiting.node_id in on_olt
    }
