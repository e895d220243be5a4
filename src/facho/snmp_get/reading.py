"""What every way of collecting shares: the session, the definition, and values gathered per ONU."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from facho.hosts.learned import save_learned_size
from facho.onus.store import Reading, load_places
from facho.polling.domain.collection import Collected, Failure, RunControl
from facho.polling.domain.gateway import DatabaseGateway
from facho.polling.snmp.ber import Value
from facho.polling.snmp.errors import SnmpError
from facho.polling.snmp.oid import Oid, format_oid
from facho.polling.snmp.session import Session
from facho.polling.snmp.target import Patience
from facho.polling.snmp.walk import Row, WalkOptions, WalkResult, walk_columns
from facho.polling.vendors.column import Column
from facho.polling.vendors.definition import Definition
from facho.polling.vendors.index import Place
from facho.polling.vendors.values import Reject, Typed
from facho.polling.vendors.vocabulary import Cost
from facho.snmp_get.raw_text import raw_text

# A device without a value is not a device that lies.
HONEST = frozenset({Reject.SENTINEL, Reject.MISSING})
_SUBJECT_LENGTH = 255
# Far above any table of an OLT.
MAX_ROWS = WalkOptions().max_rows


@dataclass(frozen=True, slots=True)
class Part:
    """What one way of reading brought; with a cursor it gave way and goes on there."""

    counts: Mapping[str, int]
    failure: SnmpError | None
    save: Callable[[datetime], None]
    cursor: Mapping[str, int] | None = None

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

    def patience(self, keys: Iterable[str]) -> Patience:
        """Return how long to wait for columns of this cost."""
        return self.patience_for(self.definition.cost_of(keys))

    def patience_for(self, cost: Cost) -> Patience:
        """Return how long to wait for what costs the OLT so much."""
        rule = self.definition.polling.classes[cost]
        return Patience(min(rule.timeout_seconds, self.max_timeout_seconds), rule.tries)

    async def learn_rows(self) -> None:
        """Learn what the rows are where their numbers do not say it; SnmpError when the device does not tell all."""
        keys = self.definition.naming_columns
        if not keys:
            return
        walk = await self.walk(keys)
        if walk.failure:
            raise walk.failure
        told = {key: _values(self.definition.column(key), rows) for key, rows in zip(keys, walk.rows, strict=True)}
        self.definition = self.definition.learn(told, await self.database.run(load_places, self.olt_id))

    async def walk(self, keys: Sequence[str]) -> WalkResult:
        """Walk columns side by side, beginning with the size that worked last time."""
        oids = [self.definition.column(key).oid for key in keys]
        return await self.walk_oids(subject_of("walk", keys), oids, self.patience(keys))

    async def walk_oids(
        self, subject: str, oids: Sequence[Oid], patience: Patience, *, max_rows: int = MAX_ROWS
    ) -> WalkResult:
        """Walk below OIDs side by side; `subject` is the name under which the size that worked is remembered."""
        options = WalkOptions(
            max_repetitions=self.definition.polling.max_repetitions,
            learned_repetitions=self.sizes.get(subject),
            patience=patience,
            deadline=self.deadline,
            max_rows=max_rows,
        )
        walk = await walk_columns(self.session, oids, options)
        self.learn(subject, walk.stats.learned_repetitions)
        return walk

    def learn(self, subject: str, rows: int | None) -> None:
        """Take note of a size that worked, if any did."""
        if rows is not None:
            self.learned[subject] = rows

    def collected(self, parts: Sequence[Part]) -> Collected:
        """Put the outcome of this operation together; its last part says how it ended."""

        def save_all(now: datetime) -> None:
            for part in parts:
                part.save(now)
            for subject, rows in self.learned.items():
                if self.sizes.get(subject) != rows:
                    save_learned_size(self.olt_id, subject, rows, now=now)

        last = parts[-1]
        failure = None if last.failure is None else Failure(last.failure.kind, str(last.failure))
        counts = Counter(count_traffic(self.session))
        for part in parts:
            counts.update(part.counts)
        was_heard = self.session.traffic.bytes_received > 0
        return Collected(dict(counts), failure, was_heard=was_heard, cursor=last.cursor, save=save_all)


@dataclass(slots=True)
class Gathered:
    """What is read of ONUs while it comes in, by their places, and a count of values that could not be true."""

    by_place: dict[Place, Reading] = field(default_factory=dict)
    rejects: Counter[str] = field(default_factory=Counter)

    def add(self, columns: Sequence[Column], oid: str, place: Place, tag: int, value: Value) -> None:
        """Decode one value of an OID for each of the columns that share it."""
        reading = self.by_place.get(place)
        if reading is None:
            reading = self.by_place[place] = Reading(place, {}, {})
        for column in columns:
            decoded, reason = column.decode(tag, value)
            reading.values[column.key] = decoded
            if reason is not None and reason not in HONEST:
                self.rejects[reason.value] += 1
        if value is not None:
            reading.raw[oid] = raw_text(tag, value)

    def readings(self) -> list[Reading]:
        """Return what was gathered, one entry per ONU."""
        return list(self.by_place.values())


def count_traffic(session: Session) -> dict[str, int]:
    """Sum up what a session sent and how fast it was answered, for the summary of its run."""
    traffic, trips = session.traffic, session.round_trips
    return {
        "packets": traffic.packets,
        "retransmissions": traffic.retransmissions,
        "round_trips": trips.count,
        "round_trips_ms": round(trips.total_seconds * 1000),
        "longest_round_trip_ms": round(trips.longest_seconds * 1000),
    }


def gather_walk(definition: Definition, keys: Sequence[str], walk: WalkResult, gathered: Gathered) -> None:
    """Decode the rows of a walk; a row whose index cannot be true belongs to nobody."""
    for key, rows in zip(keys, walk.rows, strict=True):
        shared = definition.readings(key)
        oid, decode_place = format_oid(shared[0].oid), shared[0].index.decode
        for suffix, tag, value in rows:
            place = decode_place(suffix)
            if place is not None:
                gathered.add(shared, oid, place, tag, value)


def _values(column: Column, rows: Iterable[Row]) -> dict[Oid, Typed]:
    decoded = ((suffix, column.decode(tag, raw).value) for suffix, tag, raw in rows)
    return {suffix: value for suffix, value in decoded if value is not None}


def subject_of(way: str, keys: Sequence[str]) -> str:
    """Name a set of columns under which a learned size is remembered."""
    return f"{way} {' '.join(keys)}"[:_SUBJECT_LENGTH]
