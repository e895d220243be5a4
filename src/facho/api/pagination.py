"""Pages of lists: count, next, previous, results."""

from typing import Any

from django.core.paginator import Paginator
from django.utils.functional import cached_property
from django.utils.translation import gettext_lazy as _
from rest_framework.exceptions import ValidationError
from rest_framework.pagination import PageNumberPagination
from rest_framework.request import Request
from rest_framework.response import Response

from facho.onus.search import MANY

_ADDRESS_OR_NULL = {"type": ["string", "null"], "format": "uri"}


class Page(PageNumberPagination):
    """Numbered pages whose size a client may choose, up to what one answer should weigh."""

    page_size = 50
    page_size_query_param = "page_size"
    max_page_size = 500

    def get_page_size(self, request: Request) -> int:
        """Read how many rows are wanted; more than one answer should hold are as many as it holds."""
        text = request.query_params.get(self.page_size_query_param, "")
        if not text:
            return self.page_size
        try:
            size = int(text)
        except ValueError:
            size = 0
        if size < 1:
            raise ValidationError({self.page_size_query_param: [_("Write a whole number from 1.")]})
        return min(size, self.max_page_size)

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Describe a page to the OpenAPI document, in the words of its version 3.1."""
        return {
            "type": "object",
            "required": ["count", "next", "previous", "results"],
            "properties": {
                "count": {"type": "integer"},
                "next": _ADDRESS_OR_NULL,
                "previous": _ADDRESS_OR_NULL,
                "results": schema,
            },
        }


class CountedPages(Paginator):  # type: ignore[type-arg]  # generic in its stubs only
    """Pages of rows that count themselves up to MANY and one more; what lies beyond MANY is on no page."""

    @cached_property
    def found(self) -> int:
        """How many rows there are, as far as they were counted."""
        rows: Any = self.object_list
        return int(rows.count())

    @cached_property
    def count(self) -> int:
        """How many rows the pages hold."""
        return min(self.found, MANY)


class LongPage(Page):
    """A page of a list that can be so long that counting it would take longer than showing it."""

    django_paginator_class = CountedPages
    invalid_page_message = _(  # type: ignore[assignment]  # translated at each request
        "There is no such page. Pages end at 10,000 rows: narrow the list, or export it."
    )

    def get_paginated_response(self, data: Any) -> Response:
        """Answer as every list does, and say whether all were counted."""
        rest = {"next": self.get_next_link(), "previous": self.get_previous_link(), "results": data}
        pages: Any = self.page.paginator  # type: ignore[union-attr]  # set by then
        return Response({"count": pages.count, "count_is_exact": pages.found <= MANY, **rest})

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Describe a page to the OpenAPI document."""
        return with_exactness(super().get_paginated_response_schema(schema))


def with_exactness(page: dict[str, Any]) -> dict[str, Any]:
    """Add to the schema of a page whether all rows were counted."""
    exactness = {"type": "boolean", "description": f"False: there are more than {MANY}."}
    return {
        **page,
        "required": [*page["required"], "count_is_exact"],
        "properties": {**page["properties"], "count_is_exact": exactness},
    }
