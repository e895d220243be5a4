"""Maintenance: pauses of one OLT or of everything, seen, begun and ended."""

from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework import mixins, status, viewsets
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from facho.api import filters
from facho.api.problems import Conflict
from facho.api.serializers import NewPauseSerializer, PauseSerializer
from facho.hosts.models import Pause
from facho.hosts.pauses import end_pause, pause


def _holds_now() -> Q:
    now = timezone.now()
    return Q(starts_at__lte=now, ends_at__gt=now)


class PauseViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Pause]):
    """Pauses, the latest first; those that are over are kept as long as the quotas they excuse."""

    serializer_class = PauseSerializer
    filter_backends = [filters.QueryStringFilter]
    query_parameters = {
        "olt": filters.olt(),
        "active": filters.condition(_holds_now, "Whether it holds right now."),
    }
    queryset = (
        Pause.objects.select_related("olt")
        .only("starts_at", "ends_at", "note", "olt__name")
        .order_by("-starts_at", "-id")
    )

    @extend_schema(request=NewPauseSerializer, responses={201: PauseSerializer})
    def create(self, request: Request) -> Response:
        """Begin a pause now: nothing new starts, what runs is finished."""
        wish = NewPauseSerializer(data=request.data)
        wish.is_valid(raise_exception=True)
        made = pause(**wish.validated_data, now=timezone.now())
        return Response(PauseSerializer(made).data, status=status.HTTP_201_CREATED)

    @extend_schema(request=None, responses={204: None})
    @action(detail=True, methods=["post"])
    def end(self, request: Request, pk: str) -> Response:
        """End a pause now; one that has not begun is dropped."""
        if not end_pause(self.get_object().id, now=timezone.now()):
            raise Conflict(_("This pause is over."))
        return Response(status=status.HTTP_204_NO_CONTENT)
