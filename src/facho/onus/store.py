"""The ONUs of an OLT for whoever reads it: where they are, and where what was learned about them is stored."""

from collections.abc import Mapping
from datetime import datetime

from facho.onus import inventory
from facho.onus.columns import MAX_INTEGER, MAX_SMALL
from facho.onus.known_onus import PLACE
from facho.onus.models import Onu
from facho.onus.readings import Reading, save_readings
from facho.polling.domain.onu_match import Identity
from facho.polling.domain.onu_presence import Walk
from facho.polling.domain.onu_state import OnuPlace
from facho.polling.vendors.index import Place

__all__ = ["MAX_SERIAL_LENGTH", "Reading", "is_storable", "load_places", "save_inventory", "save_readings"]

MAX_SERIAL_LENGTH = 32


def load_places(olt_id: int) -> list[Place]:
    """Return where ONUs of the OLT can be asked for, in walking order; who was missed may not be there any more."""
    onus = Onu.objects.filter(olt_id=olt_id, is_present=True, misses=0)
    return [Place(*row) for row in onus.order_by(*PLACE).values_list(*PLACE)]


def is_storable(place: Place) -> bool:
    """Tell whether a place that a device named fits our columns; no chassis has numbers beyond them."""
    return max(place.frame, place.slot, place.port) <= MAX_SMALL and place.onu <= MAX_INTEGER


def save_inventory(olt_id: int, serials: Mapping[Place, str], *, is_complete: bool, now: datetime) -> None:
    """Bring the OLT's ONUs in line with a walk of their serials; only a complete walk can make one absent."""
    found: dict[OnuPlace, Identity] = {place: Identity(serial) for place, serial in serials.items()}
    inventory.save_inventory(olt_id, Walk(found, is_complete), now=now)
