"""The four endpoints of the pollers: state, queue, statistics, run a node now; and the explanation of a node."""

from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers, status
from rest_framework.exceptions import NotFound, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from facho.accounts.scope import scope_of
from facho.executions.models import ExecutionStates, Origin
from facho.polling.domain.planning import BUCKETS_SECONDS, WaitReason
from facho.snmp_jobs.models import WorkflowNode
from facho.snmp_jobs.store import IsChainNode, UnknownNode
from facho.zabbix_pollers.activity import Holder
from facho.zabbix_pollers.composite_node import CompositeNode, Step
from facho.zabbix_pollers.explain import Explanation, QueuePlace, Situation, sentences
from facho.zabbix_pollers.models import PollerStatus
from facho.zabbix_pollers.poller_manager import PollerManager
from facho.zabbix_pollers.read_model import GlobalStats, GroupStats, Overview, PollerView, QueueState, load_queue
from facho.zabbix_pollers.run_now import ask_for_run, describe_asked

_LATENESS = {
    "type": "object",
    "description": "Seconds, and how many waiting nodes are at least that late.",
    "properties": {str(bound): {"type": "integer"} for bound in BUCKETS_SECONDS},
    "required": [str(bound) for bound in BUCKETS_SECONDS],
}


@extend_schema_field(_LATENESS)
class LatenessField(serializers.DictField):
    """The histogram of how late the waiting nodes are."""


class StepSerializer(serializers.Serializer[Step]):
    """One member of the composite that a poller runs; `status` is null while its turn has not come."""

    node_id = serializers.IntegerField(allow_null=True)
    name = serializers.CharField()
    execution_id = serializers.IntegerField(allow_null=True)
    status = serializers.ChoiceField(choices=ExecutionStates.choices, allow_null=True)


class PollerSerializer(serializers.Serializer[PollerView]):
    """One poller; what it runs is null while it is free. `chain_position` is that of the execution: 0 is the master."""

    poller_id = serializers.IntegerField()
    group = serializers.CharField()
    status = serializers.ChoiceField(choices=PollerStatus.choices)
    busy_percentage = serializers.FloatField()
    tasks_completed = serializers.IntegerField()
    tasks_delayed = serializers.IntegerField()
    current_node_id = serializers.IntegerField(source="composite.current_node_id", default=None, allow_null=True)
    current_node_name = serializers.CharField(source="composite.current_node_name", default=None, allow_null=True)
    current_execution_id = serializers.IntegerField(
        source="composite.current_execution_id", default=None, allow_null=True
    )
    olt_id = serializers.IntegerField(source="composite.olt_id", default=None, allow_null=True)
    olt = serializers.CharField(source="composite.olt", default=None, allow_null=True)
    master_execution_id = serializers.IntegerField(
        source="composite.master_execution_id", default=None, allow_null=True
    )
    execution_ids = serializers.ListField(
        child=serializers.IntegerField(), source="composite.execution_ids", default=list
    )
    chain_position = serializers.IntegerField(source="composite.chain_position", default=None, allow_null=True)
    steps = StepSerializer(many=True, source="composite.steps", default=list)
    elapsed_seconds = serializers.FloatField(allow_null=True)


class GroupStatsSerializer(serializers.Serializer[GroupStats]):
    """The pollers of one group together; the default group has the empty name."""

    group = serializers.CharField()
    total_pollers = serializers.IntegerField()
    busy_pollers = serializers.IntegerField()
    busy_percentage = serializers.FloatField()
    is_saturated = serializers.BooleanField()


class GlobalStatsSerializer(serializers.Serializer[GlobalStats]):
    """All pollers together; busy % is over the last 60 s."""

    total_pollers = serializers.IntegerField()
    free_pollers = serializers.IntegerField()
    busy_pollers = serializers.IntegerField()
    busy_percentage = serializers.FloatField()
    queue_size = serializers.IntegerField()
    is_overload = serializers.BooleanField()
    is_saturated = serializers.BooleanField()
    is_polling = serializers.BooleanField()
    lateness = LatenessField()
    total_tasks_completed = serializers.IntegerField()
    total_tasks_delayed = serializers.IntegerField()
    groups = GroupStatsSerializer(many=True)


class PollersSerializer(serializers.Serializer[Overview]):
    """Every poller, and all of them together."""

    pollers = PollerSerializer(many=True)
    global_stats = GlobalStatsSerializer()


class ChainNodeSerializer(serializers.Serializer[Step]):
    """A member of a chain."""

    id = serializers.IntegerField(source="node_id")
    name = serializers.CharField()


class CompositeNodeSerializer(serializers.Serializer[CompositeNode]):
    """A composite in the queue; times are in seconds, `execution_time` that of its last run with the whole chain."""

    id = serializers.IntegerField()
    name = serializers.CharField()
    olt_id = serializers.IntegerField()
    olt = serializers.CharField()
    delayed = serializers.BooleanField()
    delay_time = serializers.FloatField()
    execution_time = serializers.FloatField(allow_null=True)
    priority = serializers.IntegerField()
    interval_seconds = serializers.IntegerField()
    nextcheck = serializers.DateTimeField(allow_null=True)
    lastcheck = serializers.DateTimeField(allow_null=True)
    due_at = serializers.DateTimeField()
    run_now = serializers.BooleanField()
    chain_nodes_count = serializers.IntegerField()
    chain_nodes = ChainNodeSerializer(many=True)
    execution_id = serializers.IntegerField(allow_null=True)
    reason = serializers.ChoiceField(choices=[reason.value for reason in WaitReason], allow_null=True)


class RetrySerializer(serializers.Serializer[CompositeNode]):
    """A run whose last try failed, until its next one."""

    execution_id = serializers.IntegerField()
    node_id = serializers.IntegerField(source="id")
    name = serializers.CharField()
    olt_id = serializers.IntegerField()
    olt = serializers.CharField()
    resume_at = serializers.DateTimeField(source="due_at")


class QueueSerializer(serializers.Serializer[QueueState]):
    """The queue, the ten nodes that leave it first, and the ten retries that are due next."""

    size = serializers.IntegerField()
    is_overload = serializers.BooleanField()
    lateness = LatenessField()
    next_nodes = CompositeNodeSerializer(many=True)
    retries = RetrySerializer(many=True)


class HolderSerializer(serializers.Serializer[Holder]):
    """The execution that holds an OLT; without a node it is a probe or a manual query."""

    execution_id = serializers.IntegerField()
    node_id = serializers.IntegerField(allow_null=True)
    master_node_id = serializers.IntegerField(allow_null=True)
    name = serializers.CharField()
    origin = serializers.ChoiceField(choices=Origin.choices)
    poller_id = serializers.IntegerField(allow_null=True)
    since = serializers.DateTimeField()


class PlaceSerializer(serializers.Serializer[QueuePlace]):
    """A place in the queue, counted from 1: among all nodes, and among those of the same OLT."""

    number = serializers.IntegerField()
    size = serializers.IntegerField()
    on_olt = serializers.IntegerField()
    reason = serializers.ChoiceField(choices=[reason.value for reason in WaitReason], allow_null=True)


class MasterExplanationSerializer(serializers.Serializer[Explanation]):
    """A node's situation, since when, until when, and when it runs if that is known."""

    node_id = serializers.IntegerField()
    name = serializers.CharField()
    olt_id = serializers.IntegerField()
    olt = serializers.CharField()
    situation = serializers.ChoiceField(choices=[situation.value for situation in Situation])
    message = serializers.SerializerMethodField()
    is_polling = serializers.BooleanField()
    since = serializers.DateTimeField(allow_null=True)
    until = serializers.DateTimeField(allow_null=True)
    runs_at = serializers.DateTimeField(allow_null=True)
    reason = serializers.CharField(allow_blank=True)
    execution_id = serializers.IntegerField(allow_null=True)
    place = PlaceSerializer(allow_null=True)
    holder = HolderSerializer(allow_null=True)

    def get_message(self, explanation: Explanation) -> str:
        """Say it in sentences."""
        return " ".join(sentences(explanation))


class ExplanationSerializer(MasterExplanationSerializer):
    """A node's situation; a chain member with its master, a node waiting for the first discovery with that."""

    master = MasterExplanationSerializer(allow_null=True)
    discovery = MasterExplanationSerializer(allow_null=True)


class RunSerializer(serializers.Serializer[dict[str, object]]):
    """The state of a run that a person asked for; `execution_id` is null while it is queued."""

    status = serializers.ChoiceField(choices=["started", "queued"])
    node_id = serializers.IntegerField()
    node_name = serializers.CharField()
    olt = serializers.CharField()
    chain_nodes_count = serializers.IntegerField()
    message = serializers.CharField()
    execution_id = serializers.IntegerField(allow_null=True)


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
