"""The form that narrows the list of ONUs."""

import re
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from facho.accounts.scope import OltScope
from facho.dashboard.light import WEAKEST_CDBM
from facho.hosts.models import Olt
from facho.onus.models import UNKNOWN_PORT, RunState
from facho.onus.search import FoundOnus, of_place, of_text
from facho.onus.shown_state import in_state
from facho.onus.words import ShownState

WEAK = "weak"
NOBODY = Q(pk__in=[])
# What the export of the API calls the numbers of a place, as far as it knows them.
PLACE = ("frame", "slot", "port")


class OnuFilter(forms.Form):
    """Text, OLT, place and state; where one cannot be meant nobody is found, and the list says why."""

    q = forms.CharField(
        label=_("Search"),
        required=False,
        max_length=100,
        widget=forms.TextInput(attrs={"type": "search", "placeholder": _("serial, description or customer")}),
    )
    olt = forms.ChoiceField(label=_("OLT"), required=False)
    port = forms.RegexField(
        label=_("Port"),
        required=False,
        # As the lists print places too: the ONU behind its port.
        regex=rf"^([0-9]{{1,5}}([/-][0-9]{{1,5}}){{1,3}}|{re.escape(UNKNOWN_PORT)}(/[0-9]{{1,5}})?)$",
        error_messages={"invalid": _("Frame, slot and port, as in 0/1/3.")},
        widget=forms.TextInput(attrs={"placeholder": "0/1/3", "size": 8}),
    )
    state = forms.ChoiceField(
        label=_("Show"),
        required=False,
        choices=[
            ("", _("all that are present")),
            *RunState.choices,
            (WEAK, _("weak light")),
            (ShownState.ABSENT.value, _("no longer present")),
        ],
    )

    def __init__(self, data: Any, scope: OltScope) -> None:
        super().__init__(data, auto_id="onu-%s", label_suffix="")
        self._scope = scope
        olts = scope.narrow(Olt.objects.order_by("name"), "").values_list("id", "name")
        field = self.fields["olt"]
        if isinstance(field, forms.ChoiceField):
            field.choices = [("", _("all")), *((str(pk), name) for pk, name in olts)]

    def clean_q(self) -> Q | None:
        """Look for the text as every search of the product does."""
        text = self.cleaned_data["q"]
        try:
            return of_text(text) if text else None
        except ValueError as error:
            raise forms.ValidationError(str(error)) from error

    def find(self) -> FoundOnus:
        """Find what fits in scope, by place; before any choice those that are present are found."""
        if not self.is_valid():
            return FoundOnus([NOBODY])
        values = self.cleaned_data
        conditions = [_state(values.get("state", "")), self._scope.condition()]
        if values.get("olt"):
            conditions.append(Q(olt_id=int(values["olt"])))
        if values.get("port"):
            conditions.append(_place(values["port"]))
        if values.get("q") is not None:
            conditions.append(values["q"])
        return FoundOnus(conditions)

    def export_query(self) -> str:
        """Write the same choice for the export of the API; empty where that has no name for it."""
        if not self.is_valid():
            return ""
        values, place = self.cleaned_data, self.cleaned_data["port"].replace("-", "/").split("/")
        if values["port"].startswith(UNKNOWN_PORT) or len(place) > len(PLACE):
            return ""
        where = {"olt": values["olt"], **dict(zip(PLACE, place, strict=False))}
        chosen = {"search": self.data.get("q", "").strip(), **where, **_exported_state(values["state"])}
        return urlencode({"format": "csv", **{name: text for name, text in chosen.items() if text}})


def _state(choice: str) -> Q:
    if choice == WEAK:
        return Q(is_present=True, reading__rx_power_cdbm__lt=WEAKEST_CDBM)
    return in_state(choice) if choice else Q(is_present=True)


def _exported_state(choice: str) -> dict[str, str]:
    """Name for the API what `_state` matches; its limit of light is part of what is found, ours is not."""
    if choice == WEAK:
        return {"present": "true", "rx_power_max": f"{(WEAKEST_CDBM - 1) / 100:.2f}"}
    return {"state": choice} if choice else {"present": "true"}


def _place(port: str) -> Q:
    """Match an ONU by four numbers, a port by three, all of a card by two, or whose port nobody knows."""
    if not port.startswith(UNKNOWN_PORT):
        return of_place(port.replace("-", "/")) or NOBODY
    number = port.removeprefix(UNKNOWN_PORT).lstrip("/")
    return Q(pon_port__is_known=False, **({"onu_id": int(number)} if number else {}))
