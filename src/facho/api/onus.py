"""ONUs over the API: narrowed, searched, sorted, a page at a time, or all that were found as a file."""

from decimal import Decimal, InvalidOperation
from typing import Any

from django.db.models import Q, QuerySet
from django.http import StreamingHttpResponse
from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import viewsets
from rest_framework.decorators import action
from rest_framework.exceptions import ValidationError
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.views import APIView

from facho.accounts.scope import scope_of
from facho.api import filters
from facho.api.onu_export import CsvRenderer, stream_onus
from facho.api.onu_serializers import OnuSerializer
from facho.api.pagination import LongPage
from facho.api.scoped import ScopedRows
from facho.onus.models import Onu
from facho.onus.search import DEFAULT_SORT, MIN_LETTERS, SORT_WORDS, FoundOnus, of_serial, of_state, of_text, shown_onus
from facho.onus.words import DownCauses, ShownState

ORDERING = "ordering"
# No optics see light outside of this, by far.
MAX_DBM = 100


def _power(lookup: str) -> filters.QueryParameter:
    return filters.QueryParameter(
        lambda text: Q(**{f"reading__rx_power_cdbm__{lookup}": _hundredths(text)}),
        {"type": "number"},
        "Receive power in dBm, such as -27.5.",
    )


def _hundredths(text: str) -> int:
    try:
        power = Decimal(text)
    except InvalidOperation:
        power = Decimal("NaN")
    if not power.is_finite() or abs(power) > MAX_DBM:
        raise ValueError(_("Write a power in dBm, such as -27.5."))
    return round(power * 100)


def _state(text: str) -> Q:
    filters.one_of("run_state", ShownState.values).narrow(text)
    return of_state(text)


class OnuFilter(filters.QueryStringFilter):
    """Finds the ONUs of a list."""

    def filter_list(self, request: Request, queryset: QuerySet[Any], view: APIView) -> Any:
        """Narrow by the view's parameters and sort by one of the orders that an index serves."""
        conditions = self.read_conditions(request, view)
        if not (scope := scope_of(request.user)).is_everything:
            conditions.append(scope.condition())
        word = request.query_params.get(ORDERING) or DEFAULT_SORT
        if word not in SORT_WORDS:
            raise ValidationError({ORDERING: [_("Choose one of: %(values)s.") % {"values": ", ".join(SORT_WORDS)}]})
        return FoundOnus(conditions, word)

    def get_schema_operation_parameters(self, view: APIView) -> list[dict[str, Any]]:
        """Describe the parameters to the OpenAPI schema."""
        return [
            *super().get_schema_operation_parameters(view),
            {
                "name": ORDERING,
                "in": "query",
                "required": False,
                "description": "A minus gives the reverse. Who has no light is the last by `rx_power`.",
                "schema": {"type": "string", "enum": list(SORT_WORDS), "default": DEFAULT_SORT},
            },
        ]


class OnuViewSet(ScopedRows, viewsets.ReadOnlyModelViewSet[Onu]):
    """ONUs: `search` looks at serial, hardware address, description, name and all that is written of the customer."""

    serializer_class = OnuSerializer
    pagination_class = LongPage
    filter_backends = [OnuFilter]
    query_parameters = {
        "olt": filters.olt_by_id(),
        "pon_port": filters.number("pon_port_id"),
        "frame": filters.number("pon_port__frame"),
        "slot": filters.number("pon_port__slot"),
        "port": filters.number("pon_port__port"),
        "state": filters.QueryParameter(
            _state, {"type": "string", "enum": ShownState.values}, "The `run_state`: what may be said now."
        ),
        "cause": filters.one_of("reading__last_down_cause", DownCauses.values),
        "present": filters.flag("is_present"),
        "rx_power_min": _power("gte"),
        "rx_power_max": _power("lte"),
        "serial": filters.QueryParameter(of_serial, description=f"Part of the serial, from {MIN_LETTERS} letters on."),
        "search": filters.QueryParameter(
            of_text, description=f"Part of any text about the ONU, from {MIN_LETTERS} letters on."
        ),
    }
    queryset = shown_onus()

    @extend_schema(
        filters=True,
        parameters=[OpenApiParameter("format", enum=["csv", "json"], default="csv")],
        responses={(200, "text/csv"): OpenApiTypes.STR, (200, "application/json"): OnuSerializer(many=True)},
    )
    @action(detail=False, pagination_class=None, renderer_classes=[CsvRenderer, JSONRenderer])
    def export(self, request: Request) -> StreamingHttpResponse:
        """Give all ONUs that were found as a file, by id; a page at a time is read while it is sent."""
        found: Any = self.filter_queryset(self.get_queryset())
        return stream_onus(found, request.accepted_renderer.format)
