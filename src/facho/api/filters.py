"""Narrows lists by query string. A name or a value that cannot be meant is an error, not an empty or a full list."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import reduce
from operator import or_
from typing import Any

from django.db.models import Q, QuerySet
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext as _
from rest_framework.exceptions import ErrorDetail, ValidationError
from rest_framework.filters import BaseFilterBackend
from rest_framework.request import Request
from rest_framework.settings import api_settings
from rest_framework.views import APIView

from facho.hosts.models import Olt

_ID_OR_NAME = "Id or exact name of the OLT."


@dataclass(frozen=True, slots=True)
class QueryParameter:
    """One parameter: how its text narrows the list, and what the schema says of it."""

    narrow: Callable[[str], Q]
    schema: Mapping[str, Any] = field(default_factory=lambda: {"type": "string"})
    description: str = ""


def one_of(lookup: str, values: Sequence[str]) -> QueryParameter:
    """Match a field that has named values."""

    def narrow(text: str) -> Q:
        if text not in values:
            raise ValueError(_("Choose one of: %(values)s.") % {"values": ", ".join(values)})
        return Q(**{lookup: text})

    return QueryParameter(narrow, {"type": "string", "enum": list(values)})


def number(lookup: str) -> QueryParameter:
    """Match a number or an id."""
    return QueryParameter(lambda text: Q(**{lookup: _whole_number(text)}), {"type": "integer"})


def flag(lookup: str) -> QueryParameter:
    """Match true or false."""
    return QueryParameter(lambda text: Q(**{lookup: _true_or_false(text)}), {"type": "boolean"})


def condition(build: Callable[[], Q], description: str) -> QueryParameter:
    """Match with true what meets a condition, which may depend on the time, and with false the rest."""
    return QueryParameter(lambda text: build() if _true_or_false(text) else ~build(), {"type": "boolean"}, description)


def olt(path: str = "olt") -> QueryParameter:
    """Match an OLT by its id or by its exact name; in a list of OLTs there is no path to it."""
    prefix = f"{path}__" if path else ""

    def narrow(text: str) -> Q:
        by_name = Q(**{f"{prefix}name": text})
        return by_name | Q(**{f"{prefix}id": int(text)}) if _is_id(text) else by_name

    return QueryParameter(narrow, description=_ID_OR_NAME)


def olt_by_id(lookup: str = "olt_id") -> QueryParameter:
    """Match an OLT by its id or by its exact name, looked up first: so an index on its id serves the list."""

    def narrow(text: str) -> Q:
        found = Olt.objects.filter(olt("").narrow(text)).values_list("id", flat=True)
        return Q(**{f"{lookup}__in": list(found)})

    return QueryParameter(narrow, description=_ID_OR_NAME)


def moment(lookup: str) -> QueryParameter:
    """Match a point in time; without an offset it is in the zone of the product."""
    return QueryParameter(lambda text: Q(**{lookup: _moment(text)}), {"type": "string", "format": "date-time"})


def since(lookup: str) -> QueryParameter:
    """Match what is not older than a point in time, or than so many hours."""
    return QueryParameter(
        lambda text: Q(**{f"{lookup}__gte": _hours_ago(text) if _is_id(text) else _moment(text)}),
        description="A time such as 2030-05-06T12:00:00Z, or a number of hours before now.",
    )


def search(*lookups: str) -> QueryParameter:
    """Match a part of any of several texts, whatever its case and accents."""
    return QueryParameter(
        lambda text: reduce(or_, (Q(**{f"{lookup}__has": text}) for lookup in lookups)),
        description="Part of: " + ", ".join(lookup.replace("__", " ") for lookup in lookups) + ".",
    )


class QueryStringFilter(BaseFilterBackend):
    """Applies the view's `query_parameters`; an empty value narrows nothing. What is addressed by its id is found."""

    def filter_queryset(self, request: Request, queryset: QuerySet[Any], view: APIView) -> Any:
        """Narrow a list by every parameter that was given."""
        return queryset if getattr(view, "detail", False) else self.filter_list(request, queryset, view)

    def filter_list(self, request: Request, queryset: QuerySet[Any], view: APIView) -> Any:
        """Narrow by what is asked for."""
        for condition in self.read_conditions(request, view):
            queryset = queryset.filter(condition)
        return queryset

    def read_conditions(self, request: Request, view: APIView) -> list[Q]:
        """Return what the given parameters ask for; every one that cannot be meant is named in one error."""
        conditions, errors = [], unknown_parameters(request, self._names(view))
        for name, parameter in _parameters(view).items():
            text = request.query_params.get(name, "")
            try:
                if text:
                    conditions.append(parameter.narrow(_printable(text)))
            except ValueError as error:
                errors[name] = [ErrorDetail(str(error), "invalid")]
        if errors:
            raise ValidationError(errors)
        return conditions

    def get_schema_operation_parameters(self, view: APIView) -> list[dict[str, Any]]:
        """Describe the parameters to the OpenAPI schema."""
        return [
            {
                "name": name,
                "in": "query",
                "required": False,
                "description": parameter.description,
                "schema": dict(parameter.schema),
            }
            for name, parameter in _parameters(view).items()
        ]

    def _names(self, view: APIView) -> list[str]:
        """Name all parameters of a list, those of its pages too, as the schema does."""
        pages = getattr(view, "paginator", None)
        described = self.get_schema_operation_parameters(view)
        return [each["name"] for each in [*described, *(pages.get_schema_operation_parameters(view) if pages else ())]]


def unknown_parameters(request: Request, known: Collection[str]) -> dict[str, list[ErrorDetail]]:
    """Return an error for each parameter that nobody knows: who mistypes a filter must not be given everything."""
    text = _("There is no such parameter. There are: %(names)s.") % {"names": ", ".join(sorted(known))}
    # Every view may be asked for a format.
    unknown = request.query_params.keys() - {*known, str(api_settings.URL_FORMAT_OVERRIDE)}
    return {name: [ErrorDetail(text, "unknown")] for name in sorted(unknown)}


def _parameters(view: APIView) -> Mapping[str, QueryParameter]:
    declared: Mapping[str, QueryParameter] = getattr(view, "query_parameters", {})
    return declared


def _printable(text: str) -> str:
    # PostgreSQL refuses a NUL in any text, and no text of ours has one.
    if "\x00" in text:
        raise ValueError(_("This text has a character that cannot be searched."))
    return text


def _true_or_false(text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError(_("Write true or false."))
    return text == "true"


def _is_id(text: str) -> bool:
    # More digits than a 64-bit key has would be an error in the database instead of an empty list.
    return text.isascii() and text.isdigit() and len(text) <= 18


def _whole_number(text: str) -> int:
    if not _is_id(text):
        raise ValueError(_("Write a whole number."))
    return int(text)


def _moment(text: str) -> datetime:
    try:
        parsed = parse_datetime(text)
        aware = timezone.make_aware(parsed) if parsed and timezone.is_naive(parsed) else parsed
        utc = aware.astimezone(UTC) if aware else None
    except (ValueError, OverflowError):
        utc = None
    if utc is None:
        raise ValueError(_("Write a time such as 2030-05-06T12:00:00Z."))
    return utc


def _hours_ago(text: str) -> datetime:
    try:
        return timezone.now() - timedelta(hours=int(text))
    except OverflowError:
        raise ValueError(_("That is too long ago.")) from None
