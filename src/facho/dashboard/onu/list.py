"""The list of ONUs: the form that narrows it, its rows, and those that changed last."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.db.models import Q, QuerySet
from django.utils.translation import gettext_lazy as _

from facho.accounts.scope import OltScope
from facho.dashboard.onu.names import Since, cause_of, code_of, name_of, since_of
from facho.dashboard.shared.light import LIGHTS, WEAKEST_CDBM, Light, judge_light
from facho.dashboard.shared.page import offer_olts
from facho.onus.models import UNKNOWN_PORT, Onu, OnuReading, RunStateChoice
from facho.onus.search import FoundOnus, of_place, of_text
from facho.onus.shown_state import in_state, shown_state
from facho.onus.words import ShownState

WEAK = "weak"
NO_ONUS = Q(pk__in=[])
# What the export of the API calls the numbers of a place, as far as it knows them.
PLACE = ("frame", "slot", "port")
_COLUMNS = (
    "serial",
    "mac",
    "description",
    "name",
    "onu_id",
    "is_present",
    "absent_since",
    "first_seen_at",
    "olt__name",
    "olt__enabled",
    "olt__reachability",
    "olt__last_answer_at",
    "pon_port",
    "reading",
    "customer__label",
)


class OnuFilterForm(forms.Form):
    """Search text, OLT, place and state; an invalid value finds nothing and shows its error."""

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
            ("", _("all present")),
            *RunStateChoice.choices,
            (WEAK, _("weak light")),
            (ShownState.ABSENT.value, _("no longer present")),
        ],
    )

    def __init__(self, data: Any, scope: OltScope) -> None:
        super().__init__(data, auto_id="onu-%s", label_suffix="")
        self._scope = scope
        offer_olts(self, scope)

    def clean_q(self) -> Q | None:
        text = self.cleaned_data["q"]
        try:
            return of_text(text) if text else None
        except ValueError as error:
            raise forms.ValidationError(str(error)) from error

    def find(self) -> FoundOnus:
        """Filter by scope and form, ordered by place; without a choice, the present ONUs."""
        if not self.is_valid():
            return FoundOnus([NO_ONUS])
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
        """Build the same filter as an API export query; empty where the API has no such filter."""
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
    """Map the state to API parameters; weak light becomes an inclusive upper limit there."""
    if choice == WEAK:
        return {"present": "true", "rx_power_max": f"{(WEAKEST_CDBM - 1) / 100:.2f}"}
    return {"state": choice} if choice else {"present": "true"}


def _place(port: str) -> Q:
    """Match an ONU by four numbers, a port by three, a card by two, or ONUs on an unknown port."""
    if not port.startswith(UNKNOWN_PORT):
        return of_place(port.replace("-", "/")) or NO_ONUS
    number = port.removeprefix(UNKNOWN_PORT).lstrip("/")
    return Q(pon_port__is_known=False, **({"onu_id": int(number)} if number else {}))


@dataclass(frozen=True, slots=True)
class OnuLine:
    id: int
    code: str
    name: str
    olt_id: int
    olt: str
    place: str
    state: str
    state_words: str
    # Only for ONUs that are offline.
    cause: str
    since: Since
    is_present: bool
    power_dbm: float | None
    # It was read before the ONU went, or it cannot be asked for now.
    is_old_light: bool
    light: Light
    light_words: str
    distance_m: int | None


def listed_onus() -> QuerySet[Onu]:
    """Select ONUs with everything a line needs, ordered by OLT and place."""
    return (
        Onu.objects.select_related("olt", "pon_port", "reading", "customer")
        .only(*_COLUMNS)
        .order_by("olt__name", "pon_port__frame", "pon_port__slot", "pon_port__port", "onu_id", "id")
    )


def load_latest_changes(count: int, scope: OltScope) -> list[OnuLine]:
    # The narrow table alone is sorted; twice as many leave room for ONUs that have gone since.
    changed = scope.narrow(OnuReading.objects.filter(state_since__isnull=False), "onu__olt")
    latest = changed.order_by("-state_since", "-onu_id")[: 2 * count]
    onus = listed_onus().filter(is_present=True, id__in=latest.values("onu_id"))
    return rows_of(onus.order_by("-reading__state_since", "-id")[:count])


def rows_of(onus: Iterable[Onu]) -> list[OnuLine]:
    return [_row(onu) for onu in onus]


def _row(onu: Onu) -> OnuLine:
    reading = getattr(onu, "reading", None)
    state = shown_state(onu)
    is_old_light = state is not ShownState.ONLINE
    light = judge_light(reading.rx_power_cdbm if reading else None)
    return OnuLine(
        id=onu.id,
        code=code_of(onu),
        name=name_of(onu),
        olt_id=onu.olt_id,
        olt=onu.olt.name,
        place=f"{onu.pon_port}/{onu.onu_id}",
        state=state.value,
        state_words=str(state.label),
        cause=cause_of(onu) if state is ShownState.OFFLINE else "",
        since=since_of(onu, state),
        is_present=onu.is_present,
        power_dbm=reading.rx_power_dbm if reading else None,
        is_old_light=is_old_light,
        light=light,
        light_words="" if is_old_light else str(LIGHTS.get(light, "")),
        distance_m=reading.distance_m if reading else None,
    )
