"""Nodes that failed too often."""

from facho.alerts.conditions.finding import Finding, Findings, Question, olt_place, plain
from facho.hosts.models import Reachability
from facho.polling.domain.suspension import UNREACHABLE
from facho.snmp_jobs.models import WorkflowNode


def find_suspended_nodes(question: Question) -> Findings:
    """Find suspended nodes that nobody switched off; that their OLT is silent is told of the OLT."""
    nodes = WorkflowNode.objects.filter(suspended_at__isnull=False, enabled=True, workflow__olt__enabled=True)
    columns = ("id", "job__name", "workflow__olt_id", "workflow__olt__name", "workflow__olt__reachability")
    rows = nodes.order_by().values_list(*columns, "suspend_reason", "suspended_at")
    return {
        f"node {node_id}": Finding(
            {"olt": plain(olt), "node_id": node_id, "node": plain(job), "reason": reason},
            olt_id=olt_id,
            place=olt_place(olt_id),
            since=since,
            is_known=reason != UNREACHABLE and reachability != Reachability.DOWN,
        )
        for node_id, job, olt_id, olt, reachability, reason, since in rows
    }
