"""Reads what an OLT reports about itself: single values with a GET, tables of boards, ports and interfaces with a walk;
and the ONUs that it has found and that are not authorised yet.

The rows of such a table are not known beforehand, so a walk reads them whatever the job's query type is.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from facho.hosts.olt_data import MAX_INDEX_LENGTH
from facho.hosts.store import MAX_MODEL_LENGTH, MAX_NUMBER, MAX_SERIAL_LENGTH
from facho.polling.domain.collection import OltValue, Rows, UnauthorisedOnu
from facho.polling.domain.onu_table import raw_text
from facho.polling.snmp.batch import BatchOptions, get_batched
from facho.polling.snmp.ber import Tag, Value
from facho.polling.snmp.errors import SnmpError
from facho.polling.snmp.memory import PER_ROW
from facho.polling.snmp.oid import Oid, format_oid
from facho.polling.vendors.column import Column
from facho.polling.vendors.definition import Definition
from facho.polling.vendors.index import Place, write_row
from facho.polling.vendors.loader import AUTOFIND_SERIAL
from facho.polling.vendors.vocabulary import HONEST, Scope, Typed
from facho.snmp_get.reading import Part, Reader
from facho.snmp_jobs.read_names import load_kept_reads

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
        """Give what was gathered to be stored."""
        rows = Rows(olt_values=self.named(), whole_oids=self.whole_oids, kept_oids=self.kept_oids)
        return Part({"olt_values": len(self.values), **+self.counts}, failure, rows)


async def read_olt_values(reader: Reader, keys: Sequence[str]) -> Part:
    """Read columns that are about no ONU; the rows of a broken walk are kept, each of them is true."""
    columns = [reader.definition.column(key) for key in keys]
    wishes = await reader.database.run(load_kept_reads)
    kept = (column for column in columns if column.key in wishes or format_oid(column.oid) in wishes)
    gathered = OltGathered(kept_oids=_texts(kept))
    singles = [column for column in columns if column.index.scope is Scope.SCALAR]
    failure = await _get(reader, singles, gathered) if singles else None
    if failure is None:
        failure = await _walk(reader, [column for column in columns if column not in singles], gathered)
    return gathered.part(failure)


async def _get(reader: Reader, columns: Sequence[Column], gathered: OltGathered) -> SnmpError | None:
    options = BatchOptions(
        max_varbinds=reader.definition.polling.max_varbinds,
        patience=reader.patience([column.key for column in columns]),
        deadline=reader.deadline,
    )
    batch = await get_batched(reader.session, [[column.instance(Place())] for column in columns], options)
    for column, answer in zip(columns, batch.answers, strict=True):
        for oid, tag, raw in answer or ():
            gathered.add(column, oid[len(column.oid) :], tag, raw)
            gathered.whole_oids.add(format_oid(column.oid))
    gathered.counts["unreadable"] += len(batch.failures)
    return batch.failure


async def _walk(reader: Reader, columns: Sequence[Column], gathered: OltGathered) -> SnmpError | None:
    width = reader.definition.polling.max_varbinds
    for start in range(0, len(columns), width):
        together = columns[start : start + width]
        walk = await reader.walk([column.key for column in together])
        reader.session.memory.take(PER_ROW * sum(map(len, walk.rows)))
        for column, rows in zip(together, walk.rows, strict=True):
            for suffix, tag, raw in rows:
                gathered.add(column, suffix, tag, raw)
        if walk.failure:
            return walk.failure
        gathered.whole_oids |= _texts(together)
    return None


def _texts(columns: Iterable[Column]) -> set[str]:
    return {format_oid(column.oid) for column in columns}


def _value_text(value: Typed | None) -> str:
    """Write a decoded value; scales are exact, so ten digits lose nothing."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.10g}"
    return value.isoformat() if isinstance(value, datetime) else str(value)


SERIAL, MODEL = AUTOFIND_SERIAL, "autofind.model"
# Who has no serial is listed by its hardware address.
MAC = "autofind.mac"
# Where a family numbers the rows one after the other, these columns tell the port.
PORT_COLUMNS = {"slot": "autofind.slot", "port": "autofind.port"}

Row = Mapping[str, Typed | None]


async def list_waiting(reader: Reader, keys: Sequence[str]) -> Part:
    """Walk the table side by side; rows of nobody or with a place that cannot be true are counted."""
    table = _Table.of(reader.definition)
    wanted = [SERIAL, *table.port_columns.values(), *(key for key in keys if key == MODEL)]
    walk = await reader.walk(wanted)
    rows: dict[Oid, dict[str, Typed | None]] = {}
    for key, cells in zip(wanted, walk.rows, strict=True):
        columns = reader.definition.readings(key)
        for suffix, tag, raw in cells:
            row = rows.setdefault(suffix, {})
            row.update((column.key, column.decode(tag, raw).value) for column in columns)
    found = [waiting for suffix, row in rows.items() if (waiting := table.read(suffix, row))]
    counts = {"waiting_onus": len(found), "refused_rows": len(rows) - len(found)}
    return Part(counts, walk.failure, Rows(unauthorised=found, is_list_complete=walk.complete))


@dataclass(frozen=True, slots=True)
class _Table:
    definition: Definition
    port_columns: Mapping[str, str]

    @classmethod
    def of(cls, definition: Definition) -> "_Table":
        return cls(definition, {name: key for name, key in PORT_COLUMNS.items() if definition.has_column(key)})

    def read(self, suffix: Oid, row: Row) -> UnauthorisedOnu | None:
        serial, port = row.get(SERIAL) or row.get(MAC), self._port(suffix, row)
        if port is None or not isinstance(serial, str) or not serial:
            return None
        model = str(row.get(MODEL) or "")
        return UnauthorisedOnu(*port[:3], serial[:MAX_SERIAL_LENGTH], model[:MAX_MODEL_LENGTH])

    def _port(self, suffix: Oid, row: Row) -> Place | None:
        place = self.definition.column(SERIAL).index.decode(suffix)
        told = {name: number for name, key in self.port_columns.items() if isinstance(number := row.get(key), int)}
        if place is None or len(told) < len(self.port_columns):
            return None
        port = place.pon._replace(**told)
        return port if all(0 <= number <= MAX_NUMBER for number in port) else None
