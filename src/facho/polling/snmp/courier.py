"""Carries one session's questions: bounded in flight, paced, repeated in silence, counted, never without the permit."""

import asyncio
from typing import Generic

from facho.polling.domain.collection import SendPermit
from facho.polling.snmp.errors import AgentTimeout, BudgetSpent, SessionClosed, SnmpError
from facho.polling.snmp.pace import Pace
from facho.polling.snmp.session import Limits, RoundTrips, Traffic
from facho.polling.snmp.target import Patience, Target
from facho.polling.snmp.transport import Answer, Pending, Received, UdpTransport

# What a slow agent is given before the question is repeated: half as much again as it took lately, and at most two
# time-outs, since a page that takes longer is given up anyway.
_LENIENCE = 1.5
_MOST_TIMEOUTS = 2.0


class Courier(Generic[Answer]):
    """One device, one holder of the right to send to it. Whoever asks takes one of the `slots` first."""

    def __init__(self, transport: UdpTransport[Answer], target: Target, permit: SendPermit, limits: Limits) -> None:
        self.peer = (target.address, target.port)
        self.traffic = Traffic()
        self.round_trips = RoundTrips()
        self.slots = asyncio.Semaphore(limits.max_in_flight)
        self._transport = transport
        self._permit = permit
        self._pace = Pace(limits.packets_per_second)
        self._open: set[Pending[Answer]] = set()
        self._is_closed = False
        # How long the last two answers took, in time-outs: of one, a copy may have been lost; two mean a slow agent.
        self._latenesses = (0.0, 0.0)

    def close(self) -> None:
        """End what is under way; the shared socket stays."""
        self._is_closed = True
        for pending in list(self._open):
            pending.settle(SessionClosed("the session was closed"))

    def check_open(self) -> None:
        """Raise SessionClosed once the session or its socket is."""
        if self._is_closed or self._transport.is_closed:
            raise SessionClosed("the session is closed")

    async def deliver(self, pending: Pending[Answer], payload: bytes, patience: Patience, deadline: float) -> Answer:
        """Return the answer to a question that the transport expects; the question is closed afterwards."""
        self._open.add(pending)
        try:
            return await self._exchange(pending, payload, patience, deadline)
        finally:
            self._open.discard(pending)
            self._transport.close_request(pending)

    async def _exchange(self, pending: Pending[Answer], payload: bytes, patience: Patience, deadline: float) -> Answer:
        """Send the same bytes up to `tries` times, each only after the time-out of the one before.

        An agent that is slower than that is waited for longer next time: repeats would only add to its work.
        """
        loop = asyncio.get_running_loop()
        address = self.peer[0]
        asked_at: float | None = None
        timeout_s = patience.timeout_s * min(max(1.0, _LENIENCE * min(self._latenesses)), _MOST_TIMEOUTS)
        for attempt in range(patience.tries):
            await self._pace.wait_turn(deadline)
            sent_at = loop.time()
            asked_at = asked_at or sent_at
            wait_s = min(timeout_s, deadline - sent_at)
            if wait_s <= 0:
                raise BudgetSpent(f"no time left to ask {address}")
            self._send(pending, payload, is_repeat=attempt > 0)
            await asyncio.wait((pending.outcome,), timeout=wait_s)
            if pending.outcome.done():
                self._latenesses = (self._latenesses[1], (loop.time() - asked_at) / patience.timeout_s)
                received = self._received(pending.outcome.result())
                if attempt == 0:
                    # Of a question that was sent again, nobody can tell which copy was answered.
                    self.round_trips.add(received.at - sent_at)
                return received.answer
        if pending.garbage is not None:
            raise pending.garbage
        if loop.time() >= deadline:
            raise BudgetSpent(f"{address} did not answer in the time left")
        raise AgentTimeout(f"{address} did not answer {patience.tries} x {timeout_s:g} s")

    def _send(self, pending: Pending[Answer], payload: bytes, *, is_repeat: bool) -> None:
        self.check_open()
        self._transport.send(pending, payload, self._permit)
        self.traffic.packets += 1
        self.traffic.retransmissions += is_repeat
        self.traffic.bytes_sent += len(payload)

    def _received(self, outcome: Received[Answer] | SnmpError) -> Received[Answer]:
        if isinstance(outcome, SnmpError):
            raise outcome
        self.traffic.bytes_received += outcome.size
        return outcome
