"""Joins what walks and batches brought of ONUs to one table: by place, a column for each OID that was read."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from facho.polling.domain.onu_table import (
    IS_INTEGER,
    NO_VALUE,
    NOWHERE,
    OnuColumn,
    OnuTable,
    RawValues,
    pack_place,
)
from facho.polling.snmp.batch import BatchResult
from facho.polling.snmp.ber import Tag, Value
from facho.polling.snmp.ber_values import encode_oid
from facho.polling.snmp.columns import ColumnRows
from facho.polling.snmp.oid import format_oid
from facho.polling.vendors.column import Column
from facho.polling.vendors.definition import Definition
from facho.polling.vendors.index import Index, LearnedIndex, Place

Places = NDArray[np.int64]
# Of the tables that every vendor's devices have.
STANDARD = (1, 3, 6, 1, 2, 1)


@dataclass(slots=True)
class _OidParts:
    """What came of one OID, read by these columns; of two values of a place the later one counts."""

    columns: dict[str, Column] = field(default_factory=dict)
    places: list[Places] = field(default_factory=list)
    values: list[RawValues] = field(default_factory=list)


@dataclass(slots=True)
class GatheredOnus:
    """Columns of ONUs while they come in."""

    definition: Definition
    # The most rows of a walked column whose index cannot be true.
    misplaced: int = 0
    _oids: dict[str, _OidParts] = field(default_factory=dict)

    def add_walk(self, keys: Sequence[str], walked: Sequence[ColumnRows]) -> None:
        """Take walked columns; a row whose index cannot be true belongs to nobody."""
        read: list[tuple[Index, ColumnRows, Places]] = []
        for key, rows in zip(keys, walked, strict=True):
            shared = self.definition.readings(key)
            places = _places(shared[0].index, rows, read)
            is_somewhere, values = places != NOWHERE, rows.values
            if _lists_onus_alone(shared[0]):
                self.misplaced = max(self.misplaced, int(np.count_nonzero(~is_somewhere)))
            # A row that came without a value is not one that did not come.
            tags = np.where(values.tags == NO_VALUE, np.uint8(Tag.NULL), values.tags)
            kept = RawValues(
                tags[is_somewhere], values.numbers[is_somewhere], values.sizes[is_somewhere], values.octets
            )
            self._add(format_oid(shared[0].oid), shared, places[is_somewhere], kept)

    def add_batch(self, keys: Sequence[str], places: Sequence[Place], batch: BatchResult) -> None:
        """Take what a batch brought of the ONUs at these places; of those that failed nothing came."""
        packed = np.array([pack_place(*place) for place in places], np.int64)
        answered = [row for row, answer in enumerate(batch.answers) if answer and packed[row] != NOWHERE]
        answers = [batch.answers[row] or () for row in answered]
        for position, key in enumerate(keys):
            shared = self.definition.readings(key)
            values = pack_values([answer[position][1:] for answer in answers])
            self._add(format_oid(shared[0].oid), shared, packed[answered], values)

    def add_oid(self, oid: str, values: Sequence[tuple[Place, int, Value]]) -> None:
        """Take values of an OID that no column of the definition stands for."""
        placed = [(packed, tag, raw) for place, tag, raw in values if (packed := pack_place(*place)) != NOWHERE]
        raw_values = pack_values([(tag, raw) for _, tag, raw in placed])
        self._add(oid, (), np.array([packed for packed, _, _ in placed], np.int64), raw_values)

    def split_off(self, keys: Sequence[str]) -> "GatheredOnus":
        """Move what came of these columns elsewhere."""
        oids = {format_oid(self.definition.readings(key)[0].oid) for key in keys}
        moved = {oid: self._oids.pop(oid) for oid in oids & self._oids.keys()}
        return GatheredOnus(self.definition, _oids=moved)

    def clear(self) -> None:
        """Forget what came."""
        self._oids.clear()

    def table(self) -> OnuTable:
        """Join what was gathered and decode it."""
        places = _union([places for parts in self._oids.values() for places in parts.places])
        rejects: Counter[str] = Counter()
        columns: list[OnuColumn] = []
        for oid, parts in self._oids.items():
            raw = _join(parts, places)
            if not parts.columns:
                columns.append(OnuColumn("", oid, "", raw))
            for column in parts.columns.values():
                decoded, wrong = column.of_onus(raw)
                columns.append(decoded)
                rejects.update(wrong)
        return self.definition.settle(OnuTable(places, tuple(columns), rejects))

    def _add(self, oid: str, columns: Iterable[Column], places: Places, values: RawValues) -> None:
        parts = self._oids.setdefault(oid, _OidParts())
        parts.columns.update((column.key, column) for column in columns)
        parts.places.append(places)
        parts.values.append(values)


def pack_values(values: Sequence[tuple[int, Value]]) -> RawValues:
    """Return single values, each with its type, as arrays."""
    numbers, sizes, octets = [], [], bytearray()
    for _, value in values:
        raw = encode_oid(value) if isinstance(value, tuple) else value
        if isinstance(raw, bytes):
            numbers.append(len(octets))
            sizes.append(len(raw))
            octets += raw
        else:
            # A Counter64 over 63 bits is kept bit by bit.
            numbers.append(((raw or 0) + 2**63) % 2**64 - 2**63)
            sizes.append(IS_INTEGER)
    tags = np.array([tag for tag, _ in values], np.uint8)
    return RawValues(tags, np.array(numbers, np.int64), np.array(sizes, np.int32), bytes(octets))


def _lists_onus_alone(column: Column) -> bool:
    """Tell whether other rows than those of ONUs are a surprise; interfaces of all kinds share a standard table."""
    return not isinstance(column.index, LearnedIndex) and not is_standard(column)


def is_standard(column: Column) -> bool:
    return column.oid[: len(STANDARD)] == STANDARD


def _places(index: Index, rows: ColumnRows, read: list[tuple[Index, ColumnRows, Places]]) -> Places:
    """Return the packed places of rows; columns walked side by side mostly have the same, which are read once."""
    for known, same, places in read:
        if (
            known is index
            and np.array_equal(same.suffix_ends, rows.suffix_ends)
            and np.array_equal(same.suffix_ids, rows.suffix_ids)
        ):
            return places
    places = index.decode_all(rows)
    read.append((index, rows, places))
    return places


def _union(parts: Sequence[Places]) -> Places:
    """Return all places, ascending; mostly each part has the same."""
    distinct = [places for at, places in enumerate(parts) if not at or not np.array_equal(places, parts[at - 1])]
    if len(distinct) == 1 and np.all(np.diff(distinct[0]) > 0):
        return distinct[0]
    return np.unique(np.concatenate([np.zeros(0, np.int64), *distinct]))


def _join(parts: _OidParts, places: Places) -> RawValues:
    """Return the values of an OID at these places; NO_VALUE where none came."""
    if len(parts.values) == 1 and np.array_equal(parts.places[0], places):
        return parts.values[0]
    tags, numbers = np.full(len(places), NO_VALUE, np.uint8), np.zeros(len(places), np.int64)
    sizes = np.full(len(places), IS_INTEGER, np.int32)
    before = 0
    for found, values in zip(parts.places, parts.values, strict=True):
        at = np.searchsorted(places, found)
        tags[at], sizes[at] = values.tags, values.sizes
        numbers[at] = np.where(values.sizes == IS_INTEGER, values.numbers, values.numbers + before)
        before += len(values.octets)
    return RawValues(tags, numbers, sizes, b"".join(values.octets for values in parts.values))
