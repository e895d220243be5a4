"""One UDP socket per session, connected to its agent: answers find their question by id, the rest is counted.

Each session has a port of its own that the system picks at random, and the kernel drops what comes from any other
address or port: a forger has to guess port and request id. The socket is driven directly,
not through asyncio's datagram transport, because that one may buffer: a datagram has to leave in the very block that
checked the right to send it.
"""

import asyncio
import contextlib
import errno
import math
import os
import socket
import struct
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

from facho.polling.domain.collection import SendPermit
from facho.polling.snmp import errors
from facho.polling.snmp.ber import PduKind, SnmpMessage, decode_body, decode_head
from facho.polling.snmp.target import Target

Peer = tuple[str, int]
Answer = TypeVar("Answer")

MAX_DATAGRAM_BYTES = 65_535
# A few answers of the largest size: one operation per OLT, and rarely more than one question of it in flight.
RECEIVE_BUFFER_BYTES = 256 * 1024
# Datagrams taken per wake-up, so that a flood to one socket cannot keep other tasks and sockets from their turn.
_DATAGRAMS_PER_WAKE_UP = 16
_MAX_REQUEST_ID = 0x7FFF_FFFF
# Requests whose copies may still be answered: far more than an agent can have in progress.
_RECENT_IDS = 256
_ERROR_QUEUE_BYTES = 512

# Linux constants that the socket module lacks: report every ICMP error, not only that nobody listens.
_ON_LINUX = sys.platform == "linux"
_IP_RECVERR = 11
_IPV6_RECVERR = 25
_MSG_ERRQUEUE = 0x2000
_UNREACHABLE = frozenset({errno.ECONNREFUSED, errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EACCES, errno.EPERM})
_OUT_OF_SOCKETS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


@dataclass(slots=True)
class Strays:
    """Datagrams that settled no request. Late ones are repeated answers, or came after the timeout."""

    late: int = 0
    forged: int = 0
    malformed: int = 0


class Received(NamedTuple, Generic[Answer]):
    """An answer with its varbinds and bytes, and when it was read from the socket."""

    answer: Answer
    varbinds: int
    size: int
    at: float


@dataclass(slots=True, eq=False)
class Pending(Generic[Answer]):
    """A request in flight; its outcome is an answer or an error."""

    request_id: int
    version: int
    outcome: asyncio.Future[Received[Answer] | errors.SnmpError] = field(repr=False)
    # Until when, on the loop's clock, the device may work on it; past when it was never sent.
    due_at: float = -math.inf
    garbage: errors.MalformedMessage | None = None
    _waiting: asyncio.Future[None] | None = field(init=False, default=None, repr=False)

    def settle(self, outcome: Received[Answer] | errors.SnmpError) -> None:
        """Set the first outcome; later ones are ignored."""
        if not self.outcome.done():
            self.outcome.set_result(outcome)
            self._wake()

    async def wait(self, timeout_s: float) -> None:
        """Wait for the outcome; return without one when the time is over.

        Like `asyncio.wait`, which needs a turn of the loop and a callback more for every page of a walk.
        """
        if self.outcome.done():
            return
        loop = self.outcome.get_loop()
        # Not the outcome itself: it stays open when the one that waits is cancelled.
        self._waiting = loop.create_future()
        timer = loop.call_later(timeout_s, self._wake)
        try:
            await self._waiting
        finally:
            timer.cancel()

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)


class UdpTransport(ABC, Generic[Answer]):
    """A socket to one agent, bound to the running loop; `on_close` is called once."""

    def __init__(self, peer: Peer, *, source_address: str | None, on_close: Callable[[], None]) -> None:
        self.strays = Strays()
        self.peer = peer
        self._loop = asyncio.get_running_loop()
        self._pending: dict[int, Pending[Answer]] = {}
        # Kept in the order in which they were closed.
        self._recent: dict[int, None] = {}
        self._on_close = on_close
        self._socket = _open_socket(ipv6=":" in peer[0], source_address=source_address)
        self._is_connected = False
        # Without a route it stays unconnected: the first question says so.
        with contextlib.suppress(OSError):
            self._connect()
        self._loop.add_reader(self._socket, self.read_waiting)

    @property
    def is_closed(self) -> bool:
        return self._socket.fileno() < 0

    def new_id(self) -> int:
        """Return an unpredictable id that no current or recent request of this socket has."""
        while True:
            number = int.from_bytes(os.urandom(4), "big") & _MAX_REQUEST_ID
            if self.is_free(number):
                return number

    def is_free(self, request_id: int) -> bool:
        return request_id > 0 and request_id not in self._pending and request_id not in self._recent

    def close_request(self, pending: Pending[Answer]) -> None:
        """Forget a request; an answer that still comes is late."""
        if self._pending.pop(pending.request_id, None) is None:
            return
        self._recent[pending.request_id] = None
        if len(self._recent) > _RECENT_IDS:
            del self._recent[next(iter(self._recent))]

    def send(self, payload: bytes, permit: SendPermit) -> None:
        """Check the permit and send the datagram, in one synchronous block.

        A full send buffer loses the datagram like the network might; AgentRefused if the system will not send it.
        """
        if self.is_closed:
            raise errors.SessionClosed("the socket is closed")
        try:
            self._connect()
            permit.check()
            self._socket.send(payload)
        except BlockingIOError:
            return
        except OSError as error:
            raise _refusal(self.peer, error.errno) from error

    def close(self) -> None:
        """Close the socket; open requests end with SessionClosed."""
        if self.is_closed:
            return
        self._loop.remove_reader(self._socket)
        self._socket.close()
        for pending in list(self._pending.values()):
            pending.settle(errors.SessionClosed("the socket was closed"))
        self._on_close()

    @abstractmethod
    def _read(self, data: bytes, received_at: float) -> None:
        """Settle the request a datagram answers; MalformedMessage if its head cannot be read."""

    def _register(self, request_id: int, version: int) -> Pending[Answer]:
        if self.is_closed:
            raise errors.SessionClosed("the socket is closed")
        pending: Pending[Answer] = Pending(request_id, version, self._loop.create_future())
        self._pending[request_id] = pending
        return pending

    def _question_of(self, request_id: int) -> Pending[Answer] | None:
        """Return the open request with this id; count the answer as stray if there is none."""
        pending = self._pending.get(request_id)
        if pending is not None and not pending.outcome.done():
            return pending
        if pending is not None or request_id in self._recent:
            self.strays.late += 1
        else:
            self.strays.forged += 1
        return None

    def _doubt(self, pending: Pending[Answer], why: str) -> None:
        """Count an answer anyone may have sent; keep waiting for the agent's own."""
        self.strays.forged += 1
        pending.garbage = errors.ForgedAnswer(f"{self.peer[0]} answered {why}")

    def _connect(self) -> None:
        if self._is_connected:
            return
        self._socket.connect(self.peer)
        self._is_connected = True
        # Datagrams that arrived before the kernel filtered by peer.
        with contextlib.suppress(OSError):
            while self._socket.recv(1):
                self.strays.forged += 1

    def read_waiting(self) -> None:
        """Read what has come, without waiting for more."""
        for _ in range(_DATAGRAMS_PER_WAKE_UP):
            if self.is_closed:
                return
            try:
                data = self._socket.recv(MAX_DATAGRAM_BYTES)
            except BlockingIOError:
                self._drain_errors()
                return
            except OSError as error:
                self._refuse(error.errno or 0)
                self._drain_errors()
                continue
            try:
                self._read(data, self._loop.time())
            except errors.MalformedMessage as error:
                # The request it answers is unknown: reported only if none of them gets another answer.
                self.strays.malformed += 1
                for pending in self._pending.values():
                    pending.garbage = error
            if all(pending.outcome.done() for pending in self._pending.values()):
                # No open request: there is nothing more to read.
                return

    def _drain_errors(self) -> None:
        if not _ON_LINUX:
            return
        with contextlib.suppress(BlockingIOError):
            while True:
                _, ancillary, _, _ = self._socket.recvmsg(1, _ERROR_QUEUE_BYTES, _MSG_ERRQUEUE)
                for _, kind, data in ancillary:
                    if kind in (_IP_RECVERR, _IPV6_RECVERR) and len(data) >= 4:
                        self._refuse(int(struct.unpack_from("=I", data)[0]))
                        break

    def _refuse(self, number: int) -> None:
        if number not in _UNREACHABLE:
            return
        for pending in list(self._pending.values()):
            pending.settle(_refusal(self.peer, number))


class CommunityTransport(UdpTransport[SnmpMessage]):
    """Carries v1 and v2c messages: an answer must have the id, version and community of its request."""

    def __init__(
        self, peer: Peer, community: bytes, *, source_address: str | None, on_close: Callable[[], None]
    ) -> None:
        super().__init__(peer, source_address=source_address, on_close=on_close)
        self._community = community

    def open_request(self, request_id: int, version: int) -> Pending[SnmpMessage]:
        return self._register(request_id, version)

    def _read(self, data: bytes, received_at: float) -> None:
        # The rest is decoded only of what answers a question: a flood of anything else costs little.
        head = decode_head(data)
        pending = self._question_of(head.request_id)
        if pending is None:
            return
        if head.community != self._community:
            self._doubt(pending, "with another community")
            return
        if head.kind is not PduKind.RESPONSE or head.version != pending.version:
            self._doubt(pending, "with another version or kind of message")
            return
        try:
            message = decode_body(data, head)
        except errors.MalformedMessage as error:
            self.strays.malformed += 1
            pending.settle(error)
            return
        pending.settle(Received(message, len(message.pdu.varbinds), len(data), received_at))


def _open_socket(*, ipv6: bool, source_address: str | None) -> socket.socket:
    family = socket.AF_INET6 if ipv6 else socket.AF_INET
    try:
        udp = socket.socket(family, socket.SOCK_DGRAM)
    except OSError as error:
        raise _no_socket(error, source_address) from error
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
        raise _no_socket(error, source_address) from error
    return udp


def _no_socket(error: OSError, source_address: str | None) -> errors.SnmpError:
    where = source_address or "any address"
    if error.errno in _OUT_OF_SOCKETS:
        return errors.NoSocket(
            f"this machine has no socket left ({_reason(error.errno)}): raise the limit of open files"
        )
    return errors.NoSource(f"no socket on {where}: {_reason(error.errno)}", number=error.errno or 0)


def _refusal(peer: Peer, number: int | None) -> errors.AgentRefused:
    return errors.AgentRefused(f"{peer[0]} port {peer[1]}: {_reason(number)}", number=number or 0)


def _reason(number: int | None) -> str:
    return errno.errorcode.get(number or 0, "unknown error")


def own_address(target: Target) -> str:
    """Return our address as the device sees it; empty without a route."""
    if target.source_address:
        return target.source_address
    family = socket.AF_INET6 if target.is_ipv6 else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as udp:
        try:
            # Connecting a datagram socket only asks the routing table.
            udp.connect((target.address, target.port))
        except OSError:
            return ""
        return str(udp.getsockname()[0])
