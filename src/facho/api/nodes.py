"""Nodes and their runs, what a person can do to them, once however often it is sent; and pollers, queue and figures."""

from datetime import datetime, timedelta
from typing import Any

from django.core.exceptions import ValidationError as ModelError
from django.db import transaction
from django.db.models import Prefetch, Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_field, extend_schema_view
from rest_framework import serializers, status, viewsets
from rest_framework.decorators import action
from rest_framework.exceptions import APIException, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from facho.accounts.audit import Action, record
from facho.api.models import KeptAnswer
from facho.api.shared import filters
from facho.api.shared.problems import Conflict
from facho.api.shared.views import (
    KnownFields,
    NoParameters,
    RowSerializer,
    ScopedRows,
    read_body,
    read_nothing,
    recorded,
)
from facho.executions.models import Execution, ExecutionAttempt, ExecutionStates, Origin
from facho.executions.store import cancel
from facho.hosts.olt_entry import SECRET_COLUMNS
from facho.hosts.store import OLT_SECRETS
from facho.polling.domain.schedule import MAX_INTERVAL_SECONDS
from facho.snmp_jobs.models import QueryTypes, WorkflowNode
from facho.snmp_jobs.safety import check_change
from facho.snmp_jobs.store import NodeChange, change_nodes, resume
from facho.zabbix_pollers import views
from facho.zabbix_pollers.explain import load_explanation
from facho.zabbix_pollers.views import ExplanationSerializer, RunSerializer

HEADER = "Idempotency-Key"
REPLAYED = "Idempotent-Replayed"
MAX_KEY = 100
# No stored answer after this time: the serving process was killed, so the request may be repeated.
SERVED_WITHIN = timedelta(minutes=1)

KEY_PARAMETER = OpenApiParameter(
    HEADER,
    location=OpenApiParameter.HEADER,
    description="Any text of your choice: a second request with the same key gets the first one's answer, for a day.",
)


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


class NodeChangesSerializer(KnownFields, serializers.ModelSerializer[WorkflowNode]):
    """The fields of a node that can be written."""

    interval_seconds = serializers.IntegerField(min_value=1, max_value=MAX_INTERVAL_SECONDS)

    class Meta:
        model = WorkflowNode
        fields = ["enabled", "interval_seconds", "priority"]

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        try:
            check_change(self.instance, attrs)  # type: ignore[arg-type]  # only a stored node is changed
        except ModelError as error:
            raise serializers.ValidationError({"interval_seconds": error.messages}) from error
        return attrs


class NodeViewSet(ScopedRows, viewsets.ReadOnlyModelViewSet[WorkflowNode]):
    """Nodes: one job on one OLT."""

    serializer_class = NodeSerializer
    olt_path = "workflow__olt"
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

    @extend_schema(request=NodeChangesSerializer, responses=NodeSerializer)
    def partial_update(self, request: Request, pk: str) -> Response:
        """Change the node's interval or enable it; its next run is rescheduled at once."""
        wish = NodeChangesSerializer(self.get_object(), data=read_body(request), partial=True)
        with recorded(request, wish) as (node, values):
            change_nodes(WorkflowNode.objects.filter(pk=node.pk), NodeChange(**values), now=timezone.now())
        return Response(NodeSerializer(self.get_object()).data)

    @extend_schema(responses=ExplanationSerializer)
    @action(detail=True)
    def explain(self, request: Request, pk: str) -> Response:
        """Explain why the node waits: what holds its OLT and since when, its place in the queue, its next run."""
        return Response(ExplanationSerializer(load_explanation(self.get_object().id, timezone.now())).data)

    @extend_schema(request=None, responses=NodeSerializer)
    @action(detail=True, methods=["post"])
    def resume(self, request: Request, pk: str) -> Response:
        """Return a suspended node to its schedule; it runs at its next slot."""
        read_nothing(request)
        node = self.get_object()
        if not resume(request.user, node, now=timezone.now()):
            raise Conflict(_("This node is not suspended."))
        return Response(NodeSerializer(self.get_object()).data)


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


class MemberSerializer(RowSerializer[Execution]):
    """A run in the chain of another."""

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


class ExecutionSerializer(RowSerializer[Execution]):
    """One run with its poller, master and chain; `total_duration_ms` includes the chain."""

    node_name = serializers.CharField(source="node.job.name", default=None, allow_null=True)
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


def _of_composite(master: str) -> Q:
    return filters.number("id").narrow(master) | filters.number("master_execution_id").narrow(master)


class ExecutionViewSet(ScopedRows, viewsets.ReadOnlyModelViewSet[Execution]):
    """Executions, newest first; `chained=false` lists masters only, each with its chain."""

    serializer_class = ExecutionSerializer
    detail_class = ExecutionDetailSerializer
    query_parameters = {
        "olt": filters.olt(),
        "node": filters.number("node_id"),
        "status": filters.one_of("status", ExecutionStates.values),
        "origin": filters.one_of("origin", Origin.values),
        "poller": filters.number("poller_id"),
        "master_execution": filters.number("master_execution_id"),
        "master": filters.QueryParameter(_of_composite, {"type": "integer"}, "A master's id: it and its chain."),
        "chained": filters.filled("master_execution", "Whether it ran in the chain of another."),
        "task_type": filters.search("task_type"),
    }
    queryset = (
        Execution.objects.select_related("olt", "node__job")
        .defer("cursor", *OLT_SECRETS)
        .prefetch_related(
            Prefetch(
                "chain_executions",
                Execution.objects.select_related("node__job")
                .defer("cursor", "result")
                .order_by("chain_position", "id"),
            )
        )
        .order_by("-id")
    )

    def get_queryset(self) -> QuerySet[Execution]:
        queryset = super().get_queryset()
        return queryset.prefetch_related("attempts") if self.action == "retrieve" else queryset

    @extend_schema(request=None, responses={202: ExecutionDetailSerializer})
    @action(detail=True, methods=["post"])
    def cancel(self, request: Request, pk: str) -> Response:
        """Stop a run before its next packet, or at once if it waits; the rest of its chain is skipped."""
        read_nothing(request)
        execution = self.get_object()
        with transaction.atomic():
            if not cancel(execution.id, now=timezone.now()):
                raise Conflict(_("This execution has ended."))
            record(request.user, execution, Action.CHANGED, gettext_lazy("cancelled"))
        return Response(ExecutionDetailSerializer(self.get_object()).data, status=status.HTTP_202_ACCEPTED)


class Idempotent(APIView):
    def post(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Process a request with a new key, or repeat the stored answer to a known one."""
        key: str = request.headers.get(HEADER, "")
        if len(key) > MAX_KEY or not key.isprintable():
            raise ValidationError({HEADER: [_("A key has at most %(n)s printable characters.") % {"n": MAX_KEY}]})
        if not key:
            return self._serve(request, *args, **kwargs)
        now = timezone.now()
        row, is_new = KeptAnswer.objects.get_or_create(
            user_id=request.user.pk or 0, key=key, defaults={"path": request.path, "created_at": now}
        )
        if not is_new and not _take_over(row, request.path, now):
            if row.path != request.path:
                raise Conflict(_("This key was used for another request."))
            if row.status is None:
                raise Conflict(_("The first request with this key is still being served."))
            return Response(row.body, status=row.status, headers={REPLAYED: "true"})
        return self._serve_and_keep(row, request, *args, **kwargs)

    def _serve(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        answer: Response = super().post(request, *args, **kwargs)  # type: ignore[misc]  # the view's own
        return answer

    def _serve_and_keep(self, row: KeptAnswer, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Store the answer; a refused request changed nothing and may be repeated under its key."""
        try:
            answer = self._serve(request, *args, **kwargs)
        except APIException:
            row.delete()
            raise
        row.status, row.body = answer.status_code, answer.data
        row.save(update_fields=["status", "body"])
        return answer


def _take_over(row: KeptAnswer, path: str, now: datetime) -> bool:
    """Take over an abandoned request; of two attempts at once, one succeeds."""
    if row.path != path or row.status is not None or now - SERVED_WITHIN < row.created_at <= now:
        return False
    as_read = KeptAnswer.objects.filter(pk=row.pk, status=None, created_at=row.created_at)
    return bool(as_read.update(created_at=now))


class PollersEndpoint(NoParameters, views.PollersView):
    """Every poller with the composite node it runs."""


class QueueEndpoint(NoParameters, views.QueueView):
    """The nodes that are due and waiting."""


class StatsEndpoint(NoParameters, views.StatsView):
    """All pollers together."""


@extend_schema_view(
    post=extend_schema(
        description="Ask for a run of a master and its chain as soon as the OLT is free.",
        parameters=[KEY_PARAMETER],
        request=None,
        responses={202: RunSerializer},
        operation_id="pollers_run_node",
        tags=["pollers"],
    )
)
class RunNodeOnceView(NoParameters, Idempotent, views.RunNodeView):
    """Run a node now; requests repeated with the same key cause one run."""

    def post(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Refuse a body: it would be ignored."""
        read_nothing(request)
        return super().post(request, *args, **kwargs)
