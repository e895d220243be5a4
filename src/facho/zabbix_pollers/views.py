"""The four endpoints of the pollers: state, queue, statistics, and run a node now."""

from django.utils import timezone
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.exceptions import NotFound, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from facho.snmp_jobs.models import WorkflowNode
from facho.snmp_jobs.store import IsChainNode, UnknownNode, request_run
from facho.zabbix_pollers.activity import load_is_polling
from facho.zabbix_pollers.queue_read_model import load_queue
from facho.zabbix_pollers.read_model import load_overview
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
        return Response(PollersSerializer(load_overview(timezone.now())).data)


class QueueView(APIView):
    """The nodes that are due and wait."""

    @extend_schema(responses=QueueSerializer, operation_id="pollers_queue", tags=["pollers"])
    def get(self, request: Request) -> Response:
        """Return the queue's length and its first ten nodes."""
        return Response(QueueSerializer(load_queue(timezone.now())).data)


class StatsView(APIView):
    """All pollers together."""

    @extend_schema(responses=GlobalStatsSerializer, operation_id="pollers_stats", tags=["pollers"])
    def get(self, request: Request) -> Response:
        """Return the global statistics."""
        return Response(GlobalStatsSerializer(load_overview(timezone.now()).global_stats).data)


class RunNodeView(APIView):
    """Run a node now."""

    @extend_schema(request=None, responses={202: RunSerializer}, operation_id="pollers_run_node", tags=["pollers"])
    def post(self, request: Request, node_id: int) -> Response:
        """Ask for a run of a master and its chain as soon as the OLT is free."""
        now = timezone.now()
        try:
            node = request_run(node_id, now=now)
        except UnknownNode as error:
            raise NotFound(_("There is no node %(id)s.") % {"id": node_id}) from error
        except IsChainNode as error:
            raise ValidationError(
                _("This node runs in a chain: run its master, node %(id)s.") % {"id": error.master_id}
            ) from error
        answer = {
            "status": "queued",
            "node_id": node.id,
            "node_name": node.name,
            "olt": node.workflow.olt.name,
            "chain_nodes_count": node.chain_nodes.filter(enabled=True).count(),
            "message": _message(node, is_polling=load_is_polling(now)),
            "execution_id": None,
        }
        return Response(RunSerializer(answer).data, status=status.HTTP_202_ACCEPTED)


def _message(node: WorkflowNode, *, is_polling: bool) -> str:
    """Say when the run will come; a wish on a node that cannot run is kept, and that must not be a surprise."""
    if not node.workflow.olt.enabled:
        return _("Queued: it runs when its OLT is enabled again.")
    if not node.enabled:
        return _("Queued: it runs when the node is enabled again.")
    if node.suspended_at is not None:
        return _("Queued: it runs when the node is no longer suspended.")
    if not is_polling:
        return _("Queued: polling is stopped; it runs when the engine is started.")
    return _("Queued: it starts as soon as its OLT and a poller are free.")
