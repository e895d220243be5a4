"""Traps and informs with a community: what they say, which of them count, and the answer to an inform."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facho.polling.snmp.ber import Oid, PduKind, Tag, VarBind, decode_message, encode_message_raw, encode_varbinds
from facho.polling.snmp.ber_values import SEQUENCE, encode_integer, encode_oid, encode_value, wrap
from facho.polling.snmp.notifications import Hearing, Notification, NotificationEar, Refused, encode_notification
from facho.polling.snmp.oid import (
    GENERIC_TRAPS,
    SNMP_TRAP_ADDRESS,
    SNMP_TRAP_COMMUNITY,
    SNMP_TRAP_ENTERPRISE,
    SNMP_TRAP_OID,
    SYS_UP_TIME,
    parse_oid,
)
from facho.polling.snmp.target import Community, SnmpVersion, UserCredential

VECTORS: list[dict[str, Any]] = json.loads(Path(__file__).with_name("notification_vectors.json").read_text())
VERSIONS = {"v1": SnmpVersion.V1, "v2c": SnmpVersion.V2C}
PUBLIC = Community(b"public")
LINK_DOWN: Oid = (*GENERIC_TRAPS, 3)
ENTERPRISE: Oid = (1, 3, 6, 1, 4, 1, 99_999)
INDEX: VarBind = ((1, 3, 6, 1, 2, 1, 2, 2, 1, 1, 7), Tag.INTEGER, 7)
TRAP = Notification(SnmpVersion.V2C, LINK_DOWN, (INDEX,), uptime_ticks=4_711)
NAME: VarBind = (SNMP_TRAP_OID, Tag.OBJECT_IDENTIFIER, LINK_DOWN)


def hear(data: bytes, *credentials: Community | UserCredential) -> Hearing:
    ear = NotificationEar(engine_id=b"\x80\x00\x1f\x88\x04facho", engine_boots=1, monotonic=lambda: 0.0)
    return ear.hear(data, credentials)


def heard(data: bytes) -> Notification:
    notification = hear(data, PUBLIC).notification
    assert notification is not None
    return notification


def trap_of(*varbinds: VarBind, kind: int = PduKind.TRAP, version: int = 1) -> bytes:
    return encode_message_raw(version, b"public", kind, 1, 0, 0, encode_varbinds(varbinds))


def v1_trap(
    generic: int = 6, specific: int = 18, *varbinds: VarBind, enterprise: Oid = ENTERPRISE, address: bytes = bytes(4)
) -> bytes:
    fields = wrap(Tag.OBJECT_IDENTIFIER, encode_oid(enterprise)) + wrap(Tag.IP_ADDRESS, address)
    fields += encode_integer(generic) + encode_integer(specific) + encode_value(Tag.TIMETICKS, 5)
    pdu = wrap(0xA4, fields + wrap(SEQUENCE, encode_varbinds(varbinds)))
    return wrap(SEQUENCE, encode_integer(0) + wrap(Tag.OCTET_STRING, b"public") + pdu)


def varbind_of(oid: str, tag: str, value: Any) -> VarBind:
    if tag in ("OCTET_STRING", "IP_ADDRESS"):
        return parse_oid(oid), Tag[tag], bytes.fromhex(value)
    return parse_oid(oid), Tag[tag], parse_oid(value) if tag == "OBJECT_IDENTIFIER" else value


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["id"])
def test_what_olts_send_is_read(vector: dict[str, Any]) -> None:
    expected = Notification(
        VERSIONS[vector["version"]],
        parse_oid(vector["oid"]),
        tuple(varbind_of(*varbind) for varbind in vector["varbinds"]),
        vector["uptime_ticks"],
        vector["pdu"] == "inform",
        vector["agent_address"],
        tail=vector["tail"].encode(),
    )

    hearing = hear(bytes.fromhex(vector["hex"]), PUBLIC)

    assert hearing.notification == expected
    assert hearing.refused is None
    assert (hearing.reply is not None) is expected.is_inform


@pytest.mark.parametrize("generic", range(6))
def test_a_generic_trap_of_v1_has_the_oid_of_v2(generic: int) -> None:
    assert heard(v1_trap(generic, 0)).oid == (*GENERIC_TRAPS, generic + 1)


def test_a_specific_trap_of_v1_has_a_zero_before_its_number() -> None:
    notification = heard(v1_trap(6, 18, INDEX, address=bytes((192, 0, 2, 9))))

    assert notification == Notification(
        SnmpVersion.V1, (*ENTERPRISE, 0, 18), (INDEX,), uptime_ticks=5, agent_address="192.0.2.9"
    )


def test_varbinds_about_the_notification_are_left_out_wherever_they_are() -> None:
    address: VarBind = (SNMP_TRAP_ADDRESS, Tag.IP_ADDRESS, bytes((192, 0, 2, 9)))
    community: VarBind = (SNMP_TRAP_COMMUNITY, Tag.OCTET_STRING, b"public")
    enterprise: VarBind = (SNMP_TRAP_ENTERPRISE, Tag.OBJECT_IDENTIFIER, ENTERPRISE)

    notification = heard(trap_of(INDEX, address, NAME, community, enterprise, (SYS_UP_TIME, Tag.TIMETICKS, 9)))

    assert notification == Notification(SnmpVersion.V2C, LINK_DOWN, (INDEX,), uptime_ticks=9, agent_address="192.0.2.9")


def test_a_missing_or_strange_uptime_is_zero() -> None:
    assert heard(trap_of(NAME)).uptime_ticks == 0
    assert heard(trap_of((SYS_UP_TIME, Tag.OCTET_STRING, b"1"), NAME)).uptime_ticks == 0


@pytest.mark.parametrize("version", [SnmpVersion.V1, SnmpVersion.V2C])
def test_an_address_of_zeros_is_none(version: SnmpVersion) -> None:
    zeros: VarBind = (SNMP_TRAP_ADDRESS, Tag.IP_ADDRESS, bytes(4))

    assert heard(v1_trap(6, 1, zeros) if version is SnmpVersion.V1 else trap_of(NAME, zeros)).agent_address == ""


@pytest.mark.parametrize(
    ("community", "tail"),
    [
        (b"public", b""),
        (b"public@", b""),
        (
            b"public@eventId=40366@eventLevel=minor@confirm@20260211174422",
            b"eventId=40366@eventLevel=minor@confirm@20260211174422",
        ),
    ],
)
@pytest.mark.parametrize("version", [SnmpVersion.V1, SnmpVersion.V2C])
def test_a_community_may_have_a_tail(version: SnmpVersion, community: bytes, tail: bytes) -> None:
    data = encode_notification(replace(TRAP, version=version), Community(community))

    notification = hear(data, Community(b"other"), PUBLIC).notification

    assert notification is not None
    assert notification.tail == tail


def test_a_community_with_an_at_sign_is_whole() -> None:
    secret = Community(b"noc@north")

    notification = hear(encode_notification(replace(TRAP, tail=b"eventId=1"), secret), secret).notification

    assert notification is not None
    assert notification.tail == b"eventId=1"


@pytest.mark.parametrize("community", [b"", b"publi", b"publicx", b"Public", b"publi@c", b"@public", b"public.@x"])
@pytest.mark.parametrize("is_inform", [False, True])
def test_another_community_is_refused_in_silence(community: bytes, *, is_inform: bool) -> None:
    data = trap_of(NAME, kind=PduKind.INFORM if is_inform else PduKind.TRAP).replace(
        wrap(Tag.OCTET_STRING, b"public"), wrap(Tag.OCTET_STRING, community)
    )
    data = wrap(SEQUENCE, data[2:])

    assert hear(data, PUBLIC) == Hearing(refused=Refused.COMMUNITY)


def test_an_address_without_credentials_gets_no_answer() -> None:
    inform = encode_notification(replace(TRAP, is_inform=True), PUBLIC)

    assert hear(inform) == Hearing(refused=Refused.COMMUNITY)
    assert hear(inform, UserCredential("noc")) == Hearing(refused=Refused.VERSION)


def test_an_inform_is_answered_with_its_varbinds_whatever_their_length() -> None:
    long: VarBind = ((*ENTERPRISE, 1), Tag.OCTET_STRING, b"x" * 1_000)
    inform = encode_notification(replace(TRAP, varbinds=(INDEX, long), is_inform=True), PUBLIC, request_id=-77)

    hearing = hear(inform, PUBLIC)

    assert hearing.notification == replace(TRAP, varbinds=(INDEX, long), is_inform=True)
    assert hearing.reply is not None
    answer = decode_message(hearing.reply)
    assert (answer.version, answer.community) == (1, b"public")
    assert (answer.pdu.kind, answer.pdu.request_id, answer.pdu.error_status) == (PduKind.RESPONSE, -77, 0)
    assert list(answer.pdu.varbinds)[2:] == [INDEX, long]
    assert len(hearing.reply) == len(inform)


def test_values_longer_than_are_kept_are_answered_whole() -> None:
    inform = trap_of(NAME, ((*ENTERPRISE, 1), Tag.OCTET_STRING, b"x" * 5_000), kind=PduKind.INFORM)

    hearing = hear(inform, PUBLIC)

    assert hearing.notification is not None
    assert hearing.notification.varbinds[0][2] == b"x" * 1_024
    assert hearing.reply is not None
    assert len(hearing.reply) == len(inform)


def test_errors_in_an_inform_are_not_answered_with_errors() -> None:
    inform = encode_message_raw(1, b"public", PduKind.INFORM, 1, 5, 1, encode_varbinds([NAME]))

    reply = hear(inform, PUBLIC).reply

    assert reply is not None
    assert (decode_message(reply).pdu.error_status, decode_message(reply).pdu.error_index) == (0, 0)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x30",
        b"\x30\x00",
        b"\x30\x84\xff\xff\xff\xff",
        b"hello",
        bytes(65_508),
        trap_of(NAME) + b"\x00",
        trap_of(NAME)[:-1],
        trap_of(NAME, version=2),
        trap_of(NAME, version=0),
        trap_of(NAME, kind=PduKind.GET),
        trap_of(NAME, kind=PduKind.RESPONSE),
        trap_of(NAME, kind=PduKind.REPORT),
        trap_of(NAME, kind=PduKind.INFORM, version=0),
        trap_of(INDEX),
        trap_of(),
        trap_of((SNMP_TRAP_OID, Tag.OCTET_STRING, b"1.3.6")),
        v1_trap(7, 0),
        v1_trap(-1, 0),
        v1_trap(6, -1),
        v1_trap(address=bytes(5)),
        v1_trap(enterprise=(1, 3, *range(125))),
        v1_trap() + b"\x00",
        v1_trap()[:-1],
        v1_trap().replace(b"\x02\x01\x00", b"\x02\x01\x01", 1),
    ],
    ids=repr,
)
def test_what_is_not_a_notification_is_malformed(data: bytes) -> None:
    assert hear(data, PUBLIC) == Hearing(refused=Refused.MALFORMED)


def test_every_cut_of_a_notification_is_malformed_or_refused() -> None:
    for vector in VECTORS:
        data = bytes.fromhex(vector["hex"])
        for size in range(len(data)):
            assert hear(data[:size], PUBLIC) == Hearing(refused=Refused.MALFORMED)


sub_ids = st.integers(0, 2**32 - 1)
oids = st.lists(sub_ids, min_size=1, max_size=20).map(lambda rest: (1, 3, *rest))
values = st.one_of(
    st.tuples(st.just(int(Tag.INTEGER)), st.integers(-(2**31), 2**31 - 1)),
    st.tuples(st.sampled_from([int(Tag.COUNTER32), int(Tag.GAUGE32), int(Tag.TIMETICKS)]), sub_ids),
    st.tuples(st.sampled_from([int(Tag.OCTET_STRING), int(Tag.OPAQUE)]), st.binary(max_size=200)),
    st.tuples(st.just(int(Tag.IP_ADDRESS)), st.binary(min_size=4, max_size=4)),
    st.tuples(st.just(int(Tag.OBJECT_IDENTIFIER)), oids),
    st.tuples(st.just(int(Tag.NULL)), st.none()),
)
varbinds = st.tuples(oids, values).map(lambda pair: (pair[0], *pair[1]))
v1_oids = st.one_of(
    st.integers(1, 6).map(lambda number: (*GENERIC_TRAPS, number)),
    st.tuples(oids, st.integers(0, 2**31 - 1)).map(lambda pair: (*pair[0], 0, pair[1])),
)
notifications = st.builds(
    Notification,
    version=st.just(SnmpVersion.V2C),
    oid=oids,
    varbinds=st.lists(varbinds, max_size=8).map(tuple),
    uptime_ticks=sub_ids,
    is_inform=st.booleans(),
    agent_address=st.sampled_from(["", "192.0.2.9"]),
    tail=st.binary(max_size=60),
)
v1_notifications = st.builds(
    lambda notification, oid: replace(notification, version=SnmpVersion.V1, oid=oid, is_inform=False),
    notifications,
    v1_oids,
)


@given(
    st.one_of(notifications, v1_notifications),
    st.binary(min_size=1, max_size=40).map(Community),
    st.integers(-(2**31), 2**31 - 1),
)
def test_what_is_encoded_is_heard(notification: Notification, community: Community, request_id: int) -> None:
    data = encode_notification(notification, community, request_id=request_id)

    hearing = hear(data, community)

    assert hearing.notification == notification
    assert (hearing.reply is not None) is notification.is_inform
    assert len(hearing.reply or b"") <= len(data)


def test_an_oid_without_a_zero_is_heard_with_one_in_v1() -> None:
    trap = Notification(SnmpVersion.V1, (*ENTERPRISE, 123))

    assert heard(encode_notification(trap, PUBLIC)).oid == (*ENTERPRISE, 0, 123)


@pytest.mark.parametrize(
    ("notification", "credential"),
    [
        (TRAP, UserCredential("noc")),
        (replace(TRAP, version=SnmpVersion.V3), PUBLIC),
        (replace(TRAP, version=SnmpVersion.V1, is_inform=True), PUBLIC),
        (replace(TRAP, version=SnmpVersion.V1, varbinds=((ENTERPRISE, Tag.COUNTER64, 1),)), PUBLIC),
        (replace(TRAP, uptime_ticks=-1), PUBLIC),
    ],
    ids=["a user in v2c", "a community in v3", "an inform in v1", "64 bits in v1", "before the start"],
)
def test_what_a_version_does_not_have_is_not_encoded(
    notification: Notification, credential: Community | UserCredential
) -> None:
    with pytest.raises(ValueError, match=r"."):
        encode_notification(notification, credential)
