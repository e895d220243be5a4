"""PON ports over the API: how many ONUs of each are online, and of one port how the light is spread."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers, viewsets
from rest_framework.serializers import BaseSerializer

from facho.api import filters
from facho.api.onu_serializers import OnuSerializer
from facho.api.scoped import ScopedRows
from facho.onus.models import PonPort
from facho.onus.port_view import WORST, load_port_counts, load_port_light, load_worst


class PonPortSerializer(serializers.ModelSerializer[PonPort]):
    """A PON port and its ONUs by what may be said of them; `onus_total` are those that are present."""

    olt_id = serializers.IntegerField()
    olt = serializers.CharField(source="olt.name")
    name = serializers.CharField(source="__str__")
    onus_total = serializers.IntegerField(source="counts.total")
    onus_online = serializers.IntegerField(source="counts.online")
    onus_offline = serializers.IntegerField(source="counts.offline")
    onus_unknown = serializers.IntegerField(source="counts.unknown")
    onus_absent = serializers.IntegerField(source="counts.absent")

    class Meta:
        model = PonPort
        fields = [
            "id",
            "olt_id",
            "olt",
            "name",
            "frame",
            "slot",
            "port",
            "onus_total",
            "onus_online",
            "onus_offline",
            "onus_unknown",
            "onus_absent",
        ]


class BandSerializer(serializers.Serializer[Any]):
    """ONUs that receive at least `from_dbm` and less than `to_dbm`."""

    from_dbm = serializers.IntegerField()
    to_dbm = serializers.IntegerField()
    onus = serializers.IntegerField()


class LightSerializer(serializers.Serializer[Any]):
    """What the ONUs receive that were online when they were last asked."""

    lowest_dbm = serializers.FloatField(allow_null=True)
    average_dbm = serializers.FloatField(allow_null=True)
    highest_dbm = serializers.FloatField(allow_null=True)
    bands = BandSerializer(many=True)


class PonPortDetailSerializer(PonPortSerializer):
    """A PON port with its light: how it is spread, and who gets the least."""

    rx_power = serializers.SerializerMethodField()
    worst_onus = serializers.SerializerMethodField(help_text=f"The {WORST} with the least light.")

    class Meta(PonPortSerializer.Meta):
        fields = [*PonPortSerializer.Meta.fields, "rx_power", "worst_onus"]

    @extend_schema_field(LightSerializer)
    def get_rx_power(self, port: PonPort) -> Any:
        """Tell how the light is spread."""
        return LightSerializer(load_port_light(port.id)).data

    @extend_schema_field(OnuSerializer(many=True))
    def get_worst_onus(self, port: PonPort) -> Any:
        """Show who gets the least light."""
        return OnuSerializer(load_worst(port.id), many=True).data


class PonPortViewSet(ScopedRows, viewsets.ReadOnlyModelViewSet[PonPort]):
    """PON ports by their place in the chassis."""

    filter_backends = [filters.QueryStringFilter]
    query_parameters = {
        "olt": filters.olt(),
        "frame": filters.number("frame"),
        "slot": filters.number("slot"),
        "port": filters.number("port"),
    }
    queryset = (
        PonPort.objects.select_related("olt")
        .only("frame", "slot", "port", "is_known", "olt__name")
        .order_by("olt__name", "frame", "slot", "port")
    )

    def get_serializer_class(self) -> type[BaseSerializer[Any]]:
        """Show the light when one port is shown."""
        return PonPortDetailSerializer if self.action == "retrieve" else PonPortSerializer

    def get_object(self) -> PonPort:
        """Count the ONUs of the one port."""
        port: PonPort = super().get_object()
        _count([port])
        return port

    def paginate_queryset(self, queryset: Any) -> list[Any]:
        """Count the ONUs of the ports of the page."""
        page: list[Any] = list(super().paginate_queryset(queryset) or [])
        _count(page)
        return page


def _count(ports: list[Any]) -> None:
    counts = load_port_counts([port.id for port in ports])
    for port in ports:
        port.counts = counts[port.id]
