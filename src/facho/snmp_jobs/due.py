"""Loads which nodes are due or asked for, and which wait for the first discovery of their OLT."""

from collections import defaultdict
from collections.abc import Collection
from datetime import datetime
from functools import cache
from typing import Any

from django.db.models import DateTimeField, Exists, Q, QuerySet
from django.db.models.functions import Coalesce

from facho.hosts.models import Reachability
from facho.hosts.store import is_paused
from facho.infrastructure.bulk import in_shard
from facho.infrastructure.statements import Given, Select
from facho.polling.domain.execution_state import RANK, QueryType
from facho.polling.domain.lease import WHOLE, Shard
from facho.polling.domain.planning import (
    SCOUT_ASKS_WITHIN,
    DiscoveryNode,
    DueNode,
    FirstDiscovery,
    judge_first_discovery,
    must_wait_for_discovery,
)
from facho.polling.vendors.loader import load_definitions
from facho.snmp_jobs.models import SnmpJobOid, WorkflowNode


def due_nodes(now: datetime | Given) -> QuerySet[WorkflowNode]:
    """Select the masters that may start: enabled, not suspended, on an OLT that is enabled and not paused."""
    return startable_nodes(now).filter(Q(next_run_at__lte=now) | Q(run_requested_at__isnull=False))


def startable_nodes(now: datetime | Given) -> QuerySet[WorkflowNode]:
    """Select the masters that only the time keeps from starting."""
    return WorkflowNode.objects.filter(
        ~is_paused("workflow__olt_id", now),
        enabled=True,
        is_chain_node=False,
        suspended_at__isnull=True,
        workflow__olt__enabled=True,
    )


@cache
def _due_in(shard: Shard) -> Select:
    return Select(lambda: _select_due(shard))


def is_any_due(shard: Shard) -> Q:
    """Match every row if `load_due_nodes` would find a node of the shard; its times are given by the same names."""
    return Q(Exists(_select_due(shard).order_by()))


def times_of(now: datetime) -> dict[str, datetime]:
    return {"now": now, "soon": now + SCOUT_ASKS_WITHIN}


def _select_due(shard: Shard) -> QuerySet[WorkflowNode, Any]:
    now = Given("now", DateTimeField())
    asks_soon = Q(
        workflow__olt__reachability=Reachability.DOWN,
        consecutive_failures__gt=0,
        next_run_at__lte=Given("soon", DateTimeField()),
    )
    is_due = Q(next_run_at__lte=now) | Q(run_requested_at__isnull=False)
    nodes = startable_nodes(now).filter(is_due | asks_soon, in_shard("workflow__olt_id", shard))
    return nodes.annotate(due_at=Coalesce("run_requested_at", "next_run_at")).values_list(
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
        "workflow__olt__discovered_at",
    )


def load_due_nodes(now: datetime, shard: Shard = WHOLE) -> list[DueNode]:
    """Load what is due in the shard, in one query; with it the failed nodes of silent OLTs that ask soon."""
    due = _due_in(shard).rows(**times_of(now))
    waits = load_waits({olt_id for _, olt_id, *_, discovered_at in due if discovered_at is None})
    return [
        DueNode(
            node_id=node_id,
            olt_id=olt_id,
            due_at=due_at,
            interval_seconds=interval,
            priority=priority,
            rank=RANK[QueryType(query_type)],
            is_run_now=asked_at is not None,
            failures=failures,
            is_olt_silent=reachability == Reachability.DOWN,
            group=group,
            waits_for_discovery=node_id in waits,
        )
        for node_id, olt_id, due_at, asked_at, interval, priority, query_type, failures, reachability, group, _ in due
    ]


def is_another_due(olt_id: int, *, except_node_id: int | None, now: datetime) -> bool:
    others = due_nodes(now).filter(workflow__olt_id=olt_id)
    return (others.exclude(id=except_node_id) if except_node_id else others).exists()


def load_waits(undiscovered: Collection[int]) -> dict[int, FirstDiscovery]:
    """Return the nodes of these OLTs, which were never discovered, that wait for it; three queries, none for no OLT."""
    if not undiscovered:
        return {}
    rows = WorkflowNode.objects.filter(workflow__olt_id__in=undiscovered).order_by()
    nodes = list(rows.values_list("id", "workflow__olt_id", "workflow__olt__vendor", "job_id", "job__query_type"))
    found = _load_discoveries(undiscovered)
    reads: dict[int, list[tuple[str, str]]] = defaultdict(list)
    jobs = SnmpJobOid.objects.filter(job_id__in={job_id for *_, job_id, _ in nodes})
    for job_id, key, oid in jobs.values_list("job_id", "column_key", "oid"):
        reads[job_id].append((key, oid))
    return {
        node_id: found[olt_id]
        for node_id, olt_id, vendor, job_id, query_type in nodes
        if must_wait_for_discovery(found[olt_id], reads_onus=_reads_onus(vendor, QueryType(query_type), reads[job_id]))
    }


def _load_discoveries(undiscovered: Collection[int]) -> dict[int, FirstDiscovery]:
    """Return the state of the first discovery of each OLT; one that is chained runs with its master."""
    rows = WorkflowNode.objects.filter(
        workflow__olt_id__in=undiscovered, job__query_type=QueryType.DISCOVERY.value
    ).order_by()
    states = ("enabled", "suspended_at", "master_node__enabled", "master_node__suspended_at")
    nodes: dict[int, list[DiscoveryNode]] = defaultdict(list)
    for olt_id, enabled, suspended_at, master_enabled, master_suspended_at in rows.values_list(
        "workflow__olt_id", *states
    ):
        is_suspended = suspended_at is not None or master_suspended_at is not None
        nodes[olt_id].append(DiscoveryNode(enabled and master_enabled is not False, is_suspended))
    return {olt_id: judge_first_discovery(is_discovered=False, nodes=nodes[olt_id]) for olt_id in undiscovered}


def _reads_onus(vendor: str, query_type: QueryType, reads: Collection[tuple[str, str]]) -> bool:
    definition = load_definitions().get(vendor)
    if definition is None or query_type is QueryType.DISCOVERY:
        return False
    return definition.reads_onus([key for key, _ in reads], [oid for _, oid in reads])
