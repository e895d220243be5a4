"""Webhooks over the API: every role reads, administrators of all OLTs write, test and have events sent again."""

from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.urls import include, path
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from drf_spectacular.utils import extend_schema
from rest_framework import mixins, serializers, status, viewsets
from rest_framework.decorators import action
from rest_framework.generics import get_object_or_404
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.routers import SimpleRouter

from facho.accounts.audit import Action, record
from facho.alerts.channels import ChannelSecrets
from facho.api.shared import filters
from facho.api.shared.permissions import ReadOrAdministerAll
from facho.api.shared.problems import Conflict
from facho.api.shared.views import (
    AddressedSerializer,
    KnownFields,
    RowSerializer,
    WrittenRows,
    described,
    read_body,
    read_nothing,
    valid,
)
from facho.hosts.models import OltGroup
from facho.neighbours.models import WEBHOOK_KINDS, DeliveryState, Webhook, WebhookDelivery
from facho.neighbours.webhooks import Replay, find_faults, replay, save_webhook, stored_webhooks, write_test


class WebhookSerializer(RowSerializer[Webhook]):
    """A program that gets events; `address` shows its server. `failing_since` is null while it takes what it gets."""

    address = serializers.CharField(source="shown_as")
    kinds = serializers.ListField(child=serializers.ChoiceField(choices=WEBHOOK_KINDS))

    class Meta:
        model = Webhook
        fields = [
            "id",
            "name",
            "address",
            "kinds",
            "olt_group_id",
            "enabled",
            "failing_since",
            "last_error",
            "last_sent_at",
            "created_at",
            "updated_at",
        ]


class WebhookChangesSerializer(AddressedSerializer[Webhook]):
    """The fields of a webhook that can be written; a secret left out or empty keeps its stored value.

    The signing key must be sent again when `url` points to another server.
    """

    kinds = serializers.ListField(
        child=serializers.ChoiceField(choices=WEBHOOK_KINDS), max_length=len(WEBHOOK_KINDS), allow_empty=False
    )
    olt_group_id = serializers.PrimaryKeyRelatedField(
        source="olt_group", queryset=OltGroup.objects.all(), allow_null=True, required=False
    )

    class Meta:
        model = Webhook
        fields = ["name", "url", "signing_key", "kinds", "olt_group_id", "enabled"]
        # Reported by `validate`, together with everything else.
        validators: list[Any] = []

    def find_faults(self, attrs: dict[str, Any], given: ChannelSecrets) -> dict[str, str]:
        kinds = attrs["kinds"] if "kinds" in attrs or self.instance is None else self.instance.kinds
        return find_faults(kinds, given, stored=self.instance)

    def store(self, row: Webhook, given: ChannelSecrets) -> None:
        save_webhook(row, given, now=timezone.now())


class WebhookReplayWishSerializer(KnownFields):
    """Since when everything is sent again."""

    since = serializers.DateTimeField()


class WebhookReplaySerializer(serializers.Serializer[Replay]):
    """What is sent again: events of ONUs, up to 10,000 counted exactly, and beginnings and ends of outages."""

    events = serializers.IntegerField(source="events.number")
    events_is_exact = serializers.BooleanField(source="events.is_exact")
    outages = serializers.IntegerField()


class WebhookDeliverySerializer(RowSerializer[WebhookDelivery]):
    """A batch and its delivery; `last_error` is of the last failed attempt."""

    class Meta:
        model = WebhookDelivery
        fields = [
            "id",
            "webhook_id",
            "is_test",
            "is_replay",
            "count",
            "state",
            "created_at",
            "tries",
            "next_try_at",
            "last_error",
            "sent_at",
        ]


@described(
    create="Create a webhook; it gets what happens from now on.",
    change="Change a webhook; what it has not taken yet goes to its new address, at once.",
)
class WebhookViewSet(WrittenRows):
    """Webhooks by name; their secrets are never loaded."""

    serializer_class = WebhookSerializer
    wish_class = WebhookChangesSerializer
    permission_classes = [ReadOrAdministerAll]
    query_parameters = {"enabled": filters.flag("enabled")}
    queryset = stored_webhooks().order_by("name", "id")

    @extend_schema(request=None, responses={202: WebhookDeliverySerializer})
    @action(detail=True, methods=["post"])
    def test(self, request: Request, pk: str) -> Response:
        """Send a batch without events; its result appears among the deliveries within seconds."""
        read_nothing(request)
        webhook = self.get_object()
        if not webhook.enabled:
            raise Conflict(_("This webhook is disabled: nothing is sent to it."))
        with transaction.atomic():
            record(request.user, webhook, Action.CHANGED, gettext_lazy("Sent a test"))
            test = write_test(webhook, now=timezone.now())
        return Response(WebhookDeliverySerializer(test).data, status=status.HTTP_202_ACCEPTED)

    @extend_schema(request=WebhookReplayWishSerializer, responses={202: WebhookReplaySerializer})
    @action(detail=True, methods=["post"])
    def replay(self, request: Request, pk: str) -> Response:
        """Send everything since a time again, marked as such, as far as events are kept."""
        webhook = self.get_object()
        since = valid(WebhookReplayWishSerializer(data=read_body(request)))["since"]
        with transaction.atomic():
            record(request.user, webhook, Action.CHANGED, _("Sends again since %(time)s") % {"time": since.isoformat()})
            done = replay(webhook.pk, since)
        return Response(WebhookReplaySerializer(done).data, status=status.HTTP_202_ACCEPTED)


class WebhookDeliveryViewSet(mixins.ListModelMixin, viewsets.GenericViewSet[WebhookDelivery]):
    """What was sent to a webhook, latest first."""

    serializer_class = WebhookDeliverySerializer
    permission_classes = [ReadOrAdministerAll]
    query_parameters = {"state": filters.one_of("state", DeliveryState.values)}
    queryset = WebhookDelivery.objects.order_by("-id")

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        get_object_or_404(Webhook.objects.only("pk"), pk=kwargs["webhook_id"])

    def get_queryset(self) -> QuerySet[WebhookDelivery]:
        """Filter by the webhook of the URL; the schema generator passes none."""
        return super().get_queryset().filter(webhook_id=self.kwargs.get("webhook_id", 0))


router = SimpleRouter()
router.register("webhooks", WebhookViewSet, basename="webhook")

urlpatterns = [
    path("", include(router.urls)),
    path(
        "webhooks/<int:webhook_id>/deliveries/",
        WebhookDeliveryViewSet.as_view({"get": "list"}),
        name="webhook-deliveries",
    ),
]
