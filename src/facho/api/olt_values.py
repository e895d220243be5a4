"""What an OLT tells of itself, the raw values of an ONU, and the ONUs that wait for authorisation."""

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import generics, serializers, viewsets

from facho.api import filters
from facho.api.scoped import ScopedRows, must_see
from facho.hosts.models import Olt, OltData, WaitingOnu
from facho.hosts.store import OLT_SECRETS
from facho.hosts.value_words import title_of
from facho.onus.models import Onu, OnuData
from facho.snmp_jobs.read_names import NamedRead, load_named_reads, name_read


class OltDataSerializer(serializers.ModelSerializer[OltData]):
    """One value: `value` in its unit, `raw` as it came; `per_second` is how fast a counter grows."""

    title = serializers.SerializerMethodField()

    class Meta:
        model = OltData
        fields = ["name", "title", "place", "value", "unit", "per_second", "raw", "oid", "index", "updated_at"]

    def get_title(self, value: OltData) -> str:
        """Name it in the language of the request."""
        return title_of(value.name) or value.oid


class OnuDataSerializer(serializers.ModelSerializer[OnuData]):
    """The latest raw value of an ONU for one OID; a unit is told where the operator gave the OID one."""

    name = serializers.CharField(source="read.name")
    unit = serializers.CharField(source="read.unit")

    class Meta:
        model = OnuData
        fields = ["name", "value", "unit", "oid", "updated_at"]


class WaitingOnuSerializer(serializers.ModelSerializer[WaitingOnu]):
    """An ONU that an OLT has found and that nobody has authorised."""

    olt_id = serializers.IntegerField()
    olt = serializers.CharField(source="olt.name")
    pon_port = serializers.CharField()

    class Meta:
        model = WaitingOnu
        fields = [
            "id",
            "olt_id",
            "olt",
            "pon_port",
            "frame",
            "slot",
            "port",
            "serial",
            "model",
            "first_seen_at",
            "last_seen_at",
        ]


@extend_schema_view(get=extend_schema(operation_id="olts_data_list", tags=["olts"]))
class OltDataView(ScopedRows, generics.ListAPIView[OltData]):
    """The latest values of an OLT itself: its cards, ports, interfaces, and what a job's own OIDs brought."""

    serializer_class = OltDataSerializer
    filter_backends = [filters.QueryStringFilter]
    query_parameters = {
        "name": filters.search("name"),
        "place": filters.search("place"),
        "oid": filters.search("oid"),
    }
    queryset = OltData.objects.order_by("name", "oid", "id")

    def get_queryset(self) -> QuerySet[OltData]:
        """Narrow to the OLT of the address."""
        olt_id = self.kwargs.get("olt_id")
        if olt_id is not None:  # the schema asks without an address
            must_see(self.request, Olt.objects.filter(pk=olt_id), olt_path="")
        return super().get_queryset().filter(olt_id=olt_id)


@extend_schema_view(get=extend_schema(operation_id="onus_data_list", tags=["onus"]))
class OnuDataView(ScopedRows, generics.ListAPIView[OnuData]):
    """The latest raw value of an ONU for each OID that was read."""

    serializer_class = OnuDataSerializer
    filter_backends = [filters.QueryStringFilter]
    query_parameters = {"oid": filters.search("oid")}
    olt_path = "onu__olt"
    queryset = OnuData.objects.order_by("oid")

    def get_queryset(self) -> QuerySet[OnuData]:
        """Narrow to the ONU of the address."""
        onu_id = self.kwargs.get("onu_id")
        if onu_id is not None:  # the schema asks without an address
            must_see(self.request, Onu.objects.filter(pk=onu_id))
        return super().get_queryset().filter(onu_id=onu_id).select_related("onu__olt").defer(*_ONU_SECRETS)

    def paginate_queryset(self, queryset: Any) -> list[Any]:
        """Give each value of the page the name under which it was asked for."""
        page: list[Any] = list(super().paginate_queryset(queryset) or [])
        reads: list[NamedRead] = load_named_reads(page[0].onu.olt.vendor) if page else []
        for value in page:
            value.read = name_read(value.oid, reads)
        return page


class WaitingOnuViewSet(ScopedRows, viewsets.ReadOnlyModelViewSet[WaitingOnu]):
    """ONUs that wait for authorisation, the latest first; one that waits no longer is not in the list."""

    serializer_class = WaitingOnuSerializer
    filter_backends = [filters.QueryStringFilter]
    query_parameters = {
        "olt": filters.olt(),
        "frame": filters.number("frame"),
        "slot": filters.number("slot"),
        "port": filters.number("port"),
        "serial": filters.search("serial"),
        "search": filters.search("serial", "model", "olt__name"),
    }
    queryset = WaitingOnu.objects.select_related("olt").defer(*OLT_SECRETS).order_by("-first_seen_at", "-id")


_ONU_SECRETS = tuple(f"onu__{name}" for name in OLT_SECRETS)
