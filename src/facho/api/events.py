"""What happened: events of ONUs as a timeline, and outages, many faults as one with their probable cause."""

from typing import Any

from django.db.models import QuerySet
from django.http import Http404
from django.utils import timezone
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema, extend_schema_field, extend_schema_view
from rest_framework import generics, serializers, viewsets
from rest_framework.exceptions import ValidationError
from rest_framework.pagination import BasePagination
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import replace_query_param
from rest_framework.views import APIView

from facho.accounts.acknowledge import with_acknowledger
from facho.accounts.scope import scope_of
from facho.api.shared import filters
from facho.api.shared.filters import Page, with_exactness
from facho.api.shared.views import AcknowledgeAction, RowSerializer, ScopedRows, TextField
from facho.onus.events import Count, all_events, count_events, describe_event, load_page
from facho.onus.models import Onu, OnuEvent, Outage
from facho.onus.outages import all_outages, onus_of
from facho.onus.shown_state import shown_state
from facho.onus.timeline import RowPage, TimelineCursor, read_cursor
from facho.onus.words import DownCauses, EventKinds, OutageCauses, OutageScopes, ShownState

CURSOR = "cursor"


class TimelinePage(BasePagination):
    """Pages of events by cursor; counts stop at a limit and say so."""

    _page: RowPage[OnuEvent]
    _count: Count
    _address: str

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> list[Any]:
        size = Page().get_page_size(request)
        text = request.query_params.get(CURSOR, "")
        try:
            cursor = read_cursor(text) if text else None
        except ValueError:
            problem = _("Use the cursor of the next or previous page of an answer.")
            raise ValidationError({CURSOR: [problem]}) from None
        self._page = load_page(queryset, cursor, size)
        self._count = count_events(queryset)
        self._address = request.build_absolute_uri()
        return self._page.rows

    def get_paginated_response(self, data: Any) -> Response:
        return Response(
            {
                "count": self._count.number,
                "count_is_exact": self._count.is_exact,
                "next": self._link(self._page.older),
                "previous": self._link(self._page.newer),
                "results": data,
            }
        )

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        return with_exactness(Page().get_paginated_response_schema(schema))

    def get_schema_operation_parameters(self, view: APIView) -> list[dict[str, Any]]:
        texts = {CURSOR: "From `next` or `previous` of an answer.", Page.page_size_query_param: "Events on a page."}
        kinds = {CURSOR: "string", Page.page_size_query_param: "integer"}
        return [
            {"name": name, "in": "query", "required": False, "description": text, "schema": {"type": kinds[name]}}
            for name, text in texts.items()
        ]

    def _link(self, cursor: TimelineCursor | None) -> str | None:
        return replace_query_param(self._address, CURSOR, str(cursor)) if cursor else None


class EventSerializer(RowSerializer[OnuEvent]):
    """An event of an ONU, at the place it had then; `message` explains it in the language of the request.

    `onu_number` is the ONU's number at the port. `before` and `after` are descriptions, powers in dBm or states.
    """

    message = TextField(describe_event)

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


class EventViewSet(ScopedRows, viewsets.ReadOnlyModelViewSet[OnuEvent]):
    """Events, latest first. An ONU that moved appears in the timelines of both ports."""

    serializer_class = EventSerializer
    pagination_class = TimelinePage
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


class OutageSerializer(RowSerializer[Outage]):
    """An outage; `probable_cause` explains `cause` in the language of the request.

    Without an OLT it is the poller's own network. `affected` counts the ONUs it took down, `down` those still down;
    for an OLT that does not answer, both count the ONUs that were online before. An outage that returns soon after its
    end continues, since `resumed_at`.
    """

    place = serializers.CharField(allow_blank=True)
    probable_cause = serializers.CharField(source="get_cause_display")
    is_open = serializers.SerializerMethodField()
    duration_seconds = serializers.SerializerMethodField()
    parts = serializers.IntegerField(source="part_count")

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
        return outage.ended_at is None

    def get_duration_seconds(self, outage: Outage) -> int:
        until = outage.ended_at or self.context["now"]
        return max(0, int((until - outage.started_at).total_seconds()))


class OutageOnuSerializer(RowSerializer[Onu]):
    """An ONU of an outage with its current state; `onu_number` is its number at the port."""

    onu_id = serializers.IntegerField(source="id")
    onu = serializers.CharField(source="__str__")
    onu_number = serializers.IntegerField(source="onu_id")
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
        """Return the current state; unknown behind an OLT that does not answer."""
        return shown_state(onu).value


class OutageViewSet(ScopedRows, AcknowledgeAction, viewsets.ReadOnlyModelViewSet[Outage]):
    """Outages, latest first; `from` and `to` select those open in between."""

    serializer_class = OutageSerializer
    query_parameters = {
        "olt": filters.olt(),
        "scope": filters.one_of("scope", OutageScopes.values),
        "cause": filters.one_of("cause", OutageCauses.values),
        "acknowledged": filters.acknowledged(),
        "open": filters.empty("ended_at", "Whether it is open."),
        "part_of": filters.number("part_of_id"),
        **filters.open_between("started_at", "ended_at"),
    }
    queryset = with_acknowledger(all_outages()).order_by("-started_at", "-id")

    def get_serializer_context(self) -> dict[str, Any]:
        """Use one current time for the whole answer."""
        return {**super().get_serializer_context(), "now": timezone.now()}


@extend_schema_view(get=extend_schema(operation_id="outages_onus_list", tags=["outages"]))
class OutageOnusView(ScopedRows, generics.ListAPIView[Onu]):
    """The ONUs an outage took down, by place; those of a later outage are listed there.

    For an OLT or a network that does not answer, all ONUs behind it.
    """

    serializer_class = OutageOnuSerializer
    queryset = Onu.objects.none()

    def get_queryset(self) -> QuerySet[Onu]:
        """Filter by the outage of the URL; the schema generator passes none."""
        if "outage_id" not in self.kwargs:
            return super().get_queryset()
        scope = scope_of(self.request.user)
        outage = scope.narrow(Outage.objects.filter(pk=self.kwargs["outage_id"])).first()
        if outage is None:
            raise Http404
        return onus_of(outage)
