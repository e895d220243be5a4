"""Opens sessions; few sockets per address family and source address serve all of them.

One socket would do, but systems that grant it a small receive buffer would drop the answers of many agents that
come at once: then sessions are spread over as many sockets as make up the buffer that is wanted.
"""

import math
from types import TracebackType
from typing import Any, Generic, TypeVar

from facho.polling.domain.collection import SendPermit
from facho.polling.snmp.community_session import CommunitySession
from facho.polling.snmp.known_engines import KnownEngines
from facho.polling.snmp.sealed_transport import SealedTransport
from facho.polling.snmp.session import Limits, Session
from facho.polling.snmp.target import Community, Target
from facho.polling.snmp.transport import RECEIVE_BUFFER_BYTES, CommunityTransport, UdpTransport
from facho.polling.snmp.user_session import UserSession

MAX_SOCKETS = 16
_NO_LIMITS_SAID = Limits()

_Transport = TypeVar("_Transport", bound=UdpTransport[Any])
_Place = tuple[bool, str | None]


class Network:
    """The sockets of one event loop. Use as `async with Network() as network:`."""

    def __init__(self) -> None:
        self._community_pools: dict[_Place, _SocketPool[CommunityTransport]] = {}
        self._sealed_pools: dict[_Place, _SocketPool[SealedTransport]] = {}
        self._engines = KnownEngines()

    async def __aenter__(self) -> "Network":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def transports(self) -> list[UdpTransport[Any]]:
        """The open sockets, for their counters."""
        plain = [transport for pool in self._community_pools.values() for transport in pool.transports]
        return plain + [transport for pool in self._sealed_pools.values() for transport in pool.transports]

    def open(self, target: Target, permit: SendPermit, limits: Limits = _NO_LIMITS_SAID) -> Session:
        """Return a session with a device; no packet leaves before it is asked something.

        AgentRefused when the source address is not one of this machine.
        """
        place, credential = (target.is_ipv6, target.source_address), target.credential
        if isinstance(credential, Community):
            pool = self._community_pools.setdefault(place, _SocketPool(CommunityTransport))
            return CommunitySession(pool.next_for(target), target, credential, permit, limits)
        sealed = self._sealed_pools.setdefault(place, _SocketPool(SealedTransport))
        return UserSession(sealed.next_for(target), target, credential, permit, limits, self._engines)

    def close(self) -> None:
        """Close every socket; whatever is under way ends with SessionClosed."""
        for transport in self.transports:
            transport.close()
        self._community_pools.clear()
        self._sealed_pools.clear()


class _SocketPool(Generic[_Transport]):
    """Sockets alike, given out in turn."""

    def __init__(self, kind: type[_Transport]) -> None:
        self.transports: list[_Transport] = []
        self._kind = kind
        self._enough = 1
        self._turn = 0

    def next_for(self, target: Target) -> _Transport:
        if len(self.transports) < self._enough:
            transport = self._kind(ipv6=target.is_ipv6, source_address=target.source_address)
            self.transports.append(transport)
            # Linux reports, and accounts with, twice the size that was asked for.
            self._enough = min(MAX_SOCKETS, math.ceil(2 * RECEIVE_BUFFER_BYTES / transport.receive_buffer_bytes))
            return transport
        self._turn = (self._turn + 1) % len(self.transports)
        return self.transports[self._turn]
