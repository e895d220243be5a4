"""Reports: the figures of computed months, summed up and of every ONU."""

from typing import Any

from django.db.models import QuerySet
from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework import generics, serializers
from rest_framework.request import Request
from rest_framework.response import Response

from facho.accounts.scope import scope_of
from facho.api.shared import filters
from facho.api.shared.views import NoParameters, ScopedRows
from facho.plant import report
from facho.plant.models import MonthRun, OnuMonth
from facho.polling.domain.availability import Month


class ReportMonthSerializer(serializers.ModelSerializer[MonthRun]):
    """A computed month: `covers_until` is the end of what is in it, `hourly_until` the end of averages by the hour."""

    month = serializers.DateField(format="%Y-%m")

    class Meta:
        model = MonthRun
        fields = ["month", "covers_until", "hourly_until", "finished_at", "is_final"]


class ReportTimesSerializer(serializers.Serializer[Any]):
    """Seconds; availability is the percentage of known time that was up, null if nothing is known."""

    availability = serializers.FloatField(allow_null=True)
    up = serializers.IntegerField()
    down = serializers.IntegerField()
    unknown = serializers.IntegerField()
    planned = serializers.IntegerField()


class ReportSummarySerializer(serializers.Serializer[Any]):
    onus = serializers.IntegerField()
    times = ReportTimesSerializer()
    interruptions = serializers.IntegerField()
    onus_without_interruption = serializers.IntegerField()
    light_dbm = serializers.FloatField(allow_null=True)
    weak_onus = serializers.IntegerField()
    repairs = serializers.IntegerField()


class ReportGroupSerializer(serializers.Serializer[Any]):
    """The ONUs of an OLT, a PON port or a zone; id 0 and no name: ONUs without a zone."""

    id = serializers.IntegerField()
    name = serializers.CharField(allow_blank=True)
    olt_id = serializers.IntegerField(allow_null=True)
    olt = serializers.CharField(allow_blank=True)
    onus = serializers.IntegerField()
    times = ReportTimesSerializer()
    interruptions = serializers.IntegerField()
    light_dbm = serializers.FloatField(allow_null=True)
    weak_onus = serializers.IntegerField()
    outages = serializers.IntegerField()
    outage_seconds = serializers.IntegerField()


class ReportOnuSerializer(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    serial = serializers.CharField(source="code")
    customer = serializers.CharField(allow_blank=True)
    description = serializers.CharField(allow_blank=True)
    olt_id = serializers.IntegerField()
    olt = serializers.CharField()
    port = serializers.CharField()
    times = ReportTimesSerializer()
    interruptions = serializers.IntegerField()
    longest_down_seconds = serializers.IntegerField()
    light_dbm = serializers.FloatField(allow_null=True)
    lowest_day_dbm = serializers.FloatField(allow_null=True)
    weak_days = serializers.IntegerField()


class ReportRepairSerializer(serializers.Serializer[Any]):
    """Light that rose to stay on a day: of one ONU, or of several of a port."""

    day = serializers.DateField(source="on")
    onu_ids = serializers.ListField(source="onus", child=serializers.IntegerField())
    olt_id = serializers.IntegerField()
    olt = serializers.CharField()
    port = serializers.CharField()
    gain_db = serializers.FloatField()
    before_dbm = serializers.FloatField()
    after_dbm = serializers.FloatField()


class ReportSerializer(serializers.Serializer[Any]):
    """The report of a month within the scope of the token; of customers and repairs the worst or best fifty."""

    month = ReportMonthSerializer()
    summary = ReportSummarySerializer()
    olts = ReportGroupSerializer(many=True)
    ports = ReportGroupSerializer(many=True)
    zones = ReportGroupSerializer(many=True)
    longest_down = ReportOnuSerializer(many=True)
    most_interrupted = ReportOnuSerializer(many=True)
    weakest_light = ReportOnuSerializer(many=True)
    repairs = ReportRepairSerializer(many=True)


class ReportMonthsView(NoParameters):
    """The computed months, the latest first."""

    @extend_schema(responses=ReportMonthSerializer(many=True))
    def get(self, request: Request) -> Response:
        """List them all: there are as many as a year has."""
        return Response(ReportMonthSerializer(report.load_runs(), many=True).data)


def question_of(request: Request, text: str) -> report.ReportQuestion:
    """Return the month of an address; 404 if it is none, or was not computed."""
    try:
        run = report.load_run(Month.parse(text))
    except ValueError:
        run = None
    if run is None:
        raise Http404
    return report.ReportQuestion(run, scope_of(request.user))


class ReportView(NoParameters):
    """The report of a month such as 2026-10."""

    @extend_schema(responses=ReportSerializer)
    def get(self, request: Request, month: str) -> Response:
        """Load every table; the same number of queries whatever its size."""
        question = question_of(request, month)
        tables = {
            "month": question.run,
            "summary": report.load_summary(question),
            "olts": report.load_olts(question),
            "ports": report.load_ports(question),
            "zones": report.load_zones(question),
            "longest_down": report.load_longest_down(question),
            "most_interrupted": report.load_most_interrupted(question),
            "weakest_light": report.load_weakest(question),
            "repairs": report.load_repairs(question),
        }
        return Response(ReportSerializer(tables).data)


class OnuMonthSerializer(serializers.ModelSerializer[OnuMonth]):
    """The month of one ONU; light in hundredths of a dBm."""

    olt = serializers.CharField(source="olt.name")
    port = serializers.CharField(source="pon_port")
    serial = serializers.CharField(source="onu.serial")
    customer = serializers.CharField(source="onu.customer.label", default="")

    class Meta:
        model = OnuMonth
        fields = [
            "onu_id", "serial", "customer", "olt_id", "olt", "port", "up_seconds", "down_seconds", "unknown_seconds",
            "planned_seconds", "interruptions", "longest_down_seconds", "light_cdbm", "lowest_day_cdbm", "weak_days",
            "rise_on", "rise_before_cdbm", "rise_after_cdbm",
        ]  # fmt: skip


class ReportOnusView(ScopedRows, generics.ListAPIView[OnuMonth]):
    """Every ONU of a month, by its id."""

    serializer_class = OnuMonthSerializer
    query_parameters = {"olt": filters.olt_by_id()}
    queryset = OnuMonth.objects.none()

    def get_queryset(self) -> QuerySet[OnuMonth]:
        """Filter by the month of the URL; the schema generator passes none."""
        if "month" not in self.kwargs:
            return super().get_queryset()
        return report.load_onus(question_of(self.request, self.kwargs["month"]))
