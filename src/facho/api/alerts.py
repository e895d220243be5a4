"""Alerts, rules and channels: every role reads, operators acknowledge, administrators write rules and channels."""

from typing import Any, TypeAlias

from django.conf import settings
from django.db import transaction
from django.db.models import Prefetch, Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import mixins, serializers, status, viewsets
from rest_framework.decorators import action
from rest_framework.generics import get_object_or_404
from rest_framework.request import Request
from rest_framework.response import Response

from facho.accounts.audit import Action, record
from facho.accounts.scope import scope_of
from facho.alerts.channels import ChannelSecrets, find_hour_faults, save_channel, stored_channels, write_test
from facho.alerts.channels import find_faults as find_channel_faults
from facho.alerts.conditions import CHOICES, CONDITIONS, sentence_of
from facho.alerts.models import (
    Alert,
    AlertChannel,
    AlertRule,
    AlertState,
    Notice,
    NoticeKind,
    NoticeState,
    Severity,
)
from facho.alerts.store import find_faults, shown_alerts
from facho.api.shared import filters
from facho.api.shared.permissions import ReadOrAdministerAll
from facho.api.shared.problems import Conflict
from facho.api.shared.views import (
    AcknowledgeAction,
    AddressedSerializer,
    KnownFields,
    RowSerializer,
    ScopedRows,
    TextField,
    WrittenRows,
    described,
    read_nothing,
)
from facho.hosts.models import OltGroup

_STATES = (AlertState.FIRING, AlertState.RESOLVED)
MAX_MINUTES = 10_080

_Channels: TypeAlias = "serializers.PrimaryKeyRelatedField[AlertChannel]"


class AlertSerializer(RowSerializer[Alert]):
    """An alert; `sentence` explains it in the language of the request, `facts` holds the same for programs."""

    kind = serializers.ChoiceField(source="rule.kind", choices=CHOICES)
    state = serializers.ChoiceField(choices=[(state.value, state.label) for state in _STATES])
    sentence = TextField(lambda alert: sentence_of(alert.rule.kind, alert.facts))
    facts = serializers.SerializerMethodField()

    class Meta:
        model = Alert
        fields = [
            "id",
            "rule_id",
            "rule",
            "kind",
            "severity",
            "state",
            "subject",
            "olt_id",
            "olt",
            "sentence",
            "facts",
            "is_flapping",
            "began_at",
            "fired_at",
            "escalated_at",
            "resolved_at",
            "acknowledged_at",
            "acknowledged_by_id",
            "acknowledged_by",
            "acknowledged_through",
            "acknowledgement",
        ]

    @extend_schema_field({"type": "object", "additionalProperties": True})
    def get_facts(self, alert: Alert) -> dict[str, Any]:
        return dict(alert.facts)


class AlertViewSet(ScopedRows, AcknowledgeAction, viewsets.ReadOnlyModelViewSet[Alert]):
    """Alerts, latest first; `from` and `to` select those that fired in between."""

    serializer_class = AlertSerializer
    query_parameters = {
        "olt": filters.olt(),
        "rule": filters.number("rule_id"),
        "kind": filters.one_of("rule__kind", list(CONDITIONS)),
        "severity": filters.one_of("severity", Severity.values),
        "state": filters.one_of("state", [state.value for state in _STATES]),
        "acknowledged": filters.acknowledged(),
        **filters.open_between("fired_at", "resolved_at"),
    }
    queryset = shown_alerts().order_by("-began_at", "-id")


class AlertRuleSerializer(RowSerializer[AlertRule]):
    """What to look for, when it counts, and who is notified; `threshold` is in the unit of the kind."""

    channel_ids: _Channels = serializers.PrimaryKeyRelatedField(source="channels", many=True, read_only=True)
    escalation_channel_ids: _Channels = serializers.PrimaryKeyRelatedField(
        source="escalation_channels", many=True, read_only=True
    )

    class Meta:
        model = AlertRule
        fields = [
            "id",
            "name",
            "kind",
            "severity",
            "enabled",
            "threshold",
            "clear_margin",
            "hold_minutes",
            "clear_minutes",
            "quiet_from",
            "quiet_to",
            "olt_group_id",
            "channel_ids",
            "sends_resolved",
            "escalate_minutes",
            "escalation_channel_ids",
        ]


class AlertRuleWishSerializer(KnownFields, serializers.ModelSerializer[AlertRule]):
    """The fields of a rule that can be written."""

    hold_minutes = serializers.IntegerField(min_value=0, max_value=MAX_MINUTES, required=False)
    clear_minutes = serializers.IntegerField(min_value=0, max_value=MAX_MINUTES, required=False)
    escalate_minutes = serializers.IntegerField(min_value=0, max_value=MAX_MINUTES, required=False, allow_null=True)
    olt_group_id = serializers.PrimaryKeyRelatedField(
        source="olt_group", queryset=OltGroup.objects.all(), allow_null=True, required=False
    )
    channel_ids = serializers.PrimaryKeyRelatedField(
        source="channels", many=True, queryset=stored_channels(), required=False
    )
    escalation_channel_ids = serializers.PrimaryKeyRelatedField(
        source="escalation_channels", many=True, queryset=stored_channels(), required=False
    )

    class Meta:
        model = AlertRule
        fields = [name for name in AlertRuleSerializer.Meta.fields if name != "id"]
        # Reported by `find_faults`, together with everything else.
        validators: list[Any] = []

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        faults = find_faults({**self._stored(), **attrs}, stored=self.instance)
        if faults:
            names = {"olt_group": "olt_group_id"}
            raise serializers.ValidationError({names.get(field, field): text for field, text in faults.items()})
        return attrs

    def _stored(self) -> dict[str, Any]:
        rule = self.instance
        if rule is None:
            return {}
        names = ("kind", "threshold", "clear_margin", "quiet_from", "quiet_to", "olt_group", "escalate_minutes")
        stored = {name: getattr(rule, name) for name in names}
        return {**stored, "escalation_channels": list(rule.escalation_channels.values_list("id", flat=True))}


@described(
    create="Create a rule; without channels its alerts are only shown.",
    change="Change a rule; open alerts continue under the new terms.",
)
class AlertRuleViewSet(WrittenRows):
    """Rules by name. Disabling one resolves its alerts and sends a notification; deleting one deletes its alerts."""

    serializer_class = AlertRuleSerializer
    wish_class = AlertRuleWishSerializer
    permission_classes = [ReadOrAdministerAll]
    query_parameters = {
        "kind": filters.one_of("kind", list(CONDITIONS)),
        "enabled": filters.flag("enabled"),
    }
    queryset = AlertRule.objects.prefetch_related(
        Prefetch("channels", stored_channels()), Prefetch("escalation_channels", stored_channels())
    ).order_by("name", "id")


class AlertChannelSerializer(serializers.ModelSerializer[AlertChannel]):
    """A channel; `address` shows its type and, where that is no secret, its server."""

    address = serializers.CharField(source="shown_as")

    class Meta:
        model = AlertChannel
        fields = [
            "id",
            "name",
            "kind",
            "address",
            "language",
            "enabled",
            "digest",
            "sends_reports",
            "on_call_from",
            "on_call_to",
            "on_call_days",
            "created_at",
            "updated_at",
        ]


class AlertChannelChangesSerializer(AddressedSerializer[AlertChannel]):
    """The fields of a channel that can be written; a secret left out or empty keeps its stored value.

    The signing key of a webhook must be sent again when `url` points to another server.
    """

    language = serializers.ChoiceField(choices=settings.LANGUAGES, required=False, allow_blank=True)
    on_call_days = serializers.RegexField(r"\A(?=.)1?2?3?4?5?6?7?\Z", required=False)

    class Meta:
        model = AlertChannel
        fields = [
            "name",
            "kind",
            "url",
            "signing_key",
            "language",
            "enabled",
            "digest",
            "sends_reports",
            "on_call_from",
            "on_call_to",
            "on_call_days",
        ]
        # Reported by `validate`, together with everything else.
        validators: list[Any] = []

    def find_faults(self, attrs: dict[str, Any], given: ChannelSecrets) -> dict[str, str]:
        stored = self.instance or AlertChannel()
        hours = {name: attrs.get(name, getattr(stored, name)) for name in ("on_call_from", "on_call_to")}
        kind = attrs.get("kind") or stored.kind
        return find_channel_faults(kind, given, stored=self.instance) | find_hour_faults(**hours)

    def store(self, row: AlertChannel, given: ChannelSecrets) -> None:
        save_channel(row, given)


class NoticeSerializer(RowSerializer[Notice]):
    """A notification and its delivery; `last_error` is of the last failed attempt, even if a later one succeeded."""

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


@described(create="Create a channel.", change="Change a channel; pending notifications go to its new address.")
class AlertChannelViewSet(WrittenRows):
    """Channels by name; their secrets are never loaded."""

    serializer_class = AlertChannelSerializer
    wish_class = AlertChannelChangesSerializer
    permission_classes = [ReadOrAdministerAll]
    queryset = stored_channels().order_by("name", "id")

    @extend_schema(request=None, responses={202: NoticeSerializer})
    @action(detail=True, methods=["post"])
    def test(self, request: Request, pk: str) -> Response:
        """Send a test message; its result appears in the channel's log within seconds."""
        read_nothing(request)
        channel = self.get_object()
        if not channel.enabled:
            raise Conflict(_("This channel is disabled: nothing is sent through it."))
        with transaction.atomic():
            record(request.user, channel, Action.CHANGED, _("Sent a test"))
            notice = write_test(channel, now=timezone.now())
        return Response(NoticeSerializer(notice).data, status=status.HTTP_202_ACCEPTED)


class ChannelNoticeViewSet(mixins.ListModelMixin, viewsets.GenericViewSet[Notice]):
    """The log of a channel, latest first, without notifications about OLTs outside your scope."""

    serializer_class = NoticeSerializer
    permission_classes = [ReadOrAdministerAll]
    query_parameters = {"state": filters.one_of("state", NoticeState.values)}
    queryset = Notice.objects.order_by("-id")

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        get_object_or_404(AlertChannel.objects.only("pk"), pk=kwargs["channel_id"])

    def get_queryset(self) -> QuerySet[Notice]:
        """Filter by the channel of the URL; the schema generator passes none.

        A notification whose alerts were deleted may name any OLT, so only users without a scope see it.
        """
        scope = scope_of(self.request.user)
        rows = super().get_queryset().filter(channel_id=self.kwargs.get("channel_id"))
        if scope.is_everything:
            return rows
        seen = scope.narrow(Notice.alerts.through.objects.all(), "alert__olt").values("notice_id")
        hidden = Alert.objects.exclude(scope.condition())
        return rows.filter(Q(kind=NoticeKind.TEST) | Q(pk__in=seen)).exclude(alerts__in=hidden)
