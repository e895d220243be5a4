"""Whether an OLT's work fits into the hour, and what to relax when it does not."""

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from facho.api.scoped import must_see
from facho.execution_coordinator.feasibility import NodeNeed, OltFeasibility, load_feasibility, words_of
from facho.hosts.models import Olt
from facho.polling.domain.feasibility import Blocked, Relaxation


class NodeNeedSerializer(serializers.Serializer[NodeNeed]):
    """What a master with its chain needs; `seconds` is null while nobody knows, and counts as nothing."""

    node_id = serializers.IntegerField()
    name = serializers.CharField()
    interval_seconds = serializers.IntegerField()
    seconds = serializers.FloatField(allow_null=True)
    minutes_per_hour = serializers.FloatField()


class BlockedSerializer(serializers.Serializer[Blocked]):
    """A master that loses slots because another runs for longer than its interval."""

    node_id = serializers.IntegerField()
    by_node_id = serializers.IntegerField()
    seconds = serializers.FloatField()


class RelaxationSerializer(serializers.Serializer[Relaxation]):
    """A longer interval and what it saves, the cheapest first."""

    node_id = serializers.IntegerField()
    interval_before_seconds = serializers.IntegerField()
    interval_seconds = serializers.IntegerField()
    saves_minutes_per_hour = serializers.FloatField()


class FeasibilitySerializer(serializers.Serializer[OltFeasibility]):
    """What an OLT's work comes to; each relaxation alone would do, unless they are needed together."""

    olt_id = serializers.IntegerField()
    olt = serializers.CharField()
    fits = serializers.BooleanField(source="judged.fits")
    minutes_per_hour = serializers.FloatField(source="judged.minutes_per_hour")
    share = serializers.FloatField(source="judged.share")
    nodes = NodeNeedSerializer(many=True, source="needs")
    blocked = BlockedSerializer(many=True, source="judged.blocked")
    relaxations = RelaxationSerializer(many=True, source="judged.relaxations")
    are_needed_together = serializers.BooleanField(source="judged.are_needed_together")
    message = serializers.SerializerMethodField()

    def get_message(self, found: OltFeasibility) -> str:
        """Say it in the language of the request."""
        return " ".join(words_of(found))


class FeasibilityView(APIView):
    """One OLT's work against the hour."""

    @extend_schema(responses=FeasibilitySerializer, operation_id="olts_feasibility", tags=["olts"])
    def get(self, request: Request, olt_id: int) -> Response:
        """Add up the SNMP time that an OLT's enabled nodes need per hour, and say what to relax if it is too much."""
        # Asked first: no table of ours bears an id of more digits than a column has.
        must_see(request, Olt.objects.filter(id=olt_id), olt_path="")
        found = load_feasibility([olt_id]).get(olt_id)
        if found is None:
            raise NotFound
        return Response(FeasibilitySerializer(found).data)
