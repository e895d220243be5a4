"""The list of ONUs: the form that narrows it, its columns and rows, and those that changed last."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.db.models import Q, QuerySet
from django.http import QueryDict
from django.template.defaultfilters import floatformat
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from facho.accounts.scope import OltScope
from facho.dashboard.onu.names import Since, cause_of, code_of, name_of, since_of
from facho.dashboard.shared.light import LIGHTS, WEAKEST_CDBM, Light, judge_light
from facho.dashboard.shared.page import ListFilter, choice_field, search_field
from facho.dashboard.shared.table import ListTable, TableChoice, TableColumn, time_value
from facho.dashboard.templatetags.facho_words import since, when
from facho.onus.models import UNKNOWN_PORT, Onu, OnuReading, RunStateChoice
from facho.onus.search import DEFAULT_SORT, SORTS, FoundOnus, of_model, of_place, of_tag, of_text
from facho.onus.shown_state import in_state, shown_state
from facho.onus.words import DownCauses, ShownState

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
_HOUR, _DAY = 1, 24
# How long ago the state changed, by the word of the address: hours, and whether it changed since then or before.
AGES = {
    "1h": (_("changed in the last hour"), _HOUR, True),
    "1d": (_("changed in the last 24 hours"), _DAY, True),
    "7d": (_("changed in the last 7 days"), 7 * _DAY, True),
    "over-1d": (_("unchanged for 24 hours"), _DAY, False),
    "over-7d": (_("unchanged for 7 days"), 7 * _DAY, False),
    "over-30d": (_("unchanged for 30 days"), 30 * _DAY, False),
}


class OnuFilterForm(ListFilter):
    """Search text, OLT, place and state; an invalid value finds nothing and shows its error."""

    ids = "onu-%s"
    q = search_field(_("Search"), _("serial, description or customer"))
    olt = choice_field(_("OLT"))
    port = forms.RegexField(
        label=_("Port"),
        required=False,
        # As the lists print places too: the ONU behind its port.
        regex=rf"^([0-9]{{1,5}}([/-][0-9]{{1,5}}){{1,3}}|{re.escape(UNKNOWN_PORT)}(/[0-9]{{1,5}})?)$",
        error_messages={"invalid": _("Frame, slot and port, as in 0/1/3.")},
        widget=forms.TextInput(attrs={"placeholder": "0/1/3", "size": 8}),
    )
    state = choice_field(
        _("Show"),
        [
            *RunStateChoice.choices,
            (WEAK, _("weak light")),
            (ShownState.ABSENT.value, _("no longer present")),
        ],
        _("all present"),
    )
    cause = choice_field(_("Last reason"), DownCauses.choices, _("any reason"))
    rx_min = forms.DecimalField(label=_("dBm from"), required=False, min_value=-100, max_value=100, decimal_places=2)
    rx_max = forms.DecimalField(label=_("to"), required=False, min_value=-100, max_value=100, decimal_places=2)
    model = forms.CharField(label=_("Model"), required=False, max_length=60, widget=forms.TextInput({"size": 12}))
    tag = forms.CharField(label=_("Tag"), required=False, max_length=60, widget=forms.TextInput({"size": 12}))
    age = choice_field(
        _("State"), [(word, words) for word, (words, _hours, _new) in AGES.items()], _("changed at any time")
    )

    def __init__(self, data: Any, scope: OltScope) -> None:
        super().__init__(data, scope)
        for name in ("rx_min", "rx_max"):
            self.fields[name].widget.attrs.update({"step": "0.5", "class": "narrow-number"})

    def clean_model(self) -> Q | None:
        return self._clean_words("model", of_model)

    def clean_q(self) -> Q | None:
        return self._clean_words("q", of_text)

    def _clean_words(self, name: str, search: Callable[[str], Q]) -> Q | None:
        text = self.cleaned_data[name]
        try:
            return search(text) if text else None
        except ValueError as error:
            raise forms.ValidationError(str(error)) from error

    def find(self, sort: str = DEFAULT_SORT) -> FoundOnus:
        """Filter by scope and form, in an order; without a choice, the present ONUs."""
        if not self.is_valid():
            return FoundOnus([NO_ONUS])
        values = self.cleaned_data
        conditions = [_state(values.get("state", "")), self.scope.condition()]
        if values.get("olt"):
            conditions.append(Q(olt_id=int(values["olt"])))
        if values.get("port"):
            conditions.append(_place(values["port"]))
        conditions += [values[name] for name in ("q", "model") if values.get(name) is not None]
        if values.get("cause"):
            conditions.append(Q(reading__last_down_cause=values["cause"]))
        for name, lookup in (("rx_min", "gte"), ("rx_max", "lte")):
            if values.get(name) is not None:
                conditions.append(Q(**{f"reading__rx_power_cdbm__{lookup}": round(values[name] * 100)}))
        if values.get("tag"):
            conditions.append(of_tag(values["tag"]))
        if values.get("age"):
            _words, hours, is_new = AGES[values["age"]]
            moment = timezone.now() - timedelta(hours=hours)
            conditions.append(Q(**{f"reading__state_since__{'gte' if is_new else 'lt'}": moment}))
        return FoundOnus(conditions, sort)

    def export_query(self) -> str:
        """Build the same filter as an API export query; empty where the API has no such filter."""
        if not self.is_valid():
            return ""
        values, place = self.cleaned_data, self.cleaned_data["port"].replace("-", "/").split("/")
        if values["port"].startswith(UNKNOWN_PORT) or len(place) > len(PLACE):
            return ""
        where = {"olt": values["olt"], **dict(zip(PLACE, place, strict=False))}
        named = {name: self.data.get(name, "").strip() for name in ("cause", "model", "tag")}
        powers = {"rx_power_min": self.data.get("rx_min", ""), "rx_power_max": self.data.get("rx_max", "")}
        _words, hours, is_new = AGES.get(values["age"], ("", 0, True))
        aged = {"changed_within" if is_new else "unchanged_for": str(hours)} if hours else {}
        chosen = {"search": self.data.get("q", "").strip(), **named, **aged, **where}
        # Weak light narrows a range of its own.
        chosen |= {name: text for name, text in powers.items() if text}
        state = _exported_state(values["state"])
        if "rx_power_max" in state and chosen.get("rx_power_max"):
            state["rx_power_max"] = min(state["rx_power_max"], chosen["rx_power_max"], key=float)
        return urlencode({name: text for name, text in {**chosen, **state}.items() if text})


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
    # What only chosen columns show is read from it.
    onu: Onu

    @property
    def look(self) -> str:
        return self.state


def listed_onus() -> QuerySet[Onu]:
    """Select ONUs with everything a line needs, ordered by OLT and place."""
    return (
        Onu.objects.select_related("olt", "pon_port", "reading", "customer")
        .only(*_COLUMNS)
        .order_by("olt__name", "pon_port__frame", "pon_port__slot", "pon_port__port", "onu_id", "id")
    )


def load_latest_changes(count: int, scope: OltScope) -> dict[str, Any]:
    # The narrow table alone is sorted; twice as many leave room for ONUs that have gone since.
    changed = scope.narrow(OnuReading.objects.filter(state_since__isnull=False), "onu__olt")
    latest = changed.order_by("-state_since", "-onu_id")[: 2 * count]
    onus = listed_onus().filter(is_present=True, id__in=latest.values("onu_id"))
    return plain_table(onus.order_by("-reading__state_since", "-id")[:count])


def plain_table(onus: Iterable[Onu]) -> dict[str, Any]:
    """Draw a short list that is neither sorted nor narrowed."""
    return ONU_TABLE.draw(PLAIN_CHOICE, rows_of(onus), timezone.now(), has_orders=False)


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
        onu=onu,
    )


def _draw_code(line: OnuLine, now: datetime) -> SafeString:
    return format_html('<a id="onu-{}" href="{}">{}</a>', line.id, reverse("onu", args=[line.id]), line.code)


def _draw_state(line: OnuLine, now: datetime) -> SafeString:
    look, words = (line.state, line.state_words) if line.is_present else ("absent", gettext("absent"))
    state = format_html('<span class="mark {}">{}</span>', look, words)
    return format_html('{} <span class="muted">{}</span>', state, line.cause) if line.cause else state


def _draw_power(line: OnuLine, now: datetime) -> SafeString | str:
    if line.power_dbm is None:
        return ""
    power = floatformat(line.power_dbm, 2)
    if line.is_old_light:
        return format_html('<span class="muted">{}</span>', gettext("before: %(power)s dBm") % {"power": power})
    if line.light_words:
        return format_html('<span class="tag warn {}">{}</span> {} dBm', line.light, line.light_words, power)
    return format_html("{} dBm", power)


def _draw_distance(line: OnuLine, now: datetime) -> str:
    return "" if line.distance_m is None else f"{floatformat(line.distance_m, '0g')} m"


def _draw_since(line: OnuLine, now: datetime) -> SafeString | str:
    if not line.since.at:
        return ""
    words = since(line.since.at, now)
    return (
        format_html('{} <span class="muted">{}</span>', words, gettext("by its OLT"))
        if line.since.is_olt_time
        else words
    )


def _draw_tags(line: OnuLine, now: datetime) -> SafeString | str:
    tags = [tag for tag in _of_customer(line, "tags").split(", ") if tag]
    return SafeString(" ".join(format_html('<span class="tag"><bdi>{}</bdi></span>', tag) for tag in tags))


def _of_customer(line: OnuLine, name: str) -> str:
    return str(getattr(getattr(line.onu, "customer", None), name, ""))


def _measured(name: str, unit: str, digits: int) -> dict[str, Any]:
    def read(line: OnuLine) -> float | None:
        value: float | None = getattr(getattr(line.onu, "reading", None), name, None)
        return value

    def draw(line: OnuLine, now: datetime) -> str:
        value = read(line)
        return "" if value is None else f"{floatformat(value, digits)} {unit}"

    return {"value": read, "draw": draw, "look": "right short", "is_usual": False}


def _written(name: str) -> dict[str, Any]:
    return {"value": lambda line: _of_customer(line, name), "look": "words", "is_usual": False}


ONU_TABLE = ListTable(
    "onus",
    (
        TableColumn("code", _("Serial or MAC"), "code", _draw_code, "serial", "mono"),
        TableColumn("state", _("State"), "state", _draw_state, look="of-state"),
        TableColumn("name", _("Customer or description"), "name", sort="customer", look="words"),
        TableColumn("olt", _("OLT"), "olt", sort="place", look="olt-name"),
        TableColumn("place", _("Place"), "place", look="mono"),
        TableColumn("rx_power", _("Receive power"), "power_dbm", _draw_power, look="right short"),
        TableColumn("distance", _("Distance"), "distance_m", _draw_distance, look="right short of-distance"),
        TableColumn(
            "since", _("Since"), lambda line: time_value(line.since.at), _draw_since, "state_since", "short of-since"
        ),
        TableColumn("tags", _("Tags"), lambda line: _of_customer(line, "tags"), _draw_tags, is_usual=False),
        TableColumn("contract", _("Contract number"), **_written("contract")),
        TableColumn("phone", _("Phone"), **_written("phone")),
        TableColumn("address", _("Address"), **_written("address")),
        TableColumn("description", _("Description"), "onu.description", look="words", is_usual=False),
        TableColumn("model", _("Model"), "onu.model", look="words", is_usual=False),
        TableColumn("firmware", _("Firmware"), "onu.firmware", look="words", is_usual=False),
        TableColumn("mac", _("Hardware address"), "onu.mac", look="mono", is_usual=False),
        TableColumn("cause", _("Last reason"), lambda line: cause_of(line.onu), is_usual=False),
        TableColumn("olt_rx_power", _("The OLT receives"), **_measured("olt_rx_power_dbm", "dBm", 2)),
        TableColumn("tx_power", _("The ONU sends"), **_measured("tx_power_dbm", "dBm", 2)),
        TableColumn("temperature", _("Temperature"), **_measured("temperature_celsius", "°C", 1)),
        TableColumn(
            "first_seen",
            _("First seen"),
            lambda line: time_value(line.onu.first_seen_at),
            lambda line, now: when(line.onu.first_seen_at, now),
            look="short",
            is_usual=False,
        ),
    ),
    DEFAULT_SORT,
    indexed=frozenset(SORTS),
)
# Of the lists that only show some ONUs.
PLAIN_CHOICE = TableChoice(tuple(column for column in ONU_TABLE.columns if column.is_usual), DEFAULT_SORT, QueryDict())
