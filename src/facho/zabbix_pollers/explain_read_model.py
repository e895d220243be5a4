"""Loads what explains the nodes of an OLT: their rows, who holds it, pauses, and their places in the queue."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from facho.executions.models import Execution
from facho.hosts.pauses import load_pause
from facho.polling.domain.execution_state import ExecutionState, QueryType
from facho.polling.domain.first_discovery import FirstDiscovery
from facho.polling.domain.planning import DueNode, order_within_olt
from facho.polling.domain.shard import shard_of
from facho.snmp_jobs.due import load_waits
from facho.snmp_jobs.models import WorkflowNode
from facho.snmp_jobs.store import UnknownNode, window_of
from facho.zabbix_pollers.activity import Holder, load_holder, load_is_polling, our_shards
from facho.zabbix_pollers.explain import (
    Explanation,
    Facts,
    NodeFacts,
    PauseFacts,
    QueuePlace,
    add_discovery,
    explain,
    explain_member,
)
from facho.zabbix_pollers.queue_read_model import load_candidates

_OF_WAITING = ("run_requested_at", "next_run_at", "interval_seconds", "priority")


@dataclass(frozen=True, slots=True)
class _OltFacts:
    """What the nodes of one OLT share; `waiting` and `places` are by node."""

    is_polling: bool
    holder: Holder | None
    pause: PauseFacts | None
    waiting: Mapping[int, DueNode]
    places: Mapping[int, QueuePlace]

    def of(self, node: NodeFacts) -> Facts:
        """Pick what decides about one node."""
        return Facts(
            node,
            is_polling=self.is_polling,
            holder=self.holder,
            pause=self.pause,
            waiting=self.waiting.get(node.id),
            place=self.places.get(node.id),
        )


def load_explanation(node_id: int, now: datetime) -> Explanation:
    """Explain a node; UnknownNode when there is none. A chain member is explained with its master."""
    olt_id = WorkflowNode.objects.filter(id=node_id).values_list("workflow__olt_id", flat=True).first()
    if olt_id is None:
        raise UnknownNode(node_id)
    return load_explanations(olt_id, now)[node_id]


def load_explanations(olt_id: int, now: datetime) -> dict[int, Explanation]:
    """Explain every node of an OLT; nine queries, however many there are, and three more before it is discovered."""
    nodes, shared = _load_nodes(olt_id), _load_olt(olt_id, now)
    masters = {node.id: explain(shared.of(node), now) for node in nodes if node.master_node_id is None}
    members = {
        node.id: explain_member(shared.of(node), masters[node.master_node_id], now)
        for node in nodes
        if node.master_node_id is not None
    }
    return add_discovery(masters | members)


def _load_nodes(olt_id: int) -> list[NodeFacts]:
    rows = (
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
    nodes = list(rows)
    waits = load_waits({olt_id} if any(row.workflow.olt.discovered_at is None for row in nodes) else ())
    return [_node(row, waits.get(row.id)) for row in nodes]


def _node(row: WorkflowNode, first_discovery: FirstDiscovery | None) -> NodeFacts:
    return NodeFacts(
        id=row.id,
        name=row.job.name,
        olt_id=row.workflow.olt_id,
        olt=row.workflow.olt.name,
        enabled=row.enabled,
        olt_enabled=row.workflow.olt.enabled,
        next_run_at=row.next_run_at,
        run_requested_at=row.run_requested_at,
        suspended_at=row.suspended_at,
        suspend_reason=row.suspend_reason,
        next_probe_at=row.workflow.olt.next_probe_at,
        window=window_of(row.job),
        master_node_id=row.master_node_id,
        is_discovery=row.job.query_type == QueryType.DISCOVERY,
        first_discovery=first_discovery,
    )


def _load_olt(olt_id: int, now: datetime) -> _OltFacts:
    pause = load_pause(olt_id, now)
    return _OltFacts(
        is_polling=load_is_polling(now, olt_id=olt_id),
        holder=load_holder(olt_id),
        pause=PauseFacts(pause.starts_at, pause.ends_at, pause.note) if pause else None,
        waiting=_load_waiting(olt_id),
        places=_load_places(olt_id, now),
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
            number=number,
            size=len(queue),
            on_olt=on_olt[waiting.node_id],
            reason=candidates.reasons.get(waiting.node_id),
        )
        for number, waiting in enumerate(queue, start=1)
        if waiting.node_id in on_olt
    }
