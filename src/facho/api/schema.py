"""Adds to the OpenAPI document what every operation has in common: its errors are problem details."""

from typing import Any

from facho.api.problems import CONTENT_TYPE

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


def add_problems(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Let every operation end in a problem (a hook of drf-spectacular)."""
    result["components"]["schemas"]["Problem"] = PROBLEM
    for path in result["paths"].values():
        for operation in path.values():
            operation["responses"]["default"] = _ANSWER
    return result
