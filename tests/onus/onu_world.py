"""One OLT whose ONUs are walked and polled without a network: what a run stores, in one call each."""

from collections.abc import Mapping
from datetime import datetime, timedelta

from facho.hosts.models import Olt
from facho.onus.models import Onu, OnuEvent
from facho.onus.store import Reading, save_inventory, save_readings
from facho.polling.domain.onu_match import Identity
from facho.polling.domain.onu_presence import Walk
from facho.polling.vendors.index import Place
from factories import NOW

HERE, THERE, ELSEWHERE = Place(0, 1, 0, 1), Place(0, 1, 0, 2), Place(0, 2, 5, 1)
INTERVAL = timedelta(minutes=5)


def after(polls: int) -> datetime:
    return NOW + polls * INTERVAL


def walk(olt: Olt, serials: Mapping[Place, str], *, is_complete: bool = True, now: datetime = NOW) -> None:
    found = {place: Identity(serial) for place, serial in serials.items()}
    save_inventory(olt.id, Walk(found, is_complete), now=now)


def street(count: int, *, port: int = 0) -> dict[Place, str]:
    return {Place(0, 1, port, number): f"HWTC{port:02}{number:06}" for number in range(1, count + 1)}


def reading(place: Place, **values: object) -> Reading:
    keyed = {f"onu.{name}": value for name, value in values.items()}
    return Reading(place, keyed, {key: str(value) for key, value in keyed.items()})


def poll(olt: Olt, *readings: Reading, now: datetime = NOW) -> int:
    return save_readings(olt.id, readings, now=now)


def present(olt: Olt) -> dict[Place, str]:
    onus = Onu.objects.filter(olt=olt, is_present=True).select_related("pon_port")
    return {Place(o.pon_port.frame, o.pon_port.slot, o.pon_port.port, o.onu_id): o.serial for o in onus}


def told(**filters: object) -> list[tuple[str, Place]]:
    """What the timeline says, oldest first, and where."""
    events = OnuEvent.objects.filter(**filters).select_related("pon_port").order_by("at", "id")
    return [(e.kind, Place(e.pon_port.frame, e.pon_port.slot, e.pon_port.port, e.onu_number)) for e in events]
