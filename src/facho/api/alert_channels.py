"""Alert channels: made, changed and tested by admins; addresses and keys go in and never come out."""

from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework import mixins, serializers, status, viewsets
from rest_framework.decorators import action
from rest_framework.generics import get_object_or_404
from rest_framework.request import Request
from rest_framework.response import Response

from facho.accounts.audit import Action, record
from facho.accounts.scope import scope_of
from facho.alerts.channels import ChannelSecrets, find_faults, save_channel, stored_channels, write_test
from facho.alerts.models import Alert, AlertChannel, Notice, NoticeKind, NoticeState
from facho.api import filters
from facho.api.permissions import ReadOrAdministerAll
from facho.api.problems import Conflict, collisions_are_conflicts
from facho.api.serializers import given_names
from facho.hosts.secrets import Secret


class AlertChannelSerializer(serializers.ModelSerializer[AlertChannel]):
    """A channel; `address` tells how it tells people and, where that is no secret, by which server."""

    address = serializers.CharField(source="shown_as")

    class Meta:
        model = AlertChannel
        fields = ["id", "name", "kind", "address", "language", "enabled", "created_at", "updated_at"]


class AlertChannelChangesSerializer(serializers.ModelSerializer[AlertChannel]):
    """What an admin decides about a channel; a secret that is left out or empty stays as it is stored."""

    url = serializers.CharField(write_only=True, required=False, allow_blank=True, max_length=2_000)
    signing_key = serializers.CharField(write_only=True, required=False, allow_blank=True, max_length=500)
    language = serializers.ChoiceField(choices=settings.LANGUAGES, required=False, allow_blank=True)

    class Meta:
        model = AlertChannel
        fields = ["name", "kind", "url", "signing_key", "language", "enabled"]

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Judge address and key by the rules of the channel's kind."""
        given = ChannelSecrets(Secret(attrs.pop("url", "")), Secret(attrs.pop("signing_key", "")))
        kind = attrs.get("kind") or (self.instance or AlertChannel()).kind
        faults = find_faults(kind, given, stored=self.instance)
        if faults:
            raise serializers.ValidationError(faults)
        return {**attrs, "given": given}

    def save_as(self, channel: AlertChannel) -> None:
        """Write what was decided to a channel."""
        values = dict(self.validated_data)
        given = values.pop("given")
        for name, value in values.items():
            setattr(channel, name, value)
        save_channel(channel, given)


class NoticeSerializer(serializers.ModelSerializer[Notice]):
    """A message and what became of it; `last_error` is of its last failed try, also when a later one did not fail."""

    channel_id = serializers.IntegerField()
    text = serializers.CharField(source="body")

    class Meta:
        model = Notice
        fields = [
            "id",
            "channel_id",
            "kind",
            "severity",
            "title",
            "text",
            "state",
            "created_at",
            "tries",
            "next_try_at",
            "last_error",
            "sent_at",
        ]


class AlertChannelViewSet(
    mixins.ListModelMixin, mixins.RetrieveModelMixin, mixins.DestroyModelMixin, viewsets.GenericViewSet[AlertChannel]
):
    """Channels by name; the secrets of none are loaded."""

    serializer_class = AlertChannelSerializer
    permission_classes = [ReadOrAdministerAll]
    filter_backends = [filters.QueryStringFilter]
    queryset = stored_channels().order_by("name", "id")

    @extend_schema(request=AlertChannelChangesSerializer, responses={201: AlertChannelSerializer})
    def create(self, request: Request) -> Response:
        """Make a channel."""
        wish = AlertChannelChangesSerializer(data=request.data)
        wish.is_valid(raise_exception=True)
        channel = AlertChannel()
        self._save(wish, channel, Action.ADDED)
        return Response(AlertChannelSerializer(channel).data, status=status.HTTP_201_CREATED)

    @extend_schema(request=AlertChannelChangesSerializer, responses=AlertChannelSerializer)
    def partial_update(self, request: Request, pk: str) -> Response:
        """Change a channel; messages that wait go to its new address."""
        channel = self.get_object()
        wish = AlertChannelChangesSerializer(channel, data=request.data, partial=True)
        wish.is_valid(raise_exception=True)
        self._save(wish, channel, Action.CHANGED)
        return Response(AlertChannelSerializer(channel).data)

    def perform_destroy(self, instance: AlertChannel) -> None:
        """Delete a channel with its log; what waits for it is not sent."""
        with transaction.atomic():
            record(self.request.user, instance, Action.DELETED)
            instance.delete()

    @extend_schema(request=None, responses={202: NoticeSerializer})
    @action(detail=True, methods=["post"])
    def test(self, request: Request, pk: str) -> Response:
        """Send a test message; the log of the channel tells within seconds what became of it."""
        channel = self.get_object()
        if not channel.enabled:
            raise Conflict(_("This channel is disabled: nothing is sent through it."))
        with transaction.atomic():
            record(request.user, channel, Action.CHANGED, _("Sent a test"))
            notice = write_test(channel, now=timezone.now())
        return Response(NoticeSerializer(notice).data, status=status.HTTP_202_ACCEPTED)

    def _save(self, wish: AlertChannelChangesSerializer, channel: AlertChannel, done: Action) -> None:
        with collisions_are_conflicts(), transaction.atomic():
            wish.save_as(channel)
            record(self.request.user, channel, done, given_names(wish))


class ChannelNoticeViewSet(mixins.ListModelMixin, viewsets.GenericViewSet[Notice]):
    """The log of a channel, the latest message first; one about an OLT out of one's scope is not shown."""

    serializer_class = NoticeSerializer
    permission_classes = [ReadOrAdministerAll]
    filter_backends = [filters.QueryStringFilter]
    query_parameters = {"state": filters.one_of("state", NoticeState.values)}
    queryset = Notice.objects.order_by("-id")

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Tell a channel that is not there from one that has sent nothing."""
        super().initial(request, *args, **kwargs)
        get_object_or_404(AlertChannel.objects.only("pk"), pk=kwargs["channel_id"])

    def get_queryset(self) -> QuerySet[Notice]:
        """Find the messages of the channel of the address; the schema asks without an address.

        One whose alerts were deleted may have named any OLT, so it is left to those who see everything.
        """
        scope = scope_of(self.request.user)
        rows = super().get_queryset().filter(channel_id=self.kwargs.get("channel_id"))
        if scope.is_everything:
            return rows
        seen = scope.narrow(Notice.alerts.through.objects.all(), "alert__olt").values("notice_id")
        hidden = Alert.objects.exclude(scope.condition())
        return rows.filter(Q(kind=NoticeKind.TEST) | Q(pk__in=seen)).exclude(alerts__in=hidden)
