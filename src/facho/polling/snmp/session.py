"""What walks and batches need of a session, whatever the protocol version, and how much they ask for at a time.

The Courier carries one session's questions: bounded in flight, paced, repeated in silence, counted, never without the
permit.
"""

import asyncio
import math
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING, Any, Generic, cast

from facho.polling.domain.collection import SendPermit
from facho.polling.snmp.ber import Oid, Pdu, VarBind
from facho.polling.snmp.errors import (
    AccessDenied,
    AgentError,
    AgentTimeout,
    BudgetSpent,
    MissingObject,
    OwnershipUnproven,
    SessionClosed,
    SnmpError,
    TooBig,
)
from facho.polling.snmp.memory import Share
from facho.polling.snmp.oid import format_oid
from facho.polling.snmp.target import CHEAP, Patience, Target
from facho.polling.snmp.transport import Answer, Pending, Strays, UdpTransport

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

    def since(self, earlier: "Traffic") -> "Traffic":
        return Traffic(*(now - then for now, then in zip(astuple(self), astuple(earlier), strict=True)))


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


class PacketPace:
    """Allows at most `packets_per_second` sends, without bursts; None means no limit."""

    def __init__(self, packets_per_second: float | None) -> None:
        self._gap_s = 1.0 / packets_per_second if packets_per_second else 0.0
        self._next_at = 0.0

    async def wait_turn(self, deadline: float) -> None:
        """Wait for the next turn; BudgetSpent if it comes after the deadline."""
        if not self._gap_s:
            return
        now = asyncio.get_running_loop().time()
        turn_at = max(now, self._next_at)
        if turn_at >= deadline:
            raise BudgetSpent("the next packet may only leave after the time is over")
        self._next_at = turn_at + self._gap_s
        if turn_at > now:
            await asyncio.sleep(turn_at - now)


# What a slow agent is given before the question is repeated: half as much again as it took lately, and at most two
# time-outs, since a page that takes longer is given up anyway.
_LENIENCE = 1.5
MOST_TIMEOUTS = 2.0


# Waits, though not for long, for what is more urgent than the next packet.
GiveWay = Callable[[], Awaitable[None]]


class Courier(Generic[Answer]):
    """Sends to one device for one permit holder; each request takes one of the `slots`."""

    def __init__(
        self,
        transport: UdpTransport[Answer],
        permit: SendPermit,
        limits: Limits,
        memory: Share,
        give_way: GiveWay | None = None,
    ) -> None:
        self._give_way = give_way
        self.traffic = Traffic()
        self.round_trips = RoundTrips()
        self.slots = asyncio.Semaphore(limits.max_in_flight)
        self.memory = memory
        memory.on_refusal = self._end
        self._transport = transport
        self._permit = permit
        self._pace = PacketPace(limits.packets_per_second)
        self._open: set[Pending[Answer]] = set()
        # Why nothing is asked any more.
        self._ended_by: SnmpError | None = None
        # How long the last two answers took, in time-outs: of one, a copy may have been lost; two mean a slow agent.
        self._latenesses = (0.0, 0.0)

    async def close(self) -> None:
        """Stop sending, wait until the device has none of our requests left, and close the socket.

        Otherwise the next holder's requests would queue behind ours: each must be answered or timed out.
        """
        self._ended_by = self._ended_by or SessionClosed("the session was closed")
        now = asyncio.get_running_loop().time
        try:
            while left := [pending for pending in self._open if not pending.outcome.done() and pending.due_at > now()]:
                longest_wait_s = max(pending.due_at for pending in left) - now()
                await asyncio.wait([pending.outcome for pending in left], timeout=longest_wait_s)
        finally:
            self._transport.close()
            self.memory.release()

    def check_open(self) -> None:
        """Raise SessionClosed if closed, TooMuchData if its answers no longer fit into memory."""
        if self._ended_by is not None:
            raise self._ended_by
        if self._transport.is_closed:
            raise SessionClosed("the session is closed")

    def _end(self, error: SnmpError) -> None:
        """Fail requests in progress at once to free their memory; the device still works on them."""
        self._ended_by = self._ended_by or error
        for pending in list(self._open):
            if not pending.outcome.done():
                self._permit.keep_until(pending.due_at)
                pending.settle(error)

    async def deliver(self, pending: Pending[Answer], payload: bytes, patience: Patience, deadline: float) -> Answer:
        """Return the answer to a request the transport expects, then close the request.

        The deadline is for sending: a sent request is awaited, since the device works on it anyway. If cancelled, the
        request stays open and `close` waits for it.
        """
        self._open.add(pending)
        try:
            answer = await self._exchange(pending, payload, patience, deadline)
        except SnmpError:
            self._forget(pending)
            raise
        self._forget(pending)
        return answer

    async def _exchange(self, pending: Pending[Answer], payload: bytes, patience: Patience, deadline: float) -> Answer:
        """Send the same bytes up to `tries` times, each after the timeout of the one before.

        The timeout grows for a slow agent: repeats would only add to its work.
        """
        loop = asyncio.get_running_loop()
        address = self._transport.peer[0]
        asked_at: float | None = None
        timeout_s = patience.timeout_s * min(max(1.0, _LENIENCE * min(self._latenesses)), MOST_TIMEOUTS)
        for attempt in range(patience.tries):
            await self._pace.wait_turn(deadline)
            if self._give_way is not None:
                await self._give_way()
            if loop.time() >= deadline:
                raise BudgetSpent(f"no time left to ask {address}")
            sent_at = await self._send(pending, payload, timeout_s, is_repeat=attempt > 0)
            asked_at = asked_at or sent_at
            await pending.wait(timeout_s)
            if not pending.outcome.done():
                # A process that was stopped finds its time over before it has read what came meanwhile.
                self._transport.read_waiting()
            if pending.outcome.done():
                self._latenesses = (self._latenesses[1], (loop.time() - asked_at) / patience.timeout_s)
                outcome = pending.outcome.result()
                if isinstance(outcome, SnmpError):
                    raise outcome
                self.traffic.bytes_received += outcome.size
                self.traffic.varbinds += outcome.varbinds
                self.memory.take_answer(size=outcome.size, varbinds=outcome.varbinds)
                received = outcome
                if attempt == 0:
                    # Of a question that was sent again, nobody can tell which copy was answered.
                    self.round_trips.add(received.at - sent_at)
                return received.answer
        if pending.garbage is not None:
            raise pending.garbage
        if loop.time() >= deadline:
            raise BudgetSpent(f"{address} did not answer in the time left")
        raise AgentTimeout(f"{address} did not answer {patience.tries} x {timeout_s:g} s")

    async def _send(self, pending: Pending[Answer], payload: bytes, timeout_s: float, *, is_repeat: bool) -> float:
        """Send the datagram once the permission is proven; return when that was."""
        while True:
            self.check_open()
            sent_at = asyncio.get_running_loop().time()
            try:
                self._transport.send(payload, self._permit)
                break
            except OwnershipUnproven:
                await self._permit.confirm()
                if is_repeat and pending.outcome.done():
                    # Answered meanwhile: the OLT is not asked again.
                    return sent_at
        pending.due_at = sent_at + timeout_s
        self.traffic.packets += 1
        self.traffic.retransmissions += is_repeat
        self.traffic.bytes_sent += len(payload)
        return sent_at

    def _forget(self, pending: Pending[Answer]) -> None:
        self._open.discard(pending)
        self._transport.close_request(pending)


class Session(ABC):
    """Requests to one device. Every failure is an SnmpError; deadlines are on the running loop's clock."""

    def __init__(self, courier: Courier[Any], target: Target, limits: Limits, strays: Strays) -> None:
        self.target = target
        # Shared by all its users.
        self.limits = limits
        self.strays = strays
        self.traffic = courier.traffic
        # Of requests that were sent once: of others nobody can tell which copy was answered.
        self.round_trips = courier.round_trips
        # Of its answers; callers that keep more account for it here.
        self.memory = courier.memory
        self._courier = courier

    @abstractmethod
    async def get(
        self, oids: Sequence[Oid], *, patience: Patience = CHEAP, deadline: float = NO_DEADLINE
    ) -> list[VarBind]:
        """Return one varbind per OID, in order; missing ones have an exception tag and no value."""

    @abstractmethod
    async def next_page(
        self, oids: Sequence[Oid], repetitions: int, *, patience: Patience = CHEAP, deadline: float = NO_DEADLINE
    ) -> "VarBindPage":
        """Return the successors of the OIDs, row by row, at most `repetitions` rows; one row for v1.

        MissingObject from a v1 agent means that the OID at its `index` has no successor.
        """

    async def close(self) -> None:
        await self._courier.close()
