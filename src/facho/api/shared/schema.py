"""The OpenAPI document, and the page that shows it: made once in the life of a process, and given from memory.

What they say of the API is in English, as docs/openapi.yaml is, whatever language its reader prefers.
"""

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from threading import RLock
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.utils import translation
from django.utils.cache import get_conditional_response
from django.utils.encoding import force_bytes
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext
from django.views.decorators.http import require_safe
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.renderers import OpenApiJsonRenderer, OpenApiYamlRenderer

from facho.api.shared.problems import CONTENT_TYPE

SCHEMA_PATH, DOCS_PATH = "/api/v1/schema/", "/api/v1/docs/"

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


_renderers = {"yaml": OpenApiYamlRenderer, "json": OpenApiJsonRenderer}
# Bodies and their tags.
_documents: dict[str, tuple[bytes, str]] = {}
_building = RLock()


@require_safe
def schema(request: HttpRequest) -> HttpResponse:
    """Return the schema as YAML or JSON; 304 if the client has this version."""
    name = _format(request)
    with _building:
        if name not in _documents:
            with translation.override("en"):
                body = force_bytes(_renderers[name]().render(_describe()))
            _documents[name] = body, f'"{hashlib.sha256(body).hexdigest()[:32]}"'
        body, etag = _documents[name]
    # Use the media type the client named, else the one of OpenAPI.
    plain = f"application/{name}"
    is_plain = plain in request.headers.get("Accept", "") or "format=" in request.META["QUERY_STRING"]
    media_type = (
        plain if is_plain else {"yaml": "application/vnd.oai.openapi", "json": "application/vnd.oai.openapi+json"}[name]
    )
    answer = HttpResponse(body, content_type=media_type)
    answer["ETag"] = etag
    answer["Cache-Control"] = "no-cache"
    answer["Vary"] = "Accept"
    answer["Content-Disposition"] = f'inline; filename="facho.{name}"'
    conditional = get_conditional_response(request, etag=etag, response=answer)
    return conditional if isinstance(conditional, HttpResponse) else answer


@cache
def _describe() -> Any:
    with translation.override("en"):
        return SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]


def is_built(request: HttpRequest) -> bool:
    """Whether the schema is cached; building it takes seconds."""
    return _format(request) in _documents


def is_described() -> bool:
    """Whether the page has what it shows; making it takes seconds."""
    return _described.cache_info().currsize > 0


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


@dataclass(frozen=True, slots=True)
class ApiValue:
    """A parameter or a field: its type in words, and the object that it is or lists, which the page describes."""

    name: str
    kind: str
    is_required: bool
    text: str = ""
    shape: str = ""
    words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ApiCall:
    """One operation; `answers` are objects by status, the empty name for an answer without one."""

    id: str
    method: str
    path: str
    text: str
    parameters: list[ApiValue]
    body: ApiValue | None
    answers: dict[str, ApiValue]

    @property
    def can_be_opened(self) -> bool:
        """Whether a link is enough to try it."""
        return self.method == "GET" and "{" not in self.path


@dataclass(frozen=True, slots=True)
class ApiShape:
    name: str
    text: str
    values: list[ApiValue]
    words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ApiDescription:
    """Operations by subject, and the objects that they take and give, by name."""

    calls: Mapping[str, list[ApiCall]] = field(default_factory=dict)
    shapes: list[ApiShape] = field(default_factory=list)


@require_safe
def docs(request: HttpRequest) -> HttpResponse:
    """Show the API to people, in the frame of the product."""
    with _building:
        described = _described(translation.get_language())
    return render(request, "api/docs.html", {"here": "api", "described": described})


@cache
def _described(language: str) -> SafeString:
    """Render what is the same for every reader of a language: hundreds of rows."""
    with translation.override(language):
        return mark_safe(render_to_string("api/_described.html", {"api": read_description(_describe())}))  # noqa: S308 rendered by the template


def read_description(described: Mapping[str, Any]) -> ApiDescription:
    """Arrange an OpenAPI document for reading."""
    calls: dict[str, list[ApiCall]] = defaultdict(list)
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            calls[operation.get("tags", [""])[0]].append(_call(path, method, operation))
    shapes = [
        ApiShape(name, each.get("description", ""), list(_fields(each)), _words(each))
        for name, each in sorted(described["components"]["schemas"].items())
    ]
    return ApiDescription(dict(sorted(calls.items())), shapes)


def _call(path: str, method: str, operation: Mapping[str, Any]) -> ApiCall:
    body = _content(operation.get("requestBody", {}))
    return ApiCall(
        id=operation["operationId"],
        method=method.upper(),
        path=path,
        text=operation.get("description", ""),
        parameters=[
            _value(each["name"], each["schema"], is_required=each.get("required", False), text=each.get("description"))
            for each in operation.get("parameters", [])
        ],
        body=_value("", body, is_required=True) if body else None,
        answers={
            status: _value("", _content(answer), is_required=True)
            for status, answer in operation["responses"].items()
            if status != "default"
        },
    )


def _content(message: Mapping[str, Any]) -> Mapping[str, Any]:
    kinds: Mapping[str, Any] = message.get("content", {})
    described: Mapping[str, Any] = next((each["schema"] for each in kinds.values()), {})
    return described


def _fields(shape: Mapping[str, Any]) -> Iterator[ApiValue]:
    required = shape.get("required", ())
    for name, each in shape.get("properties", {}).items():
        yield _value(name, each, is_required=name in required)


def _value(name: str, described: Mapping[str, Any], *, is_required: bool, text: str | None = None) -> ApiValue:
    kind, shape = _kind(described)
    text = described.get("description", "") if text is None else text
    # What a form says of the same field has a translation; the rest stays English.
    return ApiValue(name, kind, is_required, gettext(text) if text else "", shape, _words(described))


def _kind(described: Mapping[str, Any]) -> tuple[str, str]:
    """Name a type, and the object that it refers to."""
    parts = [each for way in ("allOf", "oneOf", "anyOf") for each in described.get(way, ())]
    if "$ref" in described:
        return "", described["$ref"].rpartition("/")[2]
    if parts:
        kinds = [_kind(each) for each in parts]
        return " or ".join(kind for kind, shape in kinds if not shape), next((each for _, each in kinds if each), "")
    types = described.get("type", "")
    named = types if isinstance(types, str) else " or ".join(types)
    if "items" in described:
        kind, shape = _kind(described["items"])
        return f"{named} of {kind}".rstrip() if kind or shape else named, shape
    return described.get("format", named) if named == "string" else named, ""


def _words(described: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(str(word) for word in described.get("enum", ()) if word not in ("", None))
