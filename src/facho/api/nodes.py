"""What a person can do to an OLT, a node or a run, once however often it is sent; and pollers, queue and figures."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_view
from rest_framework import status
from rest_framework.decorators import action
from rest_framework.exceptions import APIException, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import ModelSerializer

from facho.accounts.audit import Action, changed_words, record
from facho.api.models import KeptAnswer
from facho.api.shared.filters import NoParameters
from facho.api.shared.problems import Conflict
from facho.api.shared.serializers import (
    ExecutionDetailSerializer,
    NodeChangesSerializer,
    NodeSerializer,
    OltChangesSerializer,
    OltSerializer,
    read_body,
    read_nothing,
)
from facho.executions.models import Execution
from facho.executions.store import cancel
from facho.hosts.models import Olt
from facho.snmp_jobs.models import WorkflowNode
from facho.snmp_jobs.store import NodeChange, change_nodes, resume
from facho.zabbix_pollers import views
from facho.zabbix_pollers.explain import load_explanation
from facho.zabbix_pollers.views import ExplanationSerializer, RunSerializer

if TYPE_CHECKING:
    from rest_framework.views import APIView

    _View = APIView
else:
    _View = object  # joined to a view, which imports this through the settings

HEADER = "Idempotency-Key"
REPLAYED = "Idempotent-Replayed"
MAX_KEY = 100
# Who served it and left no answer within this time was killed; what is asked for may be asked for again.
SERVED_WITHIN = timedelta(minutes=1)

KEY_PARAMETER = OpenApiParameter(
    HEADER,
    location=OpenApiParameter.HEADER,
    description="Any text of your choice: a second request with the same key gets the first one's answer, for a day.",
)


class Idempotent(_View):
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


if TYPE_CHECKING:
    from rest_framework.viewsets import GenericViewSet

    _OltViews = GenericViewSet[Olt]
    _NodeViews = GenericViewSet[WorkflowNode]
    _ExecutionViews = GenericViewSet[Execution]
else:
    _OltViews = _NodeViews = _ExecutionViews = object  # joined to a view set, whose stubs alone take type parameters


class OltOperations(_OltViews):
    @extend_schema(request=OltChangesSerializer, responses=OltSerializer)
    def partial_update(self, request: Request, pk: str) -> Response:
        """Enable or disable the OLT, or set its poller group; runs on a disabled OLT stop at their next packet."""
        wish = OltChangesSerializer(self.get_object(), data=read_body(request), partial=True)
        with _recorded(request, wish) as (olt, values):
            Olt.objects.filter(pk=olt.pk).update(**values)
        return Response(OltSerializer(self.get_object()).data)


class NodeOperations(_NodeViews):
    @extend_schema(request=NodeChangesSerializer, responses=NodeSerializer)
    def partial_update(self, request: Request, pk: str) -> Response:
        """Change the node's interval or enable it; its next run is rescheduled at once."""
        wish = NodeChangesSerializer(self.get_object(), data=read_body(request), partial=True)
        with _recorded(request, wish) as (node, values):
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


class ExecutionOperations(_ExecutionViews):
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


@contextmanager
def _recorded(request: Request, wish: ModelSerializer[Any]) -> Iterator[tuple[Any, dict[str, Any]]]:
    wish.is_valid(raise_exception=True)
    row: Any = wish.instance
    values = wish.validated_data
    before = {name: getattr(row, name) for name in values}
    with transaction.atomic():
        yield row, values
        record(request.user, row, Action.CHANGED, changed_words(before, values))


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
