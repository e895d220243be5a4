"""What a person can do to an OLT, a node or an execution: change it, explain it, resume it, cancel it."""

from typing import TYPE_CHECKING, Any

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import ModelSerializer

from facho.accounts.audit import Action, changed_words, record
from facho.api.problems import Conflict
from facho.api.serializers import (
    ExecutionDetailSerializer,
    NodeChangesSerializer,
    NodeSerializer,
    OltChangesSerializer,
    OltSerializer,
)
from facho.executions.models import Execution
from facho.executions.waiting import cancel
from facho.hosts.models import Olt
from facho.snmp_jobs.asked import resume
from facho.snmp_jobs.models import WorkflowNode
from facho.zabbix_pollers.explain_read_model import load_explanation
from facho.zabbix_pollers.serializers import ExplanationSerializer

if TYPE_CHECKING:
    from rest_framework.viewsets import GenericViewSet

    _OltViews = GenericViewSet[Olt]
    _NodeViews = GenericViewSet[WorkflowNode]
    _ExecutionViews = GenericViewSet[Execution]
else:
    _OltViews = _NodeViews = _ExecutionViews = object  # joined to a view set, whose stubs alone take type parameters


class OltOperations(_OltViews):
    """Adds changes to OLTs."""

    @extend_schema(request=OltChangesSerializer, responses=OltSerializer)
    def partial_update(self, request: Request, pk: str) -> Response:
        """Enable or disable the OLT, or name its poller group; what runs on a disabled one stops at its next packet."""
        _store(request, OltChangesSerializer(self.get_object(), data=request.data, partial=True))
        return Response(OltSerializer(self.get_object()).data)


class NodeOperations(_NodeViews):
    """Adds changes, `explain` and `resume` to nodes."""

    @extend_schema(request=NodeChangesSerializer, responses=NodeSerializer)
    def partial_update(self, request: Request, pk: str) -> Response:
        """Change how often the node runs and whether it does; the schedule follows within seconds."""
        _store(request, NodeChangesSerializer(self.get_object(), data=request.data, partial=True))
        return Response(NodeSerializer(self.get_object()).data)

    @extend_schema(responses=ExplanationSerializer)
    @action(detail=True)
    def explain(self, request: Request, pk: str) -> Response:
        """Say why the node waits: who holds its OLT, since when, its place in the queue, when it runs."""
        return Response(ExplanationSerializer(load_explanation(self.get_object().id, timezone.now())).data)

    @extend_schema(request=None, responses=NodeSerializer)
    @action(detail=True, methods=["post"])
    def resume(self, request: Request, pk: str) -> Response:
        """Return a suspended node to its schedule: it goes on at its next slot."""
        node = self.get_object()
        if not resume(request.user, node, now=timezone.now()):
            raise Conflict(_("This node is not suspended."))
        return Response(NodeSerializer(self.get_object()).data)


class ExecutionOperations(_ExecutionViews):
    """Adds `cancel` to executions."""

    @extend_schema(request=None, responses={202: ExecutionDetailSerializer})
    @action(detail=True, methods=["post"])
    def cancel(self, request: Request, pk: str) -> Response:
        """End a run before its next packet, or at once if it waits; the rest of its chain is skipped."""
        execution = self.get_object()
        with transaction.atomic():
            if not cancel(execution.id, now=timezone.now()):
                raise Conflict(_("This execution is over."))
            record(request.user, execution, Action.CHANGED, gettext_lazy("cancelled"))
        return Response(ExecutionDetailSerializer(self.get_object()).data, status=status.HTTP_202_ACCEPTED)


def _store(request: Request, changes: ModelSerializer[Any]) -> None:
    """Write the columns that change, and who changed them."""
    changes.is_valid(raise_exception=True)
    row: Any = changes.instance
    values = changes.validated_data
    before = {name: getattr(row, name) for name in values}
    with transaction.atomic():
        type(row)._default_manager.filter(pk=row.pk).update(**values)
        record(request.user, row, Action.CHANGED, changed_words(before, values))
