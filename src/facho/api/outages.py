"""Outages: many faults as one, with their probable cause, how long they last and whom they take down."""

from typing import Any

from django.db.models import Q, QuerySet
from django.http import Http404
from django.utils import timezone
from drf_spectacular.utils import extend_schema, extend_schema_field, extend_schema_view
from rest_framework import generics, serializers, viewsets

from facho.accounts.acknowledge import with_acknowledger
from facho.accounts.scope import scope_of
from facho.api import filters
from facho.api.acknowledgement import Acknowledgement
from facho.api.scoped import ScopedRows
from facho.onus.models import Onu, Outage
from facho.onus.outages_read_model import all_outages, onus_of
from facho.onus.shown_state import shown_state
from facho.onus.words import OutageCauses, OutageScopes, ShownState


class OutageSerializer(serializers.ModelSerializer[Outage]):
    """An outage; `probable_cause` says `cause` in the language of the request. The poller's own network has no OLT.

    `affected` counts the ONUs that it took down, `down` those that still are; behind an OLT that is silent both count
    who was online before. One that came back soon after its end goes on, since `resumed_at`.
    """

    olt_id = serializers.IntegerField(allow_null=True)
    olt = serializers.CharField(source="olt.name", default=None, allow_null=True)
    place = serializers.CharField(allow_blank=True)
    probable_cause = serializers.CharField(source="get_cause_display")
    is_open = serializers.SerializerMethodField()
    duration_seconds = serializers.SerializerMethodField()
    part_of_id = serializers.IntegerField(allow_null=True)
    parts = serializers.IntegerField(source="part_count")
    acknowledged_by_id = serializers.IntegerField(allow_null=True)
    acknowledged_by = serializers.CharField(source="acknowledged_by.username", default=None, allow_null=True)

    class Meta:
        model = Outage
        fields = [
            "id",
            "scope",
            "olt_id",
            "olt",
            "place",
            "frame",
            "slot",
            "port",
            "cause",
            "probable_cause",
            "is_open",
            "started_at",
            "resumed_at",
            "ended_at",
            "duration_seconds",
            "affected",
            "down",
            "affected_olts",
            "part_of_id",
            "parts",
            "acknowledged_at",
            "acknowledged_by_id",
            "acknowledged_by",
            "acknowledgement",
        ]

    def get_is_open(self, outage: Outage) -> bool:
        """Tell whether it goes on."""
        return outage.ended_at is None

    def get_duration_seconds(self, outage: Outage) -> int:
        """Tell how long it lasted, or lasts already."""
        until = outage.ended_at or self.context["now"]
        return max(0, int((until - outage.started_at).total_seconds()))


class OutageOnuSerializer(serializers.ModelSerializer[Onu]):
    """An ONU of an outage and how it is now; `onu_number` is its number at the port."""

    onu_id = serializers.IntegerField(source="id")
    onu = serializers.CharField(source="__str__")
    onu_number = serializers.IntegerField(source="onu_id")
    olt_id = serializers.IntegerField()
    olt = serializers.CharField(source="olt.name")
    pon_port_id = serializers.IntegerField()
    pon_port = serializers.CharField(source="pon_port.__str__")
    state = serializers.SerializerMethodField()
    state_since = serializers.DateTimeField(source="reading.state_since", default=None, allow_null=True)
    last_down_cause = serializers.CharField(source="reading.last_down_cause", default=None, allow_null=True)

    class Meta:
        model = Onu
        fields = [
            "onu_id",
            "onu",
            "olt_id",
            "olt",
            "pon_port_id",
            "pon_port",
            "onu_number",
            "description",
            "state",
            "state_since",
            "last_down_cause",
        ]

    @extend_schema_field(serializers.ChoiceField(choices=ShownState.choices))
    def get_state(self, onu: Onu) -> str:
        """Tell what may be said of it: behind a silent OLT nothing is known."""
        return shown_state(onu).value


class OutageViewSet(ScopedRows, Acknowledgement, viewsets.ReadOnlyModelViewSet[Outage]):
    """Outages, the latest first; `from` and `to` find those that were going on between them."""

    serializer_class = OutageSerializer
    filter_backends = [filters.QueryStringFilter]
    query_parameters = {
        "olt": filters.olt(),
        "scope": filters.one_of("scope", OutageScopes.values),
        "cause": filters.one_of("cause", OutageCauses.values),
        "acknowledged": filters.condition(
            lambda: Q(acknowledged_at__isnull=False), "Whether somebody has taken note of it."
        ),
        "open": filters.condition(lambda: Q(ended_at__isnull=True), "Whether it goes on."),
        "part_of": filters.number("part_of_id"),
        "from": filters.QueryParameter(
            lambda text: Q(ended_at__isnull=True) | filters.moment("ended_at__gt").narrow(text),
            filters.moment("ended_at").schema,
        ),
        "to": filters.moment("started_at__lt"),
    }
    queryset = with_acknowledger(all_outages()).order_by("-started_at", "-id")

    def get_serializer_context(self) -> dict[str, Any]:
        """Measure all of an answer at one moment."""
        return {**super().get_serializer_context(), "now": timezone.now()}


@extend_schema_view(get=extend_schema(operation_id="outages_onus_list", tags=["outages"]))
class OutageOnusView(ScopedRows, generics.ListAPIView[Onu]):
    """The ONUs that an outage took down, by their places; one that a later outage took down is listed there.

    Of a silent OLT, or a lost network, they are all that were behind it.
    """

    serializer_class = OutageOnuSerializer
    filter_backends = [filters.QueryStringFilter]
    queryset = Onu.objects.none()

    def get_queryset(self) -> QuerySet[Onu]:
        """Find the ONUs of the outage of the address; the schema asks without an address."""
        if "outage_id" not in self.kwargs:
            return super().get_queryset()
        scope = scope_of(self.request.user)
        outage = scope.narrow(Outage.objects.filter(pk=self.kwargs["outage_id"])).first()
        if outage is None:
            raise Http404
        return onus_of(outage)
