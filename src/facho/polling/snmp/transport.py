"""One UDP socket for many agents: answers find their question by peer and id, the rest is counted.

The socket is driven directly, not through asyncio's datagram transport, because that one may buffer: a datagram
has to leave in the very block that checked the right to send it.
"""

import asyncio
import contextlib
import errno
import secrets
import socket
import struct
import sys
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar

from facho.polling.domain.collection import SendPermit
from facho.polling.snmp.ber import Message, PduKind, decode_message, peek_request_id
from facho.polling.snmp.errors import AgentRefused, MalformedMessage, NoSource, SessionClosed, SnmpError

Peer = tuple[str, int]
Answer = TypeVar("Answer")

MAX_DATAGRAM_BYTES = 65_535
# Two hundred agents that answer at once send some 2 MB.
RECEIVE_BUFFER_BYTES = 4 * 1024 * 1024
# Datagrams taken per wake-up, so that a flood cannot keep other tasks from running.
_DATAGRAMS_PER_WAKE_UP = 64
_MAX_REQUEST_ID = 0x7FFF_FFFF
_ERROR_QUEUE_BYTES = 512

# Linux constants that the socket module lacks: hand ICMP errors of an unconnected socket to its error queue.
_ON_LINUX = sys.platform == "linux"
_IP_RECVERR = 11
_IPV6_RECVERR = 25
_MSG_ERRQUEUE = 0x2000
_UNREACHABLE = frozenset({errno.ECONNREFUSED, errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EACCES, errno.EPERM})


@dataclass(slots=True)
class Strays:
    """Datagrams that answered no open question: late, duplicate, misdirected or damaged."""

    unknown_peer: int = 0
    unknown_request: int = 0
    malformed: int = 0


class Received(NamedTuple, Generic[Answer]):
    """An answer, the bytes that it came in, and when they were read from the socket."""

    answer: Answer
    size: int
    at: float


@dataclass(slots=True, eq=False)
class Pending(Generic[Answer]):
    """A question on its way; the outcome is an answer or the failure that the network or the agent told."""

    peer: Peer
    request_id: int
    version: int
    outcome: asyncio.Future[Received[Answer] | SnmpError] = field(repr=False)
    garbage: MalformedMessage | None = None

    def settle(self, outcome: Received[Answer] | SnmpError) -> None:
        """Take the first outcome; later ones change nothing."""
        if not self.outcome.done():
            self.outcome.set_result(outcome)


class UdpTransport(ABC, Generic[Answer]):
    """A socket of one address family and one source address, bound to the running loop."""

    def __init__(self, *, ipv6: bool, source_address: str | None) -> None:
        self.strays = Strays()
        self._loop = asyncio.get_running_loop()
        self._pending: dict[int, Pending[Answer]] = {}
        self._open_per_peer: dict[Peer, int] = {}
        self._socket = _open_socket(ipv6=ipv6, source_address=source_address)
        self._loop.add_reader(self._socket, self._on_readable)

    @property
    def receive_buffer_bytes(self) -> int:
        """What the system granted for answers that wait to be read."""
        return self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)

    @property
    def is_closed(self) -> bool:
        """Tell whether the socket is gone."""
        return self._socket.fileno() < 0

    def close_request(self, pending: Pending[Answer]) -> None:
        """Forget a question; an answer that still comes is a stray."""
        if self._pending.pop(pending.request_id, None) is None:
            return
        left = self._open_per_peer[pending.peer] - 1
        if left:
            self._open_per_peer[pending.peer] = left
        else:
            del self._open_per_peer[pending.peer]

    def send(self, pending: Pending[Answer], payload: bytes, permit: SendPermit) -> None:
        """Check the permit and let the datagram leave, in one synchronous block.

        A full send buffer loses the datagram as the network might; AgentRefused when the system will not send it.
        """
        if self.is_closed:
            raise SessionClosed("the socket is closed")
        # A refusal of an earlier datagram, perhaps to another agent, would be reported as this one's failure.
        self._drain_errors()
        permit.check()
        try:
            self._socket.sendto(payload, pending.peer)
        except BlockingIOError:
            return
        except OSError as error:
            raise _refusal(pending.peer, error.errno) from error

    def close(self) -> None:
        """Close the socket; open questions end with SessionClosed."""
        if self.is_closed:
            return
        self._loop.remove_reader(self._socket)
        self._socket.close()
        for pending in list(self._pending.values()):
            pending.settle(SessionClosed("the socket was closed"))

    @abstractmethod
    def _read(self, data: bytes, peer: Peer, received_at: float) -> None:
        """Find the question that a datagram answers and settle it; MalformedMessage when it cannot be read."""

    def _register(self, peer: Peer, request_id: int, version: int) -> Pending[Answer]:
        if self.is_closed:
            raise SessionClosed("the socket is closed")
        pending: Pending[Answer] = Pending(peer, request_id, version, self._loop.create_future())
        self._pending[request_id] = pending
        self._open_per_peer[peer] = self._open_per_peer.get(peer, 0) + 1
        return pending

    def _on_readable(self) -> None:
        for _ in range(_DATAGRAMS_PER_WAKE_UP):
            if self.is_closed:
                return
            try:
                data, address = self._socket.recvfrom(MAX_DATAGRAM_BYTES)
            except BlockingIOError:
                self._drain_errors()
                return
            except OSError:
                self._drain_errors()
                continue
            self._receive(data, (address[0], address[1]))

    def _receive(self, data: bytes, peer: Peer) -> None:
        if peer not in self._open_per_peer:
            self.strays.unknown_peer += 1
            return
        try:
            self._read(data, peer, self._loop.time())
        except MalformedMessage as error:
            self._receive_garbage(data, peer, error)

    def _receive_garbage(self, data: bytes, peer: Peer, error: MalformedMessage) -> None:
        """Blame a damaged answer on its question when it can be told; else remember it for the time-out's reason."""
        self.strays.malformed += 1
        pending = self._pending.get(peek_request_id(data) or 0)
        if pending is not None and pending.peer == peer:
            pending.settle(error)
            return
        for other in self._pending.values():
            if other.peer == peer:
                other.garbage = error

    def _drain_errors(self) -> None:
        if not _ON_LINUX:
            return
        with contextlib.suppress(BlockingIOError):
            while True:
                _, ancillary, _, address = self._socket.recvmsg(1, _ERROR_QUEUE_BYTES, _MSG_ERRQUEUE)
                self._refuse((address[0], address[1]), _errno_in(ancillary))

    def _refuse(self, peer: Peer, number: int) -> None:
        if number not in _UNREACHABLE or peer not in self._open_per_peer:
            return
        for pending in list(self._pending.values()):
            if pending.peer == peer:
                pending.settle(_refusal(peer, number))


class CommunityTransport(UdpTransport[Message]):
    """Carries messages of v1 and v2c, which are matched by a request id that we count."""

    def __init__(self, *, ipv6: bool, source_address: str | None) -> None:
        super().__init__(ipv6=ipv6, source_address=source_address)
        self._last_request_id = secrets.randbelow(_MAX_REQUEST_ID)

    def next_request_id(self) -> int:
        """Return an id that no open question of this socket has."""
        while True:
            self._last_request_id = self._last_request_id % _MAX_REQUEST_ID + 1
            if self._last_request_id not in self._pending:
                return self._last_request_id

    def open_request(self, peer: Peer, request_id: int, version: int) -> Pending[Message]:
        """Expect an answer to the question of this id, of this peer and version."""
        return self._register(peer, request_id, version)

    def _read(self, data: bytes, peer: Peer, received_at: float) -> None:
        message = decode_message(data)
        pending = self._pending.get(message.pdu.request_id)
        if (
            pending is None
            or pending.outcome.done()
            or pending.peer != peer
            or message.pdu.kind is not PduKind.RESPONSE
            or message.version != pending.version
        ):
            self.strays.unknown_request += 1
            return
        pending.settle(Received(message, len(data), received_at))


def _open_socket(*, ipv6: bool, source_address: str | None) -> socket.socket:
    family = socket.AF_INET6 if ipv6 else socket.AF_INET
    udp = socket.socket(family, socket.SOCK_DGRAM)
    try:
        udp.setblocking(False)
        udp.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
        if ipv6:
            udp.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        if _ON_LINUX:
            level, option = (socket.IPPROTO_IPV6, _IPV6_RECVERR) if ipv6 else (socket.IPPROTO_IP, _IP_RECVERR)
            udp.setsockopt(level, option, 1)
        udp.bind((source_address or ("::" if ipv6 else "0.0.0.0"), 0))  # noqa: S104 - a client on any interface
    except OSError as error:
        udp.close()
        where = source_address or "any address"
        raise NoSource(f"no socket on {where}: {_reason(error.errno)}", number=error.errno or 0) from error
    return udp


def _errno_in(ancillary: list[tuple[int, int, bytes | Any]]) -> int:
    for _, kind, data in ancillary:
        if kind in (_IP_RECVERR, _IPV6_RECVERR) and len(data) >= 4:
            return int(struct.unpack_from("=I", data)[0])
    return 0


def _refusal(peer: Peer, number: int | None) -> AgentRefused:
    return AgentRefused(f"{peer[0]} port {peer[1]}: {_reason(number)}", number=number or 0)


def _reason(number: int | None) -> str:
    return errno.errorcode.get(number or 0, "unknown error")
