"""Opens sessions; few sockets per address family and source address serve all of them.

One socket would do, but systems that grant it a small receive buffer would drop the answers of many agents that
come at once: then sessions are spread over as many sockets as make up the buffer that is wanted.
"""

import math
from types import TracebackType

from facho.polling.domain.collection import SendPermit
from facho.polling.snmp.community_session import CommunitySession
from facho.polling.snmp.session import Limits, Session
from facho.polling.snmp.target import SnmpVersion, Target
from facho.polling.snmp.transport import RECEIVE_BUFFER_BYTES, UdpTransport

MAX_SOCKETS = 16
_NO_LIMITS_SAID = Limits()


class Network:
    """The sockets of one event loop. Use as `async with Network() as network:`."""

    def __init__(self) -> None:
        self._pools: dict[tuple[bool, str | None], _SocketPool] = {}

    async def __aenter__(self) -> "Network":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def transports(self) -> list[UdpTransport]:
        """The open sockets, for their counters."""
        return [transport for pool in self._pools.values() for transport in pool.transports]

    def open(self, target: Target, permit: SendPermit, limits: Limits = _NO_LIMITS_SAID) -> Session:
        """Return a session with a device; no packet leaves before it is asked something.

        AgentRefused when the source address is not one of this machine.
        """
        if target.version is SnmpVersion.V3:
            raise ValueError("SNMP v3 is not supported here")
        pool = self._pools.setdefault((target.is_ipv6, target.source_address), _SocketPool())
        return CommunitySession(pool.next_for(target), target, permit, limits)

    def close(self) -> None:
        """Close every socket; whatever is under way ends with SessionClosed."""
        for transport in self.transports:
            transport.close()
        self._pools.clear()


class _SocketPool:
    """Sockets alike, given out in turn."""

    def __init__(self) -> None:
        self.transports: list[UdpTransport] = []
        self._enough = 1
        self._turn = 0

    def next_for(self, target: Target) -> UdpTransport:
        if len(self.transports) < self._enough:
            transport = UdpTransport(ipv6=target.is_ipv6, source_address=target.source_address)
            self.transports.append(transport)
            # Linux reports, and accounts with, twice the size that was asked for.
            self._enough = min(MAX_SOCKETS, math.ceil(2 * RECEIVE_BUFFER_BYTES / transport.receive_buffer_bytes))
            return transport
        self._turn = (self._turn + 1) % len(self.transports)
        return self.transports[self._turn]
