"""The form of an OLT: judges it by the rules of the inventory, and takes secrets without ever showing one."""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from django import forms
from django.conf import settings
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from facho.hosts.inventory import find_credential_faults, place_secrets, stored_olts, stored_secrets
from facho.hosts.models import Olt
from facho.hosts.olt_entry import (
    AUTH_PROTOCOLS,
    NONE,
    PRIV_PROTOCOLS,
    SECRET_COLUMNS,
    Fault,
    OltEntry,
    find_faults,
    group_faults,
    trap_address_faults,
)
from facho.infrastructure.secrets import Secret
from facho.polling.vendors.loader import load_definitions

Choices = list[tuple[str, str]]
STAYS_WHEN_EMPTY = gettext_lazy("Never shown. Leave empty to keep the stored one, unless host or port changes.")


def new_secret(column: str) -> str:
    """Name the input of a secret differently from its column, or Django would fill in the stored value."""
    return f"new_{column}"


class SecretInput(forms.CharField):
    def __init__(self, label: Any, help_text: Any = STAYS_WHEN_EMPTY) -> None:
        widget = forms.PasswordInput(render_value=False, attrs={"autocomplete": "new-password"})
        super().__init__(label=capfirst(label), required=False, strip=False, widget=widget, help_text=help_text)


class GroupInput(forms.ChoiceField):
    """A choice whose error for an unknown group matches that of files and the API."""

    def validate(self, value: str) -> None:
        for fault in group_faults(value, settings.FACHO_POLLER_GROUPS) if value else ():
            raise forms.ValidationError(fault)


def vendor_choices() -> Choices:
    return [("", _("recognise automatically")), *((key, _(each.title)) for key, each in load_definitions().items())]


def group_choices() -> Choices:
    return [("", _("default")), *((name, name) for name in settings.FACHO_POLLER_GROUPS)]


class OltForm(forms.ModelForm):  # type: ignore[type-arg]  # generic in its stubs only
    # By host, looked up before the form is judged: Django does that with a transaction open.
    addresses: ClassVar[Mapping[str, str]] = {}

    vendor = forms.ChoiceField(
        label=capfirst(gettext_lazy("vendor definition")), choices=vendor_choices, required=False
    )
    v3_auth_protocol = forms.ChoiceField(
        label=capfirst(gettext_lazy("authentication protocol")),
        choices=[("", "—"), *((name, name) for name in AUTH_PROTOCOLS)],
        required=False,
    )
    v3_priv_protocol = forms.ChoiceField(
        label=capfirst(gettext_lazy("privacy protocol")),
        choices=[("", "—"), *((name, name) for name in PRIV_PROTOCOLS)],
        required=False,
    )
    poller_group = GroupInput(
        label=capfirst(gettext_lazy("poller group")),
        choices=group_choices,
        required=False,
        help_text=gettext_lazy("The site whose workers reach it, in distributed mode."),
    )
    new_community = SecretInput(gettext_lazy("community"))
    new_v3_auth_key = SecretInput(gettext_lazy("authentication key"))
    new_v3_priv_key = SecretInput(gettext_lazy("privacy key"))

    class Meta:
        model = Olt
        fields = [
            "name",
            "host",
            "port",
            "vendor",
            "group",
            "enabled",
            "snmp_version",
            "v3_user",
            "v3_auth_protocol",
            "v3_priv_protocol",
            "max_in_flight",
            "packets_per_second",
            "poller_group",
            "trap_addresses",
        ]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in SECRET_COLUMNS if self.instance.pk else ():
            is_stored = getattr(self.instance, f"has_{name}", False)
            field = self.fields[new_secret(name)]
            field.widget.attrs["placeholder"] = _("stored") if is_stored else _("none stored")

    def clean_trap_addresses(self) -> str:
        written: str = self.cleaned_data["trap_addresses"]
        faults = list(trap_address_faults(written))
        if faults:
            raise forms.ValidationError(faults)
        return "" if written.lower() == NONE else written

    def clean(self) -> dict[str, Any]:
        values = super().clean() or {}
        if not self.errors:
            address = self.addresses.get(values["host"], "")
            self.instance.address = address
            secrets: dict[str, Any] = {**self.given_secrets()}
            entry = OltEntry(name=values["name"], host=values["host"], v3_user=values["v3_user"], **secrets)
            texts = find_faults(entry, vendors=(), groups=())
            # All at once: Django forgets the value of a field as soon as it is wrong.
            for fault in [*texts, *self._device_faults(values, address), *self._key_faults(values)]:
                self.blame(fault)
        return values

    def blame(self, fault: Fault) -> None:
        """Put the reason next to the input that has to be corrected."""
        name = new_secret(fault.column) if fault.column in SECRET_COLUMNS else fault.column
        self.add_error(name if name in self.fields else None, fault.reason)

    def given_secrets(self) -> dict[str, Secret]:
        filled = {name: self.cleaned_data.get(new_secret(name)) for name in SECRET_COLUMNS}
        return {name: Secret(text) for name, text in filled.items() if text}

    def given_credentials(self) -> dict[str, Secret | str]:
        """Return all credentials entered; the user name is always shown, so it counts as entered."""
        return {**self.given_secrets(), "v3_user": self.cleaned_data["v3_user"]}

    def save_placed(self) -> tuple[str, ...]:
        """Save a known OLT with the secrets entered, in a transaction; returns those erased with the old address."""
        olt = self.instance
        # As it is now: somebody may have moved it since the form was shown.
        before = stored_olts().select_for_update().get(pk=olt.pk).place
        placed = place_secrets(olt, before, self.given_credentials())
        # The engine writes the rest of the row at the same time.
        olt.save(update_fields=[*(self._meta.fields or ()), "address", *placed.columns, "updated_at"])
        return placed.erased

    def _device_faults(self, values: dict[str, Any], address: str) -> Iterator[Fault]:
        if not address:
            yield Fault("host", _('host "%s" does not resolve to an address') % values["host"])
            return
        same = Olt.objects.filter(address=address, port=values["port"]).exclude(pk=self.instance.pk)
        for olt_id, owner in same.values_list("id", "name"):
            place = {"owner": owner, "address": address, "port": values["port"]}
            taken = _('OLT "%(owner)s" already has address %(address)s port %(port)s') % place
            yield Fault("host", taken if self.sees(olt_id) else _("this address and port are taken"))

    def sees(self, olt_id: int) -> bool:
        """Whether the user may read the name of an OLT that is in the way; in the admin all are seen."""
        return True

    def _key_faults(self, values: dict[str, Any]) -> Iterator[Fault]:
        names = ("snmp_version", "v3_user", "v3_auth_protocol", "v3_priv_protocol")
        draft = Olt(**{name: values[name] for name in names})
        stored, given = stored_secrets(self.instance), self.given_secrets()
        before = self.instance.place
        is_moved = before.is_left_for(before._replace(host=values["host"], port=values["port"]))
        return find_credential_faults(draft, given=given, stored=stored, is_moved=is_moved)
