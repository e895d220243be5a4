"""The BER codec for SNMP v1 and v2c messages, and for the PDUs of v3, shared by the client and the simulator.

Strict about structure (every length must fit exactly, types and sizes are checked) and tolerant of padding
that BER allows and real agents send. The loop over varbinds is the hot path of a walk: short forms are read
inline and OIDs are put together from cached halves.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

from facho.polling.snmp.ber_values import (
    Oid,
    Tag,
    Value,
    decode_oid,
    decode_sub_ids,
    decode_value,
    encode_integer,
    encode_oid,
    encode_value,
    enter,
    read_integer,
    read_length,
    wrap,
)
from facho.polling.snmp.errors import MalformedMessage

__all__ = [
    "Message",
    "Oid",
    "Pdu",
    "PduKind",
    "Tag",
    "Value",
    "VarBind",
    "decode_message",
    "decode_pdu",
    "encode_message",
    "encode_message_raw",
    "encode_questions",
    "encode_varbind",
    "encode_varbinds",
    "peek_request_id",
]

VarBind = tuple[Oid, int, Value]

_MAX_COMMUNITY_BYTES = 255
_SEQUENCE = 0x30
_NULL = bytes((Tag.NULL, 0))
# OIDs whose varbind, without a value, has a length of one byte.
_LONGEST_SHORT_QUESTION = 0x7F - 4
# The last bytes of an OID, usually its index; heads (column, port) and tails both repeat from row to row.
_TAIL_BYTES = 6
_CACHE_ENTRIES = 8_192
_CACHE_KEY_BYTES = 40


class PduKind(IntEnum):
    """The kinds of PDU that a reader exchanges; reports exist in v3 only."""

    GET = 0xA0
    GET_NEXT = 0xA1
    RESPONSE = 0xA2
    GET_BULK = 0xA5
    REPORT = 0xA8


@dataclass(frozen=True, slots=True)
class Pdu:
    """One PDU. For GET_BULK the two error fields hold non-repeaters and max-repetitions."""

    kind: PduKind
    request_id: int
    error_status: int
    error_index: int
    varbinds: Sequence[VarBind]


@dataclass(frozen=True, slots=True)
class Message:
    """A whole datagram; version 0 is SNMPv1, 1 is SNMPv2c."""

    version: int
    community: bytes = field(repr=False)
    pdu: Pdu


def encode_message(message: Message) -> bytes:
    """Encode a message; ValueError when a value does not fit its type."""
    pdu = message.pdu
    return encode_message_raw(
        message.version,
        message.community,
        pdu.kind,
        pdu.request_id,
        pdu.error_status,
        pdu.error_index,
        encode_varbinds(pdu.varbinds),
    )


def encode_message_raw(  # noqa: PLR0913 - the fields of the wire format, in its order
    version: int, community: bytes, kind: int, request_id: int, status: int, index: int, encoded_varbinds: bytes
) -> bytes:
    """Wrap varbinds that are already encoded, so that rows can be encoded once and sent often."""
    head = encode_integer(request_id) + encode_integer(status) + encode_integer(index)
    pdu = wrap(kind, head + wrap(_SEQUENCE, encoded_varbinds))
    return wrap(_SEQUENCE, encode_integer(version) + wrap(Tag.OCTET_STRING, community) + pdu)


def encode_varbinds(varbinds: Iterable[VarBind]) -> bytes:
    """Encode varbinds one after the other, without their enclosing sequence."""
    return b"".join(map(encode_varbind, varbinds))


def encode_questions(oids: Iterable[Oid]) -> bytes:
    """Encode OIDs without values, as requests carry them; ValueError for what is no OID."""
    return b"".join(map(_encode_question, oids))


def _encode_question(oid: Oid) -> bytes:
    content = encode_oid(oid)
    size = len(content)
    if size > _LONGEST_SHORT_QUESTION:
        return encode_varbind((oid, Tag.NULL, None))
    return bytes((_SEQUENCE, size + 4, Tag.OBJECT_IDENTIFIER, size)) + content + _NULL


def encode_varbind(varbind: VarBind) -> bytes:
    """Encode one varbind; ValueError when the value does not fit its type."""
    oid, tag, value = varbind
    return wrap(_SEQUENCE, wrap(Tag.OBJECT_IDENTIFIER, encode_oid(oid)) + encode_value(tag, value))


def decode_message(data: bytes) -> Message:
    """Decode a datagram; MalformedMessage for anything that is not exactly one message."""
    try:
        return _decode_message(data)
    except IndexError as error:
        raise MalformedMessage("message ends in the middle of a field") from error


def peek_request_id(data: bytes) -> int | None:
    """Return the request id of a message whose rest may be damaged, None when even its head is."""
    try:
        return _decode_head(data)[3]
    except (IndexError, MalformedMessage):
        return None


def decode_pdu(data: bytes, pos: int, end: int) -> Pdu:
    """Decode the PDU of any version that fills `data` from `pos` to `end`; IndexError when it ends too early."""
    kind = _PDU_KINDS.get(data[pos])
    if kind is None:
        raise MalformedMessage("not a PDU we speak")
    pos, pdu_end = enter(data, pos, end, kind)
    if pdu_end != end:
        raise MalformedMessage("PDU does not end with the message")
    request_id, pos = read_integer(data, pos, end)
    return _decode_fields(data, pos, end, kind, request_id)


def _decode_message(data: bytes) -> Message:
    _, end = enter(data, 0, len(data), _SEQUENCE)
    if end != len(data):
        raise MalformedMessage("bytes after the end of the message")
    version, community, kind, request_id, pos, pdu_end = _decode_head(data)
    if pdu_end != end:
        raise MalformedMessage("PDU does not end with the message")
    return Message(version, community, _decode_fields(data, pos, end, kind, request_id))


def _decode_fields(data: bytes, pos: int, end: int, kind: PduKind, request_id: int) -> Pdu:
    status, pos = read_integer(data, pos, end)
    index, pos = read_integer(data, pos, end)
    start, list_end = enter(data, pos, end, _SEQUENCE)
    if list_end != end:
        raise MalformedMessage("varbinds do not end with the PDU")
    return Pdu(kind, request_id, status, index, _decode_varbinds(data, start, end))


def _decode_head(data: bytes) -> tuple[int, bytes, PduKind, int, int, int]:
    # Lengths are only checked against the datagram by the caller: a truncated one still has a readable head.
    pos, _ = read_length(data, 1)
    if data[0] != _SEQUENCE:
        raise MalformedMessage("not a sequence")
    version, pos = read_integer(data, pos, len(data))
    if version not in (0, 1):
        raise MalformedMessage("not SNMP v1 or v2c")
    pos, community_end = enter(data, pos, len(data), Tag.OCTET_STRING)
    if community_end - pos > _MAX_COMMUNITY_BYTES:
        raise MalformedMessage("community too long")
    community = data[pos:community_end]
    kind = _PDU_KINDS.get(data[community_end])
    if kind is None or kind is PduKind.REPORT or (version == 0 and kind is PduKind.GET_BULK):
        raise MalformedMessage("not a PDU we speak")
    pos, size = read_length(data, community_end + 1)
    pdu_end = pos + size
    request_id, pos = read_integer(data, pos, len(data))
    return version, community, kind, request_id, pos, pdu_end


_PDU_KINDS = {int(kind): kind for kind in PduKind}


def _decode_varbinds(data: bytes, pos: int, end: int) -> list[VarBind]:
    rows: list[VarBind] = []
    append, heads, tails, from_bytes = rows.append, _HEADS, _TAILS, int.from_bytes
    while pos < end:
        # One test admits what nearly every varbind is: short lengths that all fit. The rest takes the long way.
        oid_at = pos + 4
        size = data[pos + 1]
        stop = pos + 2 + size
        tag_at = oid_at + data[pos + 3]
        start = tag_at + 2
        if not (
            data[pos] == 0x30
            and data[pos + 2] == 0x06
            and start <= stop <= end
            and size < 0x80
            and start + data[tag_at + 1] == stop
        ):
            row, pos = _decode_long_varbind(data, pos, end)
            append(row)
            continue
        cut = tag_at - _TAIL_BYTES
        while cut > oid_at and data[cut - 1] > 0x7F:
            cut -= 1
        head = heads.get(data[oid_at:cut])
        tail = tails.get(data[cut:tag_at])
        oid = _decode_oid(data[oid_at:tag_at], cut - oid_at) if head is None or tail is None else head + tail
        tag = data[tag_at]
        value: Value
        if tag == 0x02 and 0 < stop - start < 5:
            value = from_bytes(data[start:stop], "big", signed=True)
        elif tag == 0x04:
            value = data[start:stop]
        else:
            value = decode_value(tag, data[start:stop])
        append((oid, tag, value))
        pos = stop
    return rows


def _decode_long_varbind(data: bytes, pos: int, end: int) -> tuple[VarBind, int]:
    pos, stop = enter(data, pos, end, _SEQUENCE)
    oid_start, oid_end = enter(data, pos, stop, Tag.OBJECT_IDENTIFIER)
    if oid_end >= stop:
        raise MalformedMessage("varbind without a value")
    start, size = read_length(data, oid_end + 1)
    if start + size != stop:
        raise MalformedMessage("value does not end with its varbind")
    oid = decode_oid(data[oid_start:oid_end])
    tag = data[oid_end]
    return (oid, tag, decode_value(tag, data[start:stop])), stop


# Only well-formed halves get in, and both caches start anew when full: an agent cannot make them grow.
_HEADS: dict[bytes, Oid] = {}
_TAILS: dict[bytes, Oid] = {}


def _decode_oid(raw: bytes, cut: int) -> Oid:
    """Decode an OID and remember its two halves."""
    oid = decode_oid(raw)
    if 0 < cut <= _CACHE_KEY_BYTES:
        tail = decode_sub_ids(raw[cut:])
        _remember(_HEADS, raw[:cut], oid[: len(oid) - len(tail)])
        _remember(_TAILS, raw[cut:], tail)
    return oid


def _remember(cache: dict[bytes, Oid], key: bytes, value: Oid) -> None:
    if len(cache) >= _CACHE_ENTRIES:
        cache.clear()
    cache[key] = value
