"""OLTs added, reached otherwise and deleted over the API, by the inventory's rules. Secrets go in, never out."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.decorators import action
from rest_framework.exceptions import NotFound, ValidationError
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.settings import api_settings

from facho.accounts.audit import Action, changed_words, record
from facho.accounts.scope import scope_of
from facho.api.permissions import ReadOrAdminister
from facho.api.problems import Conflict
from facho.api.serializers import OltSerializer
from facho.executions.store import load_busy_olts
from facho.hosts.inventory import InventoryError, Saved, add_olt, import_olts
from facho.hosts.models import Olt, OltGroup
from facho.hosts.olt_entry import MAX_HOST, MAX_NAME, SECRET_COLUMNS, OltEntry
from facho.hosts.secrets import Secret
from facho.snmp_jobs.ready_made import apply_ready_made_jobs

if TYPE_CHECKING:
    from rest_framework.viewsets import GenericViewSet

    _OltViews = GenericViewSet[Olt]
else:
    _OltViews = object  # joined to a view set, whose stubs alone take type parameters

MAX_TEXT = 255
BY_ADMINS = frozenset({"create", "destroy", "connection"})


class _Optional(serializers.CharField):
    """A text that keeps what is stored, or the default, when it is empty."""

    def __init__(self, **options: Any) -> None:
        super().__init__(required=False, allow_blank=True, default="", max_length=MAX_TEXT, **options)


class ConnectionSerializer(serializers.Serializer[Any]):
    """How an OLT is reached; what is left out or empty stays as it is. Secrets are taken and never shown."""

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

    def entry_of(self, name: str) -> OltEntry:
        """Return the wish as an entry of the inventory."""
        values: dict[str, Any] = {key: str(value) for key, value in self.validated_data.items() if key != "with_jobs"}
        values |= {key: Secret(values.get(key, "")) for key in SECRET_COLUMNS}
        return replace(OltEntry(name=name, host=""), **values)


class NewOltSerializer(ConnectionSerializer):
    """An OLT to be added; with its vendor's ready-made jobs, unless they are not wanted."""

    name = serializers.CharField(max_length=MAX_NAME)
    poller_group = _Optional()
    group = _Optional(help_text="Name of an OLT group; a new one is made.")
    with_jobs = serializers.BooleanField(default=True)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Let whoever sees some groups only put the OLT into one of them."""
        seen = self.context["scope"].group_ids
        if seen is None:
            return attrs
        mine = OltGroup.objects.filter(id__in=seen, name__iexact=attrs["group"]).values_list("name", flat=True)
        if not mine:
            raise ValidationError({"group": [_("Name one of your OLT groups: you would not see it otherwise.")]})
        # As it is spelt: a group of others may differ by its case alone.
        return attrs | {"group": attrs["group"] if attrs["group"] in mine else mine[0]}


class OltInventory(_OltViews):
    """Adds `create`, `destroy` and `connection` to OLTs; all three are for admins."""

    def get_permissions(self) -> list[BasePermission]:
        """Ask for more of who changes what exists."""
        return [ReadOrAdminister()] if self.action in BY_ADMINS else super().get_permissions()  # type: ignore[return-value]

    @extend_schema(request=NewOltSerializer, responses={201: OltSerializer})
    def create(self, request: Request) -> Response:
        """Add an OLT; one whose vendor is left to be recognised gets its jobs when the engine has asked it."""
        wish = NewOltSerializer(data=request.data, context={"scope": scope_of(request.user)})
        wish.is_valid(raise_exception=True)

        def after_save(olt: Olt) -> None:
            record(request.user, olt, Action.ADDED)
            if wish.validated_data["with_jobs"]:
                _give_jobs(olt)

        try:
            olt = add_olt(wish.entry_of(wish.validated_data["name"]), after_save=after_save)
        except InventoryError as error:
            raise _refusal(request, error) from error
        return Response(OltSerializer(self.get_queryset().get(pk=olt.pk)).data, status=status.HTTP_201_CREATED)

    @extend_schema(request=ConnectionSerializer, responses=OltSerializer)
    @action(detail=True, methods=["put"])
    def connection(self, request: Request, pk: str) -> Response:
        """Say how the OLT is reached from now on; what runs at this moment ends at the old address."""
        olt = self.get_object()
        wish = ConnectionSerializer(data=request.data)
        wish.is_valid(raise_exception=True)
        words = _connection_words(olt, wish.validated_data)

        def finish(saved: Saved) -> None:
            if saved.added:  # it was deleted or renamed since it was found
                raise NotFound
            record(request.user, olt, Action.CHANGED, words)

        try:
            import_olts([wish.entry_of(olt.name)], after_save=_give_jobs, finish=finish)
        except InventoryError as error:
            raise _refusal(request, error) from error
        return Response(OltSerializer(self.get_object()).data)

    @extend_schema(responses={204: None})
    def destroy(self, request: Request, pk: str) -> Response:
        """Delete an OLT with all that is known about it; one that is being polled is disabled first."""
        olt = self.get_object()
        with transaction.atomic():
            if olt.id in load_busy_olts():
                sentence = _("%(olt)s is being polled: disable it, and delete it when its run has ended.")
                raise Conflict(sentence % {"olt": olt.name})
            record(request.user, olt, Action.DELETED)
            Olt.objects.filter(pk=olt.pk).delete()
        return Response(status=status.HTTP_204_NO_CONTENT)


def _connection_words(olt: Olt, wish: Mapping[str, Any]) -> str:
    """Write what a wish changes about how the OLT is reached; of secrets only that they do."""
    given = {name: value for name, value in wish.items() if value}
    columns = {name: "snmp_version" if name == "version" else name for name in given if name not in SECRET_COLUMNS}
    before = {name: getattr(olt, column) for name, column in columns.items()}
    return changed_words(before, given, secrets=SECRET_COLUMNS)


def _give_jobs(olt: Olt) -> None:
    apply_ready_made_jobs(olt, now=timezone.now())


def _refusal(request: Request, error: InventoryError) -> ValidationError:
    """Say what is wrong, without the name of an OLT that the user may not see."""
    named = Olt.objects.filter(name__in=[problem.owner for problem in error.problems if problem.owner])
    seen = {"", *scope_of(request.user).narrow(named, "").values_list("name", flat=True)}
    taken = _("Another OLT already has this address and port.")
    told: dict[str, list[str]] = {}
    for problem in error.problems:
        reason = problem.reason if problem.owner in seen else taken
        told.setdefault(problem.column or api_settings.NON_FIELD_ERRORS_KEY, []).append(reason)
    return ValidationError(told)
