"""Loads what may start: nodes that are due or asked for, and runs that wait to go on."""

from datetime import datetime

from django.db.models import Q, QuerySet
from django.db.models.functions import Coalesce

from facho.hosts.models import Reachability
from facho.hosts.pauses import is_paused
from facho.polling.domain.candidates import SCOUT_ASKS_WITHIN
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
    """Load what is due as plain values, in one query.

    With them come the failed nodes of silent OLTs that ask soon: the others wait for one of them.
    """
    asks_soon = Q(
        workflow__olt__reachability=Reachability.DOWN,
        consecutive_failures__gt=0,
        next_run_at__lte=now + SCOUT_ASKS_WITHIN,
    )
    is_due = Q(next_run_at__lte=now) | Q(run_requested_at__isnull=False)
    rows = (
        startable_nodes(now)
        .filter(is_due | asks_soon)
        .annotate(due_at=Coalesce("run_requested_at", "next_run_at"))
        .values_list(
            "id",
            "workflow__olt_id",
            "due_at",
            "run_requested_at",
            "interval_seconds",
            "priority",
            "job__query_type",
            "consecutive_failures",
            "workflow__olt__reachability",
            "workflow__olt__poller_group",
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
            failures=failures,
            is_olt_silent=reachability == Reachability.DOWN,
            group=group,
        )
        for node_id, olt_id, due_at, requested_at, interval, priority, query_type, failures, reachability, group in rows
    ]


def is_another_due(olt_id: int, *, except_node_id: int | None, now: datetime) -> bool:
    """Tell whether another node of the OLT could use it right now."""
    others = due_nodes(now).filter(workflow__olt_id=olt_id)
    return (others.exclude(id=except_node_id) if except_node_id else others).exists()
