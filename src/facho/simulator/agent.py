"""One simulated SNMP agent: takes requests from its endpoint, lets faults happen, sends replies and counts.

All datagrams that wait are counted as in flight before the first is answered, so that a manager which sends
fifty at once is seen to do so even when each answer takes no time. What may go wrong is said by `Faults`; each reply
has its own fate.
"""

import asyncio
import socket
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from random import Random
from typing import Any, NamedTuple

from facho.polling.snmp import ber
from facho.polling.snmp.errors import MalformedMessage
from facho.simulator.responder import GENERAL_ERROR, LoopKind, Reply, ReplyWork, Responder, refuse


@dataclass(frozen=True, slots=True)
class CostModel:
    """CPU seconds of the device per request. `time_scale` 0.01 runs it a hundred times faster."""

    time_scale: float = 1.0
    request_seconds: float = 0.045
    column_seconds: float = 0.0064
    cell_seconds: float = 0.00025
    live_page_seconds: float = 0.4
    live_row_seconds: float = 0.1
    # What two and three requests at once cost in all, against one after the other; each further one adds as much.
    two_at_once: float = 1.05
    three_at_once: float = 1.35
    further_at_once: float = 0.3

    def seconds(self, work: ReplyWork, *, in_flight: int) -> float:
        plain = self.request_seconds + self.column_seconds * work.columns + self.cell_seconds * work.cells
        live = self.live_page_seconds + self.live_row_seconds * work.live_rows if work.live_rows else 0.0
        slowdown = self.three_at_once + self.further_at_once * (in_flight - 3)
        if in_flight <= 2:
            slowdown = self.two_at_once if in_flight == 2 else 1.0
        return (plain + live) * slowdown * self.time_scale


class Processor:
    """The single processor of an OLT: requests are processed one after the other."""

    def __init__(self) -> None:
        self._free_at = 0.0

    def take(self, seconds: float, *, now: float) -> float:
        """Queue work and return in how many seconds it is done."""
        self._free_at = max(self._free_at, now) + seconds
        return self._free_at - now

    def reset(self) -> None:
        self._free_at = 0.0


@dataclass(frozen=True, slots=True)
class Faults:
    """How an agent misbehaves. Shares are probabilities per reply, sizes are bytes."""

    latency_seconds: float = 0.0
    live_row_seconds: float = 0.0
    cost: CostModel | None = None

    loss: float = 0.0
    lost_above: int | None = None
    duplicates: float = 0.0
    late: float = 0.0
    late_seconds: float = 0.05

    truncation: float = 0.0
    garbage: float = 0.0
    wrong_request_id: float = 0.0
    general_error: float = 0.0
    too_big_above: int | None = None
    loop: LoopKind | None = None
    # Tables end after so many rows, as if there were no more.
    max_rows: int | None = None
    # What the SNMP view of the manager does not contain; columns below these OIDs are not there for it.
    closed: tuple[ber.Oid, ...] = ()

    is_silent: bool = False
    # Answers so many requests, then stays silent for a while, once.
    silent_after: int | None = None
    silent_seconds: float = float("inf")
    # More requests than this in flight crash the agent, which then stays silent for a while.
    crash_above: int | None = None
    crash_seconds: float = 5.0

    # Each value has so many octets; each OID of a walk has as many numbers as an OID may have.
    value_bytes: int = 0
    has_deep_oids: bool = False
    ignores_repetitions: bool = False
    # Forged answers of every kind before each reply.
    forgeries: int = 0
    # After each reply, so many answers to nothing.
    flood: int = 0


NO_FAULTS = Faults()

# Agents that attack their manager.
HOSTILE: Mapping[str, Faults] = {
    "endless": Faults(loop=LoopKind.ENDLESS),
    # As much as fits into the largest datagram, of a page of 25 rows.
    "bloated": Faults(loop=LoopKind.ENDLESS, value_bytes=2_500),
    "huge": Faults(loop=LoopKind.ENDLESS, value_bytes=64_000),
    "deep": Faults(loop=LoopKind.ENDLESS, has_deep_oids=True),
    "crowded": Faults(value_bytes=250),
    "overflowing": Faults(loop=LoopKind.ENDLESS, ignores_repetitions=True),
    "forger": Faults(forgeries=8),
    "flood": Faults(flood=200),
}
ALL_HOSTILE = "all"
# What a forged answer says instead of the truth.
FORGED_VALUE = b"FORGED"

_MAX_ID = 0x7FFF_FFFF

# A datagram and after how many further seconds it leaves.
Departure = tuple[float, bytes]


class FaultInjector:
    """Decides what happens to each reply, repeatably from a seed; `current` may be replaced at any time."""

    def __init__(self, faults: Faults, *, seed: int, name: str) -> None:
        self.current = faults
        self._random = Random(f"faults/{seed}/{name}")
        self._processor = Processor()

    def busy_seconds(self, work: ReplyWork, *, in_flight: int) -> float:
        cost = self.current.cost
        return cost.seconds(work, in_flight=in_flight) if cost is not None else 0.0

    def wait_seconds(self, work: ReplyWork, *, busy_seconds: float, now: float) -> float:
        """Seconds until a reply leaves: its latency, plus the work queued before it."""
        latency = self.current.latency_seconds + self.current.live_row_seconds * work.live_rows
        return latency + (self._processor.take(busy_seconds, now=now) if busy_seconds else 0.0)

    def restart(self) -> None:
        self._processor.reset()

    def fails_generally(self) -> bool:
        return self._happens(self.current.general_error)

    def departures(self, reply: bytes) -> list[Departure]:
        faults = self.current
        if self._happens(faults.loss) or (faults.lost_above is not None and len(reply) > faults.lost_above):
            return []
        data = self._spoil(reply)
        delay = faults.late_seconds if self._happens(faults.late) else 0.0
        copies = 2 if self._happens(faults.duplicates) else 1
        return [(delay, data)] * copies

    def forgeries(self, reply: bytes) -> list[bytes]:
        """Answers from an attacker without the request id or the community, with other values."""
        forged: list[bytes] = []
        for _ in range(self.current.forgeries):
            near = ber.decode_head(reply).request_id + self._random.choice((-2, -1, 1, 2))
            forged.append(forge(reply, request_id=near & _MAX_ID))
            forged.append(forge(reply, request_id=self._random.randrange(_MAX_ID)))
            forged.append(forge(reply, community=self._random.randbytes(6).hex().encode()))
        return forged

    def flood(self, reply: bytes) -> list[bytes]:
        head = ber.decode_head(reply)
        return [
            ber.encode_message_raw(head.version, head.community, head.kind, self._random.randrange(_MAX_ID), 0, 0, b"")
            for _ in range(self.current.flood)
        ]

    def _spoil(self, reply: bytes) -> bytes:
        faults = self.current
        if self._happens(faults.truncation):
            return reply[: self._random.randrange(1, len(reply))]
        if self._happens(faults.garbage):
            # Change bytes until it no longer decodes: a decodable change would be a false value.
            spoilt = bytearray(reply)
            while _is_message(bytes(spoilt)):
                spoilt[self._random.randrange(len(spoilt))] = self._random.randrange(256)
            return bytes(spoilt)
        if self._happens(faults.wrong_request_id):
            message = ber.decode_message(reply)
            other = (message.pdu.request_id + 1) & _MAX_ID
            return ber.encode_message(replace(message, pdu=replace(message.pdu, request_id=other)))
        return reply

    def _happens(self, share: float) -> bool:
        return share > 0 and self._random.random() < share


def _is_message(data: bytes) -> bool:
    try:
        ber.decode_message(data)
    except MalformedMessage:
        return False
    return True


def forge(reply: bytes, *, request_id: int | None = None, community: bytes | None = None) -> bytes:
    """Make an answer with false values; with the right id and community unless others are given."""
    message = ber.decode_message(reply)
    values = ber.encode_varbinds((oid, ber.Tag.OCTET_STRING, FORGED_VALUE) for oid, _, _ in message.pdu.varbinds)
    number = message.pdu.request_id if request_id is None else request_id
    return ber.encode_message_raw(
        message.version, community or message.community, message.pdu.kind, number, 0, 0, values
    )


MAX_DATAGRAM_BYTES = 65_535
# Bounds one turn of the event loop when a manager floods one agent.
DATAGRAMS_PER_TURN = 256
RECEIVE_BUFFER_BYTES = 1 << 20

Address = tuple[object, ...]
Receiver = Callable[[list[tuple[bytes, Address]]], None]


class PortTaken(OSError):
    """The wanted UDP port cannot be bound."""


class Endpoint:
    """One bound socket. Asyncio's own datagram transport reads one datagram per loop turn, which hides bursts."""

    def __init__(self, host: str, port: int) -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = socket.socket(family, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
        try:
            self._socket.bind((host, port))
        except OSError as error:
            self._socket.close()
            raise PortTaken(error.errno, f"cannot listen on UDP {host} port {port}: {error.strerror}") from error
        self.host = host
        self.port: int = self._socket.getsockname()[1]
        self._receiver: Receiver | None = None

    def listen(self, receiver: Receiver) -> None:
        self._receiver = receiver
        asyncio.get_running_loop().add_reader(self._socket, self._read_all)

    def send(self, data: bytes, address: Address) -> bool:
        """False if the system does not take the datagram."""
        try:
            self._socket.sendto(data, address)
        except OSError:
            return False
        return True

    def close(self) -> None:
        if self._receiver is not None:
            asyncio.get_running_loop().remove_reader(self._socket)
        self._socket.close()

    def _read_all(self) -> None:
        waiting: list[tuple[bytes, Address]] = []
        for _ in range(DATAGRAMS_PER_TURN):
            try:
                waiting.append(self._socket.recvfrom(MAX_DATAGRAM_BYTES))
            except BlockingIOError:
                break
            except OSError:
                continue  # an error of an earlier send is reported here; the socket still works
        if waiting and self._receiver is not None:
            self._receiver(waiting)


# A request id that comes again within so many others is a retransmission.
REMEMBERED_REQUESTS = 1_024

RequestKey = tuple[object, int]


@dataclass(slots=True)
class Counters:
    """Totals of one agent. A request with a known id counts as a retransmission."""

    requests: int = 0
    retransmissions: int = 0
    responses: int = 0
    varbinds: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    max_in_flight: int = 0
    dropped: int = 0
    malformed: int = 0
    wrong_community: int = 0
    crashes: int = 0
    notifications: int = 0
    # What the answers cost the OLT's processor by the cost model, in its scaled time.
    busy_seconds: float = 0.0
    shortest_retry_ms: float | None = None
    shortest_live_retry_ms: float | None = None

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    def count_retry(self, waited_ms: float, *, is_live: bool) -> None:
        self.retransmissions += 1
        if is_live:
            self.shortest_live_retry_ms = min(waited_ms, self.shortest_live_retry_ms or waited_ms)
        else:
            self.shortest_retry_ms = min(waited_ms, self.shortest_retry_ms or waited_ms)


class Flight:
    def __init__(self) -> None:
        self._working: dict[RequestKey, int] = {}
        self._seen: OrderedDict[RequestKey, float] = OrderedDict()

    @property
    def distinct(self) -> int:
        return len(self._working)

    def arrive(self, key: RequestKey, *, now: float) -> float | None:
        """Record a request; return the age of an earlier one with the same key, None for a new one."""
        before = self._seen.pop(key, None)
        self._seen[key] = now
        if len(self._seen) > REMEMBERED_REQUESTS:
            self._seen.popitem(last=False)
        self._working[key] = self._working.get(key, 0) + 1
        return None if before is None else now - before

    def leave(self, key: RequestKey) -> int:
        """Record the end of a request's processing; return how many were known, 0 or 1."""
        working = self._working.get(key, 0)
        if working > 1:
            self._working[key] = working - 1
        else:
            self._working.pop(key, None)
        return min(working, 1)

    def answer(self, key: RequestKey) -> None:
        """Record a sent reply: further work under this id is a repeat."""
        self._working.pop(key, None)

    def forget(self) -> int:
        """Drop all work, as a crash does, and return how much; request ids are still remembered."""
        dropped = sum(self._working.values())
        self._working.clear()
        return dropped


class Request(NamedTuple):
    message: ber.SnmpMessage
    address: Address
    key: RequestKey


class Agent:
    """Serves one MIB view on one socket; `refresh` is called before each answer to update values."""

    def __init__(
        self, responder: Responder, injector: FaultInjector, *, community: bytes, refresh: Callable[[], None]
    ) -> None:
        self.counters = Counters()
        # Called with the request id of each inform that was answered.
        self.hear_answer: Callable[[int], None] | None = None
        self._responder = responder
        self._injector = injector
        self._community = community
        self._refresh = refresh
        self._flight = Flight()
        self._life = 0  # replies begun in an earlier life, before a crash, are never sent
        self._left_to_answer: int | None = None
        self._silent_until = 0.0
        self._endpoint: Endpoint | None = None
        self._impostor: Endpoint | None = None
        self.behave(injector.current)

    def open(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        endpoint.listen(self._receive)

    def close(self) -> None:
        """Stop at once; pending replies are dropped."""
        self._drop_work()
        if self._endpoint is not None:
            self._endpoint.close()
            self._endpoint = None
        if self._impostor is not None:
            self._impostor.close()
            self._impostor = None

    def behave(self, faults: Faults) -> None:
        self._injector.current = faults
        self._responder.too_big_above = faults.too_big_above
        self._responder.ignores_repetitions = faults.ignores_repetitions
        self._responder.mislead(faults.loop, max_rows=faults.max_rows, closed=faults.closed)
        self._responder.bloat(faults.value_bytes, is_deep=faults.has_deep_oids)
        self._left_to_answer = faults.silent_after
        self._silent_until = 0.0

    def notify(self, data: bytes, address: Address) -> bool:
        """Send a notification from the agent's own socket; an agent that does not answer sends none."""
        is_silent = self._injector.current.is_silent or asyncio.get_running_loop().time() < self._silent_until
        if is_silent or self._endpoint is None or not self._endpoint.send(data, address):
            return False
        self.counters.notifications += 1
        return True

    def _receive(self, datagrams: list[tuple[bytes, Address]]) -> None:
        now = asyncio.get_running_loop().time()
        accepted = [request for data, address in datagrams if (request := self._accept(data, address))]
        for request in accepted:
            waited = self._flight.arrive(request.key, now=now)
            if waited is None:
                self.counters.requests += 1
            else:
                self.counters.count_retry(waited * 1000, is_live=self._responder.asks_live(request.message))
            self.counters.max_in_flight = max(self.counters.max_in_flight, self._flight.distinct)
        faults = self._injector.current
        if faults.crash_above is not None and self._flight.distinct > faults.crash_above:
            self.counters.crashes += 1
            self._silent_until = now + faults.crash_seconds
            self._drop_work()
        if self._injector.current.is_silent or now < self._silent_until:
            self._ignore(accepted)
            return
        self._refresh()
        for request in accepted:
            self._answer(request, now)

    def _accept(self, data: bytes, address: Address) -> Request | None:
        self.counters.bytes_in += len(data)
        try:
            message = ber.decode_message(data)
        except MalformedMessage:
            self.counters.malformed += 1
            return None
        if message.pdu.kind is ber.PduKind.RESPONSE:
            if self.hear_answer is not None:
                self.hear_answer(message.pdu.request_id)
            return None
        if message.community != self._community:
            self.counters.wrong_community += 1
            return None
        return Request(message, address, (address, message.pdu.request_id))

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
        if self._injector.fails_generally():
            reply: Reply | None = refuse(request.message, GENERAL_ERROR, 1)
        else:
            reply = self._responder.respond(request.message)
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

    def _finish(self, request: Request, reply: Reply) -> None:
        departures = self._injector.departures(reply.data)
        if not departures:
            self._flight.leave(request.key)
            self.counters.dropped += 1
            return
        self._flight.answer(request.key)
        self.counters.responses += 1
        self.counters.varbinds += reply.varbinds
        self._forge(reply.data, request.address)
        for delay, data in departures:
            self._later(delay, self._send, data, request.address)
        for data in self._injector.flood(reply.data):
            self._send(data, request.address)

    def _forge(self, reply: bytes, address: Address) -> None:
        """Send forged answers first: from our port without the id or community, and from another port."""
        forged = self._injector.forgeries(reply)
        if not forged or self._endpoint is None:
            return
        if self._impostor is None:
            self._impostor = Endpoint(self._endpoint.host, 0)
        for data in forged:
            self._send(data, address)
        self._impostor.send(forge(reply), address)

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
