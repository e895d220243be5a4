"""Errors of the API as problem details (RFC 9457): type, title, status, detail, errors."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from django.core.exceptions import PermissionDenied
from django.db import IntegrityError
from django.http import Http404, JsonResponse
from django.utils.translation import gettext as _
from rest_framework import exceptions
from rest_framework.exceptions import ParseError
from rest_framework.parsers import JSONParser
from rest_framework.response import Response

CONTENT_TYPE = "application/problem+json"


class Conflict(exceptions.APIException):
    status_code = HTTPStatus.CONFLICT
    default_code = "conflict"


@contextmanager
def collisions_are_conflicts() -> Iterator[None]:
    """Turn integrity errors into 409: checked before, but taken or deleted meanwhile. Put it around a transaction."""
    try:
        yield
    except IntegrityError as error:
        raise Conflict(_("This conflicts with a change somebody else has just saved.")) from error


@dataclass(frozen=True, slots=True)
class ApiProblem:
    """An error as in RFC 9457; `errors` lists the invalid inputs."""

    code: str
    status: int
    detail: str
    errors: Sequence[Mapping[str, str]] = ()

    def as_dict(self) -> dict[str, Any]:
        return {
            "type": f"urn:facho:problem:{self.code.replace('_', '-')}",
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
            "detail": self.detail,
            "errors": list(self.errors),
        }


def problem_handler(error: Exception, context: Mapping[str, Any]) -> Response | None:
    """Turn API errors into problems; other exceptions are logged and become a 500."""
    if isinstance(error, Http404):
        error = exceptions.NotFound()
    elif isinstance(error, PermissionDenied):
        error = exceptions.PermissionDenied()
    if not isinstance(error, exceptions.APIException):
        return None
    problem, wait = problem_of(error), getattr(error, "wait", None)
    possible = {
        "WWW-Authenticate": getattr(error, "auth_header", None),
        "Retry-After": f"{wait:.0f}" if wait else None,
    }
    headers = {name: value for name, value in possible.items() if value}
    return Response(problem.as_dict(), status=problem.status, headers=headers, content_type=CONTENT_TYPE)


def problem_response(code: str, status: HTTPStatus, detail: str) -> JsonResponse:
    return JsonResponse(ApiProblem(code, status, detail).as_dict(), status=status, content_type=CONTENT_TYPE)


def problem_of(error: exceptions.APIException) -> ApiProblem:
    """Describe an API error; a validation error is listed by input."""
    if isinstance(error, exceptions.ValidationError):
        errors = list(_field_errors(error.get_full_details()))
        general = [each["detail"] for each in errors if not each["field"]]
        detail = " ".join(general) or _("Some of the input is invalid.")
        return ApiProblem("invalid", error.status_code, detail, [each for each in errors if each["field"]])
    codes = error.get_codes()
    return ApiProblem(codes if isinstance(codes, str) else error.default_code, error.status_code, str(error.detail))


def _field_errors(details: Any, path: str = "") -> Iterator[dict[str, str]]:
    """Flatten DRF's nested details: dicts nest fields, lists nest rows, leaves have message and code."""
    if isinstance(details, list):
        for each in details:
            yield from _field_errors(each, path)
    elif set(details) == {"message", "code"} and isinstance(details["message"], str):
        yield {"field": path, "code": str(details["code"]), "detail": str(details["message"])}
    else:
        for name, nested in details.items():
            inner = "" if name == "non_field_errors" else str(name)
            yield from _field_errors(nested, ".".join(part for part in (path, inner) if part))


class JsonParser(JSONParser):
    def parse(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return super().parse(*args, **kwargs)
        except RecursionError as error:
            raise ParseError(_("This is nested too deeply.")) from error
