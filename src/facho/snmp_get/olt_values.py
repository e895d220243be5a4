"""Reads what an OLT tells of itself: single values with a GET, tables of boards, ports and interfaces with a walk.

The rows of such a table are not known beforehand, so a walk reads them whatever the job's query type is.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from facho.hosts.olt_data import MAX_INDEX_LENGTH, OltValue, save_olt_values
from facho.onus.value_history import save_olt_history
from facho.polling.snmp.batch import BatchOptions, get_batched
from facho.polling.snmp.ber import Tag, Value
from facho.polling.snmp.errors import SnmpError
from facho.polling.snmp.oid import Oid, format_oid
from facho.polling.vendors.column import Column
from facho.polling.vendors.index import Place, write_place
from facho.polling.vendors.values import Typed
from facho.polling.vendors.vocabulary import Scope
from facho.snmp_get.raw_text import raw_text
from facho.snmp_get.reading import HONEST, Part, Reader
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
        self.values.append(_olt_value(column, place, index, decoded.value, raw_text(tag, raw)))
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

    def part(self, reader: Reader, failure: SnmpError | None) -> Part:
        """Give what was gathered to be stored."""

        def save(now: datetime) -> None:
            save_olt_values(reader.olt_id, self.named(), whole_oids=self.whole_oids, now=now)
            if self.kept_oids:
                kept = [value for value in self.values if value.oid in self.kept_oids]
                save_olt_history(reader.olt_id, kept, now=now)

        return Part({"olt_values": len(self.values), **+self.counts}, failure, save)


async def read_olt_values(reader: Reader, keys: Sequence[str]) -> Part:
    """Read columns that are about no ONU; the rows of a broken walk are kept, each of them is true."""
    columns = [reader.definition.column(key) for key in keys]
    wishes = await reader.database.run(load_kept_reads)
    gathered = OltGathered(kept_oids=_texts(column for column in columns if _is_kept(column, wishes)))
    singles = [column for column in columns if column.index.scope is Scope.SCALAR]
    failure = await _get(reader, singles, gathered) if singles else None
    if failure is None:
        failure = await _walk(reader, [column for column in columns if column not in singles], gathered)
    return gathered.part(reader, failure)


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
        for column, rows in zip(together, walk.rows, strict=True):
            for suffix, tag, raw in rows:
                gathered.add(column, suffix, tag, raw)
        if walk.failure:
            return walk.failure
        gathered.whole_oids |= _texts(together)
    return None


def _is_kept(column: Column, wishes: Collection[str]) -> bool:
    return column.key in wishes or format_oid(column.oid) in wishes


def _texts(columns: Iterable[Column]) -> set[str]:
    return {format_oid(column.oid) for column in columns}


def _olt_value(column: Column, place: Place, index: str, value: Typed | None, raw: str) -> OltValue:
    return OltValue(
        oid=format_oid(column.oid),
        index=index,
        name=column.key,
        place=write_place(column.index, place),
        value=_value_text(value),
        unit=column.unit.value if column.unit and value is not None else "",
        raw=raw,
        is_counter=column.rule.tag in COUNTER_TAGS,
    )


def _value_text(value: Typed | None) -> str:
    """Write a decoded value; scales are exact, so ten digits lose nothing."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.10g}"
    return value.isoformat() if isinstance(value, datetime) else str(value)
