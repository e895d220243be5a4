"""One simulated SNMP agent: takes requests from its endpoint, lets faults happen, sends replies and counts.

All datagrams that wait are counted as in flight before the first is answered, so that a manager which sends
fifty at once is seen to do so even when each answer takes no time.
"""

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from facho.polling.snmp.ber import Message, decode_message
from facho.polling.snmp.errors import MalformedMessage
from facho.simulator.counters import Counters, Flight, RequestKey
from facho.simulator.endpoint import Address, Endpoint
from facho.simulator.faults import FaultInjector
from facho.simulator.responder import Reply, Responder


class Request(NamedTuple):
    """A request that passed the community check."""

    message: Message
    address: Address
    key: RequestKey


class Agent:
    """Serves one MIB view on one socket; `refresh` is called before answers, so that values are of that moment."""

    def __init__(
        self, responder: Responder, faults: FaultInjector, *, community: bytes, refresh: Callable[[], None]
    ) -> None:
        self.counters = Counters()
        self.faults = faults
        self._responder = responder
        self._community = community
        self._refresh = refresh
        self._flight = Flight()
        self._life = 0  # replies begun in an earlier life, before a crash, are never sent
        self._silent_until = 0.0
        self._endpoint: Endpoint | None = None

    def open(self, endpoint: Endpoint) -> None:
        """Start to serve."""
        self._endpoint = endpoint
        endpoint.listen(self._receive)

    def close(self) -> None:
        """Stop at once; replies still being worked on are never sent."""
        self._drop_work()
        if self._endpoint is not None:
            self._endpoint.close()
            self._endpoint = None

    def _receive(self, datagrams: list[tuple[bytes, Address]]) -> None:
        now = asyncio.get_running_loop().time()
        accepted = [request for data, address in datagrams if (request := self._accept(data, address))]
        for request in accepted:
            self._arrive(request, now)
        if self._crashes(now) or self.faults.is_silent or now < self._silent_until:
            self.counters.dropped += len(accepted)
            self._drop_arrived(accepted)
            return
        self._refresh()
        for request in accepted:
            self._work(request)

    def _accept(self, data: bytes, address: Address) -> Request | None:
        self.counters.bytes_in += len(data)
        try:
            message = decode_message(data)
        except MalformedMessage:
            self.counters.malformed += 1
            return None
        if message.community != self._community:
            self.counters.wrong_community += 1
            return None
        return Request(message, address, (address, message.pdu.request_id))

    def _arrive(self, request: Request, now: float) -> None:
        waited = self._flight.arrive(request.key, now=now)
        if waited is None:
            self.counters.requests += 1
        else:
            is_live = self._responder.asks_live(request.message)
            self.counters.count_retry(waited * 1000, is_live=is_live)
        self.counters.max_in_flight = max(self.counters.max_in_flight, self._flight.distinct)

    def _crashes(self, now: float) -> bool:
        faults = self.faults.current
        if faults.crash_above is None or self._flight.distinct <= faults.crash_above:
            return False
        self.counters.crashes += 1
        self._silent_until = now + faults.crash_seconds
        self._drop_work()
        return True

    def _drop_work(self) -> None:
        self._life += 1
        self._flight.forget()

    def _drop_arrived(self, requests: list[Request]) -> None:
        for request in requests:
            self._flight.leave(request.key)

    def _work(self, request: Request) -> None:
        reply = self._responder.respond(request.message)
        if reply is None:
            self._flight.leave(request.key)
            return
        delay = self.faults.delay_seconds(reply.work)
        if delay <= 0:
            self._finish(request, reply)
            return
        asyncio.get_running_loop().call_later(delay, self._finish_later, self._life, request, reply)

    def _finish_later(self, life: int, request: Request, reply: Reply) -> None:
        if life == self._life:
            self._finish(request, reply)

    def _finish(self, request: Request, reply: Reply) -> None:
        self._flight.leave(request.key)
        if self._endpoint is None or self.faults.is_lost() or not self._endpoint.send(reply.data, request.address):
            self.counters.dropped += 1
            return
        self.counters.responses += 1
        self.counters.varbinds += reply.varbinds
        self.counters.bytes_out += len(reply.data)
