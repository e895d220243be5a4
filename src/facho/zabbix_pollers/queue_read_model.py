"""The queue as rows tell it: masters that are due and not active, in the order in which pollers take them."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Q

from facho.polling.domain.node_queue import NodeQueue
from facho.polling.domain.planning import DueNode, WaitReason
from facho.snmp_jobs.due import load_due_nodes
from facho.snmp_jobs.models import WorkflowNode
from facho.zabbix_pollers.activity import active_executions
from facho.zabbix_pollers.models import Poller


@dataclass(frozen=True, slots=True)
class WaitingNode:
    """A node in the queue; `reason` is None when nothing keeps it from the next tick."""

    id: int
    name: str
    olt_id: int
    olt: str
    delayed: bool
    delay_time: float
    priority: int
    interval_seconds: int
    due_at: datetime
    run_now: bool
    chain_nodes_count: int
    reason: WaitReason | None


@dataclass(frozen=True, slots=True)
class QueueView:
    """The length of the queue and its first nodes."""

    size: int
    is_overload: bool
    next_nodes: tuple[WaitingNode, ...]


def load_queue(now: datetime, *, count: int = 10) -> QueueView:
    """Look at the queue without disturbing it; four queries, however long it is."""
    active = list(active_executions().values_list("olt_id", "node_id", "poller_id"))
    busy_nodes = {node_id for _, node_id, _ in active}
    queue = NodeQueue(node for node in load_due_nodes(now) if node.node_id not in busy_nodes)
    taken = {poller_id for *_, poller_id in active if poller_id is not None}
    return QueueView(
        size=queue.qsize(),
        is_overload=queue.is_overload(now=now),
        next_nodes=_describe(
            queue.peek(count, now=now),
            busy_olts={olt_id for olt_id, *_ in active},
            has_free_poller=Poller.objects.exclude(poller_id__in=taken).exists(),
            now=now,
        ),
    )


def _describe(
    due: Sequence[DueNode], *, busy_olts: Collection[int], has_free_poller: bool, now: datetime
) -> tuple[WaitingNode, ...]:
    rows = (
        WorkflowNode.objects.filter(id__in=[node.node_id for node in due])
        .annotate(chain_nodes_count=Count("chain_nodes", filter=Q(chain_nodes__enabled=True)))
        .values_list("id", "job__name", "workflow__olt__name", "chain_nodes_count")
    )
    known = {node_id: (name, olt, chained) for node_id, name, olt, chained in rows}
    return tuple(
        WaitingNode(
            id=node.node_id,
            name=known[node.node_id][0],
            olt_id=node.olt_id,
            olt=known[node.node_id][1],
            delayed=node.is_delayed(now),
            delay_time=round(node.delay(now).total_seconds(), 1),
            priority=node.priority,
            interval_seconds=node.interval_seconds,
            due_at=node.due_at,
            run_now=node.is_run_now,
            chain_nodes_count=known[node.node_id][2],
            reason=_reason(node, busy_olts, has_free_poller=has_free_poller),
        )
        for node in due
        if node.node_id in known
    )


def _reason(node: DueNode, busy_olts: Collection[int], *, has_free_poller: bool) -> WaitReason | None:
    if node.olt_id in busy_olts:
        return WaitReason.OLT_BUSY
    return None if has_free_poller else WaitReason.NO_POLLER
