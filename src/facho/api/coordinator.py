"""Quotas, violations, plans, the coordinator's log and its view of each OLT. Read only but for acknowledging."""

from typing import Any

from django.db.models import Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import generics, serializers, viewsets
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response

from facho.accounts.acknowledge import with_acknowledger
from facho.api.shared import filters
from facho.api.shared.views import AcknowledgeAction, NoParameters, RowSerializer, ScopedRows, TextField, must_see
from facho.execution_coordinator.feasibility import NodeNeed, OltFeasibility, load_feasibility, words_of
from facho.execution_coordinator.logger import describe
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
from facho.execution_coordinator.state import CoordinatorState, TaskRow, WaitingNode, load_states
from facho.hosts.models import Olt
from facho.hosts.store import OLT_SECRETS
from facho.polling.domain.feasibility import Blocked, Relaxation
from facho.polling.domain.planning import WaitReason
from facho.polling.domain.schedule import hour_of
from facho.zabbix_pollers.views import HolderSerializer


class QuotaSerializer(RowSerializer[QuotaTracker]):
    """What an OLT owes of a task type in an hour; `will_miss_at` is since when a miss is forecast."""

    share_completed = serializers.SerializerMethodField()
    at_risk = serializers.SerializerMethodField()

    class Meta:
        model = QuotaTracker
        fields = [
            "id",
            "olt_id",
            "olt",
            "task_type",
            "period_start",
            "period_end",
            "quota_required",
            "quota_completed",
            "quota_failed",
            "quota_skipped",
            "quota_pending",
            "share_completed",
            "total_duration_ms",
            "avg_duration_ms",
            "status",
            "at_risk",
            "will_miss_at",
            "created_at",
            "updated_at",
        ]

    def get_share_completed(self, tracker: QuotaTracker) -> float:
        """Return the completed share of what is required; 1 if nothing is."""
        return round(tracker.quota_completed / tracker.quota_required, 3) if tracker.quota_required else 1.0

    def get_at_risk(self, tracker: QuotaTracker) -> bool:
        """Return whether the hour passes faster than its quota is served."""
        return tracker.status == QuotaStatus.AT_RISK


@extend_schema_field({"type": "object"})
class ObjectField(serializers.JSONField):
    """An object whose names depend on what it is about."""


class ViolationSerializer(RowSerializer[QuotaViolation]):
    """What an OLT failed to get in an hour."""

    # Every slot of the hour that was due, its outcome and reason, by task type.
    report = ObjectField()

    class Meta:
        model = QuotaViolation
        fields = [
            "id",
            "olt_id",
            "olt",
            "period_start",
            "period_end",
            "severity",
            "notified",
            "notified_at",
            "acknowledged_at",
            "acknowledged_by_id",
            "acknowledged_by",
            "acknowledgement",
            "created_at",
            "report",
        ]


class PlanSerializer(RowSerializer[ExecutionPlan]):
    """The runs expected of an OLT in an hour, counted."""

    class Meta:
        model = ExecutionPlan
        fields = [
            "id",
            "olt_id",
            "olt",
            "period_start",
            "period_end",
            "status",
            "total_tasks",
            "completed_tasks",
            "failed_tasks",
            "created_at",
            "updated_at",
        ]


@extend_schema_field({"type": "array", "items": {"type": "object"}})
class PlanDataField(serializers.JSONField):
    """The runs in their order, each with slot, predicted start and length."""


class PlanDetailSerializer(PlanSerializer):
    """The runs expected of an OLT in an hour, each with its slot, predicted start and length."""

    plan_data = PlanDataField()

    class Meta(PlanSerializer.Meta):
        fields = [*PlanSerializer.Meta.fields, "plan_data"]


class LogSerializer(RowSerializer[CoordinatorLog]):
    """A decision of the coordinator, in the language of the request; without an OLT it concerns everything."""

    message = TextField(lambda entry: describe(entry.event_type, entry.details))
    details = ObjectField()

    class Meta:
        model = CoordinatorLog
        fields = ["id", "timestamp", "level", "event_type", "olt_id", "olt", "message", "details"]


class TaskSerializer(serializers.Serializer[TaskRow]):
    """An enabled node; a member of a chain has no next run but its master's."""

    node_id = serializers.IntegerField()
    master_node_id = serializers.IntegerField(source="master_id", allow_null=True)
    task_type = serializers.CharField()
    interval_seconds = serializers.IntegerField(source="grid.interval_seconds")
    next_run_at = serializers.DateTimeField(allow_null=True)
    suspended_at = serializers.DateTimeField(allow_null=True)


class ActiveExecutionSerializer(HolderSerializer):
    """The execution whose claim holds the OLT, and the process that runs it."""

    task_type = serializers.CharField()
    owner = serializers.CharField(allow_blank=True)


class WaitingNodeSerializer(serializers.Serializer[WaitingNode]):
    """A node that is due; without a reason nothing keeps it and it starts at once."""

    node_id = serializers.IntegerField()
    task_type = serializers.CharField()
    due_at = serializers.DateTimeField()
    run_now = serializers.BooleanField()
    execution_id = serializers.IntegerField(allow_null=True)
    reason = serializers.ChoiceField(choices=[reason.value for reason in WaitReason], allow_null=True)


class CoordinatorStateSerializer(serializers.Serializer[CoordinatorState]):
    """An OLT as the coordinator sees it; `state_hash` is null until a pass has seen it."""

    olt_id = serializers.IntegerField(source="row.olt_id")
    olt = serializers.CharField(source="row.name")
    enabled = serializers.BooleanField(source="row.enabled")
    is_silent = serializers.BooleanField(source="row.is_silent")
    last_answer_at = serializers.DateTimeField(source="row.last_answer_at", allow_null=True)
    tasks = TaskSerializer(many=True, source="row.tasks")
    active_execution = ActiveExecutionSerializer(source="holder", allow_null=True)
    queue = WaitingNodeSerializer(many=True)
    state_hash = serializers.CharField(allow_null=True)
    saved_at = serializers.DateTimeField(allow_null=True)


CURRENT = "current"


def _in_hour(text: str) -> Q:
    if text != CURRENT:
        raise ValueError(_("Choose one of: %(values)s.") % {"values": CURRENT})
    return Q(period_start=hour_of(timezone.now()).start)


class QuotaViewSet(ScopedRows, viewsets.ReadOnlyModelViewSet[QuotaTracker]):
    """Quotas by hour, latest first."""

    serializer_class = QuotaSerializer
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
    query_parameters = {
        "olt": filters.olt(),
        "severity": filters.one_of("severity", ViolationSeverity.values),
        "notified": filters.flag("notified"),
        "acknowledged": filters.acknowledged(),
        "since": filters.since("created_at"),
    }
    queryset = with_acknowledger(
        QuotaViolation.objects.select_related("olt").defer(*OLT_SECRETS).order_by("-created_at", "-id")
    )


class PlanViewSet(ScopedRows, viewsets.ReadOnlyModelViewSet[ExecutionPlan]):
    """Plans by hour, latest first; the runs of a plan are in its detail."""

    serializer_class = PlanSerializer
    detail_class = PlanDetailSerializer
    query_parameters = {
        "olt": filters.olt(),
        "status": filters.one_of("status", PlanStatus.values),
        "period_start": filters.moment("period_start"),
    }
    queryset = ExecutionPlan.objects.select_related("olt").defer(*OLT_SECRETS).order_by("-period_start", "-id")

    def get_queryset(self) -> QuerySet[ExecutionPlan]:
        queryset = super().get_queryset()
        return queryset if self.action == "retrieve" else queryset.defer("plan_data", *OLT_SECRETS)


class LogViewSet(ScopedRows, viewsets.ReadOnlyModelViewSet[CoordinatorLog]):
    """The coordinator's log, latest first; messages are in the language of the request."""

    serializer_class = LogSerializer
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
    query_parameters = {
        "olt": filters.olt(""),
        "enabled": filters.flag("enabled"),
    }
    queryset = Olt.objects.only("id").order_by("name", "id")

    def paginate_queryset(self, queryset: Any) -> list[Any]:
        page = super().paginate_queryset(queryset) or []
        return load_states([olt.id for olt in page], timezone.now())


class RoundedField(serializers.FloatField):
    """A sum of measured times: what is behind hundredths is an artefact of adding."""

    def to_representation(self, value: Any) -> Any:
        return round(float(value), 2)


class NodeNeedSerializer(serializers.Serializer[NodeNeed]):
    """Time needed by a master with its chain; `seconds` is null, and counts as 0, until measured."""

    node_id = serializers.IntegerField()
    name = serializers.CharField()
    interval_seconds = serializers.IntegerField()
    seconds = RoundedField(allow_null=True)
    minutes_per_hour = RoundedField()


class BlockedSerializer(serializers.Serializer[Blocked]):
    """A master that loses slots because another one runs longer than its interval."""

    node_id = serializers.IntegerField()
    by_node_id = serializers.IntegerField()
    seconds = RoundedField()


class RelaxationSerializer(serializers.Serializer[Relaxation]):
    """A longer interval and the time it saves, cheapest first."""

    node_id = serializers.IntegerField()
    interval_before_seconds = serializers.IntegerField()
    interval_seconds = serializers.IntegerField()
    saves_minutes_per_hour = RoundedField()


class FeasibilitySerializer(serializers.Serializer[OltFeasibility]):
    """The load of an OLT; any single relaxation is enough, unless `are_needed_together`."""

    olt_id = serializers.IntegerField()
    olt = serializers.CharField()
    fits = serializers.BooleanField(source="judged.fits")
    minutes_per_hour = RoundedField(source="judged.minutes_per_hour")
    share = RoundedField(source="judged.share")
    nodes = NodeNeedSerializer(many=True, source="needs")
    blocked = BlockedSerializer(many=True, source="judged.blocked")
    relaxations = RelaxationSerializer(many=True, source="judged.relaxations")
    are_needed_together = serializers.BooleanField(source="judged.are_needed_together")
    message = TextField(lambda found: " ".join(words_of(found)))


class FeasibilityView(NoParameters):
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
