"""Lists: filtered by query string, in pages, within the scope of the user.

An unknown name or invalid value is an error, not an empty or full list.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import reduce
from operator import or_
from typing import Any

from django.core.paginator import Paginator
from django.db.models import Q, QuerySet
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.functional import cached_property
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from rest_framework.exceptions import ErrorDetail, ValidationError
from rest_framework.filters import BaseFilterBackend
from rest_framework.pagination import PageNumberPagination
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.settings import api_settings
from rest_framework.views import APIView

from facho.hosts.models import Olt
from facho.onus.search import MANY, short_enough

_ID_OR_NAME = "Id or exact name of the OLT."
_ADDRESS_OR_NULL = {"type": ["string", "null"], "format": "uri"}


@dataclass(frozen=True, slots=True)
class QueryParameter:
    """A query parameter: how it filters, and its schema."""

    narrow: Callable[[str], Q]
    schema: Mapping[str, Any] = field(default_factory=lambda: {"type": "string"})
    description: str = ""


def one_of(lookup: str, values: Sequence[str]) -> QueryParameter:
    def narrow(text: str) -> Q:
        if text not in values:
            raise ValueError(_("Choose one of: %(values)s.") % {"values": ", ".join(values)})
        return Q(**{lookup: text})

    return QueryParameter(narrow, {"type": "string", "enum": list(values)})


def number(lookup: str) -> QueryParameter:
    return QueryParameter(lambda text: Q(**{lookup: whole_number(text)}), {"type": "integer"})


def flag(lookup: str) -> QueryParameter:
    return QueryParameter(lambda text: Q(**{lookup: _true_or_false(text)}), {"type": "boolean"})


def condition(build: Callable[[], Q], description: str) -> QueryParameter:
    """Match rows that meet a condition with true, the others with false; the condition may depend on the time."""
    return QueryParameter(lambda text: build() if _true_or_false(text) else ~build(), {"type": "boolean"}, description)


def filled(lookup: str, description: str) -> QueryParameter:
    return condition(lambda: Q(**{f"{lookup}__isnull": False}), description)


def empty(lookup: str, description: str) -> QueryParameter:
    return condition(lambda: Q(**{f"{lookup}__isnull": True}), description)


def acknowledged() -> QueryParameter:
    return filled("acknowledged_at", "Whether somebody has taken note of it.")


def open_between(began: str, ended: str) -> dict[str, QueryParameter]:
    """Match what was open within a period: it had begun before `to`, and was not over at `from`."""
    over_later = moment(f"{ended}__gt")
    since = QueryParameter(lambda text: Q(**{f"{ended}__isnull": True}) | over_later.narrow(text), over_later.schema)
    return {"from": since, "to": moment(f"{began}__lt")}


def checked(check: Callable[[str], object]) -> QueryParameter:
    """Check a parameter that narrows nothing, such as the form of the answer."""

    def narrow(text: str) -> Q:
        check(text)
        return Q()

    return QueryParameter(narrow)


def olt(path: str = "olt") -> QueryParameter:
    """Match an OLT by id or exact name; the list of OLTs itself passes no path."""
    prefix = f"{path}__" if path else ""

    def narrow(text: str) -> Q:
        by_name = Q(**{f"{prefix}name": text})
        return by_name | Q(**{f"{prefix}id": int(text)}) if _is_id(text) else by_name

    return QueryParameter(narrow, description=_ID_OR_NAME)


def olt_by_id(lookup: str = "olt_id") -> QueryParameter:
    """Match an OLT by id or exact name, resolved to its id first so that an index can be used."""

    def narrow(text: str) -> Q:
        found = Olt.objects.filter(olt("").narrow(text)).values_list("id", flat=True)
        return Q(**{f"{lookup}__in": list(found)})

    return QueryParameter(narrow, description=_ID_OR_NAME)


def moment(lookup: str) -> QueryParameter:
    """Match a time; without an offset it is in the configured time zone."""
    return QueryParameter(lambda text: Q(**{lookup: _moment(text)}), {"type": "string", "format": "date-time"})


def since(lookup: str) -> QueryParameter:
    """Match rows since a time, or since a number of hours ago."""
    return QueryParameter(
        lambda text: Q(**{f"{lookup}__gte": _hours_ago(text) if _is_id(text) else _moment(text)}),
        description="A time such as 2030-05-06T12:00:00Z, or a number of hours before now.",
    )


def search(*lookups: str) -> QueryParameter:
    """Match part of any of several texts, ignoring case and accents."""
    return QueryParameter(
        lambda text: reduce(or_, (Q(**{f"{lookup}__has": short_enough(text)}) for lookup in lookups)),
        description="Part of: " + ", ".join(lookup.replace("__", " ") for lookup in lookups) + ".",
    )


class QueryStringFilter(BaseFilterBackend):
    """Applies the view's `query_parameters`; empty values are ignored, and detail views take none."""

    def filter_queryset(self, request: Request, queryset: QuerySet[Any], view: APIView) -> Any:
        """Filter lists; a detail view refuses parameters."""
        if getattr(view, "detail", False):
            refuse_parameters(request)
            return queryset
        return self.filter_list(request, queryset, view)

    def filter_list(self, request: Request, queryset: QuerySet[Any], view: APIView) -> Any:
        for condition in self.read_conditions(request, view):
            queryset = queryset.filter(condition)
        return queryset

    def read_conditions(self, request: Request, view: APIView) -> list[Q]:
        """Read the given parameters; all invalid ones are reported in one error."""
        pages = getattr(view, "paginator", None)
        of_pages = pages.get_schema_operation_parameters(view) if pages else ()
        described = [*self.get_schema_operation_parameters(view), *of_pages]
        conditions, errors = [], unknown_parameters(request, [each["name"] for each in described])
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


def unknown_parameters(request: Request, known: Collection[str]) -> dict[str, list[ErrorDetail]]:
    """Return an error per unknown parameter: a mistyped filter must not return everything."""
    text = _("Unknown parameter. Known parameters: %(names)s.") % {"names": ", ".join(sorted(known))}
    text = text if known else _("This address accepts no parameters.")
    # Every view may be asked for a format.
    unknown = request.query_params.keys() - {*known, str(api_settings.URL_FORMAT_OVERRIDE)}
    return {name: [ErrorDetail(text, "unknown")] for name in sorted(unknown)}


def refuse_parameters(request: Request) -> None:
    if unknown := unknown_parameters(request, ()):
        raise ValidationError(unknown)


def _parameters(view: APIView) -> Mapping[str, QueryParameter]:
    declared: Mapping[str, QueryParameter] = getattr(view, "query_parameters", {})
    return declared


def _printable(text: str) -> str:
    # PostgreSQL refuses NUL in text, and no stored text has one.
    if "\x00" in text:
        raise ValueError(_("The text contains a character that cannot be searched."))
    return text


def _true_or_false(text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError(_("Enter true or false."))
    return text == "true"


def _is_id(text: str) -> bool:
    # More digits than a 64-bit key has would be an error in the database instead of an empty list.
    return text.isascii() and text.isdigit() and len(text) <= 18


def whole_number(text: str) -> int:
    if not _is_id(text):
        raise ValueError(_("Enter a whole number."))
    return int(text)


def _moment(text: str) -> datetime:
    try:
        parsed = parse_datetime(text)
        aware = timezone.make_aware(parsed) if parsed and timezone.is_naive(parsed) else parsed
        utc = aware.astimezone(UTC) if aware else None
    except (ValueError, OverflowError):
        utc = None
    if utc is None:
        raise ValueError(_("Enter a time such as 2030-05-06T12:00:00Z."))
    return utc


def _hours_ago(text: str) -> datetime:
    try:
        return timezone.now() - timedelta(hours=int(text))
    except OverflowError:
        raise ValueError(_("That is too long ago.")) from None


class Page(PageNumberPagination):
    """Numbered pages; clients may choose the size up to a maximum."""

    page_size = 50
    page_size_query_param = "page_size"
    max_page_size = 500

    def get_page_size(self, request: Request) -> int:
        """Read the page size, capped at the maximum."""
        text = request.query_params.get(self.page_size_query_param, "")
        if not text:
            return self.page_size
        try:
            size = int(text)
        except ValueError:
            size = 0
        if size < 1:
            raise ValidationError({self.page_size_query_param: [gettext_lazy("Enter a whole number from 1.")]})
        return min(size, self.max_page_size)

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
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
    """Pages that count at most MANY + 1 rows; rows beyond MANY are on no page."""

    @cached_property
    def found(self) -> int:
        rows: Any = self.object_list
        return int(rows.count())

    @cached_property
    def count(self) -> int:
        return min(self.found, MANY)


class LongPage(Page):
    """A page of a list that is too long to be counted."""

    django_paginator_class = CountedPages
    invalid_page_message = gettext_lazy(  # type: ignore[assignment]  # translated at each request
        "There is no such page. Pages end at 10,000 rows: narrow the list, or export it."
    )

    def get_paginated_response(self, data: Any) -> Response:
        rest = {"next": self.get_next_link(), "previous": self.get_previous_link(), "results": data}
        pages: Any = self.page.paginator  # type: ignore[union-attr]  # set by then
        return Response({"count": pages.count, "count_is_exact": pages.found <= MANY, **rest})

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        return with_exactness(super().get_paginated_response_schema(schema))


def with_exactness(page: dict[str, Any]) -> dict[str, Any]:
    exactness = {"type": "boolean", "description": f"False: there are more than {MANY}."}
    return {
        **page,
        "required": [*page["required"], "count_is_exact"],
        "properties": {**page["properties"], "count_is_exact": exactness},
    }
