"""ONUs as the pages list them: by place, or those that changed last."""

from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import QuerySet

from facho.accounts.scope import OltScope
from facho.dashboard.light import Light, judge_light
from facho.dashboard.onu_names import Since, cause_of, code_of, name_of, since_of
from facho.dashboard.words import LIGHTS
from facho.onus.models import Onu, OnuReading
from facho.onus.shown_state import shown_state
from facho.onus.words import ShownState


@dataclass(frozen=True, slots=True)
class OnuRow:
    """One line of a table of ONUs."""

    id: int
    code: str
    name: str
    olt_id: int
    olt: str
    place: str
    state: str
    state_words: str
    # Of who is offline.
    cause: str
    since: Since
    is_present: bool
    power_dbm: float | None
    # It was read before the ONU went, or nobody can ask for it now.
    is_old_light: bool
    light: Light
    light_words: str
    distance_m: int | None


def listed_onus() -> QuerySet[Onu]:
    """Select ONUs with what a line needs, by OLT and place."""
    return (
        Onu.objects.select_related("olt", "pon_port", "reading", "customer")
        .only(*_COLUMNS)
        .order_by("olt__name", "pon_port__frame", "pon_port__slot", "pon_port__port", "onu_id", "id")
    )


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


def load_latest_changes(count: int, scope: OltScope) -> list[OnuRow]:
    """Load the present ONUs in scope whose state changed last."""
    # The narrow table alone is sorted; twice as many leave room for ONUs that have gone since.
    changed = scope.narrow(OnuReading.objects.filter(state_since__isnull=False), "onu__olt")
    latest = changed.order_by("-state_since", "-onu_id")[: 2 * count]
    onus = listed_onus().filter(is_present=True, id__in=latest.values("onu_id"))
    return rows_of(onus.order_by("-reading__state_since", "-id")[:count])


def rows_of(onus: Iterable[Onu]) -> list[OnuRow]:
    """Shape loaded ONUs into lines."""
    return [_row(onu) for onu in onus]


def _row(onu: Onu) -> OnuRow:
    reading = getattr(onu, "reading", None)
    state = shown_state(onu)
    is_old_light = state is not ShownState.ONLINE
    light = judge_light(reading.rx_power_cdbm if reading else None)
    return OnuRow(
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
