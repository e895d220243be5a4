"""Loads what explains a node: its rows, who holds its OLT, pauses, and its place in the queue."""

from datetime import datetime

from facho.executions.models import Execution
from facho.hosts.pauses import load_pause
from facho.polling.domain.execution_state import ExecutionState
from facho.polling.domain.planning import order_within_olt
from facho.snmp_jobs.models import WorkflowNode
from facho.snmp_jobs.store import UnknownNode, window_of
from facho.zabbix_pollers.activity import load_holder, load_is_polling
from facho.zabbix_pollers.explain import (
    Explanation,
    Facts,
    NodeFacts,
    PauseFacts,
    Place,
    WaitingRun,
    explain,
    explain_member,
)
from facho.zabbix_pollers.queue_read_model import load_candidates


def load_explanation(node_id: int, now: datetime) -> Explanation:
    """Explain a node; UnknownNode when there is none. A chain member is explained with its master."""
    node = _load_node(node_id)
    facts = _load_facts(node, now)
    if node.master_node_id is None:
        return explain(facts, now)
    return explain_member(facts, load_explanation(node.master_node_id, now), now)


def _load_node(node_id: int) -> NodeFacts:
    row = (
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
            "workflow__olt__name",
            "workflow__olt__enabled",
            "workflow__olt__next_probe_at",
        )
        .filter(id=node_id)
        .first()
    )
    if row is None:
        raise UnknownNode(node_id)
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
    )


def _load_facts(node: NodeFacts, now: datetime) -> Facts:
    pause = load_pause(node.olt_id, now)
    return Facts(
        node,
        is_polling=load_is_polling(now),
        holder=load_holder(node.olt_id),
        pause=PauseFacts(pause.starts_at, pause.ends_at, pause.note) if pause else None,
        waiting=_load_waiting(node),
        place=_load_place(node, now),
    )


def _load_waiting(node: NodeFacts) -> WaitingRun | None:
    waiting = Execution.objects.filter(node_id=node.id, finished_at__isnull=True, status=ExecutionState.WAITING)
    row = waiting.only("failure_kind", "resume_at").order_by("-id").first()
    if row is None or row.resume_at is None:
        return None
    return WaitingRun(row.id, is_retry=bool(row.failure_kind), due_at=node.run_requested_at or row.resume_at)


def _load_place(node: NodeFacts, now: datetime) -> Place | None:
    candidates = load_candidates(now)
    ids = [waiting.node_id for waiting in candidates.due]
    if node.id not in ids:
        return None
    rivals = order_within_olt([waiting for waiting in candidates.due if waiting.olt_id == node.olt_id], now)
    return Place(
        number=ids.index(node.id) + 1,
        size=len(ids),
        on_olt=[waiting.node_id for waiting in rivals].index(node.id) + 1,
        reason=candidates.reasons.get(node.id),
    )
