"""The outside of a v3 message: all that can be read before its digest is checked and its content decrypted."""

from dataclasses import dataclass, field

from facho.polling.snmp.ber_values import Tag, enter, read_integer
from facho.polling.snmp.errors import MalformedMessage

_SEQUENCE = 0x30
_VERSION = 3
_USER_BASED_SECURITY = 3
_AUTHENTICATED = 1
_ENCRYPTED = 2
_MAX_ENGINE_ID_BYTES = 32
_MAX_USER_BYTES = 32


@dataclass(frozen=True, slots=True)
class Envelope:
    """One datagram, taken apart; `body` is the scoped PDU or its ciphertext."""

    message_id: int
    is_authenticated: bool
    is_encrypted: bool
    engine_id: bytes
    engine_boots: int
    engine_time: int
    user: bytes
    # Where the digest starts in `data`: it was computed with zeros in its place.
    digest_at: int
    digest: bytes
    salt: bytes
    body: bytes = field(repr=False)
    data: bytes = field(repr=False)

    @property
    def unsigned(self) -> bytes:
        """What the digest was computed over."""
        end = self.digest_at + len(self.digest)
        return self.data[: self.digest_at] + bytes(len(self.digest)) + self.data[end:]


def decode_envelope(data: bytes) -> Envelope:
    """Take a datagram apart; MalformedMessage for anything that is not exactly one v3 message."""
    try:
        return _decode(data)
    except IndexError as error:
        raise MalformedMessage("message ends in the middle of a field") from error


def _decode(data: bytes) -> Envelope:
    pos, end = enter(data, 0, len(data), _SEQUENCE)
    if end != len(data):
        raise MalformedMessage("bytes after the end of the message")
    version, pos = read_integer(data, pos, end)
    if version != _VERSION:
        raise MalformedMessage("not SNMP v3")
    message_id, flags, pos = _decode_header(data, pos, end)
    is_authenticated, is_encrypted = bool(flags & _AUTHENTICATED), bool(flags & _ENCRYPTED)
    if is_encrypted and not is_authenticated:
        raise MalformedMessage("encrypted but not authenticated")
    engine_id, boots, seconds, user, digest_at, digest, salt, pos = _decode_security(data, pos, end)
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
        body=_decode_body(data, pos, end) if is_encrypted else data[pos:end],
        data=data,
    )


def _decode_header(data: bytes, pos: int, end: int) -> tuple[int, int, int]:
    pos, header_end = enter(data, pos, end, _SEQUENCE)
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


def _decode_security(data: bytes, pos: int, end: int) -> tuple[bytes, int, int, bytes, int, bytes, bytes, int]:
    pos, parameters_end = enter(data, pos, end, Tag.OCTET_STRING)
    pos, sequence_end = enter(data, pos, parameters_end, _SEQUENCE)
    engine_id, pos = _read_octets(data, pos, sequence_end, _MAX_ENGINE_ID_BYTES)
    boots, pos = read_integer(data, pos, sequence_end)
    seconds, pos = read_integer(data, pos, sequence_end)
    user, pos = _read_octets(data, pos, sequence_end, _MAX_USER_BYTES)
    digest_at, pos = enter(data, pos, sequence_end, Tag.OCTET_STRING)
    digest = data[digest_at:pos]
    salt, pos = _read_octets(data, pos, sequence_end, len(data))
    if pos != sequence_end or sequence_end != parameters_end or boots < 0 or seconds < 0:
        raise MalformedMessage("security parameters do not fit")
    return engine_id, boots, seconds, user, digest_at, digest, salt, parameters_end


def _decode_body(data: bytes, pos: int, end: int) -> bytes:
    start, body_end = enter(data, pos, end, Tag.OCTET_STRING)
    if body_end != end:
        raise MalformedMessage("encrypted content does not end with the message")
    return data[start:end]


def _read_octets(data: bytes, pos: int, end: int, limit: int) -> tuple[bytes, int]:
    start, stop = enter(data, pos, end, Tag.OCTET_STRING)
    if stop - start > limit:
        raise MalformedMessage("field longer than the standard allows")
    return data[start:stop], stop
