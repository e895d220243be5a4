"""OLTs with their values, waiting ONUs and pauses, and adding OLTs by the inventory's rules.

Secrets go in, never out.
"""

from dataclasses import replace
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Count, IntegerField, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import generics, mixins, serializers, status, viewsets
from rest_framework.decorators import action
from rest_framework.exceptions import NotFound, PermissionDenied, ValidationError
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.settings import api_settings

from facho.accounts.audit import Action, record
from facho.accounts.scope import NOTHING, OltScope, scope_of, visible_reasons
from facho.api.shared import filters
from facho.api.shared.permissions import ReadOrAdminister
from facho.api.shared.problems import Conflict
from facho.api.shared.views import (
    KnownFields,
    RowSerializer,
    ScopedRows,
    TextField,
    must_see,
    read_body,
    read_nothing,
    recorded,
    valid,
)
from facho.hosts.inventory import InventoryError, Saved, add_olt, import_olts
from facho.hosts.models import Olt, OltData, OltGroup, Pause, Reachability, SnmpVersionChoice, WaitingOnu
from facho.hosts.olt_data import title_of
from facho.hosts.olt_entry import MAX_HOST, MAX_NAME, SECRET_COLUMNS, OltEntry, group_faults
from facho.hosts.store import MAX_PAUSE_MINUTES, OLT_SECRETS, end_pause, pause, refusal_of
from facho.infrastructure.secrets import Secret
from facho.onus.models import Onu, OnuData
from facho.onus.raw_values import load_raw_values
from facho.onus.shown_state import in_state
from facho.onus.words import ShownState
from facho.snmp_jobs.application import apply_ready_made_jobs
from facho.snmp_jobs.store import load_named_reads, name_read
from facho.zabbix_pollers.poller_manager import PollerManager

MAX_TEXT = 255
BY_ADMINS = frozenset({"create", "destroy", "connection"})


class OltSerializer(RowSerializer[Olt]):
    """An OLT, its health and number of ONUs; fields keep the names they are written under."""

    version = serializers.ChoiceField(source="snmp_version", choices=SnmpVersionChoice.choices)
    model = serializers.CharField(source="model.name", default=None, allow_null=True)
    brand = serializers.CharField(source="model.brand.name", default=None, allow_null=True)
    onus_total = serializers.IntegerField()
    onus_online = serializers.IntegerField()

    class Meta:
        model = Olt
        fields = [
            "id",
            "name",
            "host",
            "address",
            "port",
            "vendor",
            "brand",
            "model",
            "enabled",
            "version",
            "group",
            "poller_group",
            "trap_addresses",
            "reachability",
            "consecutive_failures",
            "last_answer_at",
            "last_error",
            "sys_name",
            "sys_descr",
            "sys_object_id",
            "onus_total",
            "onus_online",
            "created_at",
        ]

    def to_representation(self, olt: Olt) -> dict[str, Any]:
        """For a device that is not an OLT, return why it is not polled as its error."""
        shown: dict[str, Any] = super().to_representation(olt)
        return shown | {"last_error": olt.last_error or refusal_of(olt)}


class OltChangesSerializer(KnownFields, serializers.ModelSerializer[Olt]):
    """The fields of an OLT that can be written."""

    class Meta:
        model = Olt
        fields = ["enabled", "poller_group"]

    def validate_poller_group(self, group: str) -> str:
        for fault in group_faults(group, settings.FACHO_POLLER_GROUPS) if group else ():
            raise serializers.ValidationError(fault)
        return group


class _Optional(serializers.CharField):
    """A text that keeps the stored value, or the default, when empty."""

    def __init__(self, **options: Any) -> None:
        super().__init__(required=False, allow_blank=True, default="", max_length=MAX_TEXT, **options)


class ConnectionSerializer(KnownFields):
    """How an OLT is reached; fields left out or empty keep their values.

    With another host or port, all stored secrets and the SNMPv3 user are erased unless sent again. Secrets are never
    returned.
    """

    host = serializers.CharField(max_length=MAX_HOST, help_text="Name or address.")
    port = serializers.IntegerField(min_value=1, max_value=65_535, required=False)
    vendor = _Optional(help_text="A vendor definition, or `auto` to have it recognised.")
    version = _Optional(help_text="1, 2c or 3.")
    community = _Optional(write_only=True)
    v3_user = _Optional()
    v3_auth_protocol = _Optional()
    v3_auth_key = _Optional(write_only=True)
    v3_priv_protocol = _Optional()
    v3_priv_key = _Optional(write_only=True)
    trap_addresses = _Optional(
        help_text="Addresses its traps come from besides its own, separated by commas; `none` empties the list."
    )

    def entry_of(self, name: str) -> OltEntry:
        values: dict[str, Any] = {key: str(value) for key, value in self.validated_data.items() if key != "with_jobs"}
        values |= {key: Secret(values.get(key, "")) for key in SECRET_COLUMNS}
        return replace(OltEntry(name=name, host=""), **values)


class NewOltSerializer(ConnectionSerializer):
    """An OLT to add, with its vendor's ready-made jobs unless declined."""

    name = serializers.CharField(max_length=MAX_NAME)
    poller_group = _Optional()
    group = _Optional(help_text="Name of an OLT group; a new one is made.")
    with_jobs = serializers.BooleanField(default=True)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Require a group in scope from users who see only some groups."""
        seen = self.context["scope"].group_ids
        if seen is None:
            return attrs
        mine = OltGroup.objects.filter(id__in=seen, name__iexact=attrs["group"]).values_list("name", flat=True)
        if not mine:
            raise ValidationError({"group": [_("Choose one of your OLT groups: otherwise you would not see it.")]})
        # As it is spelt: a group of others may differ by its case alone.
        return attrs | {"group": attrs["group"] if attrs["group"] in mine else mine[0]}


def _count_onus(reference: str, condition: Q | None = None) -> Coalesce:
    """Count the present ONUs per row in a subquery: a join with GROUP BY would count those of all pages."""
    present = Onu.objects.filter(condition or Q(), **{reference: OuterRef("pk")}, is_present=True)
    counted = present.order_by().values(reference).annotate(n=Count("pk")).values("n")
    return Coalesce(Subquery(counted, output_field=IntegerField()), 0)


class OltViewSet(ScopedRows, viewsets.ReadOnlyModelViewSet[Olt]):
    """OLTs: `state` is the result of the last operation; `search` covers name, host and system name."""

    serializer_class = OltSerializer
    olt_path = ""
    query_parameters = {
        "state": filters.one_of("reachability", Reachability.values),
        "enabled": filters.flag("enabled"),
        "vendor": filters.search("vendor"),
        "group": filters.search("group__name"),
        "search": filters.search("name", "host", "sys_name"),
    }
    queryset = (
        Olt.objects.defer(*SECRET_COLUMNS)
        .select_related("model__brand", "group")
        .annotate(onus_total=_count_onus("olt"), onus_online=_count_onus("olt", in_state(ShownState.ONLINE)))
        .order_by("name", "id")
    )

    def get_permissions(self) -> list[BasePermission]:
        return [ReadOrAdminister()] if self.action in BY_ADMINS else super().get_permissions()  # type: ignore[return-value]

    @extend_schema(request=NewOltSerializer, responses={201: OltSerializer})
    def create(self, request: Request) -> Response:
        """Add an OLT; if the vendor is recognised automatically, it gets its jobs after the first answer."""
        wish = NewOltSerializer(data=read_body(request), context={"scope": scope_of(request.user)})
        values = valid(wish)

        def after_save(olt: Olt) -> None:
            record(request.user, olt, Action.ADDED)
            if values["with_jobs"]:
                _give_jobs(olt)

        try:
            olt = add_olt(wish.entry_of(values["name"]), after_save=after_save)
        except InventoryError as error:
            raise _refusal(request, error) from error
        return Response(OltSerializer(self.get_queryset().get(pk=olt.pk)).data, status=status.HTTP_201_CREATED)

    @extend_schema(request=ConnectionSerializer, responses=OltSerializer)
    @action(detail=True, methods=["put"])
    def connection(self, request: Request, pk: str) -> Response:
        """Change how the OLT is reached; a run in progress finishes at the old address."""
        olt = self.get_object()
        wish = ConnectionSerializer(data=read_body(request))
        valid(wish)

        def finish(saved: Saved) -> None:
            if saved.added:  # it was deleted or renamed since it was found
                raise NotFound
            record(request.user, olt, Action.CHANGED, saved.audit_words)

        try:
            import_olts([wish.entry_of(olt.name)], after_save=_give_jobs, finish=finish)
        except InventoryError as error:
            raise _refusal(request, error) from error
        return Response(OltSerializer(self.get_object()).data)

    @extend_schema(responses={204: None})
    def destroy(self, request: Request, pk: str) -> Response:
        """Delete an OLT with all its data; one being polled must be disabled first."""
        read_nothing(request)
        olt = self.get_object()
        with transaction.atomic():
            if PollerManager.is_olt_busy(olt.id):
                sentence = _("%(olt)s is being polled: disable it, and delete it when its run has ended.")
                raise Conflict(sentence % {"olt": olt.name})
            record(request.user, olt, Action.DELETED)
            Olt.objects.filter(pk=olt.pk).delete()
        return Response(status=status.HTTP_204_NO_CONTENT)

    @extend_schema(request=OltChangesSerializer, responses=OltSerializer)
    def partial_update(self, request: Request, pk: str) -> Response:
        """Enable or disable the OLT, or set its poller group; runs on a disabled OLT stop at their next packet."""
        wish = OltChangesSerializer(self.get_object(), data=read_body(request), partial=True)
        with recorded(request, wish) as (olt, values):
            Olt.objects.filter(pk=olt.pk).update(**values)
        return Response(OltSerializer(self.get_object()).data)


def _give_jobs(olt: Olt) -> None:
    apply_ready_made_jobs(olt, now=timezone.now())


def _refusal(request: Request, error: InventoryError) -> ValidationError:
    """Report the error without revealing OLTs outside the user's scope."""
    problems: dict[str, list[str]] = {}
    for column, reason in visible_reasons(error, scope_of(request.user)):
        problems.setdefault(column or api_settings.NON_FIELD_ERRORS_KEY, []).append(reason)
    return ValidationError(problems)


class OltDataSerializer(serializers.ModelSerializer[OltData]):
    """One value: `value` in its unit, `raw` as received; `per_second` is the rate of a counter."""

    title = TextField(lambda value: title_of(value.name) or value.oid)

    class Meta:
        model = OltData
        fields = ["name", "title", "place", "value", "unit", "per_second", "raw", "oid", "index", "updated_at"]


class OnuDataSerializer(serializers.Serializer[dict[str, Any]]):
    """The latest raw value of an ONU for one OID; the unit is the one configured for the OID."""

    name = serializers.CharField()
    value = serializers.CharField(required=False, max_length=MAX_TEXT)
    unit = serializers.CharField()
    oid = serializers.CharField(max_length=MAX_TEXT)
    updated_at = serializers.DateTimeField(label="Updated")


class WaitingOnuSerializer(RowSerializer[WaitingOnu]):
    """An ONU that an OLT detected and that is not authorised yet."""

    pon_port = serializers.CharField()

    class Meta:
        model = WaitingOnu
        fields = [
            "id",
            "olt_id",
            "olt",
            "pon_port",
            "frame",
            "slot",
            "port",
            "serial",
            "model",
            "first_seen_at",
            "last_seen_at",
        ]


@extend_schema_view(get=extend_schema(operation_id="olts_data_list", tags=["olts"]))
class OltDataView(ScopedRows, generics.ListAPIView[OltData]):
    """The latest values of an OLT: cards, ports, interfaces and custom OIDs."""

    serializer_class = OltDataSerializer
    query_parameters = {
        "name": filters.search("name"),
        "place": filters.search("place"),
        "oid": filters.search("oid"),
    }
    queryset = OltData.objects.order_by("name", "oid", "id")

    def get_queryset(self) -> QuerySet[OltData]:
        olt_id = self.kwargs.get("olt_id")
        if olt_id is not None:  # the schema asks without an address
            must_see(self.request, Olt.objects.filter(pk=olt_id), olt_path="")
        return super().get_queryset().filter(olt_id=olt_id)


@extend_schema_view(get=extend_schema(operation_id="onus_data_list", tags=["onus"]))
class OnuDataView(ScopedRows, generics.ListAPIView[Any]):
    """The latest raw value of an ONU for each OID read."""

    serializer_class = OnuDataSerializer
    query_parameters = {"oid": filters.search("oid")}
    # The blocks of the OLT; those values of theirs that are the ONU's come on pages.
    queryset = OnuData.objects.order_by("oid")

    def get_queryset(self) -> QuerySet[OnuData]:
        onu_id = self.kwargs.get("onu_id")
        if onu_id is not None:  # the schema asks without an address
            must_see(self.request, Onu.objects.filter(pk=onu_id))
        return super().get_queryset().filter(olt__onus=onu_id)

    def paginate_queryset(self, queryset: Any) -> list[Any]:
        page = super().paginate_queryset(load_raw_values(self.kwargs["onu_id"], queryset)) or []
        reads = load_named_reads(Olt.objects.values_list("vendor", flat=True).get(onus=self.kwargs["onu_id"]))
        return [value._asdict() | name_read(value.oid, reads)._asdict() | {"oid": value.oid} for value in page]


class WaitingOnuViewSet(ScopedRows, viewsets.ReadOnlyModelViewSet[WaitingOnu]):
    """ONUs waiting for authorisation, latest first; authorised ones leave the list."""

    serializer_class = WaitingOnuSerializer
    query_parameters = {
        "olt": filters.olt(),
        "frame": filters.number("frame"),
        "slot": filters.number("slot"),
        "port": filters.number("port"),
        "serial": filters.search("serial"),
        "search": filters.search("serial", "model", "olt__name"),
    }
    queryset = WaitingOnu.objects.select_related("olt").defer(*OLT_SECRETS).order_by("-first_seen_at", "-id")


class PauseSerializer(RowSerializer[Pause]):
    """A period without polling, or only without alerts if it keeps polling; without an OLT it is global."""

    class Meta:
        model = Pause
        fields = ["id", "olt_id", "olt", "starts_at", "ends_at", "note", "keeps_polling"]


class _SeenOlt(serializers.PrimaryKeyRelatedField[Olt]):
    """An OLT in the user's scope; others do not exist."""

    def get_queryset(self) -> QuerySet[Olt]:
        scope: OltScope = self.context.get("scope", NOTHING)
        return scope.narrow(Olt.objects.defer(*SECRET_COLUMNS), "")


class NewPauseSerializer(KnownFields):
    """A pause that starts now; `olt_id` must be given, null for all OLTs."""

    olt_id = _SeenOlt(queryset=Olt.objects.none(), source="olt", allow_null=True, required=True)
    minutes = serializers.IntegerField(min_value=1, max_value=MAX_PAUSE_MINUTES)
    note = serializers.CharField(max_length=200, required=False, allow_blank=True, default="")


def _holds_now() -> Q:
    now = timezone.now()
    return Q(starts_at__lte=now, ends_at__gt=now)


class PauseViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Pause]):
    """Pauses, latest first; ended ones are kept as long as the quotas they excuse."""

    serializer_class = PauseSerializer
    query_parameters = {
        "olt": filters.olt(),
        "active": filters.condition(_holds_now, "Whether it holds right now."),
    }
    queryset = (
        Pause.objects.select_related("olt")
        .only("starts_at", "ends_at", "note", "keeps_polling", "olt__name")
        .order_by("-starts_at", "-id")
    )

    def get_queryset(self) -> QuerySet[Pause]:
        scope = scope_of(self.request.user)
        rows = super().get_queryset()
        return rows if scope.is_everything else rows.filter(scope.condition() | Q(olt__isnull=True))

    @extend_schema(request=NewPauseSerializer, responses={201: PauseSerializer})
    def create(self, request: Request) -> Response:
        """Start a pause now: nothing new starts, running executions finish."""
        values = valid(NewPauseSerializer(data=read_body(request), context={"scope": scope_of(request.user)}))
        _refuse_everything(request, values["olt"])
        with transaction.atomic():
            made = pause(**values, now=timezone.now())
            record(request.user, made, Action.ADDED)
        return Response(PauseSerializer(made).data, status=status.HTTP_201_CREATED)

    @extend_schema(request=None, responses={204: None})
    @action(detail=True, methods=["post"])
    def end(self, request: Request, pk: str) -> Response:
        """End a pause now; one that has not started is deleted."""
        read_nothing(request)
        held = self.get_object()
        _refuse_everything(request, held.olt)
        with transaction.atomic():
            record(request.user, held, Action.CHANGED, gettext_lazy("ended"))
            if not end_pause(held.id, now=timezone.now()):
                raise Conflict(_("This pause has ended."))
        return Response(status=status.HTTP_204_NO_CONTENT)


def _refuse_everything(request: Request, olt: Olt | None) -> None:
    """Allow a global pause only to users who see all OLTs."""
    if olt is None and not scope_of(request.user).is_everything:
        raise PermissionDenied(_("This affects OLTs outside your scope."))
