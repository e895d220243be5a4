"""Maintenance: pauses of one OLT or of everything, seen, begun and ended."""

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from drf_spectacular.utils import extend_schema
from rest_framework import mixins, status, viewsets
from rest_framework.decorators import action
from rest_framework.exceptions import PermissionDenied
from rest_framework.request import Request
from rest_framework.response import Response

from facho.accounts.audit import Action, record
from facho.accounts.scope import scope_of
from facho.api import filters
from facho.api.problems import Conflict
from facho.api.serializers import NewPauseSerializer, PauseSerializer
from facho.hosts.models import Olt, Pause
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

    def get_queryset(self) -> QuerySet[Pause]:
        """Show a pause of everything to everyone: it holds for what they see."""
        scope = scope_of(self.request.user)
        rows = super().get_queryset()
        return rows if scope.is_everything else rows.filter(scope.condition() | Q(olt__isnull=True))

    @extend_schema(request=NewPauseSerializer, responses={201: PauseSerializer})
    def create(self, request: Request) -> Response:
        """Begin a pause now: nothing new starts, what runs is finished."""
        wish = NewPauseSerializer(data=request.data, context={"scope": scope_of(request.user)})
        wish.is_valid(raise_exception=True)
        _refuse_everything(request, wish.validated_data["olt"])
        with transaction.atomic():
            made = pause(**wish.validated_data, now=timezone.now())
            record(request.user, made, Action.ADDED)
        return Response(PauseSerializer(made).data, status=status.HTTP_201_CREATED)

    @extend_schema(request=None, responses={204: None})
    @action(detail=True, methods=["post"])
    def end(self, request: Request, pk: str) -> Response:
        """End a pause now; one that has not begun is dropped."""
        held = self.get_object()
        _refuse_everything(request, held.olt)
        with transaction.atomic():
            record(request.user, held, Action.CHANGED, gettext_lazy("ended"))
            if not end_pause(held.id, now=timezone.now()):
                raise Conflict(_("This pause is over."))
        return Response(status=status.HTTP_204_NO_CONTENT)


def _refuse_everything(request: Request, olt: Olt | None) -> None:
    """Leave a pause of everything to those who see everything."""
    if olt is None and not scope_of(request.user).is_everything:
        raise PermissionDenied(_("This holds for OLTs that you may not see."))
