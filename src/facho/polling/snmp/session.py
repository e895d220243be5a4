"""What walks and batches need of a session, whatever the protocol version behind it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, cast

from facho.polling.snmp.ber import Oid, Pdu, VarBind
from facho.polling.snmp.errors import AccessDenied, AgentError, MissingObject, TooBig
from facho.polling.snmp.memory import Share
from facho.polling.snmp.oid import format_oid
from facho.polling.snmp.target import CHEAP, Patience, Target
from facho.polling.snmp.transport import Strays

if TYPE_CHECKING:
    from facho.polling.snmp._pages import VarBindPage

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
    """What a session sent and received. Retransmissions are included in `packets`."""

    packets: int = 0
    retransmissions: int = 0
    varbinds: int = 0
    bytes_sent: int = 0
    bytes_received: int = 0

    def copy(self) -> "Traffic":
        return Traffic(self.packets, self.retransmissions, self.varbinds, self.bytes_sent, self.bytes_received)

    def since(self, earlier: "Traffic") -> "Traffic":
        return Traffic(
            self.packets - earlier.packets,
            self.retransmissions - earlier.retransmissions,
            self.varbinds - earlier.varbinds,
            self.bytes_sent - earlier.bytes_sent,
            self.bytes_received - earlier.bytes_received,
        )


@dataclass(slots=True)
class RoundTrips:
    count: int = 0
    total_seconds: float = 0.0
    longest_seconds: float = 0.0

    @property
    def mean_seconds(self) -> float | None:
        return self.total_seconds / self.count if self.count else None

    def add(self, seconds: float) -> None:
        self.count += 1
        self.total_seconds += seconds
        if seconds > self.longest_seconds:
            self.longest_seconds = seconds


class Session(Protocol):
    """Requests to one device. Every failure is an SnmpError; deadlines are on the running loop's clock."""

    @property
    def target(self) -> Target:
        """The device."""

    @property
    def limits(self) -> Limits:
        """Limits of this session, shared by all its users."""

    @property
    def traffic(self) -> Traffic:
        """Counters, growing."""

    @property
    def round_trips(self) -> RoundTrips:
        """Response times of requests that were sent once; retransmitted ones are left out."""

    @property
    def strays(self) -> Strays:
        """Datagrams that answered no request, or could not be trusted."""

    @property
    def memory(self) -> Share:
        """Memory of its answers; callers that keep more account for it here."""

    async def get(
        self, oids: Sequence[Oid], *, patience: Patience = CHEAP, deadline: float = NO_DEADLINE
    ) -> list[VarBind]:
        """Return one varbind per OID, in order; missing ones have an exception tag and no value."""

    async def next_page(
        self, oids: Sequence[Oid], repetitions: int, *, patience: Patience = CHEAP, deadline: float = NO_DEADLINE
    ) -> "VarBindPage":
        """Return the successors of the OIDs, row by row, at most `repetitions` rows; one row for v1.

        MissingObject from a v1 agent means that the OID at its `index` has no successor.
        """

    async def close(self) -> None:
        """End exchanges in progress with SessionClosed; nothing is sent afterwards."""


_NAMES = {
    1: "tooBig",
    2: "noSuchName",
    3: "badValue",
    4: "readOnly",
    5: "genErr",
    6: "noAccess",
    13: "resourceUnavailable",
    16: "authorizationError",
}
_ERRORS: dict[int, type[AgentError]] = {1: TooBig, 2: MissingObject, 6: AccessDenied, 16: AccessDenied}


def checked_varbinds(pdu: Pdu, oids: Sequence[Oid], address: str) -> "VarBindPage":
    """Return the varbinds of a response to a request for `oids`; raise the error of its status."""
    if not pdu.error_status:
        # What was decoded is a page; a list is only what we send.
        return cast("VarBindPage", pdu.varbinds)
    index = pdu.error_index if 0 < pdu.error_index <= len(oids) else 0
    name = _NAMES.get(pdu.error_status, f"error status {pdu.error_status}")
    where = f" at {format_oid(oids[index - 1])}" if index else ""
    error = _ERRORS.get(pdu.error_status, AgentError)
    raise error(f"{address} answered {name}{where}", status=pdu.error_status, index=index)
