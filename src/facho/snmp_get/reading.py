"""What every way of collecting shares: how an OLT is opened and walked, and what came is joined and handed on."""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from facho.hosts.store import load_device
from facho.infrastructure.secrets import UndecryptableSecret
from facho.onus.store import load_places
from facho.polling.domain.collection import Collected, CollectRequest, Failure, Rows, RunControl, RunProgress
from facho.polling.domain.execution_state import FailureKind
from facho.polling.domain.onu_table import (
    IS_INTEGER,
    NO_VALUE,
    NOWHERE,
    OnuColumn,
    OnuTable,
    RawValues,
    pack_place,
)
from facho.polling.domain.ports import DatabaseGateway
from facho.polling.snmp.batch import BatchOptions, BatchResult, get_batched
from facho.polling.snmp.ber import Tag, Value
from facho.polling.snmp.ber_values import encode_oid
from facho.polling.snmp.errors import MissingObject, SnmpError, TooMuchData
from facho.polling.snmp.network import Network
from facho.polling.snmp.oid import Oid, format_oid
from facho.polling.snmp.session import Session
from facho.polling.snmp.target import Patience
from facho.polling.snmp.walk import ColumnRows, Row, WalkOptions, WalkResult, walk_columns
from facho.polling.vendors.column import Column
from facho.polling.vendors.definition import Definition
from facho.polling.vendors.index import Index, LearnedIndex, Place
from facho.polling.vendors.vocabulary import Cost, Typed

T = TypeVar("T")

_TAGS = frozenset(map(int, Tag))


def tag_name(tag: int) -> str:
    """Name the type of a value as it was on the wire."""
    return Tag(tag).name.lower() if tag in _TAGS else f"0x{tag:02x}"


def plain_value(value: Typed | None) -> int | float | str | None:
    """Return what a column made of a value as JSON and pages take it: printable, and a time by ISO 8601."""
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, str):
        return "".join(letter if letter.isprintable() else " " for letter in str(value))
    return value


def fits(column: Column, place: Place) -> bool:
    """Tell whether a column's index can name a place."""
    try:
        column.index.encode(place)
    except ValueError:
        return False
    return True


logger = logging.getLogger(__name__)

_SUBJECT_LENGTH = 255
# Far above any table of an OLT.
MAX_ROWS = WalkOptions().max_rows
# Agents that drop large requests for live values answer so many ONUs; the size doubles while that works.
FIRST_LIVE_ONUS = 2


@dataclass(frozen=True, slots=True)
class Part:
    """What one way of reading brought; with a cursor it gave way and continues there."""

    counts: Mapping[str, int]
    failure: SnmpError | None
    rows: Rows = field(default_factory=Rows)
    cursor: Mapping[str, int] | None = None
    # There was nobody to ask.
    is_empty: bool = False

    @property
    def is_end(self) -> bool:
        """Return whether nothing can follow in this run."""
        return self.failure is not None or self.cursor is not None


@dataclass(slots=True)
class Reader:
    """One operation on one OLT. `sizes` is what earlier ones learned; what this one learns is stored with its rows."""

    olt_id: int
    session: Session
    definition: Definition
    database: DatabaseGateway
    control: RunControl
    deadline: float
    max_timeout_seconds: float
    sizes: Mapping[str, int] = field(default_factory=dict)
    learned: dict[str, int] = field(default_factory=dict)
    # What the naming columns say of each row.
    naming: Mapping[str, Mapping[Oid, Typed]] = field(default_factory=dict)

    def patience(self, keys: Iterable[str]) -> Patience:
        return self.patience_for(self.definition.cost_of(keys))

    def patience_for(self, cost: Cost) -> Patience:
        rule = self.definition.polling.classes[cost]
        return Patience(min(rule.timeout_seconds, self.max_timeout_seconds), rule.tries)

    async def learn_rows(self) -> None:
        """Load what the rows are if their numbers do not show it; SnmpError when the device does not report all."""
        keys = self.definition.naming_columns
        if not keys:
            return
        walk = await self.walk(keys)
        if walk.failure:
            raise walk.failure
        self.naming = {
            key: _values(self.definition.column(key), rows) for key, rows in zip(keys, walk.rows, strict=True)
        }
        self.definition = self.definition.learn(self.naming, await self.database.run(load_places, self.olt_id))

    async def find_answering(self, keys: Sequence[str]) -> list[str]:
        """Return which of the columns have rows, in their order; one row of each is asked for."""
        found: list[str] = []
        left = list(keys)
        while left:
            together = left[: self.definition.polling.max_varbinds]
            oids = [self.definition.column(key).oid for key in together]
            try:
                page = await self.session.next_page(oids, 1, patience=self.patience(together), deadline=self.deadline)
            except MissingObject as error:
                # A v1 agent refuses all of a question in which one column is at the end of its tables.
                del left[max(error.index, 1) - 1]
                continue
            answers = list(zip(together, oids, page, strict=False))
            found += [key for key, oid, bind in answers if bind[0][: len(oid)] == oid != bind[0]]
            del left[: max(len(answers), 1)]
        return found

    async def walk(self, keys: Sequence[str]) -> WalkResult:
        """Walk columns side by side, beginning with the size that worked last time."""
        oids = [self.definition.column(key).oid for key in keys]
        return await self.walk_oids(
            subject_of("walk", keys), oids, self.patience(keys), first_size=self.first_size(keys)
        )

    def first_size(self, keys: Iterable[str]) -> int | None:
        """Return with how many ONUs to begin where nothing was learned; None: with as many as are wanted."""
        return FIRST_LIVE_ONUS if self.definition.cost_of(keys) is Cost.LIVE else None

    async def walk_oids(
        self,
        subject: str,
        oids: Sequence[Oid],
        patience: Patience,
        *,
        max_rows: int = MAX_ROWS,
        first_size: int | None = None,
    ) -> WalkResult:
        """Walk below OIDs side by side; `subject` is the name under which the size that worked is remembered."""
        options = WalkOptions(
            max_repetitions=self.definition.polling.max_repetitions,
            learned_repetitions=self.sizes.get(subject),
            first_repetitions=first_size,
            patience=patience,
            deadline=self.deadline,
            max_rows=max_rows,
            on_rows=lambda rows: self.control.show(RunProgress(rows)),
        )
        walk = await walk_columns(self.session, oids, options)
        self.learn(subject, walk.stats.learned_repetitions)
        return walk

    async def walk_each(self, keys: Sequence[str]) -> AsyncIterator[tuple[Sequence[str], WalkResult]]:
        """Walk as many columns at once as the family takes, until all are read or a walk breaks."""
        for together in self.side_by_side(keys):
            walk = await self.walk(together)
            yield together, walk
            if walk.failure:
                return

    def side_by_side(self, columns: Sequence[T]) -> Iterator[Sequence[T]]:
        """Split columns into as many at once as the family takes."""
        width = self.definition.polling.max_varbinds
        return (columns[start : start + width] for start in range(0, len(columns), width))

    async def get(self, oids: Sequence[Sequence[Oid]], patience: Patience) -> BatchResult:
        """Ask for the OIDs of each row, in packets as large as the family takes."""
        width = self.definition.polling.max_varbinds
        options = BatchOptions(max_varbinds=width, patience=patience, deadline=self.deadline)
        return await get_batched(self.session, oids, options)

    def learn(self, subject: str, rows: int | None) -> None:
        """Remember a page size that worked, if any did."""
        if rows is not None:
            self.learned[subject] = rows

    @property
    def new_sizes(self) -> dict[str, int]:
        """The sizes that differ from what earlier operations learned."""
        return {subject: size for subject, size in self.learned.items() if self.sizes.get(subject) != size}

    def collected(self, parts: Sequence[Part]) -> Collected:
        """Put the outcome of this operation together; its last part says how it ended."""
        if forged := self.session.strays.forged:
            logger.warning("snmp.forged_answers olt=%s count=%s", self.olt_id, forged)
        last, was_heard = parts[-1], self.session.traffic.bytes_received > 0
        counts, failure = Counter(count_traffic(self.session)), failure_of(last.failure) if last.failure else None
        if isinstance(last.failure, TooMuchData):
            # An agent that sends without end is not one whose rows are true, and storing them takes memory, too.
            return Collected(dict(counts), failure, was_heard=was_heard)
        for part in parts:
            counts.update(part.counts)
        return Collected(
            dict(counts),
            failure,
            was_heard=was_heard,
            is_empty=all(part.is_empty for part in parts),
            cursor=last.cursor,
            rows=(*(part.rows for part in parts), Rows(learned_sizes=self.new_sizes)),
            release=self.session.memory.hold().release,
        )


def count_traffic(session: Session) -> dict[str, int]:
    """Sum up what a session sent and how fast it was answered, for the summary of its run."""
    traffic, trips, strays = session.traffic, session.round_trips, session.strays
    odd = {"late_answers": strays.late, "forged_answers": strays.forged, "malformed_answers": strays.malformed}
    return {
        "packets": traffic.packets,
        "retransmissions": traffic.retransmissions,
        "round_trips": trips.count,
        "round_trips_ms": round(trips.total_seconds * 1000),
        "longest_round_trip_ms": round(trips.longest_seconds * 1000),
        **{name: count for name, count in odd.items() if count},
    }


def _values(column: Column, rows: Iterable[Row]) -> dict[Oid, Typed]:
    decoded = ((suffix, column.decode(tag, raw).value) for suffix, tag, raw in rows)
    return {suffix: value for suffix, value in decoded if value is not None}


def subject_of(way: str, keys: Sequence[str]) -> str:
    """Name a set of columns under which a learned size is remembered."""
    return f"{way} {' '.join(keys)}"[:_SUBJECT_LENGTH]


# No operation may hold an OLT forever, whatever its agent does.
BUDGET_SECONDS = 900

# What ends an operation without being a defect of the product.
EXPECTED = (SnmpError, UndecryptableSecret)


@dataclass(frozen=True, slots=True)
class Devices:
    network: Network
    database: DatabaseGateway
    max_timeout_seconds: float

    @asynccontextmanager
    async def open(self, request: CollectRequest, definition: Definition, control: RunControl) -> AsyncIterator[Reader]:
        """Open a reader of the OLT at the claim's address, with the meaning of its rows loaded.

        Only where that has to be learned does a packet leave before the reader is asked something.
        """
        target, limits, learned = await self.database.run(
            load_device, request, definition_in_flight=definition.polling.in_flight
        )
        session = self.network.open(target, control, limits)
        try:
            reader = Reader(
                request.olt_id,
                session,
                definition,
                self.database,
                control,
                deadline=asyncio.get_running_loop().time() + BUDGET_SECONDS,
                max_timeout_seconds=self.max_timeout_seconds,
                sizes=learned,
            )
            await reader.learn_rows()
            yield reader
        finally:
            await session.close()


def failure_of(error: Exception) -> Failure:
    """Translate an expected error into a run's failure."""
    kind = error.kind if isinstance(error, SnmpError) else FailureKind.AUTH
    return Failure(kind, str(error))


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
        self._oids.clear()

    def table(self) -> OnuTable:
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
