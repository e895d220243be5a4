"""Quotas, violations, plans, the coordinator's log, and what it sees of each OLT. It is watched here, not steered."""

from typing import Any

from django.db.models import Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _
from rest_framework import generics, viewsets
from rest_framework.serializers import BaseSerializer

from facho.accounts.acknowledge import with_acknowledger
from facho.api import filters
from facho.api.acknowledgement import Acknowledgement
from facho.api.scoped import ScopedRows
from facho.execution_coordinator.models import (
    CoordinatorLog,
    EventType,
    ExecutionPlan,
    Level,
    PlanStatus,
    QuotaStatus,
    QuotaTracker,
    QuotaViolation,
    Severity,
)
from facho.execution_coordinator.serializers import (
    CoordinatorStateSerializer,
    LogSerializer,
    PlanDetailSerializer,
    PlanSerializer,
    QuotaSerializer,
    ViolationSerializer,
)
from facho.execution_coordinator.state_read_model import load_states
from facho.hosts.models import Olt
from facho.hosts.store import OLT_SECRETS
from facho.polling.domain.quota import hour_of

CURRENT = "current"


def _in_hour(text: str) -> Q:
    if text != CURRENT:
        raise ValueError(_("Choose one of: %(values)s.") % {"values": CURRENT})
    return Q(period_start=hour_of(timezone.now()).start)


class QuotaViewSet(ScopedRows, viewsets.ReadOnlyModelViewSet[QuotaTracker]):
    """Quotas by hour, the latest first."""

    serializer_class = QuotaSerializer
    filter_backends = [filters.QueryStringFilter]
    query_parameters = {
        "olt": filters.olt(),
        "task_type": filters.search("task_type"),
        "status": filters.one_of("status", QuotaStatus.values),
        "period_start": filters.moment("period_start"),
        "hour": filters.QueryParameter(_in_hour, {"type": "string", "enum": [CURRENT]}, "The hour of now."),
    }
    queryset = (
        QuotaTracker.objects.select_related("olt").defer(*OLT_SECRETS).order_by("-period_start", "olt_id", "task_type")
    )


class ViolationViewSet(ScopedRows, Acknowledgement, viewsets.ReadOnlyModelViewSet[QuotaViolation]):
    """Hours in which an OLT got too little, the latest first, each with the report of every slot that was due."""

    serializer_class = ViolationSerializer
    filter_backends = [filters.QueryStringFilter]
    query_parameters = {
        "olt": filters.olt(),
        "severity": filters.one_of("severity", Severity.values),
        "notified": filters.flag("notified"),
        "acknowledged": filters.condition(
            lambda: Q(acknowledged_at__isnull=False), "Whether somebody has taken note of it."
        ),
        "since": filters.since("created_at"),
    }
    queryset = with_acknowledger(
        QuotaViolation.objects.select_related("olt").defer(*OLT_SECRETS).order_by("-created_at", "-id")
    )


class PlanViewSet(ScopedRows, viewsets.ReadOnlyModelViewSet[ExecutionPlan]):
    """Plans by hour, the latest first; the runs of a plan are on its own address."""

    filter_backends = [filters.QueryStringFilter]
    query_parameters = {
        "olt": filters.olt(),
        "status": filters.one_of("status", PlanStatus.values),
        "period_start": filters.moment("period_start"),
    }
    queryset = ExecutionPlan.objects.select_related("olt").defer(*OLT_SECRETS).order_by("-period_start", "-id")

    def get_queryset(self) -> QuerySet[ExecutionPlan]:
        """Leave the runs in the database unless one plan is shown."""
        queryset = super().get_queryset()
        return queryset if self.action == "retrieve" else queryset.defer("plan_data", *OLT_SECRETS)

    def get_serializer_class(self) -> type[BaseSerializer[Any]]:
        """Show the runs when one plan is shown."""
        return PlanDetailSerializer if self.action == "retrieve" else PlanSerializer


class LogViewSet(ScopedRows, viewsets.ReadOnlyModelViewSet[CoordinatorLog]):
    """The coordinator's log, the latest first; messages are in the language of the request."""

    serializer_class = LogSerializer
    filter_backends = [filters.QueryStringFilter]
    query_parameters = {
        "olt": filters.olt(),
        "level": filters.one_of("level", Level.values),
        "event_type": filters.one_of("event_type", EventType.values),
        "since": filters.since("timestamp"),
    }
    # By id: entries are only ever added, and no index has the time alone.
    queryset = CoordinatorLog.objects.select_related("olt").defer(*OLT_SECRETS).order_by("-id")


class StateView(ScopedRows, generics.ListAPIView[Any]):
    """What the coordinator sees of each OLT now: tasks, the execution that holds it, the nodes that wait."""

    serializer_class = CoordinatorStateSerializer
    olt_path = ""
    filter_backends = [filters.QueryStringFilter]
    query_parameters = {
        "olt": filters.olt(""),
        "enabled": filters.flag("enabled"),
    }
    queryset = Olt.objects.only("id").order_by("name", "id")

    def paginate_queryset(self, queryset: Any) -> list[Any]:
        """Load what is seen of the OLTs of the page."""
        page = super().paginate_queryset(queryset) or []
        return load_states([olt.id for olt in page], timezone.now())
