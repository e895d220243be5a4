"""The OpenAPI document: made once in the life of a process, and given to everybody from memory.

It is in English, as docs/openapi.yaml is, whatever language its reader prefers.
"""

import hashlib
import re
from dataclasses import dataclass
from threading import Lock
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils import translation
from django.utils.cache import get_conditional_response
from django.utils.encoding import force_bytes
from django.views.decorators.http import require_safe
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.renderers import OpenApiJsonRenderer, OpenApiYamlRenderer

from facho.api.shared.problems import CONTENT_TYPE

SCHEMA_PATH = "/api/v1/schema/"

_FIELD_ERROR = {
    "type": "object",
    "properties": {"field": {"type": "string"}, "code": {"type": "string"}, "detail": {"type": "string"}},
    "required": ["field", "code", "detail"],
}
PROBLEM = {
    "type": "object",
    "description": "What went wrong (RFC 9457); `errors` names the inputs at fault.",
    "properties": {
        "type": {"type": "string", "format": "uri"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "errors": {"type": "array", "items": _FIELD_ERROR},
    },
    "required": ["type", "title", "status", "detail", "errors"],
}
_ANSWER = {
    "description": "Anything but success",
    "content": {CONTENT_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
}

_FORMAT = re.compile(r"(?:^|&)format=([a-z-]+)")


@dataclass(frozen=True, slots=True)
class Document:
    body: bytes
    etag: str


_renderers = {"yaml": OpenApiYamlRenderer, "json": OpenApiJsonRenderer}
_documents: dict[str, Document] = {}
_building = Lock()


@require_safe
def schema(request: HttpRequest) -> HttpResponse:
    """Return the schema as YAML or JSON; 304 if the client has this version."""
    name = _format(request)
    with _building:
        if name not in _documents:
            with translation.override("en"):
                described = SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
                body = force_bytes(_renderers[name]().render(described))
            _documents[name] = Document(body, f'"{hashlib.sha256(body).hexdigest()[:32]}"')
        document = _documents[name]
    # Use the media type the client named, else the one of OpenAPI.
    plain = f"application/{name}"
    is_plain = plain in request.headers.get("Accept", "") or "format=" in request.META["QUERY_STRING"]
    media_type = (
        plain if is_plain else {"yaml": "application/vnd.oai.openapi", "json": "application/vnd.oai.openapi+json"}[name]
    )
    answer = HttpResponse(document.body, content_type=media_type)
    answer["ETag"] = document.etag
    answer["Cache-Control"] = "no-cache"
    answer["Vary"] = "Accept"
    answer["Content-Disposition"] = f'inline; filename="facho.{name}"'
    conditional = get_conditional_response(request, etag=document.etag, response=answer)
    return conditional if isinstance(conditional, HttpResponse) else answer


def is_built(request: HttpRequest) -> bool:
    """Whether the schema is cached; building it takes seconds."""
    return _format(request) in _documents


def _format(request: HttpRequest) -> str:
    """Choose JSON by the `format` parameter or the Accept header, else YAML."""
    asked = _FORMAT.search(request.META["QUERY_STRING"])
    return "json" if "json" in (asked[1] if asked else request.headers.get("Accept", "")) else "yaml"


def add_problems(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Add a problem response to every operation (a drf-spectacular hook)."""
    result["components"]["schemas"]["Problem"] = PROBLEM
    for path in result["paths"].values():
        for operation in path.values():
            operation["responses"]["default"] = _ANSWER
    return result
