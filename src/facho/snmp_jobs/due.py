"""Loads what may start: nodes that are due or asked for, and runs that wait to go on."""

from datetime import datetime

from django.db.models import Case, Exists, OuterRef, Q, QuerySet, Value, When
from django.db.models.functions import Coalesce

from facho.hosts.models import Reachability
from facho.hosts.pauses import is_paused
from facho.polling.domain.planning import DueNode
from facho.polling.domain.task_type import RANK, QueryType
from facho.snmp_jobs.models import WorkflowNode


def due_nodes(now: datetime) -> QuerySet[WorkflowNode]:
    """Select the masters that may start: enabled, not suspended, on an OLT that is enabled and not paused."""
    return startable_nodes(now).filter(Q(next_run_at__lte=now) | Q(run_requested_at__isnull=False))


def startable_nodes(now: datetime) -> QuerySet[WorkflowNode]:
    """Select the masters that nothing but the time keeps from starting."""
    return WorkflowNode.objects.filter(
        ~is_paused("workflow__olt_id", now),
        enabled=True,
        is_chain_node=False,
        suspended_at__isnull=True,
        workflow__olt__enabled=True,
    )


def load_due_nodes(now: datetime) -> list[DueNode]:
    """Load what is due as plain values, in one query."""
    rows = (
        due_nodes(now)
        .annotate(due_at=Coalesce("run_requested_at", "next_run_at"), waits_for_scout=_waits_for_scout())
        .values_list(
            "id",
            "workflow__olt_id",
            "due_at",
            "run_requested_at",
            "interval_seconds",
            "priority",
            "job__query_type",
            "waits_for_scout",
        )
    )
    return [
        DueNode(
            node_id=node_id,
            olt_id=olt_id,
            due_at=due_at,
            interval_seconds=interval,
            priority=priority,
            rank=RANK[QueryType(query_type)],
            is_run_now=requested_at is not None,
            waits_for_scout=waits,
        )
        for node_id, olt_id, due_at, requested_at, interval, priority, query_type, waits in rows
    ]


def is_another_due(olt_id: int, *, except_node_id: int | None, now: datetime) -> bool:
    """Tell whether another node of the OLT could use it right now."""
    others = due_nodes(now).filter(workflow__olt_id=olt_id)
    return (others.exclude(id=except_node_id) if except_node_id else others).exists()


def _waits_for_scout() -> Case:
    """While an OLT is silent, one node that already failed asks again; the others keep their attempts."""
    scouts = WorkflowNode.objects.filter(
        workflow_id=OuterRef("workflow_id"),
        enabled=True,
        is_chain_node=False,
        suspended_at__isnull=True,
        consecutive_failures__gt=0,
    )
    return Case(
        When(
            Q(workflow__olt__reachability=Reachability.DOWN)
            & Q(consecutive_failures=0, run_requested_at__isnull=True)
            & Exists(scouts.exclude(id=OuterRef("id"))),
            then=Value(True),
        ),
        default=Value(False),
    )
