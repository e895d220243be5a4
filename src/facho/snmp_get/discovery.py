"""Finds the ONUs of an OLT: one walk of the serial column, whose index says where each hangs."""

from datetime import datetime

from facho.onus.store import MAX_SERIAL_LENGTH, is_storable, save_inventory
from facho.polling.vendors.index import Place
from facho.snmp_get.reading import Part, Reader

SERIAL = "onu.serial"


async def discover(reader: Reader) -> Part:
    """Walk the serials; rows whose index or serial cannot be true are counted and left out."""
    column = reader.definition.column(SERIAL)
    walk = await reader.walk([SERIAL])
    serials: dict[Place, str] = {}
    for suffix, tag, value in walk.rows[0]:
        place = column.index.decode(suffix)
        if place is not None and is_storable(place):
            serials[place] = str(column.decode(tag, value).value or "")[:MAX_SERIAL_LENGTH]

    def save(now: datetime) -> None:
        save_inventory(reader.olt_id, serials, is_complete=walk.complete, now=now)

    refused = len(walk.rows[0]) - len(serials)
    return Part({"onus": len(serials), "refused_rows": refused}, walk.failure, save)
