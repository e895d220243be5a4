"""What walks and batches need of a session, whatever the protocol version, and how much they ask for at a time."""

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


# Successes at one size before the next step towards a size that failed in this walk.
_GOOD_PAGES_BEFORE_STEP = 2
# Successes before trying more than what an earlier walk, or this one, learned to be the limit; doubled on each failure.
_GOOD_PAGES_BEFORE_DARING = 16
# Nearer than this part of the present size, a size that failed is not approached.
_CLOSE_ENOUGH_DIVISOR = 16
# Part of the present size by which a daring step grows.
_DARING_DIVISOR = 4
# How often a size that worked before may fail in a row by bad luck, and how often once it has worked many times.
_CHANCES, _CHANCES_OF_A_PROVEN_SIZE = 1, 3
_GOOD_PAGES_OF_A_PROVEN_SIZE = 16


class PageSize:
    """The repetitions of the next page, between 1 and the definition's maximum.

    `learned` is what worked in earlier walks. A size that never worked is a limit once it fails: it is approached by
    halving the distance, so that an agent's limit is found in few pages and not hit again. A size that worked may fail
    by bad luck: it gets another chance as soon as anything arrives.

    With `start` it begins there and doubles while that works, also from what was learned: then a failure is dear, and
    half of what fails is near enough to the limit. `limit` is a size that failed in earlier walks.
    """

    def __init__(
        self, wanted: int, learned: int | None = None, *, start: int | None = None, limit: int | None = None
    ) -> None:
        self._wanted = max(1, wanted)
        self.rows = min(self._wanted, max(1, learned or start or self._wanted))
        self._is_search = start is not None
        # A limit below what has worked since is none.
        self.limit = limit if limit and limit > self.rows else None
        self._failed_at = (self.limit or self._wanted + 1) if self._is_search else self.rows + 1
        self._best: int | None = None
        self._good_pages = 0
        self._daring_after = _GOOD_PAGES_BEFORE_DARING
        # The largest size that worked and did not turn out to be too much since, and what speaks for it.
        self._trusted = self.rows if learned else 0
        self._proofs = 0
        self._chances_taken = 0
        # The size at which the failures since the last good page began.
        self._trouble_from: int | None = None

    @property
    def is_smallest(self) -> bool:
        return self.rows == 1

    @property
    def has_worked(self) -> bool:
        return self._best is not None

    @property
    def learned(self) -> int | None:
        """The size to start with next time: the last that worked; None if none did."""
        return self._trusted if self.has_worked else None

    def has_proof(self, rows: int) -> bool:
        """Whether so many rows came before."""
        return rows <= self._trusted

    def page_came(self) -> None:
        self._best = self.rows
        self._good_pages += 1
        if self._trouble_from is not None and self._end_trouble(self._trouble_from):
            return
        if self.rows > self._trusted:
            self._trusted, self._proofs = self.rows, 0
        if self.rows == self._trusted:
            self._proofs += 1
            if self._good_pages >= _GOOD_PAGES_BEFORE_STEP:
                self._chances_taken = 0
        if self.rows + self._close_enough + 1 < self._failed_at:
            has_limit = self._failed_at <= self._wanted
            if self._good_pages >= _GOOD_PAGES_BEFORE_STEP or not has_limit:
                self._ask_for(min(self.rows * 2, (self.rows + self._failed_at) // 2 if has_limit else self._wanted))
        elif self.rows < self._wanted and self._good_pages >= self._daring_after:
            self._ask_for(min(self._wanted, self.rows + max(1, self.rows // _DARING_DIVISOR)))
            self._failed_at = self.rows + 1

    def page_failed(self, *, is_too_big: bool = False) -> None:
        """Record a failed page: back to the last good size, or half of this one."""
        if is_too_big:
            self._take_for_limit(self.rows)
        else:
            self._trouble_from = self._trouble_from or self.rows
        is_search = self._best is not None and self._best < self.rows
        self._ask_for(self._best if is_search and self._best else max(1, self.rows // 2))

    def size_was_not_the_cause(self) -> None:
        """Take back what was concluded from failures: something else explains them."""
        if self._is_search:
            self.limit = self._trouble_from = None
            self._failed_at = self._wanted + 1

    def nothing_comes(self) -> None:
        """Go down to one row at once, to tell a silent agent from one that chokes on size."""
        self._trouble_from = self._trouble_from or self.rows
        self._ask_for(1)

    @property
    def _close_enough(self) -> int:
        return self.rows // (1 if self._is_search and self._failed_at <= self._wanted else _CLOSE_ENOUGH_DIVISOR)

    def _end_trouble(self, began_at: int) -> bool:
        """Return to the size before the trouble if size is not the cause; True if done."""
        self._trouble_from = None
        chances = _CHANCES_OF_A_PROVEN_SIZE if self._proofs >= _GOOD_PAGES_OF_A_PROVEN_SIZE else _CHANCES
        if began_at <= self._trusted and self._chances_taken < chances:
            self._chances_taken += 1
            self._ask_for(began_at)
            return True
        self._take_for_limit(began_at)
        return False

    def _take_for_limit(self, rows: int) -> None:
        self._failed_at = self.limit = max(rows, 2)
        self._daring_after *= 2
        self._chances_taken = 0
        if self._trusted >= rows:
            self._trusted = self._proofs = 0

    def _ask_for(self, rows: int) -> None:
        self.rows = rows
        self._good_pages = 0
