"""The connections of the web: how many there are, how slow one may be, and which of them makes room for another.

uvicorn has a time-out for connections idle between two requests, but none for an endless head or for an answer that the
client does not read; at its limit it refuses new connections instead of closing such old ones.
"""

import asyncio
import logging
import os
import resource
import socket
import struct
from collections import Counter
from itertools import chain
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from facho.core.processes.limits import raise_descriptor_limit

logger = logging.getLogger(__name__)

MOST_CONNECTIONS = 512
MOST_HEAD_BYTES = 32 * 1024
# How long the other end may take to send a head, and to read on in an answer.
HEAD_SECONDS = 10.0
STALLED_SECONDS = 20.0
# A piece of a body costs the same whether it has one byte or many.
FREE_PIECES, LEAST_PIECE_BYTES = 64, 256
# Databases, logs and libraries; and a connection that is sent a static file has that open too.
OTHER_DESCRIPTORS, DESCRIPTORS_PER_CONNECTION = 128, 2
MANY_DESCRIPTORS = 0.8
RETRY_AFTER_SECONDS = 2

SWEEP_SECONDS = 1.0
REPORT_SECONDS = 60.0
# A mark in the state of a request, by which its connection knows that it is not being served.
REFUSED = "facho.refused"

_FULL = (
    f"HTTP/1.1 503 Service Unavailable\r\nRetry-After: {RETRY_AFTER_SECONDS}\r\n"
    "Connection: close\r\nContent-Length: 0\r\n\r\n"
).encode()
_NO_LINGERING = struct.pack("ii", 1, 0)
_TOO_SLOW = b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


class Refusals(Counter[str]):
    """Counts what was refused: one line a minute stands for all of it, however much there is."""

    def report(self) -> None:
        """Log what was counted since the last time."""
        if self:
            reasons = " ".join(f"{reason}={count}" for reason, count in sorted(self.items()))
            logger.warning("web.refused seconds=%.0f %s", REPORT_SECONDS, reasons)
        self.clear()


class PiecedConnection(h11.Connection):
    """Reads HTTP, but no body that comes in crumbs."""

    _pieces = _bytes = 0

    def next_event(self) -> Any:
        """Give the next event; a body in too many pieces is a fault of its sender."""
        event = super().next_event()
        if isinstance(event, h11.Request):
            self._pieces = self._bytes = 0
        elif isinstance(event, h11.Data):
            self._pieces += 1
            self._bytes += len(event.data)
            if self._pieces > FREE_PIECES + self._bytes // LEAST_PIECE_BYTES:
                raise h11.RemoteProtocolError("the body comes in pieces that are too small")
        return event


class BoundedProtocol(H11Protocol):
    """One connection of uvicorn that knows for whom it waits, and for how long."""

    def __init__(self, connections: "Connections", **about: Any) -> None:
        super().__init__(**about)
        self.conn = PiecedConnection(h11.SERVER, MOST_HEAD_BYTES)
        self._connections = connections
        self._expecting_since = self._moved_at = self.loop.time()
        self._unsent = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Accept the connection, or refuse it if there are too many."""
        super().connection_made(transport)
        if not self._connections.admit(self):
            transport.write(_FULL)
            transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._connections.leave(self)
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        self._expecting_since = self.loop.time()
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        """Answer what is not HTTP, if an answer can still be given."""
        self._connections.refusals["malformed"] += 1
        try:
            super().send_400_response(msg)
        except h11.LocalProtocolError:
            self.transport.abort()

    @property
    def address(self) -> str:
        """The address of the other end, which may be a proxy."""
        return self.client[0] if self.client else ""

    @property
    def is_dispensable(self) -> bool:
        """Whether nothing is lost with it: the request has yet to arrive, or is refused."""
        return self._is_between or self.cycle.more_body or REFUSED in self.scope["state"]

    @property
    def is_sending(self) -> bool:
        """Whether the other end has not yet read what was written."""
        return self.transport.get_write_buffer_size() > 0

    def end_if_slow(self, now: float) -> None:
        """End the connection when its request, or its reading of the answer, has come to a stop."""
        unsent = self.transport.get_write_buffer_size()
        if unsent != self._unsent:
            self._unsent, self._moved_at = unsent, now
        elif unsent and now - self._moved_at > STALLED_SECONDS:
            self._connections.refusals["unread"] += 1
            self.reset()
        if self._is_between and not unsent and now - self._expecting_since > HEAD_SECONDS:
            self._connections.refusals["slow_head"] += 1
            if self.conn.trailing_data[0]:
                self.transport.write(_TOO_SLOW)
            self.transport.close()

    def reset(self) -> None:
        """End it at once; the kernel would keep what is unsent until the other end has read it, or for minutes."""
        self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGERING)
        self.transport.abort()

    @property
    def _is_between(self) -> bool:
        return self.cycle is None or self.cycle.response_complete


class Connections:
    """All connections. When full, a new one replaces the longest idle one of the address with the most."""

    def __init__(self, most: int, refusals: Refusals) -> None:
        self.refusals = refusals
        self._most = most
        # By address, the oldest first.
        self._by_address: dict[str, dict[BoundedProtocol, None]] = {}
        self._count = 0

    def admit(self, connection: BoundedProtocol) -> bool:
        """Return whether there is room, or room was made."""
        if self._count >= self._most and not self._make_room():
            self.refusals["no_room"] += 1
            return False
        self._by_address.setdefault(connection.address, {})[connection] = None
        self._count += 1
        return True

    def leave(self, connection: BoundedProtocol) -> None:
        """Forget a connection; one that was not admitted is not known."""
        own = self._by_address.get(connection.address, {})
        if connection in own:
            del own[connection]
            self._count -= 1
            if not own:
                del self._by_address[connection.address]

    async def watch(self) -> None:
        """End what is too slow, once a second; log once a minute what was refused, and when descriptors run out."""
        loop = asyncio.get_running_loop()
        report_at = loop.time() + REPORT_SECONDS
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            for connection in list(chain.from_iterable(self._by_address.values())):
                connection.end_if_slow(loop.time())
            if loop.time() >= report_at:
                report_at += REPORT_SECONDS
                self.refusals.report()
                used, limit = len(os.listdir("/dev/fd")), resource.getrlimit(resource.RLIMIT_NOFILE)[0]
                if limit != resource.RLIM_INFINITY and used > limit * MANY_DESCRIPTORS:
                    logger.warning("web.descriptors used=%d limit=%d", used, limit)

    def _make_room(self) -> bool:
        """End one connection that waits for its other end; one that waits for us is left alone."""
        most = max(self._by_address.values(), key=len)
        dispensable = (each for each in most if each.is_dispensable)
        sending = (each for each in most if each.is_sending)
        victim = next(chain(dispensable, sending), None)
        if victim is None:
            return False
        self.refusals["displaced"] += 1
        self.leave(victim)
        victim.reset()
        return True


def most_connections() -> int:
    """Raise the limit of descriptors as far as this user may, and return how many connections fit below it."""
    limit = raise_descriptor_limit()
    if limit == resource.RLIM_INFINITY:
        return MOST_CONNECTIONS
    return max(1, min(MOST_CONNECTIONS, (limit - OTHER_DESCRIPTORS) // DESCRIPTORS_PER_CONNECTION))
