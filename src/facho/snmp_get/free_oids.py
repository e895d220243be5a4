"""Reads OIDs of an operator's own: what answers a GET is one value, anything else is a table and is walked.

A row whose index is that of an ONU goes to the ONU; every other row is the OLT's. What comes is hostile: it is stored
as printable text of bounded length, and what had to be changed or left out for that is counted.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from facho.hosts.olt_data import MAX_INDEX_LENGTH
from facho.onus.store import load_places
from facho.polling.domain.collection import OltValue
from facho.polling.domain.onu_table import NO_VALUE_TAGS, is_odd, raw_text
from facho.polling.snmp.batch import BatchOptions, get_batched
from facho.polling.snmp.ber import Oid, Value
from facho.polling.snmp.columns import Row
from facho.polling.snmp.errors import MissingObject, SnmpError
from facho.polling.snmp.oid import format_oid
from facho.polling.snmp.target import Patience
from facho.polling.vendors.definition import Definition
from facho.polling.vendors.index import Place, write_place
from facho.polling.vendors.vocabulary import Cost, Scope
from facho.snmp_get.olt_values import COUNTER_TAGS, OltGathered
from facho.snmp_get.onu_tables import GatheredOnus
from facho.snmp_get.reading import Part, Reader, subject_of
from facho.snmp_jobs.read_names import load_kept_reads

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
        options = BatchOptions(
            max_varbinds=self.reader.definition.polling.max_varbinds,
            patience=self._patience(oids),
            deadline=self.reader.deadline,
        )
        batch = await get_batched(self.reader.session, [[free.oid] for free in oids], options)
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
        """Walk as many tables at once as the family takes."""
        width = self.reader.definition.polling.max_varbinds
        for start in range(0, len(self.tables), width):
            together = self.tables[start : start + width]
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
        """Give what was read to be stored."""
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
