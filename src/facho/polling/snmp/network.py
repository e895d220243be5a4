"""Opens sessions; keeps one socket per address family and source address for all of them."""

from types import TracebackType

from facho.polling.snmp.community_session import CommunitySession
from facho.polling.snmp.session import Limits, SendPermit, Session
from facho.polling.snmp.target import SnmpVersion, Target
from facho.polling.snmp.transport import UdpTransport

_NO_LIMITS_SAID = Limits()


class Network:
    """The sockets of one event loop. Use as `async with Network() as network:`."""

    def __init__(self) -> None:
        self._transports: dict[tuple[bool, str | None], UdpTransport] = {}

    async def __aenter__(self) -> "Network":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def open(self, target: Target, permit: SendPermit, limits: Limits = _NO_LIMITS_SAID) -> Session:
        """Return a session with a device; no packet leaves before it is asked something."""
        if target.version is SnmpVersion.V3:
            raise ValueError("SNMP v3 is not supported here")
        return CommunitySession(self.transport_for(target), target, permit, limits)

    def transport_for(self, target: Target) -> UdpTransport:
        """Return the socket that questions to this device leave from."""
        key = (target.is_ipv6, target.source_address)
        transport = self._transports.get(key)
        if transport is None or transport.is_closed:
            transport = UdpTransport(ipv6=target.is_ipv6, source_address=target.source_address)
            self._transports[key] = transport
        return transport

    def close(self) -> None:
        """Close every socket; whatever is under way ends with SessionClosed."""
        for transport in self._transports.values():
            transport.close()
        self._transports.clear()
