"""The four endpoints of the pollers: state, queue, statistics, and run a node now."""

from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.exceptions import NotFound, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from facho.accounts.scope import scope_of
from facho.snmp_jobs.models import WorkflowNode
from facho.snmp_jobs.store import IsChainNode, UnknownNode
from facho.zabbix_pollers.poller_manager import PollerManager
from facho.zabbix_pollers.queue_read_model import load_queue
from facho.zabbix_pollers.run_now import ask_for_run, describe_asked
from facho.zabbix_pollers.serializers import (
    GlobalStatsSerializer,
    PollersSerializer,
    QueueSerializer,
    RunSerializer,
)


class PollersView(APIView):
    """Every poller with the composite it runs."""

    @extend_schema(responses=PollersSerializer, operation_id="pollers_list", tags=["pollers"])
    def get(self, request: Request) -> Response:
        """Return the state of all pollers, verified against the executions that are active."""
        return Response(PollersSerializer(PollerManager.get_stats(timezone.now(), scope=scope_of(request.user))).data)


class QueueView(APIView):
    """The nodes that are due and wait."""

    @extend_schema(responses=QueueSerializer, operation_id="pollers_queue", tags=["pollers"])
    def get(self, request: Request) -> Response:
        """Return the queue's length and its first ten nodes."""
        return Response(QueueSerializer(load_queue(timezone.now(), scope=scope_of(request.user))).data)


class StatsView(APIView):
    """All pollers together."""

    @extend_schema(responses=GlobalStatsSerializer, operation_id="pollers_stats", tags=["pollers"])
    def get(self, request: Request) -> Response:
        """Return the global statistics."""
        return Response(GlobalStatsSerializer(PollerManager.get_stats(timezone.now()).global_stats).data)


class RunNodeView(APIView):
    """Run a node now."""

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Treat a node of an OLT that is hidden from the user as one that is not there, before anything is answered."""
        super().initial(request, *args, **kwargs)
        node_id = kwargs["node_id"]
        if not scope_of(request.user).narrow(WorkflowNode.objects.filter(id=node_id), "workflow__olt").exists():
            raise _no_node(node_id)

    def post(self, request: Request, node_id: int) -> Response:
        """Ask for a run of a master and its chain as soon as the OLT is free."""
        try:
            asked = ask_for_run(request.user, node_id, now=timezone.now())
        except UnknownNode as error:
            raise _no_node(node_id) from error
        except IsChainNode as error:
            raise ValidationError(
                _("This node runs in a chain: run its master, node %(id)s.") % {"id": error.master_id}
            ) from error
        answer: dict[str, object] = {
            "status": "queued" if asked.execution_id is None else "started",
            "node_id": asked.node.id,
            "node_name": asked.node.name,
            "olt": asked.node.workflow.olt.name,
            "chain_nodes_count": asked.chain_nodes_count,
            "message": describe_asked(asked),
            "execution_id": asked.execution_id,
        }
        return Response(RunSerializer(answer).data, status=status.HTTP_202_ACCEPTED)


def _no_node(node_id: int) -> NotFound:
    return NotFound(_("There is no node %(id)s.") % {"id": node_id})
