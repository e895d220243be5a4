"""Whom we ask, as whom, and how patiently."""

from dataclasses import dataclass, field
from enum import IntEnum
from ipaddress import IPv6Address, ip_address

SNMP_PORT = 161


class SnmpVersion(IntEnum):
    """Protocol versions by their number on the wire."""

    V1 = 0
    V2C = 1
    V3 = 3


@dataclass(frozen=True, slots=True)
class Community:
    """The community of v1 and v2c; a secret, so it never shows in a repr."""

    secret: bytes = field(repr=False)

    def __post_init__(self) -> None:
        if not 0 < len(self.secret) <= 255:
            raise ValueError("a community has 1 to 255 bytes")


# The user credential of v3 joins here.
Credential = Community


@dataclass(frozen=True, slots=True)
class Patience:
    """How long one packet is waited for, and how often the same question is sent in all."""

    timeout_s: float
    tries: int

    def __post_init__(self) -> None:
        if self.timeout_s <= 0 or self.tries < 1:
            raise ValueError("patience needs a positive time-out and at least one try")


# Replies vanish 2-8 % of the time whatever their size: a cheap table loses little by a short time-out, while a
# page of values read live from ONUs may honestly take 12-25 s.
CHEAP = Patience(timeout_s=5.0, tries=4)
LIVE = Patience(timeout_s=20.0, tries=2)


@dataclass(frozen=True, slots=True)
class Target:
    """One agent. Addresses are numeric: names are resolved by whoever decides which device is meant."""

    address: str
    credential: Credential
    version: SnmpVersion = SnmpVersion.V2C
    port: int = SNMP_PORT
    source_address: str | None = None

    def __post_init__(self) -> None:
        address = ip_address(self.address)
        # One spelling for each address, the one that the socket reports: answers are matched by it.
        object.__setattr__(self, "address", str(address))
        if not 0 < self.port < 65_536:
            raise ValueError("a port is 1 to 65535")
        if self.source_address is not None and ip_address(self.source_address).version != address.version:
            raise ValueError("source and target addresses are of different families")

    @property
    def is_ipv6(self) -> bool:
        """Tell which of the two address families this is."""
        return isinstance(ip_address(self.address), IPv6Address)
