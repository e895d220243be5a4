"""What happened to ONUs, the latest first: the timeline of all, of an OLT, of a PON port or of one ONU."""

from typing import Any

from django.utils.translation import gettext as _
from rest_framework import serializers, viewsets
from rest_framework.exceptions import ValidationError
from rest_framework.pagination import BasePagination
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import replace_query_param
from rest_framework.views import APIView

from facho.api.shared import filters
from facho.api.shared.filters import Page, ScopedRows, with_exactness
from facho.onus.events import Count, EventPage, all_events, count_events, describe_event, load_page
from facho.onus.models import OnuEvent
from facho.onus.timeline import TimelineCursor, read_cursor
from facho.onus.words import DownCauses, EventKinds

CURSOR = "cursor"


class TimelinePage(BasePagination):
    """Pages of events by cursor; counts stop at a limit and say so."""

    _page: EventPage
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
        return self._page.events

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


class EventSerializer(serializers.ModelSerializer[OnuEvent]):
    """An event of an ONU, at the place it had then; `message` explains it in the language of the request.

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
        return describe_event(event)


class EventViewSet(ScopedRows, viewsets.ReadOnlyModelViewSet[OnuEvent]):
    """Events, latest first. An ONU that moved appears in the timelines of both ports."""

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
