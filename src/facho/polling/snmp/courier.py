"""Carries one session's questions: bounded in flight, paced, repeated in silence, counted, never without the permit."""

import asyncio
from typing import Generic

from facho.polling.domain.collection import SendPermit
from facho.polling.snmp.errors import AgentTimeout, BudgetSpent, OwnershipUnproven, SessionClosed, SnmpError
from facho.polling.snmp.memory import Share
from facho.polling.snmp.session import Limits, RoundTrips, Traffic
from facho.polling.snmp.target import Patience
from facho.polling.snmp.transport import Answer, Pending, UdpTransport


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


class Courier(Generic[Answer]):
    """Sends to one device for one permit holder; each request takes one of the `slots`."""

    def __init__(self, transport: UdpTransport[Answer], permit: SendPermit, limits: Limits, memory: Share) -> None:
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
