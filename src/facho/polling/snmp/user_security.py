"""Keys of v3 users, and the checks every message to or from them must pass.

gufo-snmp makes keys and requests. It is not asked to read answers: it neither verifies their digest nor gives their
error status and types. Nor can it send notifications or answer them, so those are sealed here.
"""

import hmac
import os
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from cryptography.hazmat.decrepit.ciphers.algorithms import TripleDES
from cryptography.hazmat.decrepit.ciphers.modes import CFB
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CBC
from gufo.snmp import SnmpError as LibraryError
from gufo.snmp import user as gufo_user
from gufo.snmp._fast import GetIter, SnmpV3ClientSocket

from facho.polling.snmp.ber import Pdu, PduKind, decode_pdu
from facho.polling.snmp.ber_values import SEQUENCE, Tag, encode_integer, enter, read_integer, wrap
from facho.polling.snmp.errors import ForgedAnswer, MalformedMessage, SessionClosed, TooBig, UnexpectedAnswer
from facho.polling.snmp.oid import Oid, format_oid
from facho.polling.snmp.target import AuthProtocol, PrivProtocol, SnmpVersion, UserCredential
from facho.polling.snmp.transport import MAX_DATAGRAM_BYTES, Peer, Pending, Received, UdpTransport

_VERSION = 3
_USER_BASED_SECURITY = 3
_AUTHENTICATED = 1
_ENCRYPTED = 2
_REPORTABLE = 4
# What UDP over IPv4 can carry, and we take.
_MAX_SIZE = 65_507
_MAX_ENGINE_ID_BYTES = 32
_MAX_USER_BYTES = 32


@dataclass(frozen=True, slots=True)
class Envelope:
    """One v3 datagram, decoded; `body` is the scoped PDU or its ciphertext."""

    message_id: int
    is_authenticated: bool
    is_encrypted: bool
    engine_id: bytes
    engine_boots: int
    engine_time: int
    user: bytes
    # Where the digest starts in `data`: it was computed with zeros in its place.
    digest_at: int = 0
    digest: bytes = b""
    salt: bytes = b""
    body: bytes = field(default=b"", repr=False)
    data: bytes = field(default=b"", repr=False)
    # Whether the sender wants a report when the message is not taken; never set in a trap.
    is_reportable: bool = False

    @property
    def unsigned(self) -> bytes:
        """The bytes the digest was computed over."""
        end = self.digest_at + len(self.digest)
        return self.data[: self.digest_at] + bytes(len(self.digest)) + self.data[end:]


def decode_envelope(data: bytes) -> Envelope:
    """Decode a datagram; MalformedMessage unless it is exactly one v3 message."""
    try:
        return _decode(data)
    except IndexError as error:
        raise MalformedMessage("message ends in the middle of a field") from error


def _decode(data: bytes) -> Envelope:
    pos, end = enter(data, 0, len(data), SEQUENCE)
    if end != len(data):
        raise MalformedMessage("bytes after the end of the message")
    version, pos = read_integer(data, pos, end)
    if version != _VERSION:
        raise MalformedMessage("not SNMP v3")
    message_id, flags, pos = _decode_header(data, pos, end)
    is_authenticated, is_encrypted = bool(flags & _AUTHENTICATED), bool(flags & _ENCRYPTED)
    if is_encrypted and not is_authenticated:
        raise MalformedMessage("encrypted but not authenticated")
    pos, body_at = enter(data, pos, end, Tag.OCTET_STRING)
    pos, sequence_end = enter(data, pos, body_at, SEQUENCE)
    engine_id, pos = _read_octets(data, pos, sequence_end, _MAX_ENGINE_ID_BYTES)
    boots, pos = read_integer(data, pos, sequence_end)
    seconds, pos = read_integer(data, pos, sequence_end)
    user, pos = _read_octets(data, pos, sequence_end, _MAX_USER_BYTES)
    digest_at, pos = enter(data, pos, sequence_end, Tag.OCTET_STRING)
    digest = data[digest_at:pos]
    salt, pos = _read_octets(data, pos, sequence_end, len(data))
    if pos != sequence_end or sequence_end != body_at or boots < 0 or seconds < 0:
        raise MalformedMessage("security parameters do not fit")
    if is_encrypted:
        body_at, body_end = enter(data, body_at, end, Tag.OCTET_STRING)
        if body_end != end:
            raise MalformedMessage("encrypted content does not end with the message")
    return Envelope(
        message_id=message_id,
        is_authenticated=is_authenticated,
        is_encrypted=is_encrypted,
        engine_id=engine_id,
        engine_boots=boots,
        engine_time=seconds,
        user=user,
        digest_at=digest_at,
        digest=digest,
        salt=salt,
        body=data[body_at:end],
        data=data,
        is_reportable=bool(flags & _REPORTABLE),
    )


def _decode_header(data: bytes, pos: int, end: int) -> tuple[int, int, int]:
    pos, header_end = enter(data, pos, end, SEQUENCE)
    message_id, pos = read_integer(data, pos, header_end)
    _max_size, pos = read_integer(data, pos, header_end)
    start, pos = enter(data, pos, header_end, Tag.OCTET_STRING)
    if pos - start != 1:
        raise MalformedMessage("flags are not one byte")
    flags = data[start]
    model, pos = read_integer(data, pos, header_end)
    if model != _USER_BASED_SECURITY or pos != header_end:
        raise MalformedMessage("not the user-based security model")
    return message_id, flags, header_end


def _read_octets(data: bytes, pos: int, end: int, limit: int) -> tuple[bytes, int]:
    start, stop = enter(data, pos, end, Tag.OCTET_STRING)
    if stop - start > limit:
        raise MalformedMessage("field longer than the standard allows")
    return data[start:stop], stop


_SALT_BYTES = 8
_DES_BLOCK_BYTES = 8
# AES needs no whole blocks, yet the library and some agents fill the last one.
_AES_BLOCK_BYTES = 16


class Signature(NamedTuple):
    """The hash of an authentication protocol, and the length of its truncated digest."""

    hash_name: str
    digest_bytes: int
    key: type[gufo_user.BaseAuthKey]


SIGNATURES: Mapping[AuthProtocol, Signature] = {
    AuthProtocol.MD5: Signature("md5", 12, gufo_user.Md5Key),
    AuthProtocol.SHA: Signature("sha1", 12, gufo_user.Sha1Key),
    AuthProtocol.SHA_224: Signature("sha224", 16, gufo_user.Sha224Key),
    AuthProtocol.SHA_256: Signature("sha256", 24, gufo_user.Sha256Key),
    AuthProtocol.SHA_384: Signature("sha384", 32, gufo_user.Sha384Key),
    AuthProtocol.SHA_512: Signature("sha512", 48, gufo_user.Sha512Key),
}
_AES_KEY_BYTES = {PrivProtocol.AES: 16, PrivProtocol.AES_192: 24, PrivProtocol.AES_256: 32}


@dataclass(frozen=True, slots=True)
class SnmpEngine:
    """An agent's SNMP engine with a user's keys localised to it."""

    engine_id: bytes
    auth_key: bytes = field(default=b"", repr=False)
    priv_key: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class UserKeys:
    """The keys that a user's passphrases make, not yet localised to an engine."""

    auth: bytes = field(default=b"", repr=False)
    priv: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class ScopedPdu:
    """The content of a v3 message: the PDU is in `data` from `pdu_at` to `end`, after its context."""

    context_engine_id: bytes
    context_name: bytes
    pdu: Pdu
    data: bytes = field(repr=False)
    pdu_at: int
    end: int


@dataclass(frozen=True, slots=True)
class Opened:
    envelope: Envelope
    pdu: Pdu

    @property
    def is_report(self) -> bool:
        return self.pdu.kind is PduKind.REPORT


def make_engine(credential: UserCredential, engine_id: bytes) -> SnmpEngine:
    """Derive a user's keys for an engine: milliseconds of hashing, so keep the result."""
    return localize_keys(credential, derive_keys(credential), engine_id)


def derive_keys(credential: UserCredential) -> UserKeys:
    """Hash a user's passphrases, a million bytes each: milliseconds, so keep the result."""
    protocol = credential.auth_protocol
    if protocol is None:
        return UserKeys()
    derive = SIGNATURES[protocol].key.get_master_key
    return UserKeys(derive(credential.auth_key), derive(credential.priv_key) if credential.priv_protocol else b"")


def localize_keys(credential: UserCredential, keys: UserKeys, engine_id: bytes) -> SnmpEngine:
    """Make the keys for one engine: a microsecond."""
    protocol = credential.auth_protocol
    if protocol is None:
        return SnmpEngine(engine_id)
    localize = SIGNATURES[protocol].key.get_localized_key
    priv_key = localize(keys.priv, engine_id) if credential.priv_protocol else b""
    return SnmpEngine(engine_id, localize(keys.auth, engine_id), priv_key)


def is_signed(envelope: Envelope, credential: UserCredential, engine: SnmpEngine) -> bool:
    """Whether the digest was made with the user's key for this engine."""
    return hmac.compare_digest(_digest(envelope.unsigned, credential, engine), envelope.digest)


def open_answer(envelope: Envelope, credential: UserCredential, engine: SnmpEngine) -> Opened:
    """Verify, decrypt and decode an answer.

    ForgedAnswer unless it is protected as the request was; a report on why the request was rejected may be unprotected,
    since an agent that does not know us has no key to sign with.
    """
    if envelope.is_authenticated:
        if credential.auth_protocol is None:
            raise ForgedAnswer("with a signature though the user has no key")
        if envelope.engine_id != engine.engine_id or envelope.user != credential.user.encode():
            raise ForgedAnswer("as another engine or to another user")
        if not is_signed(envelope, credential, engine):
            raise ForgedAnswer("with a wrong digest")
    opened = Opened(envelope, read_content(envelope, credential, engine))
    if opened.is_report:
        return opened
    asked = (credential.auth_protocol is not None, credential.priv_protocol is not None)
    if (envelope.is_authenticated, envelope.is_encrypted) != asked:
        raise ForgedAnswer("less protected than it was asked")
    if opened.pdu.kind is not PduKind.RESPONSE:
        raise UnexpectedAnswer("neither a response nor a report")
    return opened


def open_report(envelope: Envelope) -> Opened:
    if envelope.is_authenticated or not envelope.engine_id:
        raise UnexpectedAnswer("not a report of an engine's id")
    opened = Opened(envelope, _decode_scoped(envelope.body, padding_bytes=0).pdu)
    if not opened.is_report:
        raise UnexpectedAnswer("not a report of an engine's id")
    return opened


def read_content(envelope: Envelope, credential: UserCredential, engine: SnmpEngine) -> Pdu:
    """Decrypt and decode, without checking the digest."""
    return read_scoped(envelope, credential, engine).pdu


def read_scoped(envelope: Envelope, credential: UserCredential, engine: SnmpEngine) -> ScopedPdu:
    """Decrypt and decode with its context, without checking the digest."""
    if not envelope.is_encrypted:
        return _decode_scoped(envelope.body, padding_bytes=0)
    if credential.priv_protocol is None:
        raise ForgedAnswer("encrypted though the user has no privacy")
    block_bytes = _DES_BLOCK_BYTES if credential.priv_protocol is PrivProtocol.DES else _AES_BLOCK_BYTES
    decryptor = _cipher(envelope, credential.priv_protocol, engine.priv_key).decryptor()
    content = decryptor.update(envelope.body) + decryptor.finalize()
    return _decode_scoped(content, padding_bytes=block_bytes - 1)


def seal_envelope(envelope: Envelope, credential: UserCredential, engine: SnmpEngine) -> bytes:
    """Encrypt and sign a message as its flags say; `body` is the plain scoped PDU, the digest is made here."""
    if envelope.is_encrypted and credential.priv_protocol is not None:
        padding = -len(envelope.body) % _DES_BLOCK_BYTES if credential.priv_protocol is PrivProtocol.DES else 0
        envelope = replace(envelope, body=envelope.body + bytes(padding), salt=os.urandom(_SALT_BYTES))
        encryptor = _cipher(envelope, credential.priv_protocol, engine.priv_key).encryptor()
        ciphertext = encryptor.update(envelope.body) + encryptor.finalize()
        envelope = replace(envelope, body=_octets(ciphertext))
    if not envelope.is_authenticated or credential.auth_protocol is None:
        return _encode_envelope(envelope)
    size = SIGNATURES[credential.auth_protocol].digest_bytes
    unsigned = _encode_envelope(replace(envelope, digest=bytes(size)))
    digest_at = decode_envelope(unsigned).digest_at
    return unsigned[:digest_at] + _digest(unsigned, credential, engine) + unsigned[digest_at + size :]


def encode_scoped(context_engine_id: bytes, context_name: bytes, encoded_pdu: bytes) -> bytes:
    return wrap(SEQUENCE, _octets(context_engine_id) + _octets(context_name) + encoded_pdu)


def _encode_envelope(envelope: Envelope) -> bytes:
    flags = (
        envelope.is_authenticated * _AUTHENTICATED
        | envelope.is_encrypted * _ENCRYPTED
        | envelope.is_reportable * _REPORTABLE
    )
    header = encode_integer(envelope.message_id) + encode_integer(_MAX_SIZE)
    header += _octets(bytes((flags,))) + encode_integer(_USER_BASED_SECURITY)
    security = _octets(envelope.engine_id) + encode_integer(envelope.engine_boots)
    security += encode_integer(envelope.engine_time) + _octets(envelope.user)
    security += _octets(envelope.digest) + _octets(envelope.salt)
    head = encode_integer(_VERSION) + wrap(SEQUENCE, header) + _octets(wrap(SEQUENCE, security))
    return wrap(SEQUENCE, head + envelope.body)


def _octets(content: bytes) -> bytes:
    return wrap(Tag.OCTET_STRING, content)


def _digest(unsigned: bytes, credential: UserCredential, engine: SnmpEngine) -> bytes:
    if credential.auth_protocol is None:
        raise ValueError("a user without a key signs nothing")
    signature = SIGNATURES[credential.auth_protocol]
    return hmac.digest(engine.auth_key, unsigned, signature.hash_name)[: signature.digest_bytes]


def _cipher(envelope: Envelope, protocol: PrivProtocol, key: bytes) -> Cipher[CBC] | Cipher[CFB]:
    if len(envelope.salt) != _SALT_BYTES:
        raise MalformedMessage("privacy parameters are not 8 bytes")
    if protocol is PrivProtocol.DES:
        if len(envelope.body) % _DES_BLOCK_BYTES:
            raise MalformedMessage("encrypted content is not whole blocks")
        vector = bytes(a ^ b for a, b in zip(key[8:16], envelope.salt, strict=True))
        # Three times the same key is plain DES, which the library has no name for.
        return Cipher(TripleDES(key[:8] * 3), CBC(vector))
    clock = envelope.engine_boots.to_bytes(4, "big") + envelope.engine_time.to_bytes(4, "big")
    return Cipher(AES(key[: _AES_KEY_BYTES[protocol]]), CFB(clock + envelope.salt))


def _decode_scoped(data: bytes, *, padding_bytes: int) -> ScopedPdu:
    try:
        pos, end = enter(data, 0, len(data), SEQUENCE)
        if len(data) - end > padding_bytes:
            raise MalformedMessage("bytes after the end of the content")
        engine_at, engine_end = enter(data, pos, end, Tag.OCTET_STRING)
        name_at, pdu_at = enter(data, engine_end, end, Tag.OCTET_STRING)
        pdu = decode_pdu(data, pdu_at, end)
        return ScopedPdu(data[engine_at:engine_end], data[name_at:pdu_at], pdu, data, pdu_at, end)
    except IndexError as error:
        raise MalformedMessage("content ends in the middle of a field") from error


# Where the library's own socket would send, before it is replaced; connecting to it sends nothing.
_NOWHERE = "127.0.0.1:9"
_PRIV_KEYS: dict[PrivProtocol, type[gufo_user.BasePrivKey]] = {
    PrivProtocol.DES: gufo_user.DesKey,
    PrivProtocol.AES: gufo_user.Aes128Key,
    PrivProtocol.AES_192: gufo_user.Aes192Key,
    PrivProtocol.AES_256: gufo_user.Aes256Key,
}


class LibraryWire:
    """A socket pair to the library; since it sends immediately, one serves all its users."""

    def __init__(self) -> None:
        self._ours, self._theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._ours.setblocking(False)
        self._theirs.setblocking(False)

    def close(self) -> None:
        self._ours.close()
        self._theirs.close()

    def attach(self, descriptor: int) -> None:
        os.dup2(self._theirs.fileno(), descriptor, inheritable=False)

    def take(self) -> bytes:
        return self._ours.recv(MAX_DATAGRAM_BYTES)

    def give(self, data: bytes) -> None:
        self._ours.send(data)


class Sealer:
    """Builds requests of one user to one engine, or anonymous ones; each has random ids."""

    def __init__(self, wire: LibraryWire, credential: UserCredential | None, engine: SnmpEngine) -> None:
        user = _user(credential, engine) if credential else gufo_user.User.default()
        keys = (user.get_auth_alg(), user.get_auth_key(), user.get_priv_alg(), user.get_priv_key())
        library = SnmpV3ClientSocket(_NOWHERE, engine.engine_id, user.name, *keys, 0, 0, 0, 0)
        wire.attach(library.get_fd())
        self._wire = wire
        self._open_library: SnmpV3ClientSocket | None = library

    def close(self) -> None:
        """Release the library's socket now: an exception may keep this object alive."""
        self._open_library = None

    @property
    def _library(self) -> SnmpV3ClientSocket:
        if self._open_library is None:
            raise SessionClosed("the session is closed")
        return self._open_library

    def seal_get(self, oids: Sequence[Oid]) -> bytes:
        """Build a GET; TooBig if the library cannot fit it."""
        try:
            self._library.send_get_many([format_oid(oid) for oid in oids])
        except LibraryError as error:
            raise TooBig("the question does not fit into a message") from error
        return self._wire.take()

    def seal_get_bulk(self, oid: Oid, repetitions: int) -> bytes:
        """Build a GETBULK; the library supports one column at a time."""
        self._library.send_get_bulk(GetIter(format_oid(oid), repetitions))
        return self._wire.take()

    def seal_refresh(self) -> bytes:
        """Build an empty GET; its answer has the agent's engine id and clock."""
        self._library.send_refresh()
        return self._wire.take()

    def take_clock(self, answer: bytes) -> None:
        """Take the agent's clock from the verified answer to the last `seal_refresh`."""
        self._wire.give(answer)
        try:
            self._library.recv_refresh()
        except (LibraryError, BlockingIOError) as error:
            raise MalformedMessage("an answer without a usable clock") from error


def _user(credential: UserCredential, engine: SnmpEngine) -> gufo_user.User:
    if credential.auth_protocol is None:
        return gufo_user.User(credential.user)
    auth_key = SIGNATURES[credential.auth_protocol].key(engine.auth_key, key_type=gufo_user.KeyType.Localized)
    if credential.priv_protocol is None:
        return gufo_user.User(credential.user, auth_key=auth_key)
    priv_key = _PRIV_KEYS[credential.priv_protocol](engine.priv_key, key_type=gufo_user.KeyType.Localized)
    return gufo_user.User(credential.user, auth_key=auth_key, priv_key=priv_key)


# Verifies and decodes an answer; MalformedMessage when it cannot.
Opener = Callable[[Envelope], Opened]


class SealedTransport(UdpTransport[Opened]):
    def __init__(
        self, peer: Peer, wire: LibraryWire, *, source_address: str | None, on_close: Callable[[], None]
    ) -> None:
        super().__init__(peer, source_address=source_address, on_close=on_close)
        self.wire = wire
        self._openers: dict[int, Opener] = {}

    def open_request(self, message_id: int, opener: Opener) -> Pending[Opened]:
        pending = self._register(message_id, SnmpVersion.V3)
        self._openers[message_id] = opener
        return pending

    def close_request(self, pending: Pending[Opened]) -> None:
        super().close_request(pending)
        self._openers.pop(pending.request_id, None)

    def _read(self, data: bytes, received_at: float) -> None:
        envelope = decode_envelope(data)
        pending = self._question_of(envelope.message_id)
        if pending is None:
            return
        try:
            opened = self._openers[envelope.message_id](envelope)
        except ForgedAnswer as error:
            self._doubt(pending, str(error))
        except MalformedMessage as error:
            self.strays.malformed += 1
            pending.settle(error)
        else:
            pending.settle(Received(opened, len(opened.pdu.varbinds), len(data), received_at))
