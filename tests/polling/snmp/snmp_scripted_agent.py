"""A small agent on a real UDP port that answers from a table and misbehaves as reported."""

import asyncio
import bisect
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from facho.polling.snmp.ber import (
    Oid,
    Pdu,
    PduKind,
    SnmpMessage,
    Tag,
    Value,
    VarBind,
    decode_message,
    encode_message,
)
from facho.polling.snmp.errors import OwnershipLost
from facho.polling.snmp.session import Session

Table = dict[Oid, tuple[int, Value]]


@dataclass(frozen=True, slots=True)
class Received:
    """A request as it came in: its place in the order, the time, the bytes and their meaning."""

    number: int
    at: float
    data: bytes
    message: SnmpMessage

    @property
    def request_id(self) -> int:
        return self.message.pdu.request_id

    @property
    def asked(self) -> list[Oid]:
        return [oid for oid, _, _ in self.message.pdu.varbinds]

    @property
    def repetitions(self) -> int:
        return self.message.pdu.error_index


# What an agent does with a request: the datagrams it sends back, made from the honest answer.
Behaviour = Callable[[Received, SnmpMessage], Iterable[bytes]]


def honest(_received: Received, answer: SnmpMessage) -> Iterable[bytes]:
    return [encode_message(answer)]


@dataclass
class ScriptedAgent(asyncio.DatagramProtocol):
    """Answers honestly unless `behave` says otherwise; keeps what it saw."""

    table: Table
    behave: Behaviour = honest
    delay_s: float = 0.0
    max_answer_varbinds: int = 10_000
    received: list[Received] = field(default_factory=list)
    max_in_flight: int = 0
    address: str = ""
    port: int = 0

    def __post_init__(self) -> None:
        self.order = sorted(self.table)
        self._in_flight: Counter[int] = Counter()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: Any = transport
        self.address, self.port = transport.get_extra_info("sockname")[:2]

    def datagram_received(self, data: bytes, addr: Any) -> None:
        loop = asyncio.get_running_loop()
        received = Received(len(self.received) + 1, loop.time(), data, decode_message(data))
        self.received.append(received)
        replies = list(self.behave(received, self.answer(received.message)))
        self._in_flight[received.request_id] += 1
        self.max_in_flight = max(self.max_in_flight, len(self._in_flight))
        loop.call_later(self.delay_s, self._reply, received, replies, addr) if self.delay_s else self._reply(
            received, replies, addr
        )

    def _reply(self, received: Received, replies: list[bytes], addr: Any) -> None:
        self._in_flight.pop(received.request_id, None)
        if self.transport.is_closing():
            return
        for reply in replies:
            self.transport.sendto(reply, addr)

    @property
    def packets(self) -> int:
        return len(self.received)

    @property
    def requests(self) -> int:
        return len({received.request_id for received in self.received})

    def answer(self, request: SnmpMessage) -> SnmpMessage:
        pdu = request.pdu
        if pdu.kind is PduKind.GET:
            answer = self._get(request)
        elif pdu.kind is PduKind.GET_NEXT:
            answer = self._get_next(request)
        else:
            asked = [oid for oid, _, _ in pdu.varbinds]
            answer = _answer(request, self._bulk(asked, pdu.error_index))
        return answer

    def _get(self, request: SnmpMessage) -> SnmpMessage:
        missing = (Tag.NO_SUCH_INSTANCE, None)
        rows = [(oid, *self.table.get(oid, missing)) for oid, _, _ in request.pdu.varbinds]
        if request.version == 0:
            return _with_v1_errors(request, rows, Tag.NO_SUCH_INSTANCE)
        return _answer(request, rows)

    def _get_next(self, request: SnmpMessage) -> SnmpMessage:
        rows = [self.successor(oid) for oid, _, _ in request.pdu.varbinds]
        if request.version == 0:
            return _with_v1_errors(request, rows, Tag.END_OF_MIB_VIEW)
        return _answer(request, rows)

    def _bulk(self, asked: list[Oid], repetitions: int) -> list[VarBind]:
        rows: list[VarBind] = []
        for _ in range(repetitions):
            page = [self.successor(oid) for oid in asked]
            rows += page
            asked = [oid for oid, _, _ in page]
            if all(tag == Tag.END_OF_MIB_VIEW for _, tag, _ in page) or len(rows) >= self.max_answer_varbinds:
                break
        return rows[: self.max_answer_varbinds]

    def successor(self, oid: Oid) -> VarBind:
        place = bisect.bisect_right(self.order, oid)
        if place == len(self.order):
            return (oid, Tag.END_OF_MIB_VIEW, None)
        found = self.order[place]
        return (found, *self.table[found])


def _answer(request: SnmpMessage, rows: list[VarBind]) -> SnmpMessage:
    return replace(request, pdu=Pdu(PduKind.RESPONSE, request.pdu.request_id, 0, 0, rows))


def _with_v1_errors(request: SnmpMessage, rows: list[VarBind], missing: int) -> SnmpMessage:
    for index, (_, tag, _) in enumerate(rows, start=1):
        if tag == missing:
            return with_status(request, 2, index)
    return _answer(request, rows)


def with_status(request: SnmpMessage, status: int, index: int = 0) -> SnmpMessage:
    return replace(
        request, pdu=Pdu(PduKind.RESPONSE, request.pdu.request_id, status, index, list(request.pdu.varbinds))
    )


def with_request_id(answer: SnmpMessage, request_id: int) -> SnmpMessage:
    return replace(answer, pdu=replace(answer.pdu, request_id=request_id))


def silent(_received: Received, _answer: SnmpMessage) -> Iterable[bytes]:
    return []


def drop(*numbers: int) -> Behaviour:
    """Lose the answers to the requests of these numbers, counted from 1."""
    return lambda received, answer: [] if received.number in numbers else honest(received, answer)


def too_big_above(varbinds: int) -> Behaviour:
    def behave(received: Received, answer: SnmpMessage) -> Iterable[bytes]:
        if len(answer.pdu.varbinds) > varbinds:
            return [encode_message(with_status(received.message, 1))]
        return honest(received, answer)

    return behave


def silent_above(varbinds: int) -> Behaviour:
    return lambda received, answer: [] if len(answer.pdu.varbinds) > varbinds else honest(received, answer)


class Allowed:
    """A permit that counts how often it was asked."""

    def __init__(self) -> None:
        self.checks = 0
        self.kept_until = 0.0

    def check(self) -> None:
        self.checks += 1

    def keep_until(self, loop_time: float) -> None:
        self.kept_until = loop_time


AgentStarter = Callable[..., Awaitable[ScriptedAgent]]
SessionOpener = Callable[..., Session]


class Lapsing:
    """A permit that is lost after some checks."""

    def __init__(self, lasts: int) -> None:
        self.left = lasts

    def check(self) -> None:
        if self.left == 0:
            raise OwnershipLost("the claim is gone")
        self.left -= 1
