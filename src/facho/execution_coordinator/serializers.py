"""The shapes in which the API shows quotas, violations, plans, the coordinator's log and what it sees of an OLT."""

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from facho.execution_coordinator.logger import describe
from facho.execution_coordinator.models import (
    CoordinatorLog,
    ExecutionPlan,
    QuotaStatus,
    QuotaTracker,
    QuotaViolation,
)
from facho.execution_coordinator.state import CoordinatorState, TaskRow, WaitingNode
from facho.polling.domain.planning import WaitReason
from facho.zabbix_pollers.serializers import HolderSerializer


class QuotaSerializer(serializers.ModelSerializer[QuotaTracker]):
    """What an OLT owes of a task type in an hour; `will_miss_at` is since when a miss is forecast."""

    olt_id = serializers.IntegerField()
    olt = serializers.CharField(source="olt.name")
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
class ReportField(serializers.JSONField):
    """Every slot of the hour that was due, its outcome and reason, by task type."""


class ViolationSerializer(serializers.ModelSerializer[QuotaViolation]):
    """What an OLT failed to get in an hour."""

    olt_id = serializers.IntegerField()
    olt = serializers.CharField(source="olt.name")
    report = ReportField()
    acknowledged_by_id = serializers.IntegerField(allow_null=True)
    acknowledged_by = serializers.CharField(source="acknowledged_by.username", default=None, allow_null=True)

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


class PlanSerializer(serializers.ModelSerializer[ExecutionPlan]):
    """The runs expected of an OLT in an hour, counted."""

    olt_id = serializers.IntegerField()
    olt = serializers.CharField(source="olt.name")

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


@extend_schema_field({"type": "object"})
class DetailsField(serializers.JSONField):
    """The values behind a message."""


class LogSerializer(serializers.ModelSerializer[CoordinatorLog]):
    """A decision of the coordinator, in the language of the request; without an OLT it concerns everything."""

    olt_id = serializers.IntegerField(allow_null=True)
    olt = serializers.CharField(source="olt.name", default=None, allow_null=True)
    message = serializers.SerializerMethodField()
    details = DetailsField()

    class Meta:
        model = CoordinatorLog
        fields = ["id", "timestamp", "level", "event_type", "olt_id", "olt", "message", "details"]

    def get_message(self, entry: CoordinatorLog) -> str:
        return describe(entry.event_type, entry.details)


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
