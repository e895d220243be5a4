"""The form that narrows the list of ONUs."""

from typing import Any

from django import forms
from django.db.models import Q, QuerySet
from django.utils.translation import gettext_lazy as _

from facho.dashboard.light import WEAKEST_CDBM
from facho.hosts.models import Olt
from facho.onus.models import Onu, RunState

WEAK = "weak"
ABSENT = "absent"


class OnuFilter(forms.Form):
    """Text, OLT and state; what cannot be meant is said beside its field and narrows nothing."""

    q = forms.CharField(
        label=_("Search"),
        required=False,
        max_length=100,
        widget=forms.TextInput(attrs={"type": "search", "placeholder": _("serial or description")}),
    )
    olt = forms.ChoiceField(label=_("OLT"), required=False)
    state = forms.ChoiceField(
        label=_("Show"),
        required=False,
        choices=[
            ("", _("all that are present")),
            *RunState.choices,
            (WEAK, _("weak light")),
            (ABSENT, _("no longer present")),
        ],
    )

    def __init__(self, data: Any) -> None:
        super().__init__(data, auto_id="onu-%s", label_suffix="")
        olts = Olt.objects.order_by("name").values_list("id", "name")
        field = self.fields["olt"]
        if isinstance(field, forms.ChoiceField):
            field.choices = [("", _("all")), *((str(pk), name) for pk, name in olts)]

    def narrow(self, onus: QuerySet[Onu]) -> QuerySet[Onu]:
        """Apply what was filled in; before any choice the ONUs that are present are shown."""
        values = self.cleaned_data if self.is_valid() else {}
        onus = onus.filter(_state(values.get("state", "")))
        if values.get("olt"):
            onus = onus.filter(olt_id=int(values["olt"]))
        if values.get("q"):
            onus = onus.filter(Q(serial__icontains=values["q"]) | Q(description__icontains=values["q"]))
        return onus


def _state(choice: str) -> Q:
    if choice == ABSENT:
        return Q(is_present=False)
    if choice == WEAK:
        return Q(is_present=True, reading__rx_power_cdbm__lt=WEAKEST_CDBM)
    if choice == RunState.UNKNOWN:
        return Q(is_present=True) & (Q(reading__run_state=choice) | Q(reading__isnull=True))
    return Q(is_present=True, reading__run_state=choice) if choice else Q(is_present=True)
