"""Reading one ONU now over the API: the wish, and how far it has come."""

from django.http import Http404
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from facho.accounts.scope import scope_of
from facho.api.problems import Conflict
from facho.executions.onu_reads import NotThere, TooManyReads, request_read_for
from facho.onus.models import Onu
from facho.zabbix_pollers.read_progress import ReadProgress, ReadStage, load_progress
from facho.zabbix_pollers.read_words import describe_read, describe_refusal


class OnuReadSerializer(serializers.Serializer[ReadProgress]):
    """The latest wish to read an ONU; `execution_id` is null while it waits, and the execution has the result."""

    stage = serializers.ChoiceField([stage.value for stage in ReadStage])
    requested_at = serializers.DateTimeField()
    finished_at = serializers.DateTimeField(allow_null=True)
    execution_id = serializers.IntegerField(allow_null=True)
    failure_kind = serializers.CharField(allow_blank=True)
    message = serializers.SerializerMethodField()

    def get_message(self, progress: ReadProgress) -> str:
        """Say how far it has come, and why it waits or failed."""
        return describe_read(progress)


class OnuReadView(APIView):
    """Read the state and the light of one ONU now."""

    @extend_schema(responses=OnuReadSerializer, operation_id="onus_read_progress", tags=["onus"])
    def get(self, request: Request, onu_id: int) -> Response:
        """Say how far the latest wish has come; 404 when nobody ever asked."""
        return Response(_progress(_find(request, onu_id)))

    @extend_schema(request=None, responses={202: OnuReadSerializer}, operation_id="onus_read", tags=["onus"])
    def post(self, request: Request, onu_id: int) -> Response:
        """Ask for a read as soon as the OLT is free; a wish that waits already stays the same."""
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
