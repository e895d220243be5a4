"""What every way of collecting shares: the session, the definition, and values gathered per ONU."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from facho.onus.store import Reading
from facho.polling.domain.collection import Collected, Failure
from facho.polling.domain.gateway import DatabaseGateway
from facho.polling.snmp.ber import Value
from facho.polling.snmp.errors import SnmpError
from facho.polling.snmp.oid import format_oid
from facho.polling.snmp.session import Session
from facho.polling.snmp.target import Patience
from facho.polling.snmp.walk import WalkOptions
from facho.polling.vendors.column import Column
from facho.polling.vendors.definition import Definition
from facho.polling.vendors.index import Place
from facho.polling.vendors.values import Reject

# A device without a value is not a device that lies.
_HONEST = frozenset({Reject.SENTINEL, Reject.MISSING})


@dataclass(frozen=True, slots=True)
class Reader:
    """One operation on one OLT."""

    olt_id: int
    session: Session
    definition: Definition
    database: DatabaseGateway
    deadline: float
    max_timeout_seconds: float

    def patience(self, keys: Iterable[str]) -> Patience:
        """Return how long to wait for columns of this cost."""
        cost = self.definition.polling.classes[self.definition.cost_of(keys)]
        return Patience(min(cost.timeout_seconds, self.max_timeout_seconds), cost.tries)

    def collected(
        self, summary: Mapping[str, int | str], error: SnmpError | None, save: Callable[[datetime], None]
    ) -> Collected:
        """Put the outcome of this operation together."""
        traffic = self.session.traffic
        failure = None if error is None else Failure(error.kind, str(error))
        counts = {"packets": traffic.packets, "retransmissions": traffic.retransmissions}
        return Collected({**summary, **counts}, failure, was_heard=traffic.bytes_received > 0, save=save)

    def walk_options(self, keys: Sequence[str]) -> WalkOptions:
        """Return how to walk these columns."""
        return WalkOptions(
            max_repetitions=self.definition.polling.max_repetitions,
            patience=self.patience(keys),
            deadline=self.deadline,
        )


@dataclass(slots=True)
class Gathered:
    """Values by place while they come in, and a count of those that could not be true."""

    values: dict[Place, dict[str, object]] = field(default_factory=dict)
    raw: dict[Place, dict[str, str]] = field(default_factory=dict)
    rejects: Counter[str] = field(default_factory=Counter)

    def add(self, columns: Sequence[Column], place: Place, tag: int, value: Value) -> None:
        """Decode one value for each of the columns that share it."""
        for column in columns:
            decoded = column.decode(tag, value)
            self.values.setdefault(place, {})[column.key] = decoded.value
            if decoded.reason is not None and decoded.reason not in _HONEST:
                self.rejects[decoded.reason.value] += 1
        self.raw.setdefault(place, {})[format_oid(columns[0].oid)] = _raw_text(value)

    def readings(self) -> list[Reading]:
        """Return what was gathered, one entry per ONU."""
        return [Reading(place, values, self.raw[place]) for place, values in self.values.items()]


def _raw_text(value: Value) -> str:
    if isinstance(value, bytes):
        return value.decode("ascii") if value.isascii() and value.decode("ascii").isprintable() else value.hex()
    return format_oid(value) if isinstance(value, tuple) else str(value)
