"""The shapes in which the API shows OLTs, nodes, executions and pauses, and acknowledging. No secret is in any.

Bodies of write requests refuse unknown names, in the query and the body, nested ones too: a mistyped or read-only field
must not look as if it had been saved.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.exceptions import ErrorDetail, UnsupportedMediaType
from rest_framework.request import Request
from rest_framework.response import Response

from facho.accounts.acknowledge import MAX_NOTE_LENGTH, AcknowledgementError, acknowledge, take_back
from facho.accounts.scope import NOTHING, OltScope
from facho.api.shared.filters import refuse_parameters
from facho.api.shared.problems import Conflict
from facho.executions.models import Execution, ExecutionAttempt
from facho.hosts.models import Olt, Pause, SnmpVersionChoice
from facho.hosts.olt_entry import SECRET_COLUMNS, group_faults
from facho.hosts.store import MAX_PAUSE_MINUTES, refusal_of
from facho.polling.domain.schedule import MAX_INTERVAL_SECONDS
from facho.snmp_jobs.models import WorkflowNode
from facho.snmp_jobs.safety import check_change

if TYPE_CHECKING:
    _Serializer = serializers.Serializer[Any]
else:
    _Serializer = object  # joined to a serializer, whose stubs alone take type parameters


# An answer is not to grow with what somebody sends.
MOST_NAMES = 20
MOST_LETTERS = 60


class KnownFields(_Serializer):
    """Reports unknown fields together with all other errors."""

    def to_internal_value(self, data: Any) -> Any:
        unknown = self._unknown(data) if isinstance(data, Mapping) else {}
        try:
            values = super().to_internal_value(data)
        except serializers.ValidationError as error:
            raise serializers.ValidationError({**unknown, **error.detail} if unknown else error.detail) from error  # type: ignore[dict-item]
        if unknown:
            raise serializers.ValidationError(unknown)
        return values

    def _unknown(self, data: Mapping[str, Any]) -> dict[str, list[ErrorDetail]]:
        known = sorted(name for name, field in self.fields.items() if not field.read_only)
        text = _("Unknown field. Known fields: %(names)s.") % {"names": ", ".join(known)}
        text = text if known else _("This address accepts no body.")
        names = [str(name) for name in data if name not in known]
        # JSON may contain lone surrogates.
        shown = (
            "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in name[:MOST_LETTERS])
            for name in names[:MOST_NAMES]
        )
        return {name: [ErrorDetail(text, "unknown")] for name in shown}


class Nothing(KnownFields, serializers.Serializer[Any]):
    """The body of a request that needs none."""


def read_body(request: Request) -> Any:
    """Return the body of a write request, which takes no query parameters."""
    refuse_parameters(request)
    return request.data


def read_nothing(request: Request) -> None:
    """Refuse any body; an empty form, which some clients send, is accepted."""
    try:
        sent = read_body(request)
    except UnsupportedMediaType:
        sent = request._request.POST
    Nothing(data=sent).is_valid(raise_exception=True)


def given_names(wish: "serializers.BaseSerializer[Any]") -> str:
    return ", ".join(sorted(wish.initial_data))


class OltSerializer(serializers.ModelSerializer[Olt]):
    """An OLT, its health and number of ONUs; fields keep the names they are written under."""

    version = serializers.ChoiceField(source="snmp_version", choices=SnmpVersionChoice.choices)
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
            "trap_addresses",
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
        """For a device that is not an OLT, return why it is not polled as its error."""
        shown: dict[str, Any] = super().to_representation(olt)
        return shown | {"last_error": olt.last_error or refusal_of(olt)}


class NodeSerializer(serializers.ModelSerializer[WorkflowNode]):
    """One job on one OLT: its schedule and state."""

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


class OltChangesSerializer(KnownFields, serializers.ModelSerializer[Olt]):
    """The fields of an OLT that can be written."""

    class Meta:
        model = Olt
        fields = ["enabled", "poller_group"]

    def validate_poller_group(self, group: str) -> str:
        for fault in group_faults(group, settings.FACHO_POLLER_GROUPS) if group else ():
            raise serializers.ValidationError(fault)
        return group


class NodeChangesSerializer(KnownFields, serializers.ModelSerializer[WorkflowNode]):
    """The fields of a node that can be written."""

    interval_seconds = serializers.IntegerField(min_value=1, max_value=MAX_INTERVAL_SECONDS)

    class Meta:
        model = WorkflowNode
        fields = ["enabled", "interval_seconds", "priority"]

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        try:
            check_change(self.instance, attrs)  # type: ignore[arg-type]  # only a stored node is changed
        except ValidationError as error:
            raise serializers.ValidationError({"interval_seconds": error.messages}) from error
        return attrs


@extend_schema_field(
    {
        "type": ["object", "null"],
        "description": "What the run brought and cost; null before its end. `packets` were sent, `retransmissions` of "
        "them again; `round_trips` of them were sent once and answered, after `round_trips_ms` together and "
        "`longest_round_trip_ms` at most. `late_answers`, `forged_answers` and `malformed_answers` came and were not "
        "used.",
    }
)
class SummaryField(serializers.JSONField):
    """Counts and sizes of a run; null before its end."""


class ProgressSerializer(serializers.Serializer[dict[str, int]]):
    """How far a running read has come; 0 in all is not known."""

    rows = serializers.IntegerField()
    rows_in_all = serializers.IntegerField()
    ports = serializers.IntegerField(help_text="PON ports that were read to their end; what they brought is stored.")
    ports_in_all = serializers.IntegerField()


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
    """One run with its poller, master and chain; `total_duration_ms` includes the chain."""

    olt_id = serializers.IntegerField()
    olt = serializers.CharField(source="olt.name")
    node_id = serializers.IntegerField(allow_null=True)
    node_name = serializers.CharField(source="node.job.name", default=None, allow_null=True)
    master_execution_id = serializers.IntegerField(allow_null=True)
    chain = serializers.SerializerMethodField()
    chain_executions = MemberSerializer(many=True)
    total_duration_ms = serializers.SerializerMethodField()
    result = SummaryField()
    progress = ProgressSerializer(source="shown_progress", allow_null=True)

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
            "progress",
        ]

    def get_chain(self, execution: Execution) -> list[int]:
        return [member.id for member in execution.chain_executions.all()]

    def get_total_duration_ms(self, execution: Execution) -> int:
        """Add the time of the chain to the master's."""
        return execution.duration_ms + sum(member.duration_ms for member in execution.chain_executions.all())


class AttemptSerializer(serializers.ModelSerializer[ExecutionAttempt]):
    """One attempt of an execution."""

    class Meta:
        model = ExecutionAttempt
        fields = ["number", "status", "started_at", "finished_at", "failure_kind", "error"]


class ExecutionDetailSerializer(ExecutionSerializer):
    """One run with its attempts."""

    attempts = AttemptSerializer(many=True)

    class Meta(ExecutionSerializer.Meta):
        fields = [*ExecutionSerializer.Meta.fields, "attempts"]


class PauseSerializer(serializers.ModelSerializer[Pause]):
    """A period without polling, or only without alerts if it keeps polling; without an OLT it is global."""

    olt_id = serializers.IntegerField(allow_null=True)
    olt = serializers.CharField(source="olt.name", default=None, allow_null=True)

    class Meta:
        model = Pause
        fields = ["id", "olt_id", "olt", "starts_at", "ends_at", "note", "keeps_polling"]


class _SeenOlt(serializers.PrimaryKeyRelatedField[Olt]):
    """An OLT in the user's scope; others do not exist."""

    def get_queryset(self) -> QuerySet[Olt]:
        scope: OltScope = self.context.get("scope", NOTHING)
        return scope.narrow(Olt.objects.defer(*SECRET_COLUMNS), "")


class NewPauseSerializer(KnownFields, serializers.Serializer[Pause]):
    """A pause that starts now; `olt_id` must be given, null for all OLTs."""

    olt_id = _SeenOlt(queryset=Olt.objects.none(), source="olt", allow_null=True, required=True)
    minutes = serializers.IntegerField(min_value=1, max_value=MAX_PAUSE_MINUTES)
    note = serializers.CharField(max_length=200, required=False, allow_blank=True, default="")


if TYPE_CHECKING:
    from rest_framework.viewsets import GenericViewSet

    _Views = GenericViewSet[Any]
else:
    _Views = object  # joined to a view set, whose stubs alone take type parameters


class NoteSerializer(KnownFields, serializers.Serializer[Any]):
    """A note for the colleagues who see the acknowledgement."""

    note = serializers.CharField(max_length=MAX_NOTE_LENGTH, allow_blank=True, default="")


class AcknowledgeAction(_Views):
    @extend_schema(request=NoteSerializer)
    @action(detail=True, methods=["post"])
    def acknowledge(self, request: Request, pk: str) -> Response:
        """Acknowledge in your name, with an optional note; 409 if somebody else already did."""
        wish = NoteSerializer(data=read_body(request))
        wish.is_valid(raise_exception=True)
        thing = self.get_object()
        try:
            acknowledge(thing, request.user, wish.validated_data["note"], now=timezone.now())
        except AcknowledgementError as error:
            raise Conflict(str(error)) from error
        return Response(self.get_serializer(thing).data)

    @extend_schema(request=None)
    @acknowledge.mapping.delete
    def take_back(self, request: Request, pk: str) -> Response:
        """Withdraw an acknowledgement, yours or another user's."""
        read_nothing(request)
        thing = self.get_object()
        try:
            take_back(thing, request.user)
        except AcknowledgementError as error:
            raise Conflict(str(error)) from error
        return Response(self.get_serializer(thing).data)
