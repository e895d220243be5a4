"""Quotas, violations, plans, the coordinator's log, and what it sees of each OLT. It is watched here, not steered."""

from typing import Any

from django.db.models import Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework import generics, serializers, viewsets
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer
from rest_framework.views import APIView

from facho.accounts.acknowledge import with_acknowledger
from facho.api.shared import filters
from facho.api.shared.filters import NoParameters, ScopedRows, must_see
from facho.api.shared.serializers import AcknowledgeAction
from facho.execution_coordinator.feasibility import NodeNeed, OltFeasibility, load_feasibility, words_of
from facho.execution_coordinator.models import (
    CoordinatorLog,
    EventType,
    ExecutionPlan,
    Level,
    PlanStatus,
    QuotaStatus,
    QuotaTracker,
    QuotaViolation,
    ViolationSeverity,
)
from facho.execution_coordinator.serializers import (
    CoordinatorStateSerializer,
    LogSerializer,
    PlanDetailSerializer,
    PlanSerializer,
    QuotaSerializer,
    ViolationSerializer,
)
from facho.execution_coordinator.state import load_states
from facho.hosts.models import Olt
from facho.hosts.store import OLT_SECRETS
from facho.polling.domain.feasibility import Blocked, Relaxation
from facho.polling.domain.quota import hour_of

CURRENT = "current"


def _in_hour(text: str) -> Q:
    if text != CURRENT:
        raise ValueError(_("Choose one of: %(values)s.") % {"values": CURRENT})
    return Q(period_start=hour_of(timezone.now()).start)


class QuotaViewSet(ScopedRows, viewsets.ReadOnlyModelViewSet[QuotaTracker]):
    """Quotas by hour, latest first."""

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


class ViolationViewSet(ScopedRows, AcknowledgeAction, viewsets.ReadOnlyModelViewSet[QuotaViolation]):
    """Hours in which an OLT missed its quota, latest first, each with a report of every slot."""

    serializer_class = ViolationSerializer
    filter_backends = [filters.QueryStringFilter]
    query_parameters = {
        "olt": filters.olt(),
        "severity": filters.one_of("severity", ViolationSeverity.values),
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
    """Plans by hour, latest first; the runs of a plan are in its detail."""

    filter_backends = [filters.QueryStringFilter]
    query_parameters = {
        "olt": filters.olt(),
        "status": filters.one_of("status", PlanStatus.values),
        "period_start": filters.moment("period_start"),
    }
    queryset = ExecutionPlan.objects.select_related("olt").defer(*OLT_SECRETS).order_by("-period_start", "-id")

    def get_queryset(self) -> QuerySet[ExecutionPlan]:
        queryset = super().get_queryset()
        return queryset if self.action == "retrieve" else queryset.defer("plan_data", *OLT_SECRETS)

    def get_serializer_class(self) -> type[BaseSerializer[Any]]:
        return PlanDetailSerializer if self.action == "retrieve" else PlanSerializer


class LogViewSet(ScopedRows, viewsets.ReadOnlyModelViewSet[CoordinatorLog]):
    """The coordinator's log, latest first; messages are in the language of the request."""

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
    """What the coordinator knows of each OLT now: tasks, the execution holding it, the waiting nodes."""

    serializer_class = CoordinatorStateSerializer
    olt_path = ""
    filter_backends = [filters.QueryStringFilter]
    query_parameters = {
        "olt": filters.olt(""),
        "enabled": filters.flag("enabled"),
    }
    queryset = Olt.objects.only("id").order_by("name", "id")

    def paginate_queryset(self, queryset: Any) -> list[Any]:
        page = super().paginate_queryset(queryset) or []
        return load_states([olt.id for olt in page], timezone.now())


class NodeNeedSerializer(serializers.Serializer[NodeNeed]):
    """Time needed by a master with its chain; `seconds` is null, and counts as 0, until measured."""

    node_id = serializers.IntegerField()
    name = serializers.CharField()
    interval_seconds = serializers.IntegerField()
    seconds = serializers.FloatField(allow_null=True)
    minutes_per_hour = serializers.FloatField()


class BlockedSerializer(serializers.Serializer[Blocked]):
    """A master that loses slots because another one runs longer than its interval."""

    node_id = serializers.IntegerField()
    by_node_id = serializers.IntegerField()
    seconds = serializers.FloatField()


class RelaxationSerializer(serializers.Serializer[Relaxation]):
    """A longer interval and the time it saves, cheapest first."""

    node_id = serializers.IntegerField()
    interval_before_seconds = serializers.IntegerField()
    interval_seconds = serializers.IntegerField()
    saves_minutes_per_hour = serializers.FloatField()


class FeasibilitySerializer(serializers.Serializer[OltFeasibility]):
    """The load of an OLT; any single relaxation is enough, unless `are_needed_together`."""

    olt_id = serializers.IntegerField()
    olt = serializers.CharField()
    fits = serializers.BooleanField(source="judged.fits")
    minutes_per_hour = serializers.FloatField(source="judged.minutes_per_hour")
    share = serializers.FloatField(source="judged.share")
    nodes = NodeNeedSerializer(many=True, source="needs")
    blocked = BlockedSerializer(many=True, source="judged.blocked")
    relaxations = RelaxationSerializer(many=True, source="judged.relaxations")
    are_needed_together = serializers.BooleanField(source="judged.are_needed_together")
    message = serializers.SerializerMethodField()

    def get_message(self, found: OltFeasibility) -> str:
        return " ".join(words_of(found))


class FeasibilityView(NoParameters, APIView):
    """The load of one OLT compared with the hour."""

    @extend_schema(responses=FeasibilitySerializer, operation_id="olts_feasibility", tags=["olts"])
    def get(self, request: Request, olt_id: int) -> Response:
        """Add up the SNMP time an OLT's enabled nodes need per hour, and suggest what to relax if it is too much."""
        # Checked first: an id with more digits than the column would be a database error.
        must_see(request, Olt.objects.filter(id=olt_id), olt_path="")
        found = load_feasibility([olt_id]).get(olt_id)
        if found is None:
            raise NotFound
        return Response(FeasibilitySerializer(found).data)
