"""Fields, object identifiers and values in BER, as SNMP has them.

Strict about structure (every length must fit exactly, types and sizes are checked) and tolerant of padding
that BER allows and real agents send.
"""

from collections.abc import Callable
from enum import IntEnum
from functools import lru_cache

from facho.polling.snmp.errors import MalformedMessage

Oid = tuple[int, ...]
Value = int | bytes | Oid | None
VarBind = tuple[Oid, int, Value]

MAX_MESSAGE_BYTES = 65_535
MAX_SUB_IDS = 128
# Octets kept of a value: no column is longer than 255 characters of up to 4 octets.
MAX_KEPT_OCTETS = 1_024
SEQUENCE = 0x30
_MAX_SUB_ID = 0xFFFF_FFFF
_CACHED_HEADS = 8_192
# Longer ones are not columns of an OLT; an agent that invents them must not fill the cache.
_LONGEST_CACHED_HEAD = 32


class Tag(IntEnum):
    INTEGER = 0x02
    OCTET_STRING = 0x04
    NULL = 0x05
    OBJECT_IDENTIFIER = 0x06
    IP_ADDRESS = 0x40
    COUNTER32 = 0x41
    GAUGE32 = 0x42
    TIMETICKS = 0x43
    OPAQUE = 0x44
    COUNTER64 = 0x46
    NO_SUCH_OBJECT = 0x80
    NO_SUCH_INSTANCE = 0x81
    END_OF_MIB_VIEW = 0x82


def enter(data: bytes, pos: int, end: int, tag: int) -> tuple[int, int]:
    """Return start and end of the content of the field at `pos`; it must fit before `end`."""
    if data[pos] != tag:
        raise MalformedMessage(f"expected type 0x{tag:02x}, found 0x{data[pos]:02x}")
    start, size = read_length(data, pos + 1)
    if start + size > end:
        raise MalformedMessage("field is longer than what encloses it")
    return start, start + size


def read_length(data: bytes, pos: int) -> tuple[int, int]:
    size = data[pos]
    if size < 0x80:
        return pos + 1, size
    count = size & 0x7F
    if not 0 < count <= 4:
        raise MalformedMessage("length of an unknown form")
    if pos + count >= len(data):
        raise MalformedMessage("message ends in the middle of a length")
    return pos + 1 + count, int.from_bytes(data[pos + 1 : pos + 1 + count], "big")


def read_integer(data: bytes, pos: int, end: int) -> tuple[int, int]:
    start, stop = enter(data, pos, end, Tag.INTEGER)
    return _decode_signed(Tag.INTEGER, data[start:stop]), stop


def wrap(tag: int, content: bytes) -> bytes:
    size = len(content)
    if size < 0x80:
        return bytes((tag, size)) + content
    if size < 0x100:
        return bytes((tag, 0x81, size)) + content
    if size <= MAX_MESSAGE_BYTES:
        return bytes((tag, 0x82, size >> 8, size & 0xFF)) + content
    raise ValueError("too long for a datagram")


def encode_integer(value: int) -> bytes:
    return wrap(Tag.INTEGER, _encode_signed(Tag.INTEGER, value))


def encode_oid(oid: Oid) -> bytes:
    """Encode the content of an OBJECT IDENTIFIER, without tag and length."""
    if len(oid) < 2 or len(oid) > MAX_SUB_IDS or oid[0] > 2 or (oid[0] < 2 and oid[1] > 39):
        raise ValueError("not an object identifier")
    if len(oid) <= 4:
        return _encode_oid_head(oid)
    if len(oid) > _LONGEST_CACHED_HEAD:
        return _encode_sub_ids(oid)
    return _encode_oid_head(oid[:-2]) + _encode_sub_id(oid[-2]) + _encode_sub_id(oid[-1])


def _encode_sub_ids(oid: Oid) -> bytes:
    return b"".join(map(_encode_sub_id, (oid[0] * 40 + oid[1], *oid[2:])))


_encode_oid_head = lru_cache(maxsize=_CACHED_HEADS)(_encode_sub_ids)


def _encode_sub_id(value: int) -> bytes:
    if 0 <= value < 0x80:
        return bytes((value,))
    if not 0 <= value <= _MAX_SUB_ID:
        raise ValueError("sub-identifier outside 0..4294967295")
    groups = [value & 0x7F]
    while value := value >> 7:
        groups.append(value & 0x7F | 0x80)
    return bytes(reversed(groups))


def decode_oid(raw: bytes) -> Oid:
    first, *rest = decode_sub_ids(raw)
    if len(rest) > MAX_SUB_IDS - 2:
        raise MalformedMessage("object identifier too long")
    if first < 80:
        return (*divmod(first, 40), *rest)
    return (2, first - 80, *rest)


def decode_sub_ids(raw: bytes) -> Oid:
    if not raw or raw[-1] > 0x7F:
        raise MalformedMessage("object identifier ends in the middle of a number")
    if len(raw) > MAX_SUB_IDS * 5:
        raise MalformedMessage("object identifier too long")
    sub_ids = []
    value = 0
    for byte in raw:
        if byte == 0x80 and not value:
            raise MalformedMessage("padded sub-identifier")
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            if value > _MAX_SUB_ID:
                raise MalformedMessage("sub-identifier over 32 bits")
            sub_ids.append(value)
            value = 0
    return tuple(sub_ids)


def encode_value(tag: int, value: Value) -> bytes:
    """Encode a value with tag and length; ValueError if it does not fit the type."""
    encoder = _ENCODERS.get(tag)
    if encoder is None:
        raise ValueError(f"type 0x{tag:02x} cannot be sent")
    return wrap(tag, encoder(tag, value))


def _encode_signed(_tag: int, value: Value) -> bytes:
    if not isinstance(value, int) or not -0x8000_0000 <= value <= 0x7FFF_FFFF:
        raise ValueError("INTEGER outside 32 bits")
    bits = value.bit_length() if value >= 0 else (value + 1).bit_length()
    return value.to_bytes(bits // 8 + 1, "big", signed=True)


def _encode_unsigned(tag: int, value: Value) -> bytes:
    limit = 1 << (64 if tag == Tag.COUNTER64 else 32)
    if not isinstance(value, int) or not 0 <= value < limit:
        raise ValueError("unsigned value outside its type")
    return value.to_bytes(value.bit_length() // 8 + 1, "big")


def _encode_bytes(tag: int, value: Value) -> bytes:
    if not isinstance(value, bytes) or (tag == Tag.IP_ADDRESS and len(value) != 4):
        raise ValueError("not the bytes of this type")
    return value


def _encode_oid_value(_tag: int, value: Value) -> bytes:
    if not isinstance(value, tuple):
        raise ValueError("not an object identifier")  # noqa: TRY004 - one error for every value that does not fit
    return encode_oid(value)


def _encode_nothing(_tag: int, value: Value) -> bytes:
    if value is not None:
        raise ValueError("this type has no value")
    return b""


_ENCODERS: dict[int, Callable[[int, Value], bytes]] = {
    Tag.INTEGER: _encode_signed,
    Tag.OCTET_STRING: _encode_bytes,
    Tag.NULL: _encode_nothing,
    Tag.OBJECT_IDENTIFIER: _encode_oid_value,
    Tag.IP_ADDRESS: _encode_bytes,
    Tag.COUNTER32: _encode_unsigned,
    Tag.GAUGE32: _encode_unsigned,
    Tag.TIMETICKS: _encode_unsigned,
    Tag.OPAQUE: _encode_bytes,
    Tag.COUNTER64: _encode_unsigned,
    Tag.NO_SUCH_OBJECT: _encode_nothing,
    Tag.NO_SUCH_INSTANCE: _encode_nothing,
    Tag.END_OF_MIB_VIEW: _encode_nothing,
}


def decode_value(tag: int, raw: bytes) -> Value:
    decoder = _DECODERS.get(tag)
    if decoder is None:
        raise MalformedMessage(f"unknown type 0x{tag:02x}")
    return decoder(tag, raw)


def _decode_signed(_tag: int, raw: bytes) -> int:
    if not 0 < len(raw) <= 4:
        raise MalformedMessage("INTEGER outside 32 bits")
    return int.from_bytes(raw, "big", signed=True)


def _decode_unsigned(tag: int, raw: bytes) -> int:
    width = 8 if tag == Tag.COUNTER64 else 4
    # One leading zero keeps a large value positive; agents that leave it out mean the same number.
    if not raw or len(raw) > width + 1 or (len(raw) > width and raw[0]):
        raise MalformedMessage("unsigned value outside its type")
    return int.from_bytes(raw, "big")


def _decode_bytes(tag: int, raw: bytes) -> bytes:
    if tag == Tag.IP_ADDRESS and len(raw) != 4:
        raise MalformedMessage("IpAddress is not 4 bytes")
    return raw


def _decode_oid_value(_tag: int, raw: bytes) -> Oid:
    return decode_oid(raw)


def _decode_nothing(_tag: int, raw: bytes) -> None:
    if raw:
        raise MalformedMessage("a type without value has one")


_DECODERS: dict[int, Callable[[int, bytes], Value]] = {
    Tag.INTEGER: _decode_signed,
    Tag.OCTET_STRING: _decode_bytes,
    Tag.NULL: _decode_nothing,
    Tag.OBJECT_IDENTIFIER: _decode_oid_value,
    Tag.IP_ADDRESS: _decode_bytes,
    Tag.COUNTER32: _decode_unsigned,
    Tag.GAUGE32: _decode_unsigned,
    Tag.TIMETICKS: _decode_unsigned,
    Tag.OPAQUE: _decode_bytes,
    Tag.COUNTER64: _decode_unsigned,
    Tag.NO_SUCH_OBJECT: _decode_nothing,
    Tag.NO_SUCH_INSTANCE: _decode_nothing,
    Tag.END_OF_MIB_VIEW: _decode_nothing,
}
