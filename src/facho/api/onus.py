"""ONUs and PON ports over the API: narrowed, searched, a page at a time or all as a file; and reading one ONU now."""

import csv
import io
import json
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

from asgiref.sync import sync_to_async
from django.db.models import Q, QuerySet
from django.http import Http404, StreamingHttpResponse
from django.utils import timezone
from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_field
from rest_framework import serializers, status, viewsets
from rest_framework.decorators import action
from rest_framework.exceptions import ValidationError
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer
from rest_framework.views import APIView

from facho.accounts.scope import scope_of
from facho.api.shared import filters
from facho.api.shared.bodies import read_nothing
from facho.api.shared.filters import LongPage, NoParameters, ScopedRows
from facho.api.shared.problems import Conflict
from facho.executions.onu_reads import NotThere, TooManyReads, request_read_for
from facho.hosts.csv import guard
from facho.onus.customers import FIELDS
from facho.onus.models import Onu, OnuCustomer, PonPort
from facho.onus.port_view import WORST, load_port_counts, load_port_light, load_worst
from facho.onus.search import DEFAULT_SORT, MIN_LETTERS, SORT_WORDS, FoundOnus, of_serial, of_state, of_text, shown_onus
from facho.onus.shown_state import last_known_state, shown_state
from facho.onus.words import DownCauses, RunStateChoice, ShownState
from facho.zabbix_pollers.run_now import ReadProgress, ReadStage, describe_read, describe_refusal, load_progress

BATCH = 1_000
CUSTOMER = "customer"
ORDERING = "ordering"
# No optics see light outside of this, by far.
MAX_DBM = 100


class CustomerSerializer(serializers.ModelSerializer[OnuCustomer]):
    """Customer data entered by operators."""

    class Meta:
        model = OnuCustomer
        fields = FIELDS


def _read(kind: type[serializers.Field[Any, Any, Any, Any]], name: str) -> Any:
    """Read a field of the ONU's reading; null until there is one."""
    return kind(source=f"reading.{name}", default=None, allow_null=True)


class OnuSerializer(serializers.ModelSerializer[Onu]):
    """An ONU by serial and place, with its customer and latest values.

    `run_state` is the current state: unknown behind an OLT that does not answer, absent when it has left.
    `last_known_state` is the last state the OLT reported. `last_up_at` and `last_down_at` are by the OLT's clock.
    """

    olt_id = serializers.IntegerField()
    olt = serializers.CharField(source="olt.name")
    pon_port_id = serializers.IntegerField()
    pon_port = serializers.CharField(source="pon_port.__str__")
    frame = serializers.IntegerField(source="pon_port.frame")
    slot = serializers.IntegerField(source="pon_port.slot")
    port = serializers.IntegerField(source="pon_port.port")
    identified_by = serializers.ChoiceField(choices=["serial", "mac", "place"])
    run_state = serializers.SerializerMethodField()
    last_known_state = serializers.SerializerMethodField()
    state_since = _read(serializers.DateTimeField, "state_since")
    last_down_cause = _read(serializers.CharField, "last_down_cause")
    last_up_at = _read(serializers.DateTimeField, "last_up_at")
    last_down_at = _read(serializers.DateTimeField, "last_down_at")
    is_flapping = _read(serializers.BooleanField, "is_flapping")
    outage_id = _read(serializers.IntegerField, "outage_id")
    distance_m = _read(serializers.IntegerField, "distance_m")
    rx_power_dbm = _read(serializers.FloatField, "rx_power_dbm")
    tx_power_dbm = _read(serializers.FloatField, "tx_power_dbm")
    olt_rx_power_dbm = _read(serializers.FloatField, "olt_rx_power_dbm")
    power_at = _read(serializers.DateTimeField, "power_at")
    temperature_celsius = _read(serializers.FloatField, "temperature_celsius")
    voltage_v = _read(serializers.FloatField, "voltage_v")
    bias_ma = _read(serializers.FloatField, "bias_ma")
    customer = CustomerSerializer(default=None, allow_null=True)

    class Meta:
        model = Onu
        fields = [
            "id",
            "olt_id",
            "olt",
            "pon_port_id",
            "pon_port",
            "frame",
            "slot",
            "port",
            "onu_id",
            "serial",
            "mac",
            "identified_by",
            "description",
            "name",
            "model",
            "firmware",
            "admin_state",
            "is_present",
            "first_seen_at",
            "absent_since",
            "run_state",
            "last_known_state",
            "state_since",
            "last_down_cause",
            "last_up_at",
            "last_down_at",
            "is_flapping",
            "outage_id",
            "distance_m",
            "rx_power_dbm",
            "tx_power_dbm",
            "olt_rx_power_dbm",
            "power_at",
            "temperature_celsius",
            "voltage_v",
            "bias_ma",
            "customer",
        ]

    @extend_schema_field(serializers.ChoiceField(choices=ShownState.choices))
    def get_run_state(self, onu: Onu) -> str:
        return shown_state(onu).value

    @extend_schema_field(serializers.ChoiceField(choices=RunStateChoice.choices))
    def get_last_known_state(self, onu: Onu) -> str:
        return last_known_state(onu).value


CSV_COLUMNS = (*(name for name in OnuSerializer.Meta.fields if name != CUSTOMER), *FIELDS)


class CsvRenderer(BaseRenderer):
    """Offers CSV, by header or `format`; errors are still JSON."""

    media_type = "text/csv"
    format = "csv"

    def render(self, data: Any, media_type: str | None = None, context: Any = None) -> bytes:
        """Render an error: files are streamed elsewhere."""
        return bytes(JSONRenderer().render(data, media_type, context))


def stream_onus(found: FoundOnus, kind: str) -> StreamingHttpResponse:
    batches = found.in_batches(BATCH)
    parts, content_type = (_as_csv(batches), "text/csv") if kind == "csv" else (_as_json(batches), "application/json")
    return StreamingHttpResponse(
        _in_a_thread(parts),
        content_type=f"{content_type}; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="onus.{kind}"'},
    )


async def _in_a_thread(parts: Iterator[str]) -> AsyncIterator[str]:
    # Django would read a plain iterator to its end before it sends the first byte.
    take = sync_to_async(lambda: next(parts, None))
    while (part := await take()) is not None:
        yield part


def _as_json(batches: Iterable[Sequence[Onu]]) -> Iterator[str]:
    opening = "["
    for batch in batches:
        yield opening + ",\n".join(json.dumps(row, ensure_ascii=False) for row in _rows(batch))
        opening = ",\n"
    yield "]\n" if opening != "[" else "[]\n"


def _as_csv(batches: Iterable[Sequence[Onu]]) -> Iterator[str]:
    yield _csv_lines([CSV_COLUMNS])
    for batch in batches:
        yield _csv_lines([_cell(row[name]) for name in CSV_COLUMNS] for row in map(_flat, _rows(batch)))


def _rows(batch: Sequence[Onu]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = OnuSerializer(batch, many=True).data  # type: ignore[assignment]
    return rows


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, **(row[CUSTOMER] or dict.fromkeys(CustomerSerializer.Meta.fields, ""))}


def _cell(value: Any) -> str:
    if isinstance(value, str):
        return guard(value)
    return "" if value is None else json.dumps(value)


def _csv_lines(rows: Iterable[Sequence[str]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


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
        raise ValueError(_("Enter a power in dBm, such as -27.5."))
    return round(power * 100)


def _state(text: str) -> Q:
    filters.one_of("run_state", ShownState.values).narrow(text)
    return of_state(text)


class OnuFilter(filters.QueryStringFilter):
    def filter_list(self, request: Request, queryset: QuerySet[Any], view: APIView) -> Any:
        """Filter, then sort by one of the orders an index supports."""
        conditions = self.read_conditions(request, view)
        if not (scope := scope_of(request.user)).is_everything:
            conditions.append(scope.condition())
        word = request.query_params.get(ORDERING) or DEFAULT_SORT
        if word not in SORT_WORDS:
            raise ValidationError({ORDERING: [_("Choose one of: %(values)s.") % {"values": ", ".join(SORT_WORDS)}]})
        return FoundOnus(conditions, word)

    def get_schema_operation_parameters(self, view: APIView) -> list[dict[str, Any]]:
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
    """ONUs: `search` covers serial, hardware address, description, name and all customer fields."""

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
        """Export all matching ONUs as a file, by id; rows are read page by page while sending."""
        found: Any = self.filter_queryset(self.get_queryset())
        return stream_onus(found, request.accepted_renderer.format)


class OnuReadSerializer(serializers.Serializer[ReadProgress]):
    """The latest request to read an ONU; `execution_id` is null while it waits; the execution holds the result."""

    stage = serializers.ChoiceField([stage.value for stage in ReadStage])
    requested_at = serializers.DateTimeField()
    finished_at = serializers.DateTimeField(allow_null=True)
    execution_id = serializers.IntegerField(allow_null=True)
    failure_kind = serializers.CharField(allow_blank=True)
    message = serializers.SerializerMethodField()

    def get_message(self, progress: ReadProgress) -> str:
        return describe_read(progress)


class OnuReadView(NoParameters, APIView):
    """Read the state and receive power of one ONU now."""

    @extend_schema(responses=OnuReadSerializer, operation_id="onus_read_progress", tags=["onus"])
    def get(self, request: Request, onu_id: int) -> Response:
        """Return the progress of the latest request; 404 if there was none."""
        return Response(_progress(_find(request, onu_id)))

    @extend_schema(request=None, responses={202: OnuReadSerializer}, operation_id="onus_read", tags=["onus"])
    def post(self, request: Request, onu_id: int) -> Response:
        """Request a read as soon as the OLT is free; a request already waiting is returned unchanged."""
        read_nothing(request)
        onu = _find(request, onu_id)
        try:
            request_read_for(request.user, onu, now=timezone.now())
        except (NotThere, TooManyReads) as error:
            raise Conflict(describe_refusal(error)) from error
        return Response(_progress(onu), status=status.HTTP_202_ACCEPTED)


def _find(request: Request, onu_id: int) -> Onu:
    onu = scope_of(request.user).narrow(Onu.objects.select_related("pon_port")).filter(id=onu_id).first()
    if onu is None:
        raise Http404
    return onu


def _progress(onu: Onu) -> dict[str, object]:
    progress = load_progress(onu.id, olt_id=onu.olt_id, now=timezone.now())
    if progress is None:
        raise Http404
    return dict(OnuReadSerializer(progress).data)


class PonPortSerializer(serializers.ModelSerializer[PonPort]):
    """A PON port with its ONUs by current state; `onus_total` counts those present."""

    olt_id = serializers.IntegerField()
    olt = serializers.CharField(source="olt.name")
    name = serializers.CharField(source="__str__")
    onus_total = serializers.IntegerField(source="counts.total")
    onus_online = serializers.IntegerField(source="counts.online")
    onus_offline = serializers.IntegerField(source="counts.offline")
    onus_unknown = serializers.IntegerField(source="counts.unknown")
    onus_absent = serializers.IntegerField(source="counts.absent")

    class Meta:
        model = PonPort
        fields = [
            "id",
            "olt_id",
            "olt",
            "name",
            "frame",
            "slot",
            "port",
            "onus_total",
            "onus_online",
            "onus_offline",
            "onus_unknown",
            "onus_absent",
        ]


class BandSerializer(serializers.Serializer[Any]):
    """ONUs that receive at least `from_dbm` and less than `to_dbm`."""

    from_dbm = serializers.IntegerField()
    to_dbm = serializers.IntegerField()
    onus = serializers.IntegerField()


class LightSerializer(serializers.Serializer[Any]):
    """Receive power of the ONUs that were online when last read."""

    lowest_dbm = serializers.FloatField(allow_null=True)
    average_dbm = serializers.FloatField(allow_null=True)
    highest_dbm = serializers.FloatField(allow_null=True)
    bands = BandSerializer(many=True)


class PonPortDetailSerializer(PonPortSerializer):
    """A PON port with its distribution of receive power and its weakest ONUs."""

    rx_power = serializers.SerializerMethodField()
    worst_onus = serializers.SerializerMethodField(help_text=f"The {WORST} with the least light.")

    class Meta(PonPortSerializer.Meta):
        fields = [*PonPortSerializer.Meta.fields, "rx_power", "worst_onus"]

    @extend_schema_field(LightSerializer)
    def get_rx_power(self, port: PonPort) -> Any:
        return LightSerializer(load_port_light(port.id)).data

    @extend_schema_field(OnuSerializer(many=True))
    def get_worst_onus(self, port: PonPort) -> Any:
        return OnuSerializer(load_worst(port.id), many=True).data


class PonPortViewSet(ScopedRows, viewsets.ReadOnlyModelViewSet[PonPort]):
    """PON ports by place in the chassis."""

    filter_backends = [filters.QueryStringFilter]
    query_parameters = {
        "olt": filters.olt(),
        "frame": filters.number("frame"),
        "slot": filters.number("slot"),
        "port": filters.number("port"),
    }
    queryset = (
        PonPort.objects.select_related("olt")
        .only("frame", "slot", "port", "is_known", "olt__name")
        .order_by("olt__name", "frame", "slot", "port")
    )

    def get_serializer_class(self) -> type[BaseSerializer[Any]]:
        return PonPortDetailSerializer if self.action == "retrieve" else PonPortSerializer

    def get_object(self) -> PonPort:
        port: PonPort = super().get_object()
        _count([port])
        return port

    def paginate_queryset(self, queryset: Any) -> list[Any]:
        page: list[Any] = list(super().paginate_queryset(queryset) or [])
        _count(page)
        return page


def _count(ports: list[Any]) -> None:
    counts = load_port_counts([port.id for port in ports])
    for port in ports:
        port.counts = counts[port.id]
