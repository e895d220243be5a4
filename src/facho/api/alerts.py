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
from facho.api.shared.filters import ScopedRows
from facho.api.shared.permissions import ReadOrAdministerAll
from facho.api.shared.problems import Conflict, collisions_are_conflicts
from facho.api.shared.serializers import AcknowledgeAction, KnownFields, given_names, read_body, read_nothing
from facho.hosts.models import OltGroup
from facho.infrastructure.secrets import Secret

_STATES = (AlertState.FIRING, AlertState.RESOLVED)
MAX_MINUTES = 10_080

_Channels: TypeAlias = "serializers.PrimaryKeyRelatedField[AlertChannel]"


class AlertSerializer(serializers.ModelSerializer[Alert]):
    """An alert; `sentence` explains it in the language of the request, `facts` holds the same for programs."""

    rule_id = serializers.IntegerField()
    rule = serializers.CharField(source="rule.name")
    kind = serializers.ChoiceField(source="rule.kind", choices=CHOICES)
    state = serializers.ChoiceField(choices=[(state.value, state.label) for state in _STATES])
    olt_id = serializers.IntegerField(allow_null=True)
    olt = serializers.CharField(source="olt.name", default=None, allow_null=True)
    sentence = serializers.SerializerMethodField()
    facts = serializers.SerializerMethodField()
    acknowledged_by_id = serializers.IntegerField(allow_null=True)
    acknowledged_by = serializers.CharField(source="acknowledged_by.username", default=None, allow_null=True)

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

    def get_sentence(self, alert: Alert) -> str:
        return sentence_of(alert.rule.kind, alert.facts)

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


class AlertRuleSerializer(serializers.ModelSerializer[AlertRule]):
    """What to look for, when it counts, and who is notified; `threshold` is in the unit of the kind."""

    olt_group_id = serializers.IntegerField(allow_null=True)
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


class AlertRuleViewSet(
    mixins.ListModelMixin, mixins.RetrieveModelMixin, mixins.DestroyModelMixin, viewsets.GenericViewSet[AlertRule]
):
    """Rules by name. Disabling one resolves its alerts and sends a notification; deleting one deletes its alerts."""

    serializer_class = AlertRuleSerializer
    permission_classes = [ReadOrAdministerAll]
    query_parameters = {
        "kind": filters.one_of("kind", list(CONDITIONS)),
        "enabled": filters.flag("enabled"),
    }
    queryset = AlertRule.objects.prefetch_related(
        Prefetch("channels", stored_channels()), Prefetch("escalation_channels", stored_channels())
    ).order_by("name", "id")

    @extend_schema(request=AlertRuleWishSerializer, responses={201: AlertRuleSerializer})
    def create(self, request: Request) -> Response:
        """Create a rule; without channels its alerts are only shown."""
        wish = AlertRuleWishSerializer(data=read_body(request))
        wish.is_valid(raise_exception=True)
        return self._save(wish, Action.ADDED, status.HTTP_201_CREATED)

    @extend_schema(request=AlertRuleWishSerializer, responses=AlertRuleSerializer)
    def partial_update(self, request: Request, pk: str) -> Response:
        """Change a rule; open alerts continue under the new terms."""
        wish = AlertRuleWishSerializer(self.get_object(), data=read_body(request), partial=True)
        wish.is_valid(raise_exception=True)
        return self._save(wish, Action.CHANGED, status.HTTP_200_OK)

    def perform_destroy(self, instance: AlertRule) -> None:
        read_nothing(self.request)
        with transaction.atomic():
            record(self.request.user, instance, Action.DELETED)
            instance.delete()

    def _save(self, wish: AlertRuleWishSerializer, done: Action, code: int) -> Response:
        with collisions_are_conflicts(), transaction.atomic():
            rule = wish.save()
            record(self.request.user, rule, done, given_names(wish))
        return Response(AlertRuleSerializer(rule).data, status=code)


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


class AlertChannelChangesSerializer(KnownFields, serializers.ModelSerializer[AlertChannel]):
    """The fields of a channel that can be written; a secret left out or empty keeps its stored value.

    The signing key of a webhook must be sent again when `url` points to another server.
    """

    url = serializers.CharField(write_only=True, required=False, allow_blank=True, max_length=2_000)
    signing_key = serializers.CharField(write_only=True, required=False, allow_blank=True, max_length=500)
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

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        given = ChannelSecrets(Secret(attrs.pop("url", "")), Secret(attrs.pop("signing_key", "")))
        kind = attrs.get("kind") or (self.instance or AlertChannel()).kind
        stored = self.instance or AlertChannel()
        hours = {name: attrs.get(name, getattr(stored, name)) for name in ("on_call_from", "on_call_to")}
        faults = find_channel_faults(kind, given, stored=self.instance) | find_hour_faults(**hours)
        if faults:
            raise serializers.ValidationError(faults)
        return {**attrs, "given": given}

    def save_as(self, channel: AlertChannel) -> None:
        values = dict(self.validated_data)
        given = values.pop("given")
        for name, value in values.items():
            setattr(channel, name, value)
        save_channel(channel, given)


class NoticeSerializer(serializers.ModelSerializer[Notice]):
    """A notification and its delivery; `last_error` is of the last failed attempt, even if a later one succeeded."""

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
    """Channels by name; their secrets are never loaded."""

    serializer_class = AlertChannelSerializer
    permission_classes = [ReadOrAdministerAll]
    queryset = stored_channels().order_by("name", "id")

    @extend_schema(request=AlertChannelChangesSerializer, responses={201: AlertChannelSerializer})
    def create(self, request: Request) -> Response:
        """Create a channel."""
        wish = AlertChannelChangesSerializer(data=read_body(request))
        wish.is_valid(raise_exception=True)
        channel = AlertChannel()
        self._save(wish, channel, Action.ADDED)
        return Response(AlertChannelSerializer(channel).data, status=status.HTTP_201_CREATED)

    @extend_schema(request=AlertChannelChangesSerializer, responses=AlertChannelSerializer)
    def partial_update(self, request: Request, pk: str) -> Response:
        """Change a channel; pending notifications go to its new address."""
        channel = self.get_object()
        wish = AlertChannelChangesSerializer(channel, data=read_body(request), partial=True)
        wish.is_valid(raise_exception=True)
        self._save(wish, channel, Action.CHANGED)
        return Response(AlertChannelSerializer(channel).data)

    def perform_destroy(self, instance: AlertChannel) -> None:
        """Delete a channel with its log; pending notifications are dropped."""
        read_nothing(self.request)
        with transaction.atomic():
            record(self.request.user, instance, Action.DELETED)
            instance.delete()

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

    def _save(self, wish: AlertChannelChangesSerializer, channel: AlertChannel, done: Action) -> None:
        with collisions_are_conflicts(), transaction.atomic():
            wish.save_as(channel)
            record(self.request.user, channel, done, given_names(wish))


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
