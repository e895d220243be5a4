"""Reads what an OLT reports about itself, the ONUs that it has found and not authorised, and OIDs of an operator's own.

Single values are read with a GET, tables with a walk: their rows are not known beforehand. An OID of an operator that
answers a GET is one value, anything else is a table. A row whose index is that of an ONU goes to the ONU; every other
row is the OLT's. What comes is hostile: it is stored as printable text of bounded length, and what had to be changed or
left out for that is counted.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import NamedTuple

from facho.hosts.olt_data import MAX_INDEX_LENGTH
from facho.hosts.store import MAX_MODEL_LENGTH, MAX_NUMBER, MAX_SERIAL_LENGTH
from facho.onus.store import load_places
from facho.polling.domain.collection import OltValue, Rows, UnauthorisedOnu
from facho.polling.domain.onu_table import NO_VALUE_TAGS, is_odd, raw_text
from facho.polling.snmp.ber import Tag, Value
from facho.polling.snmp.errors import MissingObject, SnmpError
from facho.polling.snmp.memory import PER_ROW
from facho.polling.snmp.oid import Oid, format_oid
from facho.polling.snmp.target import Patience
from facho.polling.snmp.walk import Row
from facho.polling.vendors.column import Column
from facho.polling.vendors.definition import Definition
from facho.polling.vendors.index import Place, write_place, write_row
from facho.polling.vendors.loader import AUTOFIND_SERIAL
from facho.polling.vendors.vocabulary import HONEST, Cost, Scope, Typed
from facho.snmp_get.reading import GatheredOnus, Part, Reader, subject_of
from facho.snmp_jobs.store import load_kept_reads

# Interfaces have numbers that mean nothing to a person; this column has their names.
INTERFACE_NAME = "if.name"
COUNTER_TAGS = frozenset(map(int, (Tag.COUNTER32, Tag.COUNTER64)))


@dataclass(slots=True)
class OltGathered:
    """Values of the OLT while they come in, which OIDs were read to their end, and what was left out.

    Of `kept_oids` the history is kept.
    """

    values: list[OltValue] = field(default_factory=list)
    whole_oids: set[str] = field(default_factory=set)
    kept_oids: set[str] = field(default_factory=set)
    counts: Counter[str] = field(default_factory=Counter)
    _interfaces: dict[str, str] = field(default_factory=dict)

    def add(self, column: Column, suffix: Oid, tag: int, raw: Value) -> None:
        """Decode one value; a row that the column's index cannot have made belongs to nothing."""
        place = column.index.decode(suffix)
        index = format_oid(suffix)
        if place is None or len(index) > MAX_INDEX_LENGTH:
            self.counts["refused_rows"] += 1
            return
        decoded = column.decode(tag, raw)
        if decoded.reason is not None and decoded.reason in HONEST:
            return
        if decoded.reason is not None:
            self.counts[decoded.reason.value] += 1
        olt_value = OltValue(
            oid=format_oid(column.oid),
            index=index,
            name=column.key,
            place=write_row(column.index, suffix, place),
            value=_value_text(decoded.value),
            unit=column.unit.value if column.unit and decoded.value is not None else "",
            raw=raw_text(tag, raw),
            is_counter=column.rule.tag in COUNTER_TAGS,
        )
        self.values.append(olt_value)
        if column.key == INTERFACE_NAME and isinstance(decoded.value, str):
            self._interfaces[index] = decoded.value

    def named(self) -> list[OltValue]:
        """Return the values, those of interfaces under the names that came with them."""
        return [
            replace(value, place=self._interfaces[value.index] or value.place)
            if value.name.startswith("if.") and value.index in self._interfaces
            else value
            for value in self.values
        ]

    def part(self, failure: SnmpError | None) -> Part:
        rows = Rows(olt_values=self.named(), whole_oids=self.whole_oids, kept_oids=self.kept_oids)
        return Part({"olt_values": len(self.values), **+self.counts}, failure, rows)


async def read_olt_values(reader: Reader, keys: Sequence[str]) -> Part:
    """Read columns that are about no ONU; the rows of a broken walk are kept, each of them is true."""
    columns = [reader.definition.column(key) for key in keys]
    wishes = await reader.database.run(load_kept_reads)
    kept = {oid for column in columns if (oid := format_oid(column.oid)) in wishes or column.key in wishes}
    gathered = OltGathered(kept_oids=kept)
    singles = [column for column in columns if column.index.scope is Scope.SCALAR]
    failure = await _get(reader, singles, gathered) if singles else None
    if failure is None:
        failure = await _walk(reader, [column.key for column in columns if column not in singles], gathered)
    return gathered.part(failure)


async def _get(reader: Reader, columns: Sequence[Column], gathered: OltGathered) -> SnmpError | None:
    patience = reader.patience([column.key for column in columns])
    batch = await reader.get([[column.instance(Place())] for column in columns], patience)
    for column, answer in zip(columns, batch.answers, strict=True):
        for oid, tag, raw in answer or ():
            gathered.add(column, oid[len(column.oid) :], tag, raw)
            gathered.whole_oids.add(format_oid(column.oid))
    gathered.counts["unreadable"] += len(batch.failures)
    return batch.failure


async def _walk(reader: Reader, keys: Sequence[str], gathered: OltGathered) -> SnmpError | None:
    failure = None
    async for together, walk in reader.walk_each(keys):
        reader.session.memory.take(PER_ROW * sum(map(len, walk.rows)))
        columns, failure = list(map(reader.definition.column, together)), walk.failure
        for column, rows in zip(columns, walk.rows, strict=True):
            for suffix, tag, raw in rows:
                gathered.add(column, suffix, tag, raw)
        if not failure:
            gathered.whole_oids |= {format_oid(column.oid) for column in columns}
    return failure


def _value_text(value: Typed | None) -> str:
    """Write a decoded value; scales are exact, so ten digits lose nothing."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.10g}"
    return value.isoformat() if isinstance(value, datetime) else str(value)


SERIAL, MODEL = AUTOFIND_SERIAL, "autofind.model"
# ONUs without a serial are listed by MAC address.
MAC = "autofind.mac"
# If a family numbers its rows consecutively, these columns give the port.
PORT_COLUMNS = {"slot": "autofind.slot", "port": "autofind.port"}

DecodedRow = Mapping[str, Typed | None]


async def list_waiting(reader: Reader, keys: Sequence[str]) -> Part:
    """Walk the table side by side; rows of nobody or with a place that cannot be true are counted."""
    port_columns = {name: key for name, key in PORT_COLUMNS.items() if reader.definition.has_column(key)}
    index = reader.definition.column(SERIAL).index
    wanted = [SERIAL, *port_columns.values(), *(key for key in keys if key == MODEL)]
    walk = await reader.walk(wanted)
    rows: dict[Oid, dict[str, Typed | None]] = {}
    for key, cells in zip(wanted, walk.rows, strict=True):
        columns = reader.definition.readings(key)
        for suffix, tag, raw in cells:
            row = rows.setdefault(suffix, {})
            row.update((column.key, column.decode(tag, raw).value) for column in columns)
    found = [waiting for suffix, row in rows.items() if (waiting := _waiting(index.decode(suffix), row, port_columns))]
    counts = {"waiting_onus": len(found), "refused_rows": len(rows) - len(found)}
    return Part(counts, walk.failure, Rows(unauthorised=found, is_list_complete=walk.complete))


def _waiting(place: Place | None, row: DecodedRow, port_columns: Mapping[str, str]) -> UnauthorisedOnu | None:
    serial, model = row.get(SERIAL) or row.get(MAC), str(row.get(MODEL) or "")
    numbers = {name: number for name, key in port_columns.items() if isinstance(number := row.get(key), int)}
    if place is None or len(numbers) < len(port_columns) or not isinstance(serial, str) or not serial:
        return None
    port = place.pon._replace(**numbers)
    if not all(0 <= number <= MAX_NUMBER for number in port):
        return None
    return UnauthorisedOnu(*port[:3], serial[:MAX_SERIAL_LENGTH], model[:MAX_MODEL_LENGTH])


# More than any ONU table has; an OID that covers a whole MIB ends here.
MAX_FREE_ROWS = 20_000
# A table's OID may be given instead of a column's: then entry and column stand before the index.
_MOST_BEFORE_INDEX = 2


class Wanted(NamedTuple):
    """What to ask for, and the name and unit of its values."""

    oid: Oid
    name: str
    unit: str


async def read_free_oids(reader: Reader, oids: Sequence[Wanted]) -> Part:
    """Read every OID; what came before a failure is kept, each value of it is true."""
    reading = _FreeReading(reader, await reader.database.run(load_kept_reads))
    failure = await reading.get(oids)
    if failure is None and reading.tables:
        failure = await reading.walk()
    return reading.part(failure)


class _Cell(NamedTuple):
    """One value: the OID of its column, its row and what came; and the ONU or the PON port that the row is about."""

    oid: Oid
    row: Row
    onu: Place | None = None
    port: str = ""


@dataclass(slots=True)
class _FreeReading:
    reader: Reader
    kept: frozenset[str]
    tables: list[Wanted] = field(default_factory=list)
    _of_olt: OltGathered = field(default_factory=OltGathered)
    _of_onus: dict[str, dict[Place, tuple[int, Value]]] = field(default_factory=dict)
    _known_onus: frozenset[Place] | None = None

    async def get(self, oids: Sequence[Wanted]) -> SnmpError | None:
        """Ask for each OID itself; who has none below either is missing."""
        batch = await self.reader.get([[free.oid] for free in oids], self._patience(oids))
        for number, (free, answer) in enumerate(zip(oids, batch.answers, strict=True)):
            error = batch.failures.get(number)
            if answer and answer[0][1] not in NO_VALUE_TAGS:
                await self._keep_single(free, *answer[0][1:])
            elif (answer or isinstance(error, MissingObject)) and free.oid[-1] != 0:
                self.tables.append(free)
            elif answer or isinstance(error, MissingObject):
                self._of_olt.counts["missing_oids"] += 1
                self._of_olt.whole_oids.add(format_oid(free.oid))
            else:
                self._of_olt.counts["unreadable"] += error is not None
        return batch.failure

    async def walk(self) -> SnmpError | None:
        for together in self.reader.side_by_side(self.tables):
            subject = subject_of("walk", [format_oid(free.oid) for free in together])
            walk = await self.reader.walk_oids(
                subject, [free.oid for free in together], self._patience(together), max_rows=MAX_FREE_ROWS
            )
            for free, rows in zip(together, walk.rows, strict=True):
                cells = [_cell(self.reader.definition, free.oid, row) for row in rows]
                await self._keep(free, cells)
                if walk.complete:
                    self._of_olt.counts["missing_oids"] += not rows
                    self._of_olt.whole_oids |= {format_oid(free.oid), *(format_oid(cell.oid) for cell in cells)}
            if walk.failure:
                return walk.failure
        return None

    def part(self, failure: SnmpError | None) -> Part:
        of_olt = self._of_olt.part(failure)
        gathered = GatheredOnus(self.reader.definition)
        for oid, values in self._of_onus.items():
            gathered.add_oid(oid, [(place, tag, raw) for place, (tag, raw) in values.items()])
        counts = {**of_olt.counts, "onu_values": sum(map(len, self._of_onus.values()))}
        return Part(counts, failure, replace(of_olt.rows, table=gathered.table() if self._of_onus else None))

    def _patience(self, oids: Iterable[Wanted]) -> Patience:
        """Wait as for the dearest column that an OID touches."""
        costs = [column.cost for free in oids for column in self.reader.definition.columns_at(free.oid)]
        return self.reader.patience_for(max([Cost.STATE, *costs], key=list(Cost).index))

    async def _keep_single(self, free: Wanted, tag: int, raw: Value) -> None:
        size = max((len(column.oid) for column in self.reader.definition.columns_at(free.oid)), default=len(free.oid))
        cell = _cell(self.reader.definition, free.oid[:size], (free.oid[size:], tag, raw))
        if cell.onu is not None:
            await self._keep(free, [cell])
        else:
            self._keep_of_olt(free, _Cell(free.oid, ((), tag, raw)))
        self._of_olt.whole_oids.add(format_oid(free.oid))

    async def _keep(self, free: Wanted, cells: Sequence[_Cell]) -> None:
        """Give all rows of a table to ONUs if one that we know is among them, or if all could be ONUs."""
        places = {cell.onu for cell in cells if cell.onu}
        if places and self._known_onus is None:
            self._known_onus = frozenset(await self.reader.database.run(load_places, self.reader.olt_id))
        known = self._known_onus or frozenset()
        is_about_onus = not places.isdisjoint(known) or (places and all(cell.onu for cell in cells))
        for cell in cells:
            if is_about_onus:
                self._keep_of_onu(free, cell, known)
            else:
                self._keep_of_olt(free, cell)

    def _keep_of_onu(self, free: Wanted, cell: _Cell, known: frozenset[Place]) -> None:
        if cell.onu is None or cell.onu not in known:
            self._of_olt.counts["refused_rows" if cell.onu is None else "unknown_onus"] += 1
            return
        if self._is_kept(free):
            self._of_olt.kept_oids.add(format_oid(cell.oid))
        _, tag, raw = cell.row
        self._of_olt.counts["odd_values"] += is_odd(tag, raw)
        self._of_onus.setdefault(format_oid(cell.oid), {})[cell.onu] = tag, raw

    def _keep_of_olt(self, free: Wanted, cell: _Cell) -> None:
        index = format_oid(cell.row[0])
        if len(index) > MAX_INDEX_LENGTH:
            self._of_olt.counts["refused_rows"] += 1
            return
        if self._is_kept(free):
            self._of_olt.kept_oids.add(format_oid(cell.oid))
        _, tag, raw = cell.row
        self._of_olt.counts["odd_values"] += is_odd(tag, raw)
        text, is_counter = raw_text(tag, raw), tag in COUNTER_TAGS
        self._of_olt.values.append(
            OltValue(format_oid(cell.oid), index, free.name, cell.port, text, free.unit, text, is_counter)
        )

    def _is_kept(self, free: Wanted) -> bool:
        return bool(self.kept) and format_oid(free.oid) in self.kept


def _cell(definition: Definition, oid: Oid, row: Row) -> _Cell:
    """Find out what a row is about, by the definition's own indexes."""
    suffix, tag, raw = row
    for before in range(min(_MOST_BEFORE_INDEX, len(suffix) - 1) + 1):
        column, index = oid + suffix[:before], suffix[before:]
        onu = definition.decode_index(index)
        port = "" if onu else _port_text(definition, index)
        if onu or port:
            return _Cell(column, (index, tag, raw), onu, port)
    return _Cell(oid, row)


def _port_text(definition: Definition, suffix: Oid) -> str:
    """Write the PON port that a row is about; nothing when it is about none."""
    for index in definition.indexes.values():
        place = index.decode(suffix) if index.scope is Scope.PON else None
        if place is not None:
            return write_place(index, place)
    return ""
