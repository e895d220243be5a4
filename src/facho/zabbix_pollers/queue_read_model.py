"""The queue as rows tell it: masters that are due and not active, in the order in which pollers take them."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import OuterRef, Q, Subquery

from facho.accounts.scope import EVERYTHING, OltScope
from facho.executions.models import Execution
from facho.executions.store import load_unfinished
from facho.polling.domain.planning import (
    DueNode,
    NodeQueue,
    WaitReason,
    choose_candidates,
    lateness_histogram,
    order_between_olts,
    plan_groups,
)
from facho.snmp_jobs.due import load_due_nodes
from facho.snmp_jobs.models import WorkflowNode
from facho.zabbix_pollers.activity import active_executions, our_shards
from facho.zabbix_pollers.composite_node import CompositeNode, Step
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
    """Look at the queue without disturbing it; seven queries, however long it is. Only OLTs in scope are named."""
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
    """Load every waiting node and its reason, as a tick at this moment would find them; four queries."""
    active = list(active_executions().values_list("olt_id", "node_id", "poller_id"))
    running = {node_id for _, node_id, _ in active}
    idle = [node for node in load_due_nodes(now) if node.node_id not in running]
    chosen = choose_candidates(idle, load_unfinished(now).waiting, now)
    due = order_between_olts(chosen.ready, now)
    free = load_free_pollers(poller_id for *_, poller_id in active)
    busy, reasons = {olt_id for olt_id, *_ in active}, dict[int, WaitReason]()
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
    rows = (
        WorkflowNode.objects.filter(id__in=due)
        .annotate(last_execution_id=Subquery(ended.order_by("-created_at", "-id").values("id")[:1]))
        .values_list(
            "id", "job__name", "workflow__olt__name", "enabled", "next_run_at", "last_run_at", "last_execution_id"
        )
    )
    known = list(rows)
    chains = load_chains(due)
    # Sum the time of each master's run and of the chain that followed it.
    execution_ids = [last_id for *_, last_id in known if last_id is not None]
    milliseconds: dict[int | None, int] = defaultdict(int)
    if execution_ids:
        runs = Execution.objects.filter(Q(id__in=execution_ids) | Q(master_execution_id__in=execution_ids)).order_by()
        for run_id, master_id, duration_ms in runs.values_list("id", "master_execution_id", "duration_ms"):
            milliseconds[master_id or run_id] += duration_ms
    seconds = {execution_id: total / 1000 for execution_id, total in milliseconds.items()}
    return {
        node_id: CompositeNode(
            due=due[node_id],
            seen_at=now,
            reason=reasons.get(node_id),
            name=name,
            olt=olt,
            enabled=enabled,
            nextcheck=next_run_at,
            lastcheck=last_run_at,
            execution_time=seconds.get(last_id),
            chain_nodes=tuple(chains[node_id]),
        )
        for node_id, name, olt, enabled, next_run_at, last_run_at, last_id in known
    }


def load_chains(master_ids: Collection[int]) -> dict[int | None, list[Step]]:
    """Load the enabled members of each master's chain, in their order."""
    chains: dict[int | None, list[Step]] = defaultdict(list)
    members = WorkflowNode.objects.filter(master_node_id__in=master_ids, enabled=True).order_by("priority", "id")
    for master_id, node_id, name in members.values_list("master_node_id", "id", "job__name"):
        chains[master_id].append(Step(node_id, name))
    return chains
