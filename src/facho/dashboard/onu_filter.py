"""The form that narrows the list of ONUs."""

from typing import Any

from django import forms
from django.db.models import Q, QuerySet
from django.utils.translation import gettext_lazy as _

from facho.accounts.scope import OltScope
from facho.dashboard.light import WEAKEST_CDBM
from facho.hosts.models import Olt
from facho.onus.models import Onu, RunState
from facho.onus.shown_state import in_state
from facho.onus.words import ShownState

WEAK = "weak"


class OnuFilter(forms.Form):
    """Text, OLT and state; what cannot be meant is said beside its field and narrows nothing."""

    q = forms.CharField(
        label=_("Search"),
        required=False,
        max_length=100,
        widget=forms.TextInput(attrs={"type": "search", "placeholder": _("serial or description")}),
    )
    olt = forms.ChoiceField(label=_("OLT"), required=False)
    port = forms.RegexField(
        label=_("Port"),
        required=False,
        regex=r"^[0-9]{1,5}(/[0-9]{1,5}){1,2}$",
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
        olts = scope.narrow(Olt.objects.order_by("name"), "").values_list("id", "name")
        field = self.fields["olt"]
        if isinstance(field, forms.ChoiceField):
            field.choices = [("", _("all")), *((str(pk), name) for pk, name in olts)]

    def narrow(self, onus: QuerySet[Onu]) -> QuerySet[Onu]:
        """Apply what was filled in; before any choice the ONUs that are present are shown."""
        values = self.cleaned_data if self.is_valid() else {}
        onus = onus.filter(_state(values.get("state", "")))
        if values.get("olt"):
            onus = onus.filter(olt_id=int(values["olt"]))
        if values.get("port"):
            onus = onus.filter(_place(values["port"]))
        if values.get("q"):
            onus = onus.filter(Q(serial__icontains=values["q"]) | Q(description__icontains=values["q"]))
        return onus


def _state(choice: str) -> Q:
    if choice == WEAK:
        return Q(is_present=True, reading__rx_power_cdbm__lt=WEAKEST_CDBM)
    return in_state(choice) if choice else Q(is_present=True)


def _place(port: str) -> Q:
    """Match a port by its three numbers, or all of a card by two."""
    numbers = map(int, port.split("/"))
    return Q(**{f"pon_port__{name}": number for name, number in zip(("frame", "slot", "port"), numbers, strict=False)})
