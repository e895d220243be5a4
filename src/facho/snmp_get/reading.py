"""What every way of collecting shares: how an OLT is opened, walked, and what came is handed on."""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from facho.hosts.store import load_device
from facho.infrastructure.secrets import UndecryptableSecret
from facho.onus.store import load_places
from facho.polling.domain.collection import Collected, CollectRequest, Failure, Rows, RunControl, RunProgress
from facho.polling.domain.execution_state import FailureKind
from facho.polling.domain.ports import DatabaseGateway
from facho.polling.snmp.ber import Tag
from facho.polling.snmp.columns import Row
from facho.polling.snmp.errors import MissingObject, SnmpError, TooMuchData
from facho.polling.snmp.network import Network
from facho.polling.snmp.oid import Oid
from facho.polling.snmp.session import Session
from facho.polling.snmp.target import Patience
from facho.polling.snmp.walk import WalkOptions, WalkResult, walk_columns
from facho.polling.vendors.column import Column
from facho.polling.vendors.definition import Definition
from facho.polling.vendors.vocabulary import Cost, Typed

_TAGS = frozenset(map(int, Tag))


def tag_name(tag: int) -> str:
    """Name the type of a value as it was on the wire."""
    return Tag(tag).name.lower() if tag in _TAGS else f"0x{tag:02x}"


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
        """Tell whether nothing can follow in this run."""
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
    told: Mapping[str, Mapping[Oid, Typed]] = field(default_factory=dict)

    def patience(self, keys: Iterable[str]) -> Patience:
        """Return how long to wait for columns of this cost."""
        return self.patience_for(self.definition.cost_of(keys))

    def patience_for(self, cost: Cost) -> Patience:
        """Return how long to wait for what costs the OLT so much."""
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
        self.told = {key: _values(self.definition.column(key), rows) for key, rows in zip(keys, walk.rows, strict=True)}
        self.definition = self.definition.learn(self.told, await self.database.run(load_places, self.olt_id))

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
        counts = Counter(count_traffic(self.session))
        if isinstance(last.failure, TooMuchData):
            # An agent that sends without end is not one whose rows are true, and storing them takes memory, too.
            return Collected(dict(counts), Failure(last.failure.kind, str(last.failure)), was_heard=was_heard)
        failure = None if last.failure is None else Failure(last.failure.kind, str(last.failure))
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
    odd = {
        "late_answers": strays.late,
        "forged_answers": strays.forged,
        "malformed_answers": strays.malformed,
    }
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
    """The way to every OLT."""

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
    """Put one of the expected errors into the words of a run."""
    kind = error.kind if isinstance(error, SnmpError) else FailureKind.AUTH
    return Failure(kind, str(error))
