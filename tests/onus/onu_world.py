"""One OLT whose ONUs are walked and polled without a network: what a run stores, in one call each."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum

from facho.hosts.models import Olt
from facho.onus.models import Onu, OnuData, OnuEvent
from facho.onus.raw_values import load_raw_values
from facho.onus.store import save_inventory, save_table
from facho.polling.domain.onu_presence import OnuIdentity, Walk
from facho.polling.domain.onu_state import DownCause, RunState
from facho.polling.vendors.index import Place
from factories import NOW
from onu_tables import Told, table_of

HERE, THERE, ELSEWHERE = Place(0, 1, 0, 1), Place(0, 1, 0, 2), Place(0, 2, 5, 1)
INTERVAL = timedelta(minutes=5)
_WORDS: dict[object, StrEnum] = {word.value: word for words in (DownCause, RunState) for word in words}


def after(polls: int) -> datetime:
    return NOW + polls * INTERVAL


def walk(olt: Olt, serials: Mapping[Place, str], *, is_complete: bool = True, now: datetime = NOW) -> None:
    found = {place: OnuIdentity(serial) for place, serial in serials.items()}
    save_inventory(olt.id, Walk(found, is_complete), now=now)


def street(count: int, *, port: int = 0) -> dict[Place, str]:
    return {Place(0, 1, port, number): f"HWTC{port:02}{number:06}" for number in range(1, count + 1)}


def reading(place: Place, **values: object) -> Told:
    """Read these values; those that are None came without a raw value, too."""
    keyed = {f"onu.{name}": _WORDS.get(value, value) for name, value in values.items()}
    return Told(place, keyed, {key: str(value) for key, value in keyed.items() if value is not None})


def poll(olt: Olt, *readings: Told, now: datetime = NOW, is_poll: bool = True) -> int:
    return save_table(olt.id, table_of(*readings), now=now, is_poll=is_poll)


def raw_values(onu: Onu) -> dict[str, str]:
    """Return the stored raw values of an ONU by OID."""
    return {each.oid: each.value for each in load_raw_values(onu.id, OnuData.objects.filter(olt_id=onu.olt_id))}


def present(olt: Olt) -> dict[Place, str]:
    onus = Onu.objects.filter(olt=olt, is_present=True).select_related("pon_port")
    return {Place(o.pon_port.frame, o.pon_port.slot, o.pon_port.port, o.onu_id): o.serial for o in onus}


def reported(**filters: object) -> list[tuple[str, Place]]:
    """What the timeline says, oldest first, and where."""
    events = OnuEvent.objects.filter(**filters).select_related("pon_port").order_by("at", "id")
    return [(e.kind, Place(e.pon_port.frame, e.pon_port.slot, e.pon_port.port, e.onu_number)) for e in events]
