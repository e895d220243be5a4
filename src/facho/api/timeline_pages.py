"""Pages of a timeline: each begins beside an event of the page before, so that the last costs as much as the first."""

from typing import Any

from django.utils.translation import gettext as _
from rest_framework.exceptions import ValidationError
from rest_framework.pagination import BasePagination
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import replace_query_param
from rest_framework.views import APIView

from facho.api.pagination import Page, with_exactness
from facho.onus.events_read_model import Count, EventPage, count_events, load_page
from facho.onus.timeline import Cursor, read_cursor

CURSOR = "cursor"


class TimelinePage(BasePagination):
    """Pages of events; counts end at a limit and say so."""

    _page: EventPage
    _count: Count
    _address: str

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> list[Any]:
        """Load the page that the cursor leads to; without one the latest."""
        size = Page().get_page_size(request)
        self._page = load_page(queryset, _read_cursor(request), size)
        self._count = count_events(queryset)
        self._address = request.build_absolute_uri()
        return self._page.events

    def get_paginated_response(self, data: Any) -> Response:
        """Answer as every list does; `next` is older."""
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
        """Describe a page to the OpenAPI document."""
        return with_exactness(Page().get_paginated_response_schema(schema))

    def get_schema_operation_parameters(self, view: APIView) -> list[dict[str, Any]]:
        """Describe the parameters to the OpenAPI document."""
        texts = {CURSOR: "From `next` or `previous` of an answer.", Page.page_size_query_param: "Events on a page."}
        kinds = {CURSOR: "string", Page.page_size_query_param: "integer"}
        return [
            {"name": name, "in": "query", "required": False, "description": text, "schema": {"type": kinds[name]}}
            for name, text in texts.items()
        ]

    def _link(self, cursor: Cursor | None) -> str | None:
        return replace_query_param(self._address, CURSOR, str(cursor)) if cursor else None


def _read_cursor(request: Request) -> Cursor | None:
    text = request.query_params.get(CURSOR, "")
    try:
        return read_cursor(text) if text else None
    except ValueError:
        problem = _("Take the cursor from the next or the previous page of an answer.")
        raise ValidationError({CURSOR: [problem]}) from None
