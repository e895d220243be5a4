"""Errors of the API as problem details (RFC 9457): type, title, status, detail, errors."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from http import HTTPStatus
from typing import Any

from django.core.exceptions import PermissionDenied
from django.db import IntegrityError
from django.http import Http404, JsonResponse
from django.utils.translation import gettext as _
from rest_framework import exceptions
from rest_framework.response import Response
from rest_framework.views import set_rollback

CONTENT_TYPE = "application/problem+json"


class Conflict(exceptions.APIException):
    """What was asked for does not fit how things stand now."""

    status_code = HTTPStatus.CONFLICT
    default_code = "conflict"


@contextmanager
def collisions_are_conflicts() -> Iterator[None]:
    """Refuse what was free when it was checked and is taken, or gone, when it is saved; put it around a transaction."""
    try:
        yield
    except IntegrityError as error:
        raise Conflict(_("Somebody else has just saved something that this collides with.")) from error


@dataclass(frozen=True, slots=True)
class FieldError:
    """What is wrong with one input."""

    field: str
    code: str
    detail: str


@dataclass(frozen=True, slots=True)
class Problem:
    """One error as RFC 9457 shapes it; `errors` names the inputs at fault."""

    code: str
    status: int
    detail: str
    errors: tuple[FieldError, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the members of the answer."""
        return {
            "type": f"urn:facho:problem:{self.code.replace('_', '-')}",
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
            "detail": self.detail,
            "errors": [asdict(error) for error in self.errors],
        }


def problem_handler(error: Exception, context: Mapping[str, Any]) -> Response | None:
    """Shape an API error of a view; any other exception goes on, to be logged and answered with a 500."""
    known = _translate(error)
    if known is None:
        return None
    set_rollback()
    problem = problem_of(known)
    return Response(problem.as_dict(), status=problem.status, headers=_headers(known), content_type=CONTENT_TYPE)


def problem_response(code: str, status: HTTPStatus, detail: str) -> JsonResponse:
    """Answer with a problem where no view was reached."""
    return JsonResponse(Problem(code, status, detail).as_dict(), status=status, content_type=CONTENT_TYPE)


def problem_of(error: exceptions.APIException) -> Problem:
    """Describe an API error; a validation error is told input by input."""
    if isinstance(error, exceptions.ValidationError):
        errors = tuple(_field_errors(error.get_full_details()))
        general = [each.detail for each in errors if not each.field]
        detail = " ".join(general) or _("Some of the input cannot be used.")
        return Problem("invalid", error.status_code, detail, tuple(each for each in errors if each.field))
    return Problem(_code(error), error.status_code, str(error.detail))


def _translate(error: Exception) -> exceptions.APIException | None:
    if isinstance(error, Http404):
        return exceptions.NotFound()
    if isinstance(error, PermissionDenied):
        return exceptions.PermissionDenied()
    return error if isinstance(error, exceptions.APIException) else None


def _code(error: exceptions.APIException) -> str:
    codes = error.get_codes()
    return codes if isinstance(codes, str) else error.default_code


def _headers(error: exceptions.APIException) -> dict[str, str]:
    wait = getattr(error, "wait", None)
    challenge = getattr(error, "auth_header", None)
    headers = {"WWW-Authenticate": challenge, "Retry-After": f"{wait:.0f}" if wait else None}
    return {name: value for name, value in headers.items() if value}


def _field_errors(details: Any, path: str = "") -> Iterator[FieldError]:
    """Flatten DRF's nested details: a dict nests fields, a list nests rows, a leaf has message and code."""
    if isinstance(details, list):
        for each in details:
            yield from _field_errors(each, path)
    elif set(details) == {"message", "code"} and isinstance(details["message"], str):
        yield FieldError(path, str(details["code"]), str(details["message"]))
    else:
        for name, nested in details.items():
            inner = "" if name == "non_field_errors" else str(name)
            yield from _field_errors(nested, ".".join(part for part in (path, inner) if part))
