"""What walks and batches need of a session, whatever the protocol version behind it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from facho.polling.snmp.ber import Oid, VarBind
from facho.polling.snmp.target import CHEAP, Patience, Target

NO_DEADLINE = math.inf


@dataclass(frozen=True, slots=True)
class Limits:
    """How much one device is asked at a time; weak agents stall or crash under more."""

    max_in_flight: int = 1
    packets_per_second: float | None = None

    def __post_init__(self) -> None:
        if self.max_in_flight < 1 or (self.packets_per_second is not None and self.packets_per_second <= 0):
            raise ValueError("limits are positive")


@dataclass(slots=True)
class Traffic:
    """What a session sent and got so far. Retransmissions are also in `packets`."""

    packets: int = 0
    retransmissions: int = 0
    varbinds: int = 0
    bytes_sent: int = 0
    bytes_received: int = 0

    def copy(self) -> "Traffic":
        """Return a snapshot."""
        return Traffic(self.packets, self.retransmissions, self.varbinds, self.bytes_sent, self.bytes_received)

    def since(self, earlier: "Traffic") -> "Traffic":
        """Return what was added after a snapshot."""
        return Traffic(
            self.packets - earlier.packets,
            self.retransmissions - earlier.retransmissions,
            self.varbinds - earlier.varbinds,
            self.bytes_sent - earlier.bytes_sent,
            self.bytes_received - earlier.bytes_received,
        )


@dataclass(slots=True)
class RoundTrips:
    """How long a device took from a question to its answer: a few numbers, however many answers came."""

    count: int = 0
    total_seconds: float = 0.0
    longest_seconds: float = 0.0

    @property
    def mean_seconds(self) -> float | None:
        """The mean; None when none was measured."""
        return self.total_seconds / self.count if self.count else None

    def add(self, seconds: float) -> None:
        """Count an answer."""
        self.count += 1
        self.total_seconds += seconds
        if seconds > self.longest_seconds:
            self.longest_seconds = seconds


class Session(Protocol):
    """Questions to one device. Every failure is an SnmpError; deadlines are on the running loop's clock."""

    @property
    def target(self) -> Target:
        """The device."""

    @property
    def limits(self) -> Limits:
        """What this session keeps to, whoever uses it."""

    @property
    def traffic(self) -> Traffic:
        """Counters, growing."""

    @property
    def round_trips(self) -> RoundTrips:
        """How fast the device answered what it was asked once; questions that were repeated are not in it."""

    async def get(
        self, oids: Sequence[Oid], *, patience: Patience = CHEAP, deadline: float = NO_DEADLINE
    ) -> list[VarBind]:
        """Return one varbind for each OID, in order; what is missing has an exception tag and no value."""

    async def next_page(
        self, oids: Sequence[Oid], repetitions: int, *, patience: Patience = CHEAP, deadline: float = NO_DEADLINE
    ) -> list[VarBind]:
        """Return the successors of the OIDs, row by row, at most `repetitions` rows; v1 gives one row.

        MissingObject from a v1 agent means that the OID at its `index` has no successor.
        """

    async def close(self) -> None:
        """End what is under way with SessionClosed; nothing is sent afterwards."""
