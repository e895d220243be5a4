"""The nodes that failed too often and wait for a probe or a person."""

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Min

from facho.accounts.scope import OltScope
from facho.executions.failure_words import FAILURES_IN_SHORT
from facho.snmp_jobs.models import WorkflowNode

SUSPENDED_LINES = 8


@dataclass(frozen=True, slots=True)
class SuspendedOlt:
    """What is suspended of one OLT for one reason, since the first of it was."""

    olt_id: int
    olt: str
    nodes: int
    since: datetime
    next_probe_at: datetime | None
    why: str


@dataclass(frozen=True, slots=True)
class Suspended:
    """The first OLTs, and how many nodes there are in all."""

    rows: list[SuspendedOlt]
    nodes: int


def load_suspended(scope: OltScope) -> Suspended:
    """Load the suspended nodes of the OLTs in scope that nobody switched off, by OLT and reason; one query."""
    suspended = WorkflowNode.objects.filter(suspended_at__isnull=False, enabled=True, workflow__olt__enabled=True)
    nodes = scope.narrow(suspended, "workflow__olt")
    columns = ("workflow__olt_id", "workflow__olt__name", "workflow__olt__next_probe_at", "suspend_reason")
    grouped = nodes.order_by().values_list(*columns).annotate(count=Count("id"), since=Min("suspended_at"))
    rows = [
        SuspendedOlt(olt_id, olt, count, since, probe_at, str(FAILURES_IN_SHORT.get(reason, reason)))
        for olt_id, olt, probe_at, reason, count, since in grouped.order_by("since")
    ]
    return Suspended(rows[:SUSPENDED_LINES], sum(row.nodes for row in rows))
