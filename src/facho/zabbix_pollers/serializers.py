"""The shapes in which the API shows pollers, queue and statistics."""

from rest_framework import serializers

from facho.executions.models import ExecutionStates
from facho.polling.domain.planning import WaitReason
from facho.zabbix_pollers.models import PollerStatus
from facho.zabbix_pollers.queue_read_model import QueueView, WaitingNode
from facho.zabbix_pollers.read_model import GlobalStats, Overview, PollerView, Step


class StepSerializer(serializers.Serializer[Step]):
    """One member of the composite that a poller runs; `status` is null while its turn has not come."""

    node_id = serializers.IntegerField(allow_null=True)
    name = serializers.CharField()
    execution_id = serializers.IntegerField(allow_null=True)
    status = serializers.ChoiceField(choices=ExecutionStates.choices, allow_null=True)


class PollerSerializer(serializers.Serializer[PollerView]):
    """One poller; what it runs is null while it is free."""

    poller_id = serializers.IntegerField()
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
    chain_position = serializers.IntegerField(source="composite.position", default=None, allow_null=True)
    steps = StepSerializer(many=True, source="composite.steps", default=list)
    elapsed_seconds = serializers.FloatField(allow_null=True)


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
    total_tasks_completed = serializers.IntegerField()
    total_tasks_delayed = serializers.IntegerField()


class PollersSerializer(serializers.Serializer[Overview]):
    """Every poller, and all of them together."""

    pollers = PollerSerializer(many=True)
    global_stats = GlobalStatsSerializer()


class WaitingNodeSerializer(serializers.Serializer[WaitingNode]):
    """A node in the queue; `delay_time` is in seconds."""

    id = serializers.IntegerField()
    name = serializers.CharField()
    olt_id = serializers.IntegerField()
    olt = serializers.CharField()
    delayed = serializers.BooleanField()
    delay_time = serializers.FloatField()
    priority = serializers.IntegerField()
    interval_seconds = serializers.IntegerField()
    due_at = serializers.DateTimeField()
    run_now = serializers.BooleanField()
    chain_nodes_count = serializers.IntegerField()
    reason = serializers.ChoiceField(choices=[reason.value for reason in WaitReason], allow_null=True)


class QueueSerializer(serializers.Serializer[QueueView]):
    """The queue and the ten nodes that leave it first."""

    size = serializers.IntegerField()
    is_overload = serializers.BooleanField()
    next_nodes = WaitingNodeSerializer(many=True)


class RunSerializer(serializers.Serializer[dict[str, object]]):
    """What became of a run that a person asked for; `execution_id` is null while it is queued."""

    status = serializers.ChoiceField(choices=["started", "queued"])
    node_id = serializers.IntegerField()
    node_name = serializers.CharField()
    olt = serializers.CharField()
    chain_nodes_count = serializers.IntegerField()
    message = serializers.CharField()
    execution_id = serializers.IntegerField(allow_null=True)
