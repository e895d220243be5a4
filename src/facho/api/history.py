"""How values of an ONU, of all ONUs of a PON port, or the load of the pollers changed over time. Gaps are nulls."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, TypeAlias

import numpy as np
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from facho.api.shared.filters import unknown_parameters
from facho.api.shared.views import must_see
from facho.hosts.models import Olt, OltData
from facho.onus.history import PortSeries, Series
from facho.onus.history_models import Floats, Ints, Metric
from facho.onus.history_read_model import (
    DETAILS,
    METRICS,
    UNITS,
    Detail,
    HistoryQuery,
    WrongQuestion,
    ask,
    load_names,
    load_olt_value_history,
    load_onu_history,
    load_port_history,
)
from facho.onus.models import Onu, PonPort
from facho.onus.value_history import find_metric, find_row
from facho.snmp_jobs.store import load_named_reads, name_read
from facho.zabbix_pollers.read_model import LONGEST, LoadHistory, LoadPoint, load_history

Fields: TypeAlias = dict[str, "serializers.Field[Any, Any, Any, Any]"]

_NO_TIME = gettext_lazy("Enter a time such as 2030-05-06T12:00:00Z.")
_NEVER_KEPT = 0
_NOTHING = Series(np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0), np.zeros(0))


class WordField(serializers.ChoiceField):
    """A choice among a few words; the error lists them."""

    def to_internal_value(self, data: Any) -> Any:
        if data not in self.choices:
            raise ValidationError(_("Choose one of: %(values)s.") % {"values": ", ".join(map(str, self.choices))})
        return data


class TimeQuestionSerializer(serializers.Serializer[Any]):
    """The period: `to` defaults to now, `from` to a day before it."""

    def get_fields(self) -> Fields:
        """Add `from`, which is a Python keyword."""
        return {**super().get_fields(), "from": _moment(), "to": _moment()}


class SpanQuestionSerializer(TimeQuestionSerializer):
    """The period and its resolution."""

    resolution = WordField(choices=[detail.value for detail in Detail], default=Detail.AUTO.value)


class HistoryQuestionSerializer(SpanQuestionSerializer):
    """The metric, period and resolution of an ONU's history."""

    metric = WordField(choices=list(METRICS), default="rx_power")


class ValueQuestionSerializer(SpanQuestionSerializer):
    """The OID, period and resolution of an ONU's history."""

    oid = serializers.CharField(max_length=255)


class OltValueQuestionSerializer(ValueQuestionSerializer):
    """The OID, period and resolution of an OLT's history; `index` is the table row, empty for a scalar."""

    index = serializers.CharField(max_length=128, default="")


class LoadPointSerializer(serializers.Serializer[LoadPoint]):
    """All pollers in the step that begins at `at`: averages, minimum and maximum; null is a gap."""

    at = serializers.DateTimeField()
    total_pollers = serializers.IntegerField(allow_null=True)
    busy_percentage = serializers.FloatField(allow_null=True)
    busy_percentage_min = serializers.FloatField(allow_null=True)
    busy_percentage_max = serializers.FloatField(allow_null=True)
    queue_size = serializers.FloatField(allow_null=True)
    queue_size_max = serializers.IntegerField(allow_null=True)
    saturated_share = serializers.FloatField(allow_null=True, min_value=0, max_value=1)


class LoadHistorySerializer(serializers.Serializer[LoadHistory]):
    """The load of the pollers in equal steps."""

    step_seconds = serializers.IntegerField()
    points = LoadPointSerializer(many=True)

    def get_fields(self) -> Fields:
        """Add `from`, which is a Python keyword."""
        times: Fields = {
            "from": serializers.DateTimeField(source="start"),
            "to": serializers.DateTimeField(source="end"),
        }
        return {**times, **super().get_fields()}


class SpanSerializer(serializers.Serializer[Any]):
    """The period shown and the resolution chosen."""

    resolution = serializers.ChoiceField(choices=[detail.value for detail in DETAILS.values()])

    def get_fields(self) -> Fields:
        """Add `from`, which is a Python keyword."""
        return {"from": serializers.DateTimeField(), "to": serializers.DateTimeField(), **super().get_fields()}


class HistorySerializer(SpanSerializer):
    """A metric in its unit."""

    metric = serializers.ChoiceField(choices=list(METRICS))
    unit = serializers.ChoiceField(choices=sorted({unit.value for unit in UNITS.values()}))


class PointSerializer(serializers.Serializer[Any]):
    """`value` is a sample, or the average of the hour or day that begins then, with `min` and `max`; null is a gap."""

    at = serializers.DateTimeField()
    value = serializers.FloatField(allow_null=True)
    min = serializers.FloatField(allow_null=True, required=False)
    max = serializers.FloatField(allow_null=True, required=False)


@extend_schema_field(PointSerializer(many=True))
class PointsField(serializers.Field[Any, Any, Any, Any]):
    """The points of one ONU."""

    def to_representation(self, value: Series) -> list[dict[str, Any]]:
        columns: dict[str, Sequence[Any]] = {"at": _times(value.at), "value": _numbers(value.average)}
        if self.context["is_summed_up"]:
            columns |= {"min": _numbers(value.lowest), "max": _numbers(value.highest)}
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


class OnuHistorySerializer(HistorySerializer):
    """One metric of an ONU, on whatever port it was; a state is the percentage of samples online."""

    onu_id = serializers.IntegerField()
    points = PointsField()


class ValueHistorySerializer(SpanSerializer):
    """The history of an OID that a job keeps; without points none was kept, or no value arrived."""

    oid = serializers.CharField()
    name = serializers.CharField(allow_blank=True)
    unit = serializers.CharField(allow_blank=True)
    points = PointsField()


class OnuValueHistorySerializer(ValueHistorySerializer):
    """One OID of an ONU."""

    onu_id = serializers.IntegerField()


class OltValueHistorySerializer(ValueHistorySerializer):
    """One value of an OLT, or one row of a table; for a counter the points are its rate per second."""

    olt_id = serializers.IntegerField()
    index = serializers.CharField(allow_blank=True)
    place = serializers.CharField(allow_blank=True)


class PortOnuSerializer(serializers.Serializer[Any]):
    """One ONU's values at the port's times, null for a gap; hours and days have `min` and `max`."""

    onu_id = serializers.IntegerField()
    onu = serializers.CharField(allow_blank=True)
    value = serializers.ListField(child=serializers.FloatField(allow_null=True))
    min = serializers.ListField(child=serializers.FloatField(allow_null=True), required=False)
    max = serializers.ListField(child=serializers.FloatField(allow_null=True), required=False)


@extend_schema_field(PortOnuSerializer(many=True))
class PortOnusField(serializers.Field[Any, Any, Any, Any]):
    """The ONUs that were on a port, each with its values."""

    def to_representation(self, value: PortSeries) -> list[dict[str, Any]]:
        names = self.context["names"]
        layers = {"value": value.average}
        if self.context["is_summed_up"]:
            layers |= {"min": value.lowest, "max": value.highest}
        return [
            {"onu_id": onu_id, "onu": names.get(onu_id, "")}
            | {name: _numbers(layer[number]) for name, layer in layers.items()}
            for number, onu_id in enumerate(value.onu_ids.tolist())
        ]


@extend_schema_field(serializers.ListField(child=serializers.DateTimeField()))
class TimesField(serializers.Field[Any, Any, Any, Any]):
    """Times shared by several rows."""

    def to_representation(self, value: Ints) -> list[str]:
        return _times(value)


class PortHistorySerializer(HistorySerializer):
    """One metric of all ONUs that were on a PON port, at shared times."""

    pon_port_id = serializers.IntegerField()
    at = TimesField()
    onus = PortOnusField()


def _moment() -> serializers.DateTimeField:
    errors: dict[str, Any] = dict.fromkeys(("invalid", "overflow", "make_aware", "date"), _NO_TIME)
    return serializers.DateTimeField(required=False, error_messages=errors)


def _times(at: Ints) -> list[str]:
    texts: list[str] = np.datetime_as_string(at.astype("datetime64[s]"), timezone="UTC").tolist()
    return texts


def _numbers(values: Floats) -> list[float | None]:
    return [None if value != value else value for value in values.tolist()]


class HistoryView(APIView):
    def handle_exception(self, exc: Exception) -> Response:
        """Turn an impossible period or resolution into a problem that names the parameter."""
        if isinstance(exc, WrongQuestion):
            exc = ValidationError({exc.field: [str(exc)]})
        return super().handle_exception(exc)


class OnuHistoryView(HistoryView):
    """The history of one ONU."""

    @extend_schema(
        operation_id="onus_history",
        tags=["onus"],
        parameters=[HistoryQuestionSerializer],
        responses=OnuHistorySerializer,
    )
    def get(self, request: Request, onu_id: int) -> Response:
        """Return one metric of an ONU over time, by default its receive power of the last day.

        A single missed poll already appears as a gap: a point whose value is null. `auto` returns every sample for up
        to two days, hours for up to two months and days beyond that, if still stored.
        """
        must_see(request, Onu.objects.filter(pk=onu_id))
        question = _question(request)
        series = load_onu_history(onu_id, question)
        body = {**_asked(question), "onu_id": onu_id, "points": series}
        return Response(OnuHistorySerializer(body, context=_context(question)).data)


class PortHistoryView(HistoryView):
    """The history of all ONUs of one PON port."""

    @extend_schema(
        operation_id="pon_ports_history",
        tags=["pon-ports"],
        parameters=[HistoryQuestionSerializer],
        responses=PortHistorySerializer,
    )
    def get(self, request: Request, pon_port_id: int) -> Response:
        """Return one metric of all ONUs that were on a PON port, by default their receive power of the last day."""
        must_see(request, PonPort.objects.filter(pk=pon_port_id))
        question = _question(request)
        series = load_port_history(pon_port_id, question)
        body = {**_asked(question), "pon_port_id": pon_port_id, "at": series.at, "onus": series}
        context = _context(question) | {"names": load_names(series.onu_ids.tolist())}
        return Response(PortHistorySerializer(body, context=context).data)


class PollerHistoryView(APIView):
    """The load of the pollers per minute, or aggregated."""

    @extend_schema(
        operation_id="pollers_stats_history",
        tags=["pollers"],
        parameters=[TimeQuestionSerializer],
        responses=LoadHistorySerializer,
    )
    def get(self, request: Request) -> Response:
        """Return how busy the pollers were and how long the queue was, by default for the last day.

        Figures are stored for 30 days. There are at most 360 steps, which get longer with the period.
        """
        wishes = read_wishes(request, TimeQuestionSerializer)
        end = wishes.get("to") or timezone.now()
        start = wishes.get("from") or end - timedelta(days=1)
        if not timedelta(0) < end - start <= LONGEST:
            text = _("Choose a period longer than zero and at most %(days)s days.") % {"days": LONGEST.days}
            raise ValidationError({"from": [text]})
        return Response(LoadHistorySerializer(load_history(start, end)).data)


def read_wishes(request: Request, kind: type[TimeQuestionSerializer]) -> dict[str, Any]:
    """Read the query string; empty parameters are ignored, as in lists."""
    wanted = kind(data={name: text for name, text in request.query_params.items() if text})
    if unknown := unknown_parameters(request, wanted.fields):
        raise ValidationError(unknown)
    wanted.is_valid(raise_exception=True)
    wishes: dict[str, Any] = wanted.validated_data
    return wishes


def ask_for(metric: int, values: Mapping[str, Any]) -> HistoryQuery:
    period = {"start": values.get("from"), "end": values.get("to")}
    return ask(metric, **period, detail=Detail(values["resolution"]), now=timezone.now())


def _question(request: Request) -> HistoryQuery:
    wishes = read_wishes(request, HistoryQuestionSerializer)
    return ask_for(METRICS[wishes["metric"]], wishes)


def _asked(question: HistoryQuery) -> dict[str, Any]:
    metric = Metric(question.metric).name.lower()
    return {**span_of(question), "metric": metric, "unit": question.unit.value}


def span_of(question: HistoryQuery) -> dict[str, Any]:
    return {"resolution": question.detail.value, "from": question.start, "to": question.end}


class OltValueHistoryView(HistoryView):
    """The history of one value of an OLT."""

    @extend_schema(
        operation_id="olts_data_history",
        tags=["olts"],
        parameters=[OltValueQuestionSerializer],
        responses=OltValueHistorySerializer,
    )
    def get(self, request: Request, olt_id: int) -> Response:
        """Return one value of an OLT over time, by the OID and index listed in its data.

        A value has a history if a job that reads it is set to keep one. For a counter it is the rate per second.
        """
        must_see(request, Olt.objects.filter(pk=olt_id), olt_path="")
        wishes = read_wishes(request, OltValueQuestionSerializer)
        oid, index = wishes["oid"], wishes["index"]
        metric, row_id = find_metric(oid), find_row(olt_id, index)
        question = ask_for(metric or _NEVER_KEPT, wishes)
        series = load_olt_value_history(olt_id, row_id, question) if metric and row_id else _NOTHING
        # Named as its latest value is, if there is one.
        value = OltData.objects.filter(olt_id=olt_id, oid=oid, index=index).first() or OltData()
        unit = value.unit if value.per_second is None else f"{value.unit}/s"
        named = {"name": value.name, "unit": unit, "place": value.place}
        body = {"olt_id": olt_id, "oid": oid, "index": index, "points": series, **span_of(question), **named}
        return Response(OltValueHistorySerializer(body, context=_context(question)).data)


class OnuValueHistoryView(HistoryView):
    """The history of one OID of an ONU."""

    @extend_schema(
        operation_id="onus_data_history",
        tags=["onus"],
        parameters=[ValueQuestionSerializer],
        responses=OnuValueHistorySerializer,
    )
    def get(self, request: Request, onu_id: int) -> Response:
        """Return the values of an OID outside the vendor definition, on whatever port the ONU was."""
        onus = Onu.objects.filter(pk=onu_id)
        must_see(request, onus)
        wishes = read_wishes(request, ValueQuestionSerializer)
        metric = find_metric(wishes["oid"])
        question = ask_for(metric or _NEVER_KEPT, wishes)
        series = load_onu_history(onu_id, question) if metric else _NOTHING
        vendor = onus.values_list("olt__vendor", flat=True).first() or ""
        read = name_read(wishes["oid"], load_named_reads(vendor))
        body = {"onu_id": onu_id, "oid": wishes["oid"], "name": read.name, "unit": read.unit, "points": series}
        return Response(OnuValueHistorySerializer({**body, **span_of(question)}, context=_context(question)).data)


def _context(question: HistoryQuery) -> dict[str, Any]:
    return {"is_summed_up": bool(question.resolution)}
