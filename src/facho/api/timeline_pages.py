"""Pages of a timeline: each begins beside an event of the page before, so that the last costs as much as the first."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

from django.utils.translation import gettext as _
from rest_framework.exceptions import ValidationError
from rest_framework.pagination import BasePagination
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import replace_query_param
from rest_framework.views import APIView

from facho.api.pagination import Page, with_exactness
from facho.onus.events_read_model import Count, Cursor, EventPage, count_events, load_page

CURSOR = "cursor"
# Microseconds of the epoch and the event's id.
_CURSOR_TEXT = re.compile(r"(?P<side>older|newer)-(?P<at>\d{1,18})-(?P<id>\d{1,18})", re.ASCII)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class TimelinePage(BasePagination):
    """Pages of events; counts end at a limit and say so."""

    _page: EventPage
    _count: Count
    _address: str

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> list[Any]:
        """Load the page that the cursor leads to; without one the latest."""
        size = Page().get_page_size(request) or Page.page_size
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
        return replace_query_param(self._address, CURSOR, _write_cursor(cursor)) if cursor else None


def _write_cursor(cursor: Cursor) -> str:
    side = "newer" if cursor.is_newer else "older"
    return f"{side}-{(cursor.at - _EPOCH) // _MICROSECOND}-{cursor.event_id}"


def _read_cursor(request: Request) -> Cursor | None:
    text = request.query_params.get(CURSOR, "")
    if not text:
        return None
    parts = _CURSOR_TEXT.fullmatch(text)
    try:
        at = _EPOCH + int(parts["at"]) * _MICROSECOND if parts else None
    except OverflowError:
        at = None
    if parts is None or at is None:
        raise ValidationError({CURSOR: [_("Take the cursor from the next or the previous page of an answer.")]})
    return Cursor(at, int(parts["id"]), is_newer=parts["side"] == "newer")
