"""Lists and details of what is known. Every queryset names its columns, so no secret is even loaded."""

from typing import Any

from django.db.models import Count, IntegerField, OuterRef, Prefetch, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce
from rest_framework import viewsets
from rest_framework.serializers import BaseSerializer

from facho.api import filters
from facho.api.olt_inventory import OltInventory
from facho.api.operations import ExecutionOperations, NodeOperations, OltOperations
from facho.api.scoped import ScopedRows
from facho.api.serializers import (
    ExecutionDetailSerializer,
    ExecutionSerializer,
    NodeSerializer,
    OltSerializer,
)
from facho.executions.models import Execution, ExecutionStates, Origin
from facho.hosts.models import Olt, Reachability
from facho.hosts.olt_entry import SECRET_COLUMNS
from facho.onus.models import Onu
from facho.onus.shown_state import in_state
from facho.onus.words import ShownState
from facho.snmp_jobs.models import QueryTypes, WorkflowNode


def _count_onus(reference: str, condition: Q | None = None) -> Coalesce:
    """Count the present ONUs of each row of the page; a join and GROUP BY would count those of all rows."""
    present = Onu.objects.filter(condition or Q(), **{reference: OuterRef("pk")}, is_present=True)
    counted = present.order_by().values(reference).annotate(n=Count("pk")).values("n")
    return Coalesce(Subquery(counted, output_field=IntegerField()), 0)


def _of_composite(master: str) -> Q:
    return filters.number("id").narrow(master) | filters.number("master_execution_id").narrow(master)


def _chain_in_order() -> QuerySet[Execution]:
    return Execution.objects.select_related("node__job").defer("cursor", "result").order_by("chain_position", "id")


class OltViewSet(ScopedRows, OltInventory, OltOperations, viewsets.ReadOnlyModelViewSet[Olt]):
    """OLTs: `state` is what the last operation learned; `search` looks at name, host and system name."""

    serializer_class = OltSerializer
    olt_path = ""
    filter_backends = [filters.QueryStringFilter]
    query_parameters = {
        "state": filters.one_of("reachability", Reachability.values),
        "enabled": filters.flag("enabled"),
        "vendor": filters.search("vendor"),
        "group": filters.search("group__name"),
        "search": filters.search("name", "host", "sys_name"),
    }
    queryset = (
        Olt.objects.defer(*SECRET_COLUMNS)
        .select_related("model__brand", "group")
        .annotate(onus_total=_count_onus("olt"), onus_online=_count_onus("olt", in_state(ShownState.ONLINE)))
        .order_by("name", "id")
    )


class NodeViewSet(ScopedRows, NodeOperations, viewsets.ReadOnlyModelViewSet[WorkflowNode]):
    """Nodes: one job on one OLT."""

    serializer_class = NodeSerializer
    olt_path = "workflow__olt"
    filter_backends = [filters.QueryStringFilter]
    query_parameters = {
        "olt": filters.olt("workflow__olt"),
        "enabled": filters.flag("enabled"),
        "chained": filters.flag("is_chain_node"),
        "query_type": filters.one_of("job__query_type", QueryTypes.values),
        "search": filters.search("job__name", "job__slug"),
    }
    queryset = (
        WorkflowNode.objects.select_related("job", "workflow__olt")
        .defer(*(f"workflow__olt__{name}" for name in SECRET_COLUMNS))
        .order_by("workflow__olt__name", "id")
    )


class ExecutionViewSet(ScopedRows, ExecutionOperations, viewsets.ReadOnlyModelViewSet[Execution]):
    """Executions, newest first; `chained=false` lists the masters, each with the executions of its chain."""

    filter_backends = [filters.QueryStringFilter]
    query_parameters = {
        "olt": filters.olt(),
        "node": filters.number("node_id"),
        "status": filters.one_of("status", ExecutionStates.values),
        "origin": filters.one_of("origin", Origin.values),
        "poller": filters.number("poller_id"),
        "master_execution": filters.number("master_execution_id"),
        "master": filters.QueryParameter(_of_composite, {"type": "integer"}, "A master's id: it and its chain."),
        "chained": filters.condition(
            lambda: Q(master_execution__isnull=False), "Whether it ran in the chain of another."
        ),
        "task_type": filters.search("task_type"),
    }
    queryset = (
        Execution.objects.select_related("olt", "node__job")
        .defer("cursor", *(f"olt__{name}" for name in SECRET_COLUMNS))
        .prefetch_related(Prefetch("chain_executions", _chain_in_order()))
        .order_by("-id")
    )

    def get_queryset(self) -> QuerySet[Execution]:
        """Load the attempts too when one execution is shown."""
        queryset = super().get_queryset()
        return queryset.prefetch_related("attempts") if self.action == "retrieve" else queryset

    def get_serializer_class(self) -> type[BaseSerializer[Any]]:
        """Show the attempts when one execution is shown."""
        return ExecutionDetailSerializer if self.action == "retrieve" else ExecutionSerializer
