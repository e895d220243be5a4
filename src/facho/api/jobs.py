"""Jobs: what is read from OLTs, and the suggested interval. Writing them affects every OLT."""

from typing import Any

from django.db import transaction
from django.db.models import Count, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from facho.accounts.audit import Action, record
from facho.accounts.scope import scope_of
from facho.api.shared import filters
from facho.api.shared.permissions import ReadOrAdminister, ReadOrAdministerAll
from facho.api.shared.problems import collisions_are_conflicts
from facho.api.shared.views import KnownFields, RowSerializer, WrittenRows, described, read_body, valid
from facho.hosts.models import Brand, Olt
from facho.hosts.olt_entry import SECRET_COLUMNS
from facho.polling.domain.schedule import MAX_INTERVAL_SECONDS
from facho.snmp_jobs.application import apply_plan, plan_application, with_chains
from facho.snmp_jobs.job_form import JobRefused, save_job
from facho.snmp_jobs.models import QueryTypes, SnmpJob, SnmpJobOid

MAX_READS = 100
MAX_OLTS = 1_000
MAX_ID = 2**63 - 1


class JobReadSerializer(KnownFields, serializers.ModelSerializer[SnmpJobOid]):
    """One item a job reads: a column of the vendor definition, or a custom OID."""

    class Meta:
        model = SnmpJobOid
        fields = ["column_key", "oid", "name", "unit", "keeps_history"]


class JobSerializer(RowSerializer[SnmpJob]):
    """What to read, how, and the suggested interval; `nodes` is the number of OLTs it runs on."""

    task_type = serializers.CharField(read_only=True)
    oids = JobReadSerializer(many=True)
    nodes = serializers.IntegerField(source="nodes_counted", read_only=True)

    class Meta:
        model = SnmpJob
        fields = [
            "id",
            "name",
            "slug",
            "vendor",
            "brand",
            "query_type",
            "task_type",
            "interval_seconds",
            "ignores_safe_interval",
            "cadence",
            "priority",
            "max_attempts",
            "retry_delay_seconds",
            "hours_from",
            "hours_to",
            "master_job_id",
            "chain_condition",
            "oids",
            "nodes",
        ]


class JobWishSerializer(KnownFields, serializers.ModelSerializer[SnmpJob]):
    """The fields of a job that can be written; `oids` replaces all it reads."""

    master_job_id = serializers.PrimaryKeyRelatedField(
        source="master_job", queryset=SnmpJob.objects.all(), allow_null=True, required=False
    )
    brand = serializers.SlugRelatedField(
        slug_field="name", queryset=Brand.objects.all(), allow_null=True, required=False, help_text="Name of a brand."
    )
    interval_seconds = serializers.IntegerField(min_value=1, max_value=MAX_INTERVAL_SECONDS)
    oids = JobReadSerializer(many=True, required=False, max_length=MAX_READS)  # type: ignore[call-arg]  # of lists

    class Meta:
        model = SnmpJob
        fields = [name for name in JobSerializer.Meta.fields if name not in ("id", "task_type", "nodes")]
        # Reported by the form, in its own words, together with everything else.
        validators: list[Any] = []

    def save(self, **_options: Any) -> SnmpJob:
        job = SnmpJob.objects.get(pk=self.instance.pk) if self.instance else SnmpJob()
        values = dict(self.validated_data)
        reads = values.pop("oids", None)
        try:
            return save_job(job, values, reads, now=timezone.now())
        except JobRefused as error:
            raise ValidationError(error.faults) from error


class ApplySerializer(KnownFields):
    """The OLTs to add a job to."""

    olts = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=MAX_ID), min_length=1, max_length=MAX_OLTS
    )


class PlannedSerializer(serializers.Serializer[Any]):
    """A job added to an OLT; with problems it was not added."""

    job_id = serializers.IntegerField()
    name = serializers.CharField()
    interval_seconds = serializers.IntegerField()
    is_chained = serializers.BooleanField()
    problems = serializers.ListField(child=serializers.CharField())


class AppliedSerializer(serializers.Serializer[Any]):
    """The jobs added to one OLT, and the names of those it already had."""

    olt_id = serializers.IntegerField()
    olt = serializers.CharField()
    nodes = PlannedSerializer(many=True)
    has = serializers.ListField(child=serializers.CharField())


@described(
    create="Create a job; it runs on no OLT yet.",
    change="Change a job on all its OLTs; the intervals of its nodes stay.",
)
class JobViewSet(WrittenRows):
    """Jobs; `vendor` is empty for those that fit every OLT."""

    permission_classes = [ReadOrAdministerAll]
    serializer_class = JobSerializer
    wish_class = JobWishSerializer
    query_parameters = {
        "vendor": filters.search("vendor"),
        "query_type": filters.one_of("query_type", QueryTypes.values),
        "chained": filters.filled("master_job", "Whether it runs after another."),
        "search": filters.search("name", "slug"),
    }
    queryset = SnmpJob.objects.select_related("brand").prefetch_related("oids").order_by("vendor", "slug", "id")

    def get_queryset(self) -> QuerySet[SnmpJob]:
        in_scope = scope_of(self.request.user).condition("nodes__workflow__olt")
        jobs: QuerySet[SnmpJob] = super().get_queryset()
        return jobs.annotate(nodes_counted=Count("nodes", filter=in_scope))

    @extend_schema(request=ApplySerializer, responses=AppliedSerializer(many=True), filters=False)
    @action(detail=True, methods=["post"], pagination_class=None, permission_classes=[ReadOrAdminister])
    def apply(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Add the job and its chain to OLTs; returns what each got, already had, or could not get and why."""
        job = self.get_object()
        ids = valid(ApplySerializer(data=read_body(request)))["olts"]
        jobs = with_chains([job])
        with collisions_are_conflicts(), transaction.atomic():
            # Load the OLTs within scope; an unknown id is an error.
            rows = Olt.objects.select_related("model__brand").defer(*SECRET_COLUMNS).filter(id__in=ids)
            seen = scope_of(self.request.user).narrow(rows, "")
            found = list(seen.order_by("name"))
            if missing := set(ids) - {olt.id for olt in found}:
                unknown = _("There is no OLT %(id)s.") % {"id": min(missing)}
                raise ValidationError({"olts": [unknown]})
            plan = plan_application(jobs, found)
            apply_plan(plan, jobs, now=timezone.now())
            names = ", ".join(each.olt for each in plan if each.adds)
            if names:
                record(request.user, job, Action.CHANGED, names)
        return Response(AppliedSerializer(plan, many=True).data)
