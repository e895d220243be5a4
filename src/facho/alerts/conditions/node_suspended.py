"""Nodes that failed too often, unless their OLT does not answer at all."""

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from facho.alerts.condition import Condition, DefaultRule, Finding, Findings, KnownFacts, Question, plain
from facho.alerts.models import Severity
from facho.executions.run import FAILURES
from facho.hosts.models import Reachability
from facho.infrastructure.statements import Select
from facho.polling.domain.execution_state import UNREACHABLE
from facho.snmp_jobs.application import ready_name
from facho.snmp_jobs.models import WorkflowNode

_REASONS = {UNREACHABLE: gettext_lazy("its OLT does not answer"), **FAILURES}


_COLUMNS = ("id", "job__name", "workflow__olt_id", "workflow__olt__name", "workflow__olt__reachability")
_SUSPENDED = Select(
    lambda: (
        WorkflowNode.objects.filter(suspended_at__isnull=False, enabled=True, workflow__olt__enabled=True)
        .order_by()
        .values_list(*_COLUMNS, "suspend_reason", "suspended_at")
    )
)


def find_suspended_nodes(question: Question) -> Findings:
    """Find suspended nodes that are enabled; an unreachable OLT has an alert of its own."""
    return {
        f"node {node_id}": Finding(
            {"olt": plain(olt), "node_id": node_id, "node": plain(job), "reason": reason},
            olt_id=olt_id,
            since=since,
            is_known=reason != UNREACHABLE and reachability != Reachability.DOWN,
        )
        for node_id, job, olt_id, olt, reachability, reason, since in _SUSPENDED.rows()
    }


def sentence(facts: KnownFacts) -> str:
    named = {"node": ready_name(facts["node"]), "reason": _REASONS.get(facts["reason"], facts["reason"])}
    return _("%(olt)s: node %(node)s is suspended: %(reason)s") % KnownFacts({**facts, **named})


NODE_SUSPENDED = Condition(
    code="node_suspended",
    label=gettext_lazy("node suspended"),
    looks_for=gettext_lazy("Nodes that failed too often, unless their OLT does not answer at all."),
    find=find_suspended_nodes,
    sentence=sentence,
    default_rule=DefaultRule(gettext_lazy("Node suspended"), Severity.WARNING, hold_minutes=10),
)
