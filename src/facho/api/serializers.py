"""The shapes in which the API shows OLTs, nodes, executions and pauses. No secret is in any."""

from copy import copy
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from facho.accounts.scope import NOTHING, OltScope
from facho.executions.models import Execution, ExecutionAttempt
from facho.hosts.models import Olt, Pause, SnmpVersion
from facho.hosts.olt_entry import SECRET_COLUMNS, group_faults
from facho.hosts.pauses import MAX_MINUTES
from facho.hosts.refusals import refusal_of
from facho.snmp_jobs.models import WorkflowNode
from facho.snmp_jobs.safety import check_node

# A year: what runs less often needs no schedule.
MAX_INTERVAL_SECONDS = 366 * 86_400


def given_names(wish: "serializers.BaseSerializer[Any]") -> str:
    """Name the fields that a request gave, for the audit; what else it sent was not heard."""
    known: Any = getattr(wish, "fields", {})
    return ", ".join(sorted(known.keys() & wish.initial_data.keys()))


class OltSerializer(serializers.ModelSerializer[Olt]):
    """An OLT, its health and how many ONUs it has; what can be written has the name under which it is written."""

    version = serializers.ChoiceField(source="snmp_version", choices=SnmpVersion.choices)
    group = serializers.CharField(source="group.name", default=None, allow_null=True)
    model = serializers.CharField(source="model.name", default=None, allow_null=True)
    brand = serializers.CharField(source="model.brand.name", default=None, allow_null=True)
    onus_total = serializers.IntegerField()
    onus_online = serializers.IntegerField()

    class Meta:
        model = Olt
        fields = [
            "id",
            "name",
            "host",
            "address",
            "port",
            "vendor",
            "brand",
            "model",
            "enabled",
            "version",
            "group",
            "poller_group",
            "reachability",
            "consecutive_failures",
            "last_answer_at",
            "last_error",
            "sys_name",
            "sys_descr",
            "sys_object_id",
            "onus_total",
            "onus_online",
            "created_at",
        ]

    def to_representation(self, olt: Olt) -> dict[str, Any]:
        """Tell of a device that is no OLT why it is not polled, where the last error would stand."""
        shown: dict[str, Any] = super().to_representation(olt)
        return shown | {"last_error": olt.last_error or refusal_of(olt)}


class NodeSerializer(serializers.ModelSerializer[WorkflowNode]):
    """One job on one OLT: when it runs and how it stands."""

    name = serializers.CharField(source="job.name")
    olt_id = serializers.IntegerField(source="workflow.olt_id")
    olt = serializers.CharField(source="workflow.olt.name")
    task_type = serializers.CharField(source="job.task_type")
    query_type = serializers.CharField(source="job.query_type")
    master_node_id = serializers.IntegerField(allow_null=True)

    class Meta:
        model = WorkflowNode
        fields = [
            "id",
            "name",
            "olt_id",
            "olt",
            "job_id",
            "task_type",
            "query_type",
            "enabled",
            "interval_seconds",
            "offset_seconds",
            "priority",
            "is_chain_node",
            "master_node_id",
            "next_run_at",
            "last_run_at",
            "run_requested_at",
            "slots_skipped",
            "consecutive_failures",
            "suspended_at",
            "suspend_reason",
        ]


class OltChangesSerializer(serializers.ModelSerializer[Olt]):
    """What can be changed about an OLT from outside."""

    class Meta:
        model = Olt
        fields = ["enabled", "poller_group"]

    def validate_poller_group(self, group: str) -> str:
        """Refuse a group that nobody serves."""
        for fault in group_faults(group, settings.FACHO_POLLER_GROUPS) if group else ():
            raise serializers.ValidationError(fault)
        return group


class NodeChangesSerializer(serializers.ModelSerializer[WorkflowNode]):
    """What can be changed about a node from outside."""

    interval_seconds = serializers.IntegerField(min_value=1, max_value=MAX_INTERVAL_SECONDS)

    class Meta:
        model = WorkflowNode
        fields = ["enabled", "interval_seconds", "priority"]

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Refuse what would hurt the OLT."""
        node = copy(self.instance)
        for name, value in attrs.items():
            setattr(node, name, value)
        if isinstance(node, WorkflowNode) and node.enabled:
            try:
                check_node(node)
            except ValidationError as error:
                raise serializers.ValidationError({"interval_seconds": error.messages}) from error
        return attrs


@extend_schema_field(
    {
        "type": ["object", "null"],
        "description": "What the run brought and cost; null before its end. `packets` were sent, `retransmissions` of "
        "them again; `round_trips` of them were sent once and answered, after `round_trips_ms` together and "
        "`longest_round_trip_ms` at most.",
    }
)
class SummaryField(serializers.JSONField):
    """The counts and sizes of a run; null before its end."""


class MemberSerializer(serializers.ModelSerializer[Execution]):
    """A run in the chain of another."""

    node_id = serializers.IntegerField(allow_null=True)
    node_name = serializers.CharField(source="node.job.name", default=None, allow_null=True)

    class Meta:
        model = Execution
        fields = [
            "id",
            "node_id",
            "node_name",
            "task_type",
            "status",
            "poller_id",
            "chain_position",
            "started_at",
            "finished_at",
            "duration_ms",
            "failure_kind",
        ]


class ExecutionSerializer(serializers.ModelSerializer[Execution]):
    """One run: by which poller, under which master, with which chain; `total_duration_ms` includes the chain."""

    olt_id = serializers.IntegerField()
    olt = serializers.CharField(source="olt.name")
    node_id = serializers.IntegerField(allow_null=True)
    node_name = serializers.CharField(source="node.job.name", default=None, allow_null=True)
    master_execution_id = serializers.IntegerField(allow_null=True)
    chain = serializers.SerializerMethodField()
    chain_executions = MemberSerializer(many=True)
    total_duration_ms = serializers.SerializerMethodField()
    result = SummaryField()

    class Meta:
        model = Execution
        fields = [
            "id",
            "olt_id",
            "olt",
            "node_id",
            "node_name",
            "task_type",
            "origin",
            "status",
            "slot_at",
            "attempt",
            "poller_id",
            "master_execution_id",
            "chain_position",
            "chain",
            "chain_executions",
            "created_at",
            "started_at",
            "finished_at",
            "resume_at",
            "cancel_requested_at",
            "duration_ms",
            "total_duration_ms",
            "failure_kind",
            "error",
            "result",
        ]

    def get_chain(self, execution: Execution) -> list[int]:
        """List the executions that ran after this master, in order."""
        return [member.id for member in execution.chain_executions.all()]

    def get_total_duration_ms(self, execution: Execution) -> int:
        """Add the time of the chain to that of its master."""
        return execution.duration_ms + sum(member.duration_ms for member in execution.chain_executions.all())


class AttemptSerializer(serializers.ModelSerializer[ExecutionAttempt]):
    """One try of an execution."""

    class Meta:
        model = ExecutionAttempt
        fields = ["number", "status", "started_at", "finished_at", "failure_kind", "error"]


class ExecutionDetailSerializer(ExecutionSerializer):
    """One run with its attempts."""

    attempts = AttemptSerializer(many=True)

    class Meta(ExecutionSerializer.Meta):
        fields = [*ExecutionSerializer.Meta.fields, "attempts"]


class PauseSerializer(serializers.ModelSerializer[Pause]):
    """A time without polling; without an OLT it holds for everything."""

    olt_id = serializers.IntegerField(allow_null=True)
    olt = serializers.CharField(source="olt.name", default=None, allow_null=True)

    class Meta:
        model = Pause
        fields = ["id", "olt_id", "olt", "starts_at", "ends_at", "note"]


class _SeenOlt(serializers.PrimaryKeyRelatedField[Olt]):
    """An OLT that whoever asks may see; another one is not there."""

    def get_queryset(self) -> QuerySet[Olt]:
        """Narrow by the scope of the request."""
        scope: OltScope = self.context.get("scope", NOTHING)
        return scope.narrow(Olt.objects.defer(*SECRET_COLUMNS), "")


class NewPauseSerializer(serializers.Serializer[Pause]):
    """A pause that begins now; `olt_id` null, which has to be said, means everything."""

    olt_id = _SeenOlt(queryset=Olt.objects.none(), source="olt", allow_null=True, required=True)
    minutes = serializers.IntegerField(min_value=1, max_value=MAX_MINUTES)
    note = serializers.CharField(max_length=200, required=False, allow_blank=True, default="")
