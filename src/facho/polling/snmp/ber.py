"""The BER codec for SNMP v1 and v2c messages, and for the PDUs of v3, shared by the client and the simulator."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import lru_cache
from typing import NamedTuple

from facho.polling.snmp import pages
from facho.polling.snmp.ber_values import (
    SEQUENCE,
    Oid,
    Tag,
    Value,
    VarBind,
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
    "Head",
    "Oid",
    "Pdu",
    "PduKind",
    "SnmpMessage",
    "Tag",
    "Value",
    "VarBind",
    "decode_body",
    "decode_head",
    "decode_message",
    "decode_pdu",
    "encode_message",
    "encode_message_raw",
    "encode_questions",
    "encode_varbind",
    "encode_varbinds",
]

_MAX_COMMUNITY_BYTES = 255
# Status and index of nearly every answer.
_NO_ERROR = bytes((Tag.INTEGER, 1, 0)) * 2


class PduKind(IntEnum):
    """The PDU types of v2c and v3; reports exist in v3 only. The trap of v1 has a form of its own."""

    GET = 0xA0
    GET_NEXT = 0xA1
    RESPONSE = 0xA2
    GET_BULK = 0xA5
    INFORM = 0xA6
    TRAP = 0xA7
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
class SnmpMessage:
    """A whole datagram; version 0 is SNMPv1, 1 is SNMPv2c."""

    version: int
    community: bytes = field(repr=False)
    pdu: Pdu


class Head(NamedTuple):
    """The fields before a message's varbinds, and the bounds of the rest of its PDU."""

    version: int
    community: bytes
    kind: PduKind
    request_id: int
    rest_at: int
    pdu_end: int


def encode_message(message: SnmpMessage) -> bytes:
    """Encode a message; ValueError if a value does not fit its type."""
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
    """Wrap encoded varbinds, so that rows can be encoded once and sent often."""
    head = encode_integer(request_id) + _encode_repeated(status) + _encode_repeated(index)
    pdu = wrap(kind, head + wrap(SEQUENCE, encoded_varbinds))
    return wrap(SEQUENCE, _encode_repeated(version) + wrap(Tag.OCTET_STRING, community) + pdu)


# Versions, statuses and repetitions are few; request ids are not.
_encode_repeated = lru_cache(maxsize=256)(encode_integer)


def encode_varbinds(varbinds: Iterable[VarBind]) -> bytes:
    """Encode varbinds, without their enclosing sequence."""
    return b"".join(map(encode_varbind, varbinds))


def encode_questions(oids: Iterable[Oid]) -> bytes:
    """Encode OIDs without values, as in requests; ValueError for an invalid OID."""
    return pages.decoder.encode_questions(oids)


def encode_varbind(varbind: VarBind) -> bytes:
    """Encode one varbind; ValueError if the value does not fit its type."""
    oid, tag, value = varbind
    return wrap(SEQUENCE, wrap(Tag.OBJECT_IDENTIFIER, encode_oid(oid)) + encode_value(tag, value))


def decode_message(data: bytes) -> SnmpMessage:
    """Decode a datagram; MalformedMessage unless it is exactly one message."""
    return decode_body(data, decode_head(data))


def decode_head(data: bytes) -> Head:
    """Decode the head of a message whose rest may be damaged; MalformedMessage if the head is damaged too."""
    # Lengths are only checked against the datagram by the caller: a truncated one still has a readable head.
    try:
        pos, _ = read_length(data, 1)
        if data[0] != SEQUENCE:
            raise MalformedMessage("not a sequence")
        version, pos = read_integer(data, pos, len(data))
        if version not in (0, 1):
            raise MalformedMessage("not SNMP v1 or v2c")
        pos, community_end = enter(data, pos, len(data), Tag.OCTET_STRING)
        if community_end - pos > _MAX_COMMUNITY_BYTES:
            raise MalformedMessage("community too long")
        community = data[pos:community_end]
        kind = _PDU_KINDS.get(data[community_end], PduKind.REPORT)
        if kind not in _EXCHANGED or (version == 0 and kind is PduKind.GET_BULK):
            raise MalformedMessage("not a PDU we speak")
        pos, size = read_length(data, community_end + 1)
        pdu_end = pos + size
        request_id, pos = read_integer(data, pos, len(data))
    except IndexError as error:
        raise MalformedMessage("message ends in the middle of a field") from error
    return Head(version, community, kind, request_id, pos, pdu_end)


def decode_body(data: bytes, head: Head) -> SnmpMessage:
    """Decode the rest; MalformedMessage unless the datagram is exactly one message."""
    try:
        _, end = enter(data, 0, len(data), SEQUENCE)
        if end != len(data):
            raise MalformedMessage("bytes after the end of the message")
        if head.pdu_end != end:
            raise MalformedMessage("PDU does not end with the message")
        pdu = _decode_fields(data, head.rest_at, end, head.kind, head.request_id)
    except IndexError as error:
        raise MalformedMessage("message ends in the middle of a field") from error
    return SnmpMessage(head.version, head.community, pdu)


def decode_pdu(data: bytes, pos: int, end: int) -> Pdu:
    """Decode the PDU in `data` from `pos` to `end`; IndexError if it is truncated."""
    kind = _PDU_KINDS.get(data[pos])
    if kind is None:
        raise MalformedMessage("not a PDU we speak")
    pos, pdu_end = enter(data, pos, end, kind)
    if pdu_end != end:
        raise MalformedMessage("PDU does not end with the message")
    request_id, pos = read_integer(data, pos, end)
    return _decode_fields(data, pos, end, kind, request_id)


def _decode_fields(data: bytes, pos: int, end: int, kind: PduKind, request_id: int) -> Pdu:
    status = index = 0
    if data.startswith(_NO_ERROR, pos):
        pos += len(_NO_ERROR)
    else:
        status, pos = read_integer(data, pos, end)
        index, pos = read_integer(data, pos, end)
    start, list_end = enter(data, pos, end, SEQUENCE)
    if list_end != end:
        raise MalformedMessage("varbinds do not end with the PDU")
    return Pdu(kind, request_id, status, index, pages.decoder.VarBindPage(data, start, end))


_PDU_KINDS = {int(kind): kind for kind in PduKind}
# What a manager and an agent say to each other in v1 and v2c.
_EXCHANGED = frozenset((PduKind.GET, PduKind.GET_NEXT, PduKind.RESPONSE, PduKind.GET_BULK))
