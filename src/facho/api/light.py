"""What light shows about the fibre: findings with their ONUs, and the inferred tree of a PON port."""

from typing import Any

from django.db.models import Q, QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers, viewsets
from rest_framework.request import Request
from rest_framework.response import Response

from facho.api.shared import filters
from facho.api.shared.views import NoParameters, RowSerializer, ScopedRows, TextField, must_see
from facho.onus.models import PonPort
from facho.plant.models import FindingKinds, FindingOnu, LightFinding
from facho.plant.store import all_findings, describe_finding, explain_finding, explain_hint, hit_of
from facho.plant.tree import load_tree


class FindingOnuSerializer(RowSerializer[FindingOnu]):
    """An ONU that was hit; `size_db` is what it lost, or loses a day."""

    class Meta:
        model = FindingOnu
        fields = ["onu_id", "onu", "size_db"]


class LightFindingSerializer(RowSerializer[LightFinding]):
    """Something that light shows; `message`, `rests_on` and `cause` explain it in the language of the request.

    `size_db` was lost at once (below 0), is lost per day, or is noise, by `kind`; `upstream_db` is the same at the OLT,
    null where it is unknown. `confidence` is from 0 to 1. `days_*` count from `judged_at`.
    """

    olt_id = serializers.IntegerField(source="pon_port.olt_id")
    olt = serializers.CharField(source="pon_port.olt.name")
    is_open = serializers.SerializerMethodField()
    message = serializers.SerializerMethodField()
    rests_on = TextField(explain_finding)
    cause = TextField(explain_hint)
    onus = serializers.SerializerMethodField()

    class Meta:
        model = LightFinding
        fields = [
            "id",
            "kind",
            "message",
            "olt_id",
            "olt",
            "pon_port_id",
            "pon_port",
            "onu_id",
            "is_open",
            "since",
            "found_at",
            "ended_at",
            "judged_at",
            "size_db",
            "upstream_db",
            "times",
            "level_dbm",
            "days_soonest",
            "days_likely",
            "days_latest",
            "confidence",
            "rests_on",
            "hint",
            "cause",
            "onus_read",
            "onus",
        ]

    def get_is_open(self, finding: LightFinding) -> bool:
        return finding.ended_at is None

    def get_message(self, finding: LightFinding) -> str:
        return describe_finding(finding, self.context["now"])

    @extend_schema_field(FindingOnuSerializer(many=True))
    def get_onus(self, finding: LightFinding) -> Any:
        return FindingOnuSerializer(hit_of(finding), many=True).data


def _of_onu(text: str) -> Q:
    onu_id = filters.whole_number(text)
    return Q(onu_id=onu_id) | Q(id__in=FindingOnu.objects.filter(onu_id=onu_id, is_hit=True).values("finding_id"))


class LightFindingViewSet(ScopedRows, viewsets.ReadOnlyModelViewSet[LightFinding]):
    """Light findings, latest first; `from` and `to` select those open in between."""

    serializer_class = LightFindingSerializer
    olt_path = "pon_port__olt"
    query_parameters = {
        "olt": filters.olt("pon_port__olt"),
        "pon_port": filters.number("pon_port_id"),
        "onu": filters.QueryParameter(_of_onu, {"type": "integer"}),
        "kind": filters.one_of("kind", FindingKinds.values),
        "open": filters.empty("ended_at", "Whether it is open."),
        **filters.open_between("since", "ended_at"),
    }
    queryset: QuerySet[LightFinding] = all_findings().order_by("-since", "-id")

    def get_serializer_context(self) -> dict[str, Any]:
        """Use one current time for the whole answer."""
        return {**super().get_serializer_context(), "now": timezone.now()}


class PlacedBoxSerializer(serializers.Serializer[Any]):
    """A box of a port as inferred; `name` is that of the known box, `is_told` says that a person corrected it."""

    number = serializers.IntegerField()
    name = serializers.CharField(allow_blank=True)
    confidence = serializers.FloatField()
    is_told = serializers.BooleanField()
    events = serializers.IntegerField()
    onu_ids = serializers.ListField(child=serializers.IntegerField())


class PortTreeView(NoParameters):
    """Which ONUs of a PON port share a box."""

    @extend_schema(operation_id="pon_ports_tree", tags=["pon-ports"], responses=PlacedBoxSerializer(many=True))
    def get(self, request: Request, pon_port_id: int) -> Response:
        """Return the boxes of a port, the nearest first; none while nothing shows them."""
        must_see(request, PonPort.objects.filter(pk=pon_port_id))
        return Response(PlacedBoxSerializer(load_tree(pon_port_id), many=True).data)
