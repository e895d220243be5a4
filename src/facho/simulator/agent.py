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
from facho.simulator.faults import FaultInjector, Faults
from facho.simulator.responder import GENERAL_ERROR, Reply, Responder, refuse


class Request(NamedTuple):
    """A request that passed the community check."""

    message: Message
    address: Address
    key: RequestKey


class Agent:
    """Serves one MIB view on one socket; `refresh` is called before answers, so that values are of that moment."""

    def __init__(
        self, responder: Responder, injector: FaultInjector, *, community: bytes, refresh: Callable[[], None]
    ) -> None:
        self.counters = Counters()
        self._responder = responder
        self._injector = injector
        self._community = community
        self._refresh = refresh
        self._flight = Flight()
        self._life = 0  # replies begun in an earlier life, before a crash, are never sent
        self._left_to_answer: int | None = None
        self._silent_until = 0.0
        self._endpoint: Endpoint | None = None
        self.behave(injector.current)

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

    def behave(self, faults: Faults) -> None:
        """Have these faults from now on, and none of those before."""
        self._injector.current = faults
        self._responder.too_big_above = faults.too_big_above
        self._responder.mislead(faults.loop, max_rows=faults.max_rows)
        self._left_to_answer = faults.silent_after
        self._silent_until = 0.0

    def _receive(self, datagrams: list[tuple[bytes, Address]]) -> None:
        now = asyncio.get_running_loop().time()
        accepted = [request for data, address in datagrams if (request := self._accept(data, address))]
        for request in accepted:
            self._arrive(request, now)
        self._crash_when_overloaded(now)
        if self._injector.current.is_silent or now < self._silent_until:
            self._ignore(accepted)
            return
        self._refresh()
        for request in accepted:
            self._answer(request, now)

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
            self.counters.count_retry(waited * 1000, is_live=self._responder.asks_live(request.message))
        self.counters.max_in_flight = max(self.counters.max_in_flight, self._flight.distinct)

    def _crash_when_overloaded(self, now: float) -> None:
        faults = self._injector.current
        if faults.crash_above is not None and self._flight.distinct > faults.crash_above:
            self.counters.crashes += 1
            self._silent_until = now + faults.crash_seconds
            self._drop_work()

    def _drop_work(self) -> None:
        self._life += 1
        self.counters.dropped += self._flight.forget()
        self._injector.restart()

    def _ignore(self, requests: list[Request]) -> None:
        for request in requests:
            self.counters.dropped += self._flight.leave(request.key)

    def _answer(self, request: Request, now: float) -> None:
        if self._falls_silent(now):
            self._ignore([request])
            return
        reply = self._reply_to(request.message)
        if reply is None:
            self._flight.leave(request.key)
            return
        busy = self._injector.busy_seconds(reply.work, in_flight=self._flight.distinct)
        self.counters.busy_seconds += busy
        delay = self._injector.wait_seconds(reply.work, busy_seconds=busy, now=now)
        self._later(delay, self._finish, request, reply)

    def _falls_silent(self, now: float) -> bool:
        if now < self._silent_until:
            return True
        if self._left_to_answer is None:
            return False
        self._left_to_answer -= 1
        if self._left_to_answer >= 0:
            return False
        self._left_to_answer = None
        self._silent_until = now + self._injector.current.silent_seconds
        return True

    def _reply_to(self, message: Message) -> Reply | None:
        if self._injector.fails_generally():
            return refuse(message, GENERAL_ERROR, 1)
        return self._responder.respond(message)

    def _finish(self, request: Request, reply: Reply) -> None:
        departures = self._injector.departures(reply.data)
        if not departures:
            self._flight.leave(request.key)
            self.counters.dropped += 1
            return
        self._flight.answer(request.key)
        self.counters.responses += 1
        self.counters.varbinds += reply.varbinds
        for delay, data in departures:
            self._later(delay, self._send, data, request.address)

    def _send(self, data: bytes, address: Address) -> None:
        if self._endpoint is not None and self._endpoint.send(data, address):
            self.counters.bytes_out += len(data)

    def _later(self, delay: float, act: Callable[..., None], *arguments: object) -> None:
        if delay > 0:
            asyncio.get_running_loop().call_later(delay, self._act_if_alive, self._life, act, arguments)
        else:
            act(*arguments)

    def _act_if_alive(self, life: int, act: Callable[..., None], arguments: tuple[object, ...]) -> None:
        if life == self._life:
            act(*arguments)
