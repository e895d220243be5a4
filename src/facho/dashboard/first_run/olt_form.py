"""The form of the first step: where the OLT is and how it wants to be asked, each fault beside its field."""

from collections.abc import Iterator
from typing import Any

from django import forms
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from facho.accounts.scope import OltScope
from facho.hosts.inventory import InventoryError, find_credential_faults, stored_secrets
from facho.hosts.models import DEFAULT_SNMP_PORT, Olt, OltGroup, SnmpVersion
from facho.hosts.olt_entry import (
    AUTH_PROTOCOLS,
    AUTO,
    NONE,
    PRIV_PROTOCOLS,
    SECRET_COLUMNS,
    Fault,
    OltEntry,
    find_faults,
)
from facho.hosts.olt_form import SecretInput
from facho.hosts.resolve import resolve_all
from facho.hosts.secrets import Secret

_TEXTS = ("name", "host", "v3_user", *SECRET_COLUMNS)
VERSIONS = [
    (SnmpVersion.V2C.value, gettext_lazy("SNMPv2c: what most OLTs speak")),
    (SnmpVersion.V3.value, gettext_lazy("SNMPv3: with a user and keys")),
    (SnmpVersion.V1.value, gettext_lazy("SNMPv1: only where nothing newer is spoken")),
]


def protocol_choices(names: tuple[str, ...]) -> list[tuple[str, Any]]:
    """Offer the protocols, and none of them."""
    return [("", gettext_lazy("none")), *((name, name) for name in names)]


class OltDetails(forms.Form):
    """An OLT that is new, or that did not answer yet and is corrected; its name is then no longer asked."""

    name = forms.CharField(
        label=gettext_lazy("Name"), strip=True, help_text=gettext_lazy("As your people call it, for example its site.")
    )
    host = forms.CharField(
        label=gettext_lazy("Address"), strip=True, help_text=gettext_lazy("IP address or host name of its management.")
    )
    port = forms.IntegerField(
        label=capfirst(gettext_lazy("UDP port")), initial=DEFAULT_SNMP_PORT, min_value=1, max_value=65_535
    )
    group = forms.ModelChoiceField(
        label=capfirst(gettext_lazy("OLT group")), queryset=OltGroup.objects.none(), required=False
    )
    version = forms.ChoiceField(
        label=capfirst(gettext_lazy("SNMP version")),
        choices=VERSIONS,
        initial=SnmpVersion.V2C,
        widget=forms.RadioSelect,
    )
    community = SecretInput(
        gettext_lazy("Community"), gettext_lazy("The one for reading. It is stored encrypted and never shown.")
    )
    v3_user = forms.CharField(label=gettext_lazy("User"), required=False, strip=True)
    v3_auth_protocol = forms.ChoiceField(
        label=gettext_lazy("Authentication"), choices=protocol_choices(AUTH_PROTOCOLS), required=False
    )
    v3_auth_key = SecretInput(gettext_lazy("Authentication key"), help_text="")
    v3_priv_protocol = forms.ChoiceField(
        label=gettext_lazy("Privacy"), choices=protocol_choices(PRIV_PROTOCOLS), required=False
    )
    v3_priv_key = SecretInput(gettext_lazy("Privacy key"), help_text="")

    def __init__(self, *args: Any, scope: OltScope, olt: Olt | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.olt = olt
        self.scope = scope
        if olt is None:
            self._offer_groups(scope)
        else:
            del self.fields["name"], self.fields["group"]
            self._show_stored(olt)

    @property
    def community_fields(self) -> list[forms.BoundField]:
        """What v1 and v2c need."""
        return [self["community"]]

    @property
    def user_fields(self) -> list[forms.BoundField]:
        """What v3 needs."""
        names = ("v3_user", "v3_auth_protocol", "v3_auth_key", "v3_priv_protocol", "v3_priv_key")
        return [self[name] for name in names]

    @property
    def place_fields(self) -> list[forms.BoundField]:
        """Who and where it is."""
        return [self[name] for name in ("name", "host", "port", "group") if name in self.fields]

    def clean(self) -> dict[str, Any]:
        """Judge each field by the rules of the inventory, then the device and the credentials."""
        values = super().clean() or {}
        for fault in _text_faults({column: values.get(column, "") for column in _TEXTS}):
            # What is missing is told by the field itself.
            if values.get(fault.column):
                self._blame(*fault)
        if not self.errors:
            self._check_device(values["host"], values["port"])
            self._check_name(values.get("name", ""))
            for fault in self._credential_faults(values):
                self._blame(*fault)
        return values

    def as_entry(self) -> OltEntry:
        """Return what was filled in as the inventory takes it; what belongs to another version is left out."""
        values = self.cleaned_data
        is_v3 = values["version"] == SnmpVersion.V3
        shared: dict[str, Any] = {
            "name": self.olt.name if self.olt else values["name"],
            "host": values["host"],
            "port": str(values["port"]),
            "vendor": AUTO,
            "version": values["version"],
            "group": values["group"].name if values.get("group") else "",
        }
        if not is_v3:
            return OltEntry(**shared, community=Secret(values["community"]))
        return OltEntry(
            **shared,
            v3_user=values["v3_user"],
            v3_auth_protocol=values["v3_auth_protocol"] or NONE,
            v3_auth_key=Secret(values["v3_auth_key"]),
            v3_priv_protocol=values["v3_priv_protocol"] or NONE,
            v3_priv_key=Secret(values["v3_priv_key"]),
        )

    def refuse(self, error: InventoryError) -> None:
        """Show what the inventory refused after all: somebody was faster."""
        for problem in error.problems:
            self.add_error(None, _sentence(problem.reason))

    def _offer_groups(self, scope: OltScope) -> None:
        """Let whoever sees some groups only put the OLT into one of them: he would not see it otherwise."""
        groups = OltGroup.objects.all() if scope.group_ids is None else OltGroup.objects.filter(id__in=scope.group_ids)
        field = self.fields["group"]
        field.required = scope.group_ids is not None
        if isinstance(field, forms.ModelChoiceField):
            field.queryset = groups
        if not groups.exists():
            del self.fields["group"]

    def _show_stored(self, olt: Olt) -> None:
        for name in ("host", "port", "v3_user", "v3_auth_protocol", "v3_priv_protocol"):
            self.fields[name].initial = getattr(olt, name)
        self.fields["version"].initial = olt.snmp_version
        for name in SECRET_COLUMNS:
            if getattr(olt, f"has_{name}", False):
                self.fields[name].help_text = gettext_lazy("Never shown. Empty: the stored one stays.")

    def _check_device(self, host: str, port: int) -> None:
        address = resolve_all([host]).get(host, "")
        if not address:
            self._blame("host", _('host "%s" does not resolve to an address') % host)
            return
        same = Olt.objects.only("name").filter(address=address, port=port)
        for owner in same.exclude(pk=self.olt.pk if self.olt else 0):
            self._blame("host", self._taken_by(owner, address, port))

    def _taken_by(self, owner: Olt, address: str, port: int) -> str:
        place = {"owner": owner.name, "address": address, "port": port}
        if not self.scope.allows(owner.pk):
            return _("another OLT already has address %(address)s port %(port)s") % place
        return _('OLT "%(owner)s" already has address %(address)s port %(port)s') % place

    def _check_name(self, name: str) -> None:
        if name and Olt.objects.filter(name=name).exists():
            self._blame("name", _('there already is an OLT named "%s"') % name)

    def _credential_faults(self, values: dict[str, Any]) -> Iterator[Fault]:
        """Say what is missing to speak the version, field by field."""
        given = [name for name in SECRET_COLUMNS if values[name]]
        stored = stored_secrets(self.olt) if self.olt else []
        is_moved = self.olt is not None and (values["host"], values["port"]) != (self.olt.host, self.olt.port)
        names = ("v3_user", "v3_auth_protocol", "v3_priv_protocol")
        draft = Olt(snmp_version=values["version"], **{name: values[name] for name in names})
        return find_credential_faults(draft, given=given, stored=stored, is_moved=is_moved)

    def _blame(self, column: str, reason: str) -> None:
        self.add_error(column if column in self.fields else None, _sentence(reason))


def _text_faults(texts: dict[str, Any]) -> Iterator[Fault]:
    secrets = {column: Secret(texts[column]) for column in SECRET_COLUMNS}
    return find_faults(OltEntry(**{**texts, **secrets}), vendors=(), groups=())


def _sentence(fault: str) -> str:
    return f"{fault[:1].upper()}{fault[1:]}."
