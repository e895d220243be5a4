"""Requests of v3, signed and encrypted by gufo-snmp.

The library wants a socket. It gets one end of a wire whose other end is ours, so that no datagram leaves but
through our transport, and nothing that came from the network reaches it unverified.
"""

import os
import socket
from collections.abc import Sequence

from gufo.snmp import SnmpError as LibraryError
from gufo.snmp._fast import GetIter, SnmpV3ClientSocket
from gufo.snmp.user import Aes128Key, Aes192Key, Aes256Key, BasePrivKey, DesKey, KeyType, User

from facho.polling.snmp.errors import MalformedMessage, SessionClosed, TooBig
from facho.polling.snmp.oid import Oid, format_oid
from facho.polling.snmp.target import PrivProtocol, UserCredential
from facho.polling.snmp.transport import MAX_DATAGRAM_BYTES
from facho.polling.snmp.user_security import SIGNATURES, Engine

# Where the library's own socket would send, before it is replaced; connecting to it sends nothing.
_NOWHERE = "127.0.0.1:9"
_PRIV_KEYS: dict[PrivProtocol, type[BasePrivKey]] = {
    PrivProtocol.DES: DesKey,
    PrivProtocol.AES: Aes128Key,
    PrivProtocol.AES_192: Aes192Key,
    PrivProtocol.AES_256: Aes256Key,
}


class LibraryWire:
    """A pair of sockets that leads to the library; since it sends at once when told to, one serves all its users."""

    def __init__(self) -> None:
        self._ours, self._theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._ours.setblocking(False)
        self._theirs.setblocking(False)

    def close(self) -> None:
        """Close both ends."""
        self._ours.close()
        self._theirs.close()

    def attach(self, descriptor: int) -> None:
        """Put our wire in the place of a socket of the library's own."""
        os.dup2(self._theirs.fileno(), descriptor, inheritable=False)

    def take(self) -> bytes:
        """Return what the library has just sent."""
        return self._ours.recv(MAX_DATAGRAM_BYTES)

    def give(self, data: bytes) -> None:
        """Let the library receive something."""
        self._ours.send(data)


class Sealer:
    """Makes the requests of one user to one engine, or of nobody to any; each has random ids of its own."""

    def __init__(self, wire: LibraryWire, credential: UserCredential | None, engine: Engine) -> None:
        user = _user(credential, engine) if credential else User.default()
        keys = (user.get_auth_alg(), user.get_auth_key(), user.get_priv_alg(), user.get_priv_key())
        library = SnmpV3ClientSocket(_NOWHERE, engine.engine_id, user.name, *keys, 0, 0, 0, 0)
        wire.attach(library.get_fd())
        self._wire = wire
        self._open_library: SnmpV3ClientSocket | None = library

    def close(self) -> None:
        """Let go of the library's socket now: an exception may keep this object alive."""
        self._open_library = None

    @property
    def _library(self) -> SnmpV3ClientSocket:
        if self._open_library is None:
            raise SessionClosed("the session is closed")
        return self._open_library

    def seal_get(self, oids: Sequence[Oid]) -> bytes:
        """Make a GET; TooBig when the library cannot fit it."""
        try:
            self._library.send_get_many([format_oid(oid) for oid in oids])
        except LibraryError as error:
            raise TooBig("the question does not fit into a message") from error
        return self._wire.take()

    def seal_get_bulk(self, oid: Oid, repetitions: int) -> bytes:
        """Make a GETBULK; the library asks for one column at a time."""
        self._library.send_get_bulk(GetIter(format_oid(oid), repetitions))
        return self._wire.take()

    def seal_refresh(self) -> bytes:
        """Make an empty GET, with whose answer the agent tells its engine's id and clock."""
        self._library.send_refresh()
        return self._wire.take()

    def take_clock(self, answer: bytes) -> None:
        """Take the agent's clock over from the verified answer to the last `seal_refresh`."""
        self._wire.give(answer)
        try:
            self._library.recv_refresh()
        except (LibraryError, BlockingIOError) as error:
            raise MalformedMessage("an answer without a usable clock") from error


def _user(credential: UserCredential, engine: Engine) -> User:
    if credential.auth_protocol is None:
        return User(credential.user)
    auth_key = SIGNATURES[credential.auth_protocol].key(engine.auth_key, key_type=KeyType.Localized)
    if credential.priv_protocol is None:
        return User(credential.user, auth_key=auth_key)
    priv_key = _PRIV_KEYS[credential.priv_protocol](engine.priv_key, key_type=KeyType.Localized)
    return User(credential.user, auth_key=auth_key, priv_key=priv_key)
