"""The ONUs of an OLT for whoever reads it: where they are, and where what was learned about them is stored."""

from facho.onus.columns import MAX_INTEGER, MAX_SMALL
from facho.onus.inventory import save_inventory
from facho.onus.known_onus import PLACE
from facho.onus.models import Onu, PonPort
from facho.onus.readings import Reading, save_readings
from facho.polling.vendors.index import Place

__all__ = [
    "MAX_SERIAL_LENGTH",
    "Reading",
    "is_storable",
    "load_places",
    "load_ports",
    "save_inventory",
    "save_readings",
]

MAX_SERIAL_LENGTH = Onu._meta.get_field("serial").max_length


def load_places(olt_id: int) -> list[Place]:
    """Return where ONUs of the OLT can be asked for, in walking order; who was missed may not be there any more."""
    onus = Onu.objects.filter(olt_id=olt_id, is_present=True, misses=0)
    return [Place(*row) for row in onus.order_by(*PLACE).values_list(*PLACE)]


def load_ports(olt_id: int) -> list[Place]:
    """Return the PON ports on which ONUs of the OLT were ever seen."""
    return [Place(*row) for row in PonPort.objects.filter(olt_id=olt_id).values_list("frame", "slot", "port")]


def is_storable(place: Place) -> bool:
    """Tell whether a place that a device named fits our columns; no chassis has numbers beyond them."""
    return max(place.frame, place.slot, place.port) <= MAX_SMALL and place.onu <= MAX_INTEGER
