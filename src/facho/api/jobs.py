"""Jobs: what OLTs are asked, and how often it is suggested. Whoever writes them decides what every OLT bears."""

from typing import Any

from django.db import transaction
from django.db.models import Count, Q, QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status, viewsets
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from facho.accounts.audit import Action, record
from facho.accounts.scope import scope_of
from facho.api import filters
from facho.api.permissions import ReadOrAdminister
from facho.api.serializers import MAX_INTERVAL_SECONDS
from facho.snmp_jobs.job_entry import JobRefused, save_job
from facho.snmp_jobs.models import QueryTypes, SnmpJob, SnmpJobOid

MAX_READS = 100


class JobReadSerializer(serializers.ModelSerializer[SnmpJobOid]):
    """One thing that a job reads: a column of the vendor definition, or an OID of one's own."""

    class Meta:
        model = SnmpJobOid
        fields = ["column_key", "oid", "name", "unit", "keeps_history"]


class JobSerializer(serializers.ModelSerializer[SnmpJob]):
    """What to read, how, and how often it is suggested; `nodes` is on how many OLTs it is."""

    task_type = serializers.CharField(read_only=True)
    master_job_id = serializers.IntegerField(allow_null=True)
    oids = JobReadSerializer(many=True)
    nodes = serializers.IntegerField(source="nodes_counted", read_only=True)

    class Meta:
        model = SnmpJob
        fields = [
            "id",
            "name",
            "slug",
            "vendor",
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


class JobWishSerializer(serializers.ModelSerializer[SnmpJob]):
    """A job as it shall be; `oids` are all that it shall read."""

    master_job_id = serializers.PrimaryKeyRelatedField(
        source="master_job", queryset=SnmpJob.objects.all(), allow_null=True, required=False
    )
    interval_seconds = serializers.IntegerField(min_value=1, max_value=MAX_INTERVAL_SECONDS)
    oids = JobReadSerializer(many=True, required=False, max_length=MAX_READS)  # type: ignore[call-arg]  # of lists

    class Meta:
        model = SnmpJob
        fields = [name for name in JobSerializer.Meta.fields if name not in ("id", "task_type", "nodes")]
        # Told by the form, in its own words, together with everything else.
        validators: list[Any] = []


class JobViewSet(viewsets.ModelViewSet[SnmpJob]):
    """Jobs; `vendor` is empty for those that fit every OLT."""

    http_method_names = ["get", "post", "patch", "delete", "head", "options"]
    permission_classes = [ReadOrAdminister]
    serializer_class = JobSerializer
    filter_backends = [filters.QueryStringFilter]
    query_parameters = {
        "vendor": filters.search("vendor"),
        "query_type": filters.one_of("query_type", QueryTypes.values),
        "chained": filters.condition(lambda: Q(master_job__isnull=False), "Whether it runs after another."),
        "search": filters.search("name", "slug"),
    }
    queryset = SnmpJob.objects.prefetch_related("oids").order_by("vendor", "slug", "id")

    def get_queryset(self) -> QuerySet[SnmpJob]:
        """Count along on how many OLTs each job is, of those that the user may see."""
        in_scope = scope_of(self.request.user).condition("nodes__workflow__olt")
        return super().get_queryset().annotate(nodes_counted=Count("nodes", filter=in_scope))

    @extend_schema(request=JobWishSerializer, responses={201: JobSerializer})
    @transaction.atomic
    def create(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Add a job; it is on no OLT yet."""
        saved = self._save(SnmpJob(), request, partial=False)
        record(request.user, saved, Action.ADDED)
        return Response(self._shown(saved), status=status.HTTP_201_CREATED)

    @extend_schema(request=JobWishSerializer, responses=JobSerializer)
    @transaction.atomic
    def partial_update(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Change a job on every OLT that it is on; intervals of its nodes stay as they are."""
        saved = self._save(SnmpJob.objects.get(pk=self.get_object().pk), request, partial=True)
        record(request.user, saved, Action.CHANGED, ", ".join(sorted(request.data)))
        return Response(self._shown(saved))

    @transaction.atomic
    def perform_destroy(self, instance: SnmpJob) -> None:
        """Delete a job with its nodes; what they read stays."""
        record(self.request.user, instance, Action.DELETED)
        instance.delete()

    def _save(self, job: SnmpJob, request: Request, *, partial: bool) -> SnmpJob:
        wish = JobWishSerializer(job, data=request.data, partial=partial)
        wish.is_valid(raise_exception=True)
        values = {**wish.validated_data}
        reads = values.pop("oids", None)
        try:
            return save_job(job, values, reads, now=timezone.now())
        except JobRefused as error:
            raise ValidationError(error.faults) from error

    def _shown(self, job: SnmpJob) -> Any:
        return JobSerializer(self.get_queryset().get(pk=job.pk)).data
