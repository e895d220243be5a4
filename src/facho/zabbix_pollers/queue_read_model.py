"""The queue as rows tell it: masters that are due and not active, in the order in which pollers take them."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from django.db.models import OuterRef, Q, Subquery

from facho.accounts.scope import EVERYTHING, OltScope
from facho.executions.models import Execution
from facho.executions.waiting import load_unfinished
from facho.polling.domain.candidates import choose_candidates
from facho.polling.domain.lateness import lateness_histogram
from facho.polling.domain.node_queue import NodeQueue
from facho.polling.domain.planning import DueNode, WaitReason, order_between_olts, plan_groups
from facho.snmp_jobs.due import load_due_nodes
from facho.snmp_jobs.models import WorkflowNode
from facho.zabbix_pollers.activity import active_executions
from facho.zabbix_pollers.composite_node import ChainNode, CompositeNode
from facho.zabbix_pollers.models import Poller


@dataclass(frozen=True, slots=True)
class Retry:
    """A run whose last try failed, until its next one."""

    execution_id: int
    node_id: int
    name: str
    olt_id: int
    olt: str
    resume_at: datetime


@dataclass(frozen=True, slots=True)
class Candidates:
    """Everyone who may start or go on: `due` in the order of the queue, `retries` in the order of their time."""

    due: tuple[DueNode, ...]
    reasons: Mapping[int, WaitReason]
    retries: tuple[DueNode, ...]


@dataclass(frozen=True, slots=True)
class QueueView:
    """The length of the queue, how late its nodes are, its first ones, and the retries that are not due yet."""

    size: int
    is_overload: bool
    # An overload that more pollers would not end.
    is_held_by_silence: bool
    # Seconds, and how many nodes are at least that late.
    lateness: Mapping[int, int]
    next_nodes: tuple[CompositeNode, ...]
    retries: tuple[Retry, ...]


class _Described(NamedTuple):
    """What the queue shows of a node beside its due time."""

    name: str
    olt: str
    enabled: bool
    nextcheck: datetime | None
    lastcheck: datetime | None
    last_execution_id: int | None


def load_queue(now: datetime, *, count: int = 10, scope: OltScope = EVERYTHING) -> QueueView:
    """Look at the queue without disturbing it; seven queries, however long it is. Only OLTs in scope are named."""
    candidates = load_candidates(now)
    queue = NodeQueue(candidates.due)
    seen = scope.visible(node.olt_id for node in (*candidates.due, *candidates.retries))
    first = [node for node in candidates.due if node.olt_id in seen][:count]
    retries = [node for node in candidates.retries if node.olt_id in seen][:count]
    described = _describe([node.node_id for node in (*first, *retries)])
    return QueueView(
        size=queue.qsize(),
        is_overload=queue.is_overload(now=now),
        is_held_by_silence=queue.is_held_by_silence(now=now),
        lateness=lateness_histogram(node.delay(now) for node in candidates.due),
        next_nodes=_composites(first, described, candidates.reasons, now),
        retries=_retries(retries, described),
    )


def load_candidates(now: datetime) -> Candidates:
    """Load everyone who waits, and why, as a tick at this moment would find them; four queries."""
    active = list(active_executions().values_list("olt_id", "node_id", "poller_id"))
    running = {node_id for _, node_id, _ in active}
    idle = [node for node in load_due_nodes(now) if node.node_id not in running]
    chosen = choose_candidates(idle, load_unfinished(now).waiting, now)
    due = order_between_olts(chosen.ready, now)
    taken = {poller_id for *_, poller_id in active if poller_id is not None}
    free: dict[str, list[int]] = {}
    for poller_id, group in Poller.objects.order_by("poller_id").values_list("poller_id", "group"):
        free.setdefault(group, []).extend([] if poller_id in taken else [poller_id])
    plan = plan_groups(due, free_pollers=free, busy_olts={olt_id for olt_id, *_ in active}, now=now)
    return Candidates(tuple(due), {node.node_id: reason for node, reason in plan.waiting}, chosen.later)


def _describe(node_ids: Sequence[int]) -> dict[int, _Described]:
    if not node_ids:
        return {}
    ended = Execution.objects.filter(node=OuterRef("id"), master_execution__isnull=True, finished_at__isnull=False)
    rows = (
        WorkflowNode.objects.filter(id__in=node_ids)
        .annotate(last_execution_id=Subquery(ended.order_by("-created_at", "-id").values("id")[:1]))
        .values_list(
            "id", "job__name", "workflow__olt__name", "enabled", "next_run_at", "last_run_at", "last_execution_id"
        )
    )
    return {node_id: _Described(*values) for node_id, *values in rows}


def _composites(
    due: Sequence[DueNode], described: Mapping[int, _Described], reasons: Mapping[int, WaitReason], now: datetime
) -> tuple[CompositeNode, ...]:
    known = [node for node in due if node.node_id in described]
    chains = _load_chains([node.node_id for node in known])
    seconds = _load_seconds([described[node.node_id].last_execution_id for node in known])
    return tuple(
        CompositeNode(
            due=node,
            name=about.name,
            olt=about.olt,
            enabled=about.enabled,
            nextcheck=about.nextcheck,
            lastcheck=about.lastcheck,
            execution_time=seconds.get(about.last_execution_id),
            chain_nodes=tuple(chains[node.node_id]),
            seen_at=now,
            reason=reasons.get(node.node_id),
        )
        for node, about in ((node, described[node.node_id]) for node in known)
    )


def _load_chains(master_ids: Sequence[int]) -> dict[int | None, list[ChainNode]]:
    chains: dict[int | None, list[ChainNode]] = defaultdict(list)
    if master_ids:
        members = WorkflowNode.objects.filter(master_node_id__in=master_ids, enabled=True).order_by("priority", "id")
        for master_id, node_id, name in members.values_list("master_node_id", "id", "job__name"):
            chains[master_id].append(ChainNode(node_id, name))
    return chains


def _load_seconds(execution_ids: Iterable[int | None]) -> dict[int | None, float]:
    """Sum the time of each master's run and of the chain that followed it."""
    wanted = [execution_id for execution_id in execution_ids if execution_id is not None]
    milliseconds: dict[int | None, int] = defaultdict(int)
    if wanted:
        runs = Execution.objects.filter(Q(id__in=wanted) | Q(master_execution_id__in=wanted)).order_by()
        for run_id, master_id, duration_ms in runs.values_list("id", "master_execution_id", "duration_ms"):
            milliseconds[master_id or run_id] += duration_ms
    return {execution_id: total / 1000 for execution_id, total in milliseconds.items()}


def _retries(waiting: Sequence[DueNode], described: Mapping[int, _Described]) -> tuple[Retry, ...]:
    return tuple(
        Retry(
            execution_id=node.execution_id,
            node_id=node.node_id,
            name=described[node.node_id].name,
            olt_id=node.olt_id,
            olt=described[node.node_id].olt,
            resume_at=node.due_at,
        )
        for node in waiting
        if node.execution_id is not None and node.node_id in described
    )
