"""The form of the first step: address and SNMP access of the OLT, with errors shown at their fields."""

from collections.abc import Iterator
from typing import Any

from django import forms
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from facho.accounts.scope import OltScope, told_reasons
from facho.hosts.credentials import find_credential_faults, stored_secrets
from facho.hosts.inventory import InventoryError
from facho.hosts.models import DEFAULT_SNMP_PORT, Olt, OltGroup, SnmpVersionChoice
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
from facho.hosts.olt_form import STAYS_WHEN_EMPTY, SecretInput
from facho.hosts.resolve import resolve_all
from facho.infrastructure.secrets import Secret

_TEXTS = ("name", "host", "v3_user", *SECRET_COLUMNS)
VERSIONS = [
    (SnmpVersionChoice.V2C.value, gettext_lazy("SNMPv2c: what most OLTs use")),
    (SnmpVersionChoice.V3.value, gettext_lazy("SNMPv3: with a user and keys")),
    (SnmpVersionChoice.V1.value, gettext_lazy("SNMPv1: only if the OLT supports nothing newer")),
]


def protocol_choices(names: tuple[str, ...]) -> list[tuple[str, Any]]:
    return [("", gettext_lazy("none")), *((name, name) for name in names)]


class OltDetails(forms.Form):
    """A new OLT, or one being corrected before its first answer; the name is only asked for a new one."""

    name = forms.CharField(
        label=gettext_lazy("Name"), strip=True, help_text=gettext_lazy("As your team calls it, for example by site.")
    )
    host = forms.CharField(
        label=gettext_lazy("Address"),
        strip=True,
        help_text=gettext_lazy("IP address or host name of its management interface."),
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
        initial=SnmpVersionChoice.V2C,
        widget=forms.RadioSelect,
    )
    community = SecretInput(
        gettext_lazy("Community"), gettext_lazy("The read-only community. It is stored encrypted and never shown.")
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
            # Require a group from users who see only some groups: they would not see the OLT otherwise.
            groups = (
                OltGroup.objects.all() if scope.group_ids is None else OltGroup.objects.filter(id__in=scope.group_ids)
            )
            field = self.fields["group"]
            field.required = scope.group_ids is not None
            if isinstance(field, forms.ModelChoiceField):
                field.queryset = groups
            if not groups.exists():
                del self.fields["group"]
        else:
            del self.fields["name"], self.fields["group"]
            for name in ("host", "port", "v3_user", "v3_auth_protocol", "v3_priv_protocol"):
                self.fields[name].initial = getattr(olt, name)
            self.fields["version"].initial = olt.snmp_version
            for name in SECRET_COLUMNS:
                if getattr(olt, f"has_{name}", False):
                    self.fields[name].help_text = STAYS_WHEN_EMPTY

    @property
    def community_fields(self) -> list[forms.BoundField]:
        return [self["community"]]

    @property
    def user_fields(self) -> list[forms.BoundField]:
        names = ("v3_user", "v3_auth_protocol", "v3_auth_key", "v3_priv_protocol", "v3_priv_key")
        return [self[name] for name in names]

    @property
    def place_fields(self) -> list[forms.BoundField]:
        return [self[name] for name in ("name", "host", "port", "group") if name in self.fields]

    def clean(self) -> dict[str, Any]:
        """Check each field with the inventory's rules, then the device and the credentials."""
        values = super().clean() or {}
        texts = {column: values.get(column, "") for column in _TEXTS}
        secrets = {column: Secret(texts[column]) for column in SECRET_COLUMNS}
        text_faults = find_faults(OltEntry(**{**texts, **secrets}), vendors=(), groups=())
        for fault in text_faults:
            # The field itself reports a missing value.
            if values.get(fault.column):
                self._blame(*fault)
        if not self.errors:
            # A copy: Django removes invalid fields from its own.
            written = dict(values)
            self._check_device(written["host"], written["port"])
            name = written.get("name", "")
            for olt_id in Olt.objects.filter(name=name).values_list("id", flat=True):
                is_seen = self.scope.allows(olt_id)
                self._blame(
                    "name", _('there already is an OLT named "%s"') % name if is_seen else _("this name is taken")
                )
            for fault in self._credential_faults(written):
                self._blame(*fault)
        return values

    def as_entry(self) -> OltEntry:
        """Return the form as an inventory entry, without the fields of other SNMP versions."""
        values = self.cleaned_data
        is_v3 = values["version"] == SnmpVersionChoice.V3
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
        """Show an inventory error found while saving, such as a name taken meanwhile."""
        for _column, reason in told_reasons(error, self.scope):
            self.add_error(None, _sentence(reason))

    def _check_device(self, host: str, port: int) -> None:
        address = resolve_all([host]).get(host, "")
        if not address:
            self._blame("host", _('host "%s" does not resolve to an address') % host)
            return
        same = Olt.objects.only("name").filter(address=address, port=port)
        for owner in same.exclude(pk=self.olt.pk if self.olt else 0):
            place = {"owner": owner.name, "address": address, "port": port}
            is_seen = self.scope.allows(owner.pk)
            taken = _('OLT "%(owner)s" already has address %(address)s port %(port)s') % place
            self._blame("host", taken if is_seen else _("this address and port are taken"))

    def _credential_faults(self, values: dict[str, Any]) -> Iterator[Fault]:
        given = [name for name in SECRET_COLUMNS if values[name]]
        stored = stored_secrets(self.olt) if self.olt else []
        before = self.olt.place if self.olt else None
        is_moved = before is not None and before.is_left_for(before._replace(host=values["host"], port=values["port"]))
        names = ("v3_user", "v3_auth_protocol", "v3_priv_protocol")
        draft = Olt(snmp_version=values["version"], **{name: values[name] for name in names})
        return find_credential_faults(draft, given=given, stored=stored, is_moved=is_moved)

    def _blame(self, column: str, reason: str) -> None:
        self.add_error(column if column in self.fields else None, _sentence(reason))


def _sentence(fault: str) -> str:
    return f"{fault[:1].upper()}{fault[1:]}."
