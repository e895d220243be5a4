"""Alerts and the rules that find them: everybody reads, operators acknowledge, admins decide what is looked for."""

from typing import Any, TypeAlias

from django.db import transaction
from django.db.models import Prefetch, Q
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import mixins, serializers, status, viewsets
from rest_framework.request import Request
from rest_framework.response import Response

from facho.accounts.audit import Action, record
from facho.alerts.alerts_read_model import shown_alerts
from facho.alerts.channels import stored_channels
from facho.alerts.models import Alert, AlertChannel, AlertRule, AlertState, Kind, Severity
from facho.alerts.rule_check import find_faults
from facho.alerts.words import sentence_of
from facho.api import filters
from facho.api.acknowledgement import Acknowledgement
from facho.api.permissions import ReadOrAdministerAll
from facho.api.problems import collisions_are_conflicts
from facho.api.scoped import ScopedRows
from facho.api.serializers import given_names
from facho.hosts.models import OltGroup

_STATES = (AlertState.FIRING, AlertState.RESOLVED)
MAX_MINUTES = 10_080

_Channels: TypeAlias = "serializers.PrimaryKeyRelatedField[AlertChannel]"


class AlertSerializer(serializers.ModelSerializer[Alert]):
    """Something that a rule found; `sentence` says it in the language of the request, `facts` to machines."""

    rule_id = serializers.IntegerField()
    rule = serializers.CharField(source="rule.name")
    kind = serializers.ChoiceField(source="rule.kind", choices=Kind.choices)
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
            "acknowledgement",
        ]

    def get_sentence(self, alert: Alert) -> str:
        """Say what is wrong."""
        return sentence_of(alert.rule.kind, alert.facts)

    @extend_schema_field({"type": "object", "additionalProperties": True})
    def get_facts(self, alert: Alert) -> dict[str, Any]:
        """Give what the sentence is made of."""
        return dict(alert.facts)


class AlertViewSet(ScopedRows, Acknowledgement, viewsets.ReadOnlyModelViewSet[Alert]):
    """Alerts, the latest first; `from` and `to` find those that fired between them."""

    serializer_class = AlertSerializer
    filter_backends = [filters.QueryStringFilter]
    query_parameters = {
        "olt": filters.olt(),
        "rule": filters.number("rule_id"),
        "kind": filters.one_of("rule__kind", Kind.values),
        "severity": filters.one_of("severity", Severity.values),
        "state": filters.one_of("state", [state.value for state in _STATES]),
        "acknowledged": filters.condition(
            lambda: Q(acknowledged_at__isnull=False), "Whether somebody has taken note of it."
        ),
        "from": filters.QueryParameter(
            lambda text: Q(resolved_at__isnull=True) | filters.moment("resolved_at__gt").narrow(text),
            filters.moment("resolved_at").schema,
        ),
        "to": filters.moment("fired_at__lt"),
    }
    queryset = shown_alerts().order_by("-began_at", "-id")


class AlertRuleSerializer(serializers.ModelSerializer[AlertRule]):
    """What is looked for, when it counts, and whom it is told to; `threshold` is in the unit of the kind."""

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


class AlertRuleWishSerializer(serializers.ModelSerializer[AlertRule]):
    """A rule as it shall be."""

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
        # Told by `find_faults`, together with everything else.
        validators: list[Any] = []

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Judge the whole rule, with what it keeps of the one that is stored."""
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
    """Rules by name. One that is switched off ends its alerts and says so; one that is deleted takes them along."""

    serializer_class = AlertRuleSerializer
    permission_classes = [ReadOrAdministerAll]
    filter_backends = [filters.QueryStringFilter]
    query_parameters = {
        "kind": filters.one_of("kind", Kind.values),
        "enabled": filters.flag("enabled"),
    }
    queryset = AlertRule.objects.prefetch_related(
        Prefetch("channels", stored_channels()), Prefetch("escalation_channels", stored_channels())
    ).order_by("name", "id")

    @extend_schema(request=AlertRuleWishSerializer, responses={201: AlertRuleSerializer})
    def create(self, request: Request) -> Response:
        """Make a rule; without channels it only shows what it finds."""
        wish = AlertRuleWishSerializer(data=request.data)
        wish.is_valid(raise_exception=True)
        return self._save(wish, Action.ADDED, status.HTTP_201_CREATED)

    @extend_schema(request=AlertRuleWishSerializer, responses=AlertRuleSerializer)
    def partial_update(self, request: Request, pk: str) -> Response:
        """Change a rule; alerts that are open go on under its new terms."""
        wish = AlertRuleWishSerializer(self.get_object(), data=request.data, partial=True)
        wish.is_valid(raise_exception=True)
        return self._save(wish, Action.CHANGED, status.HTTP_200_OK)

    def perform_destroy(self, instance: AlertRule) -> None:
        """Delete a rule with its alerts."""
        with transaction.atomic():
            record(self.request.user, instance, Action.DELETED)
            instance.delete()

    def _save(self, wish: AlertRuleWishSerializer, done: Action, code: int) -> Response:
        with collisions_are_conflicts(), transaction.atomic():
            rule = wish.save()
            record(self.request.user, rule, done, given_names(wish))
        return Response(AlertRuleSerializer(rule).data, status=code)
