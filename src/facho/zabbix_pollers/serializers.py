"""The shapes in which the API shows pollers, queue and statistics, and explains a node."""

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from facho.executions.models import ExecutionStates, Origin
from facho.polling.domain.planning import BUCKETS_SECONDS, WaitReason
from facho.zabbix_pollers.activity import Holder
from facho.zabbix_pollers.composite_node import CompositeNode, Step
from facho.zabbix_pollers.explain import Explanation, QueuePlace, Situation
from facho.zabbix_pollers.explain_words import sentences
from facho.zabbix_pollers.models import PollerStatus
from facho.zabbix_pollers.queue_read_model import QueueState
from facho.zabbix_pollers.read_model import GlobalStats, GroupStats, Overview, PollerView

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
    """Who holds an OLT; without a node it is a probe or a question by hand."""

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
