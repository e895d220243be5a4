"""ONUs and PON ports over the API: narrowed, searched, a page at a time or all as a file; and reading one ONU now."""

from collections.abc import Iterable
from datetime import timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

from django.db.models import Q, QuerySet
from django.http import Http404, StreamingHttpResponse
from django.shortcuts import get_object_or_404
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
from rest_framework.views import APIView

from facho.accounts.scope import scope_of
from facho.api.shared import filters
from facho.api.shared.filters import LongPage
from facho.api.shared.problems import Conflict
from facho.api.shared.views import (
    KnownFields,
    NoParameters,
    RowSerializer,
    ScopedRows,
    TextField,
    read_body,
    read_nothing,
    valid,
)
from facho.executions.onu_reads import NotThere, TooManyReads, request_read_for
from facho.hosts.inventory import EntryProblem, InventoryError
from facho.infrastructure.spreadsheet import FILE_TYPES, Cell, answer_file, write_file, write_json
from facho.onus.customers import FIELDS, CustomerEntry, find_doubles, read_entry, save_customers
from facho.onus.models import Onu, OnuCustomer, PonPort
from facho.onus.search import (
    DEFAULT_SORT,
    MIN_LETTERS,
    SORT_WORDS,
    FoundOnus,
    of_model,
    of_serial,
    of_state,
    of_tag,
    of_text,
    shown_onus,
)
from facho.onus.shown_state import last_known_state, load_port_counts, load_port_light, shown_state
from facho.onus.words import DownCauses, RunStateChoice, ShownState
from facho.zabbix_pollers.run_now import ReadProgress, ReadStage, describe_read, describe_refusal, load_progress

BATCH = 1_000
CUSTOMER = "customer"
ORDERING = "ordering"
# What a page shows at a time, and an address can hold.
MOST_IDS = 500
# Ten years.
MOST_HOURS = 87_600
# No optics see light outside of this, by far.
MAX_DBM = 100
# Of a PON port.
WORST = 10


class CustomerSerializer(serializers.ModelSerializer[OnuCustomer]):
    """Customer data entered by operators."""

    class Meta:
        model = OnuCustomer
        fields = FIELDS


def _read(kind: type[serializers.Field[Any, Any, Any, Any]], name: str) -> Any:
    """Read a field of the ONU's reading; null until there is one."""
    return kind(source=f"reading.{name}", default=None, allow_null=True)


class OnuSerializer(RowSerializer[Onu]):
    """An ONU by serial and place, with its customer and latest values.

    `run_state` is the current state: unknown behind an OLT that does not answer, absent when it has left.
    `last_known_state` is the last state the OLT reported. `last_up_at` and `last_down_at` are by the OLT's clock.
    """

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
    acs_url = serializers.CharField(read_only=True, help_text="Its page on the ACS (TR-069); empty without one.")

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
            "acs_url",
        ]

    @extend_schema_field(serializers.ChoiceField(choices=ShownState.choices))
    def get_run_state(self, onu: Onu) -> str:
        return shown_state(onu).value

    @extend_schema_field(serializers.ChoiceField(choices=RunStateChoice.choices))
    def get_last_known_state(self, onu: Onu) -> str:
        return last_known_state(onu).value


CSV_COLUMNS = (*(name for name in OnuSerializer.Meta.fields if name not in (CUSTOMER, "acs_url")), *FIELDS)


class CsvRenderer(BaseRenderer):
    """Offers a file, by header or `format`; errors are still JSON."""

    media_type = "text/csv"
    format = "csv"

    def render(self, data: Any, media_type: str | None = None, context: Any = None) -> bytes:
        """Render an error: files are streamed elsewhere."""
        return bytes(JSONRenderer().render(data, media_type, context))


class WorkbookRenderer(CsvRenderer):
    media_type = FILE_TYPES["xlsx"]
    format = "xlsx"


def stream_onus(found: FoundOnus, kind: str) -> StreamingHttpResponse:
    rows = (row for batch in found.in_batches(BATCH) for row in OnuSerializer(batch, many=True).data)
    if kind == "json":
        return answer_file("onus", kind, write_json(rows))
    return answer_file("onus", kind, write_file(kind, CSV_COLUMNS, map(_flat, rows)))


def _flat(row: dict[str, Any]) -> list[Cell]:
    flat = {**row, **(row[CUSTOMER] or dict.fromkeys(FIELDS, ""))}
    return [flat[name] for name in CSV_COLUMNS]


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


def _age(lookup: str, description: str) -> filters.QueryParameter:
    def narrow(text: str) -> Q:
        hours = filters.whole_number(text)
        if hours > MOST_HOURS:
            raise ValueError(_("That is too long ago."))
        return Q(**{f"reading__state_since__{lookup}": timezone.now() - timedelta(hours=hours)})

    return filters.QueryParameter(narrow, {"type": "integer"}, description)


def _ids(text: str) -> Q:
    ids = [filters.whole_number(each) for each in text.split(",")]
    if len(ids) > MOST_IDS:
        raise ValueError(_("Name at most %s ids.") % MOST_IDS)
    return Q(pk__in=ids)


def _state(text: str) -> Q:
    filters.one_of("run_state", ShownState.values).narrow(text)
    return of_state(text)


def _order(word: str) -> Q:
    filters.one_of(ORDERING, list(SORT_WORDS)).narrow(word)
    return Q()


class OnuFilter(filters.QueryStringFilter):
    def filter_list(self, request: Request, queryset: QuerySet[Any], view: APIView) -> Any:
        """Filter, then sort by one of the orders an index supports."""
        conditions = [*self.read_conditions(request, view), scope_of(request.user).condition()]
        return FoundOnus(list(filter(None, conditions)), request.query_params.get(ORDERING) or DEFAULT_SORT)


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
        "model": filters.QueryParameter(of_model, description=f"Part of the model, from {MIN_LETTERS} letters on."),
        "tag": filters.QueryParameter(of_tag, description="A whole tag of the customer."),
        "changed_within": _age("gte", "The state changed at most so many hours ago."),
        "unchanged_for": _age("lt", "The state has not changed for so many hours."),
        "ids": filters.QueryParameter(_ids, description=f"Ids, separated by commas; at most {MOST_IDS}."),
        "serial": filters.QueryParameter(of_serial, description=f"Part of the serial, from {MIN_LETTERS} letters on."),
        "search": filters.QueryParameter(
            of_text, description=f"Part of any text about the ONU, from {MIN_LETTERS} letters on."
        ),
        ORDERING: filters.QueryParameter(
            _order,
            {"type": "string", "enum": list(SORT_WORDS), "default": DEFAULT_SORT},
            "A minus gives the reverse. ONUs without light sort last by `rx_power`.",
        ),
    }
    queryset = shown_onus()

    @extend_schema(
        filters=True,
        parameters=[OpenApiParameter("format", enum=list(FILE_TYPES), default="csv")],
        responses={
            (200, "text/csv"): OpenApiTypes.STR,
            (200, FILE_TYPES["xlsx"]): OpenApiTypes.BINARY,
            (200, "application/json"): OnuSerializer(many=True),
        },
    )
    @action(detail=False, pagination_class=None, renderer_classes=[CsvRenderer, WorkbookRenderer, JSONRenderer])
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
    message = TextField(describe_read)


class OnuReadView(NoParameters):
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
    return get_object_or_404(scope_of(request.user).narrow(Onu.objects.select_related("pon_port")), id=onu_id)


def _progress(onu: Onu) -> dict[str, object]:
    progress = load_progress(onu.id, olt_id=onu.olt_id, now=timezone.now())
    if progress is None:
        raise Http404
    return dict(OnuReadSerializer(progress).data)


# What a billing system sends at a time; a list of all its customers takes several requests.
MOST_CUSTOMERS = 1_000


class GivenCustomerSerializer(KnownFields):
    """A customer by the serial, the hardware address, or OLT and place of the ONU; fields not sent stay as they are."""

    serial = serializers.CharField(required=False, allow_blank=True, max_length=64)
    mac = serializers.CharField(required=False, allow_blank=True, max_length=32)
    olt = serializers.CharField(required=False, allow_blank=True, max_length=100, help_text="Name of the OLT.")
    place = serializers.CharField(
        required=False, allow_blank=True, max_length=32, help_text="Frame, slot, port and ONU, as in 0/1/3/7."
    )
    label = serializers.CharField(  # type: ignore[assignment]  # a field, though serializers have a label of their own
        required=False, allow_blank=True, help_text="Name or number of the customer."
    )
    address = serializers.CharField(required=False, allow_blank=True)
    phone = serializers.CharField(required=False, allow_blank=True)
    notes = serializers.CharField(required=False, allow_blank=True)
    tags = serializers.CharField(required=False, allow_blank=True, help_text="Separated by commas.")
    contract = serializers.CharField(required=False, allow_blank=True)
    latitude = serializers.FloatField(required=False, allow_null=True)
    longitude = serializers.FloatField(required=False, allow_null=True)


class GivenCustomersSerializer(KnownFields):
    customers = serializers.ListField(child=GivenCustomerSerializer(), allow_empty=False, max_length=MOST_CUSTOMERS)


class LeftOutSerializer(serializers.Serializer[Any]):
    """An entry without its ONU: `index` counts from 0."""

    index = serializers.IntegerField()
    reason = serializers.CharField()


class CustomersWrittenSerializer(serializers.Serializer[Any]):
    written = serializers.IntegerField()
    unchanged = serializers.IntegerField()
    left_out = LeftOutSerializer(many=True)


class CustomersView(NoParameters):
    """Customers of ONUs, written by other systems."""

    @extend_schema(
        request=GivenCustomersSerializer,
        responses=CustomersWrittenSerializer,
        operation_id="customers_write",
        tags=["onus"],
    )
    def put(self, request: Request) -> Response:
        """Write customers: all of a valid list, or nothing. Sent again, the same list changes nothing.

        An entry whose ONU is not found is left out and listed. At most 1,000 in one request.
        """
        body = valid(GivenCustomersSerializer(data=read_body(request)))
        entries: list[CustomerEntry] = []
        problems: list[EntryProblem] = []
        for index, given in enumerate(body["customers"]):
            try:
                entries.append(read_entry(index, given))
            except InventoryError as error:
                problems += error.problems
        problems += find_doubles(entries)
        if problems:
            raise ValidationError({"customers": _by_index(problems)})
        saved = save_customers(entries, who=request.user, scope=scope_of(request.user), now=timezone.now())
        left_out = [{"index": each.line, "reason": each.reason} for each in saved.left_out]
        return Response({"written": saved.written, "unchanged": saved.unchanged, "left_out": left_out})


def _by_index(problems: Iterable[EntryProblem]) -> dict[str, dict[str, list[str]]]:
    """Group problems by entry and field, as other errors of lists are."""
    found: dict[str, dict[str, list[str]]] = {}
    for each in problems:
        found.setdefault(str(each.line), {}).setdefault(each.column or "serial", []).append(each.reason)
    return found


class PonPortSerializer(RowSerializer[PonPort]):
    """A PON port with its ONUs by current state; `onus_total` counts those present."""

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

    serializer_class = PonPortSerializer
    detail_class = PonPortDetailSerializer
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


def load_worst(port_id: int) -> list[Onu]:
    """Load the ONUs with the weakest light, among those online when last read; one query."""
    lit = shown_onus().filter(pon_port_id=port_id, is_present=True, reading__run_state=RunStateChoice.ONLINE)
    return list(lit.filter(reading__rx_power_cdbm__isnull=False).order_by("reading__rx_power_cdbm", "pk")[:WORST])
