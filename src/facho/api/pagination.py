"""Pages of lists: count, next, previous, results."""

from typing import Any

from rest_framework.pagination import PageNumberPagination

_ADDRESS_OR_NULL = {"type": ["string", "null"], "format": "uri"}


class Page(PageNumberPagination):
    """Numbered pages whose size a client may choose, up to what one answer should weigh."""

    page_size = 50
    page_size_query_param = "page_size"
    max_page_size = 500

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
