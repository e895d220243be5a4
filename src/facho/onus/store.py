"""Places and ports of an OLT's ONUs, for collectors."""

from facho.onus.inventory import save_inventory
from facho.onus.models import Onu, PonPort
from facho.onus.present_onus import PLACE
from facho.onus.readings import MAX_INTEGER, MAX_SMALL, save_table
from facho.polling.vendors.index import Place

__all__ = [
    "MAX_SERIAL_LENGTH",
    "count_present",
    "has_onus",
    "is_storable",
    "load_places",
    "load_ports",
    "save_inventory",
    "save_table",
]

MAX_SERIAL_LENGTH = Onu._meta.get_field("serial").max_length


def load_places(olt_id: int) -> list[Place]:
    """Return the places of ONUs that can be read, in walking order; missed ONUs are left out."""
    onus = Onu.objects.filter(olt_id=olt_id, is_present=True, misses=0)
    return [Place(*row) for row in onus.order_by(*PLACE).values_list(*PLACE)]


def has_onus(olt_id: int) -> bool:
    return Onu.objects.filter(olt_id=olt_id).exists()


def count_present(olt_id: int) -> int:
    return Onu.objects.filter(olt_id=olt_id, is_present=True).count()


def load_ports(olt_id: int) -> list[Place]:
    return [Place(*row) for row in PonPort.objects.filter(olt_id=olt_id).values_list("frame", "slot", "port")]


def is_storable(place: Place) -> bool:
    """Whether the numbers of a place fit our columns; no real chassis exceeds them."""
    return max(place.frame, place.slot, place.port) <= MAX_SMALL and place.onu <= MAX_INTEGER
