"""Which addresses a message may be sent to: public ones and those the operator listed; checked before every connect."""

from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

Network = IPv4Network | IPv6Network
Address = IPv4Address | IPv6Address

# Everything else of IPv6 is local, reserved, or an IPv4 address in disguise.
GLOBAL_UNICAST = IPv6Network("2000::/3")
NAT64 = IPv6Network("64:ff9b::/96")


class AddressRefused(OSError):
    """The server is where no message may be sent to."""


@dataclass(frozen=True, slots=True)
class Reach:
    """Where a sender may connect to."""

    listed: tuple[Network, ...] = ()
    # Ports on which servers inside need no listing.
    inside_ports: frozenset[int] = frozenset()

    def allows(self, host: str, port: int) -> bool:
        """Judge an address; a name is refused, since what it stands for may change before it is used."""
        try:
            address = _unwrap(ip_address(host.partition("%")[0]))
        except ValueError:
            return False
        if any(address in network for network in self.listed):
            return True
        if address.is_multicast:
            return False
        is_local = isinstance(address, IPv6Address) and address not in GLOBAL_UNICAST
        if address.is_global and not is_local:
            return True
        # Link-local is where clouds keep their secrets.
        is_inside = address.is_private and not (address.is_link_local or address.is_unspecified)
        return port in self.inside_ports and is_inside


def read_networks(texts: Iterable[str]) -> tuple[Network, ...]:
    """Read networks or single addresses; ValueError for anything else."""
    return tuple(ip_network(text) for text in texts)


def _unwrap(address: Address) -> Address:
    """Return the IPv4 address that an IPv6 one carries, since that one will answer."""
    if isinstance(address, IPv4Address):
        return address
    if address in NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or address
