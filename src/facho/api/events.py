"""What happened to ONUs, the latest first: the timeline of all, of an OLT, of a PON port or of one ONU."""

from rest_framework import serializers, viewsets

from facho.api import filters
from facho.api.scoped import ScopedRows
from facho.api.timeline_pages import TimelinePage
from facho.onus.event_words import describe_event
from facho.onus.events_read_model import all_events
from facho.onus.models import OnuEvent
from facho.onus.words import DownCauses, EventKinds


class EventSerializer(serializers.ModelSerializer[OnuEvent]):
    """One fact about one ONU, where it was at that time; `message` says it in the language of the request.

    `onu_number` is the ONU's number at the port. `before` and `after` are descriptions, powers in dBm or states.
    """

    message = serializers.SerializerMethodField()
    olt_id = serializers.IntegerField()
    olt = serializers.CharField(source="olt.name")
    pon_port_id = serializers.IntegerField()
    pon_port = serializers.CharField(source="pon_port.__str__")
    onu_id = serializers.IntegerField()
    onu = serializers.CharField(source="onu.__str__")
    other_port_id = serializers.IntegerField(allow_null=True)
    other_port = serializers.CharField(source="other_port.__str__", default=None, allow_null=True)

    class Meta:
        model = OnuEvent
        fields = [
            "id",
            "at",
            "kind",
            "cause",
            "message",
            "olt_id",
            "olt",
            "pon_port_id",
            "pon_port",
            "onu_id",
            "onu",
            "onu_number",
            "other_port_id",
            "other_port",
            "other_number",
            "before",
            "after",
        ]

    def get_message(self, event: OnuEvent) -> str:
        """Say what happened."""
        return describe_event(event)


class EventViewSet(ScopedRows, viewsets.ReadOnlyModelViewSet[OnuEvent]):
    """Events, the latest first. An ONU that moved stands in the timelines of both ports."""

    serializer_class = EventSerializer
    pagination_class = TimelinePage
    filter_backends = [filters.QueryStringFilter]
    query_parameters = {
        "olt": filters.olt_by_id(),
        "pon_port": filters.QueryParameter(
            lambda text: filters.number("pon_port_id").narrow(text) | filters.number("other_port_id").narrow(text),
            {"type": "integer"},
        ),
        "onu": filters.number("onu_id"),
        "kind": filters.one_of("kind", EventKinds.values),
        "cause": filters.one_of("cause", DownCauses.values),
        "from": filters.moment("at__gte"),
        "to": filters.moment("at__lt"),
    }
    queryset = all_events()
