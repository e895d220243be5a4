"""Where SNMP requests go, with which credentials, and how long an answer may take."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from ipaddress import IPv6Address, ip_address

SNMP_PORT = 161
# The limits that SNMPv3's user-based security sets to names and passphrases.
MAX_USER_BYTES = 32
MIN_PASSPHRASE_BYTES = 8


class SnmpVersion(IntEnum):
    V1 = 0
    V2C = 1
    V3 = 3


@dataclass(frozen=True, slots=True)
class Community:
    """The community of v1 and v2c; a secret, so not in the repr."""

    secret: bytes = field(repr=False)

    def __post_init__(self) -> None:
        if not 0 < len(self.secret) <= 255:
            raise ValueError("a community has 1 to 255 bytes")


class AuthProtocol(StrEnum):
    MD5 = "MD5"
    SHA = "SHA"
    SHA_224 = "SHA-224"
    SHA_256 = "SHA-256"
    SHA_384 = "SHA-384"
    SHA_512 = "SHA-512"


class PrivProtocol(StrEnum):
    """Encryption algorithms of v3; plain AES has 128 bits."""

    DES = "DES"
    AES = "AES"
    AES_192 = "AES-192"
    AES_256 = "AES-256"


# A digest too short to be an AES key would have to be stretched, which vendors do in ways that exclude each other.
_SHORT = (PrivProtocol.DES, PrivProtocol.AES)
SUPPORTED: Mapping[AuthProtocol, tuple[PrivProtocol, ...]] = {
    AuthProtocol.MD5: _SHORT,
    AuthProtocol.SHA: _SHORT,
    AuthProtocol.SHA_224: (*_SHORT, PrivProtocol.AES_192),
    AuthProtocol.SHA_256: tuple(PrivProtocol),
    AuthProtocol.SHA_384: tuple(PrivProtocol),
    AuthProtocol.SHA_512: tuple(PrivProtocol),
}


@dataclass(frozen=True, slots=True)
class UserCredential:
    """A v3 user; without protocols nothing is signed or encrypted. Passphrases are not in the repr."""

    user: str
    auth_protocol: AuthProtocol | None = None
    auth_key: bytes = field(default=b"", repr=False)
    priv_protocol: PrivProtocol | None = None
    priv_key: bytes = field(default=b"", repr=False)

    def __post_init__(self) -> None:
        if not 0 < len(self.user.encode()) <= MAX_USER_BYTES:
            raise ValueError(f"an SNMPv3 user has 1 to {MAX_USER_BYTES} bytes")
        if self.auth_protocol and len(self.auth_key) < MIN_PASSPHRASE_BYTES:
            raise ValueError(f"an authentication key has at least {MIN_PASSPHRASE_BYTES} bytes")
        if self.priv_protocol and len(self.priv_key) < MIN_PASSPHRASE_BYTES:
            raise ValueError(f"a privacy key has at least {MIN_PASSPHRASE_BYTES} bytes")
        if self.priv_protocol and not self.auth_protocol:
            raise ValueError("privacy needs authentication")
        if self.priv_protocol and self.auth_protocol and self.priv_protocol not in SUPPORTED[self.auth_protocol]:
            raise ValueError(f"{self.priv_protocol} needs a longer digest than that of {self.auth_protocol}")


Credential = Community | UserCredential


@dataclass(frozen=True, slots=True)
class Patience:
    """Timeout of one packet, and how often it is sent in total."""

    timeout_s: float
    tries: int

    def __post_init__(self) -> None:
        if self.timeout_s <= 0 or self.tries < 1:
            raise ValueError("patience needs a positive time-out and at least one try")


# Replies vanish 2-8 % of the time whatever their size: a cheap table loses little by a short time-out, while a
# page of values read live from ONUs can take 12-25 s.
CHEAP = Patience(timeout_s=5.0, tries=4)
LIVE = Patience(timeout_s=20.0, tries=2)


@dataclass(frozen=True, slots=True)
class Target:
    """One agent. Addresses are numeric: the caller resolves names."""

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
        if isinstance(self.credential, UserCredential) != (self.version is SnmpVersion.V3):
            raise ValueError("v3 is spoken as a user, v1 and v2c with a community")
        if self.source_address is not None and ip_address(self.source_address).version != address.version:
            raise ValueError("source and target addresses are of different families")

    @property
    def is_ipv6(self) -> bool:
        return isinstance(ip_address(self.address), IPv6Address)
