"""Finds the ONUs of an OLT: one walk of the columns that tell who they are, whose index says where each hangs."""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from itertools import chain

from facho.onus.store import MAX_SERIAL_LENGTH, is_storable, load_ports, save_inventory
from facho.polling.domain.onu_match import Identity
from facho.polling.domain.onu_presence import Walk
from facho.polling.domain.onu_state import OnuPlace, PortPlace
from facho.polling.snmp.errors import WalkLoop
from facho.polling.snmp.oid import Oid
from facho.polling.snmp.walk import Row, WalkResult
from facho.polling.vendors.column import Column
from facho.polling.vendors.definition import MAC, SERIAL, Definition
from facho.polling.vendors.index import Place
from facho.snmp_get.reading import Part, Reader


async def discover(reader: Reader, keys: Sequence[str]) -> Part:
    """Walk the columns of identity; rows whose index cannot be true are counted and left out.

    A walk that broke off has still read the ports to their end that it left behind.
    """
    walk = await reader.walk(keys)
    reach = _Reach(reader.definition, keys, walk)
    told = _identities(reader.definition, keys, walk)
    found: dict[OnuPlace, Identity] = {place: who for place, who in told.items() if reach.covers(place)}
    ports = () if walk.complete else await reader.database.run(load_ports, reader.olt_id)
    shown = Walk(found, walk.complete, reach.complete_ports(ports))

    def save(now: datetime) -> None:
        save_inventory(reader.olt_id, shown, now=now)

    refused = max(map(len, walk.rows)) - len(told)
    return Part({"onus": len(found), "refused_rows": max(refused, 0)}, walk.failure, save)


def _identities(definition: Definition, keys: Sequence[str], walk: WalkResult) -> dict[Place, Identity]:
    """Return what the device says of who is where."""
    texts = {
        column.key: _texts(column, rows)
        for key, rows in zip(keys, walk.rows, strict=True)
        for column in definition.readings(key)
    }
    serials, macs = texts.get(SERIAL, {}), texts.get(MAC, {})
    return {
        place: Identity(serials.get(place, "")[:MAX_SERIAL_LENGTH], macs.get(place, ""))
        for place in dict.fromkeys(chain.from_iterable(texts.values()))
    }


def _texts(column: Column, rows: Iterable[Row]) -> dict[Place, str]:
    placed = ((column.index.decode(suffix), tag, value) for suffix, tag, value in rows)
    return {
        place: str(column.decode(tag, value).value or "")
        for place, tag, value in placed
        if place is not None and is_storable(place)
    }


class _Reach:
    """How far a walk came with all of its columns; agents answer in the order of the index."""

    def __init__(self, definition: Definition, keys: Sequence[str], walk: WalkResult) -> None:
        indexes = (definition.column(key).index for key in keys)
        pairs = zip(indexes, walk.cursors, strict=True)
        self._unfinished = [(index, cursor.after) for index, cursor in pairs if not cursor.is_done]
        self._is_in_order = not isinstance(walk.failure, WalkLoop)

    def covers(self, place: Place) -> bool:
        """Tell whether every column was read at this place."""
        return all(_is_past(index.encode, place, after) for index, after in self._unfinished)

    def complete_ports(self, ports: Iterable[Place]) -> frozenset[PortPlace]:
        """Return those of the ports that were read to their end; rows out of order say that of none."""
        if not self._is_in_order:
            return frozenset()
        passed = (p for p in ports if all(_is_past(index.encode_end, p, after) for index, after in self._unfinished))
        return frozenset(port[:3] for port in passed)


def _is_past(encode: Callable[[Place], Oid], place: Place, after: Oid) -> bool:
    try:
        return encode(place) <= after
    except ValueError:
        # A place that another definition has numbered.
        return False
