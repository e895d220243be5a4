"""The codec: what goes in comes out, known bytes are as the standard has them, damage is refused."""

import contextlib
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facho.polling.domain.execution_state import FailureKind
from facho.polling.snmp.ber import (
    Pdu,
    PduKind,
    SnmpMessage,
    Tag,
    VarBind,
    decode_head,
    decode_message,
    encode_message,
    encode_message_raw,
    encode_questions,
    encode_varbind,
)
from facho.polling.snmp.ber_values import MAX_KEPT_OCTETS
from facho.polling.snmp.errors import MalformedMessage

SYS_DESCR = (1, 3, 6, 1, 2, 1, 1, 1, 0)
# GET sysDescr.0, community "public", request id 1: as any sniffer shows it.
KNOWN_GET = bytes.fromhex("302602010104067075626c6963a01902010102010002010030" + "0e300c06082b060102010101000500")

sub_ids = st.integers(0, 2**32 - 1)
low_roots = st.tuples(st.integers(0, 1), st.integers(0, 39))
joint_roots = st.tuples(st.just(2), st.integers(0, 2**32 - 81))
oids = st.tuples(low_roots | joint_roots, st.lists(sub_ids, max_size=40)).map(lambda p: (*p[0], *p[1]))
octets = st.binary(max_size=300)
values = st.one_of(
    st.tuples(st.just(Tag.INTEGER), st.integers(-(2**31), 2**31 - 1)),
    st.tuples(st.just(Tag.OCTET_STRING), octets),
    st.tuples(st.just(Tag.OPAQUE), octets),
    st.tuples(st.just(Tag.IP_ADDRESS), st.binary(min_size=4, max_size=4)),
    st.tuples(st.sampled_from((Tag.COUNTER32, Tag.GAUGE32, Tag.TIMETICKS)), st.integers(0, 2**32 - 1)),
    st.tuples(st.just(Tag.COUNTER64), st.integers(0, 2**64 - 1)),
    st.tuples(st.just(Tag.OBJECT_IDENTIFIER), oids),
    st.tuples(
        st.sampled_from((Tag.NULL, Tag.NO_SUCH_OBJECT, Tag.NO_SUCH_INSTANCE, Tag.END_OF_MIB_VIEW)), st.just(None)
    ),
)
varbinds = st.tuples(oids, values).map(lambda pair: (pair[0], *pair[1]))
int32 = st.integers(-(2**31), 2**31 - 1)
kinds = st.sampled_from([PduKind.GET, PduKind.GET_NEXT, PduKind.RESPONSE, PduKind.GET_BULK])
pdus = st.builds(Pdu, kinds, int32, int32, int32, st.lists(varbinds, max_size=12))
messages = st.builds(SnmpMessage, st.just(1), st.binary(max_size=40), pdus)


def answer(*rows: VarBind) -> bytes:
    return encode_message(SnmpMessage(1, b"public", Pdu(PduKind.RESPONSE, 77, 0, 0, rows)))


def answer_with(encoded_varbinds: bytes) -> bytes:
    return encode_message_raw(1, b"public", PduKind.RESPONSE, 77, 0, 0, encoded_varbinds)


@given(messages)
def test_a_message_survives_the_wire(message: SnmpMessage) -> None:
    assert decode_message(encode_message(message)) == message


def test_a_get_has_the_bytes_of_the_standard() -> None:
    get = SnmpMessage(1, b"public", Pdu(PduKind.GET, 1, 0, 0, [(SYS_DESCR, Tag.NULL, None)]))

    assert encode_message(get) == KNOWN_GET
    assert decode_message(KNOWN_GET) == get


def test_rows_encoded_ahead_make_the_same_message() -> None:
    rows: list[VarBind] = [((1, 3, 6, 1, 9, n), Tag.GAUGE32, n * 1000) for n in range(300)]

    assert answer_with(b"".join(map(encode_varbind, rows))) == answer(*rows)


@given(st.lists(oids, max_size=5))
def test_a_question_is_a_varbind_without_a_value(asked: list[tuple[int, ...]]) -> None:
    assert encode_questions(asked) == b"".join(encode_varbind((oid, Tag.NULL, None)) for oid in asked)


def test_the_community_is_not_in_the_repr() -> None:
    assert "public" not in repr(decode_message(KNOWN_GET))


@pytest.mark.parametrize("long_length", ["810e", "82000e", "8300000e", "840000000e"])
def test_lengths_longer_than_needed_are_read(long_length: str) -> None:
    plain = encode_varbind((SYS_DESCR, Tag.INTEGER, 5))
    padded = bytes.fromhex("30" + long_length.replace("0e", "0d")) + plain[2:]

    assert decode_message(answer_with(padded + plain)).pdu.varbinds == [(SYS_DESCR, Tag.INTEGER, 5)] * 2


def test_integers_padded_by_the_agent_are_read() -> None:
    padded = bytes.fromhex("300e06072b0601020101010203000005")
    bare_counter = bytes.fromhex("300f06072b060102010101" + "4104ffffffff")

    rows = decode_message(answer_with(padded + bare_counter)).pdu.varbinds

    assert [value for _, _, value in rows] == [5, 2**32 - 1]


OID = "06072b060102010101"  # 9 bytes


@pytest.mark.parametrize(
    ("damage", "encoded"),
    [
        ("varbind longer than the list", "300d" + OID + "020105"),
        ("varbind shorter than its value", "300b" + OID + "020105"),
        ("value longer than the varbind", "300c" + OID + "020205"),
        ("value shorter than the varbind", "300d" + OID + "02010505"),
        ("varbind is a set", "310c" + OID + "020105"),
        ("name is no object identifier", "300c" + OID.replace("06", "04", 1) + "020105"),
        ("no value", "3009" + OID),
        ("indefinite length", "3080" + OID + "0201050000"),
        ("length of five bytes", "3085000000000c" + OID + "020105"),
        ("length of the value beyond the buffer", "300f" + OID + "0484ffffffff"),
        ("integer of five bytes", "3010" + OID + "02050000000001"),
        ("integer of no bytes", "300b" + OID + "0200"),
        ("counter over 32 bits", "3010" + OID + "41050100000000"),
        ("counter64 over 64 bits", "3014" + OID + "4609010000000000000000"),
        ("counter of no bytes", "300b" + OID + "4100"),
        ("address of three bytes", "300e" + OID + "4003010203"),
        ("null with a value", "300c" + OID + "050100"),
        ("exception with a value", "300c" + OID + "820100"),
        ("unknown type", "300c" + OID + "470105"),
        ("empty object identifier", "30050600020105"),
        ("sub-identifier cut short", "300c" + OID[:-2] + "81" + "020105"),
        ("sub-identifier padded", "300d06082b06010201018001020105"),
        ("sub-identifier of 33 bits", "3011060c2b0601020101" + "9080808000" + "01" + "020105"),
        ("object identifier of 129 numbers", "30818606" + "8180" + "2b" + "01" * 127 + "020105"),
    ],
)
def test_a_damaged_varbind_is_refused(damage: str, encoded: str) -> None:
    with pytest.raises(MalformedMessage) as caught:
        decode_message(answer_with(bytes.fromhex(encoded)))

    assert caught.value.kind is FailureKind.MALFORMED, damage


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x30",
        b"\x30\x80",
        KNOWN_GET + b"\x00",
        KNOWN_GET[:-1],
        b"\x31" + KNOWN_GET[1:],
        KNOWN_GET.replace(b"\x02\x01\x01\x04", b"\x02\x01\x03\x04"),
        KNOWN_GET.replace(b"\xa0", b"\xa3"),
        KNOWN_GET.replace(b"\xa0\x19", b"\xa0\x18"),
        KNOWN_GET.replace(b"\x30\x0e", b"\x30\x0d"),
        encode_message_raw(0, b"public", PduKind.GET_BULK, 1, 0, 10, b""),
        encode_message_raw(1, b"x" * 256, PduKind.GET, 1, 0, 0, b""),
        encode_message_raw(1, b"public", PduKind.REPORT, 1, 0, 0, b""),
        encode_message_raw(1, b"public", PduKind.TRAP, 1, 0, 0, b""),
        encode_message_raw(1, b"public", PduKind.INFORM, 1, 0, 0, b""),
    ],
)
def test_a_damaged_message_is_refused(data: bytes) -> None:
    with pytest.raises(MalformedMessage):
        decode_message(data)


def test_every_truncation_is_refused() -> None:
    whole = answer((SYS_DESCR, Tag.OCTET_STRING, b"x" * 200), (SYS_DESCR, Tag.COUNTER64, 2**63))

    for size in range(len(whole)):
        with pytest.raises(MalformedMessage):
            decode_message(whole[:size])


@given(st.binary(max_size=200))
def test_any_bytes_are_decoded_or_refused(data: bytes) -> None:
    with contextlib.suppress(MalformedMessage):
        decode_message(data)


def test_mutated_answers_are_decoded_or_refused() -> None:
    rng = random.Random(20_240_607)  # noqa: S311 - seeded on purpose
    whole = answer(*[((1, 3, 6, 1, 4, 1, 2011, 6, n, 4194304000 + n), Tag.OCTET_STRING, b"onu") for n in range(30)])

    for _ in range(5_000):
        damaged = bytearray(whole)
        for _ in range(rng.randint(1, 4)):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        try:
            message = decode_message(bytes(damaged))
        except MalformedMessage:
            continue
        assert all(len(oid) >= 2 and max(oid) < 2**32 for oid, _, _ in message.pdu.varbinds)


def test_the_request_id_of_a_truncated_answer_is_readable() -> None:
    whole = answer((SYS_DESCR, Tag.OCTET_STRING, b"x" * 200))

    assert decode_head(whole[:60]).request_id == 77
    for damaged in (whole[:12], b"\x00garbage"):
        with pytest.raises(MalformedMessage):
            decode_head(damaged)


@pytest.mark.parametrize("tag", [Tag.OCTET_STRING, Tag.OPAQUE])
def test_octets_are_cut_to_what_a_column_can_hold(tag: Tag) -> None:
    [longest] = decode_message(answer((SYS_DESCR, tag, b"x" * 60_000))).pdu.varbinds
    [fitting] = decode_message(answer((SYS_DESCR, tag, b"x" * MAX_KEPT_OCTETS))).pdu.varbinds

    assert longest == fitting == (SYS_DESCR, tag, b"x" * MAX_KEPT_OCTETS)


@pytest.mark.parametrize(
    "varbind",
    [
        (SYS_DESCR, Tag.INTEGER, 2**31),
        (SYS_DESCR, Tag.INTEGER, b"5"),
        (SYS_DESCR, Tag.GAUGE32, -1),
        (SYS_DESCR, Tag.COUNTER32, 2**32),
        (SYS_DESCR, Tag.COUNTER64, 2**64),
        (SYS_DESCR, Tag.IP_ADDRESS, b"\x7f\x00\x00"),
        (SYS_DESCR, Tag.OCTET_STRING, None),
        (SYS_DESCR, Tag.OBJECT_IDENTIFIER, 5),
        (SYS_DESCR, Tag.NULL, 0),
        (SYS_DESCR, 0x47, 1),
        ((1,), Tag.NULL, None),
        ((1, 40), Tag.NULL, None),
        ((3, 1), Tag.NULL, None),
        ((1, 3, 2**32), Tag.NULL, None),
        ((1, 3, *range(127)), Tag.NULL, None),
    ],
)
def test_what_does_not_fit_its_type_is_not_sent(varbind: VarBind) -> None:
    with pytest.raises(ValueError, match=r"."):
        encode_varbind(varbind)


def test_a_message_larger_than_a_datagram_is_not_sent() -> None:
    with pytest.raises(ValueError, match="datagram"):
        answer((SYS_DESCR, Tag.OCTET_STRING, b"x" * 70_000))
