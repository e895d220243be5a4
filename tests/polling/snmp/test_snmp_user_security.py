"""Keys, digests and encryption of v3: what the library seals we can open, and nothing else passes for genuine."""

import random
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from snmp_v3_agent import encode_pdu, encode_sealed, report

from facho.polling.snmp.ber import Oid, Pdu, PduKind, Tag
from facho.polling.snmp.errors import ForgedAnswer, MalformedMessage, UnexpectedAnswer
from facho.polling.snmp.oid import SYS_DESCR, SYS_UP_TIME
from facho.polling.snmp.target import SUPPORTED, AuthProtocol, PrivProtocol, UserCredential
from facho.polling.snmp.user_security import (
    Envelope,
    LibraryWire,
    Sealer,
    SnmpEngine,
    decode_envelope,
    encode_scoped,
    make_engine,
    open_answer,
    open_report,
    read_content,
    read_scoped,
    seal_envelope,
)

ENGINE_ID = b"\x80\x00\x1f\x88\x04facho"
AUTH_KEY, PRIV_KEY = b"s3cr3t-auth-key", b"s3cr3t-priv-key"
PLAIN = UserCredential("noc")
SIGNED = UserCredential("noc", AuthProtocol.SHA, AUTH_KEY)
SECRET = UserCredential("noc", AuthProtocol.SHA_256, AUTH_KEY, PrivProtocol.AES, PRIV_KEY)
ALL = [
    PLAIN,
    *(
        UserCredential("noc", auth, AUTH_KEY, priv, PRIV_KEY)
        for auth, privs in SUPPORTED.items()
        for priv in (None, *privs)
    ),
]
SEED = 7_041_776


@pytest.fixture
def wire() -> Iterator[LibraryWire]:
    wire = LibraryWire()
    yield wire
    wire.close()


def level(credential: UserCredential) -> str:
    return f"{credential.auth_protocol}-{credential.priv_protocol}"


@pytest.mark.parametrize(
    ("protocol", "key"),
    [
        (AuthProtocol.MD5, "526f5eed9fcce26f8964c2930787d82b"),
        (AuthProtocol.SHA, "6695febc9288e36282235fc7151f128497b38f3f"),
    ],
)
def test_keys_are_those_of_the_standard(protocol: AuthProtocol, key: str) -> None:
    engine = make_engine(UserCredential("noc", protocol, b"maplesyrup"), bytes(11) + b"\x02")

    assert engine.auth_key.hex() == key


def test_keys_do_not_show() -> None:
    engine = make_engine(SECRET, ENGINE_ID)

    assert engine.auth_key.hex() not in repr(engine)
    assert repr(engine.priv_key) not in repr(engine)


@pytest.mark.parametrize("credential", ALL, ids=level)
def test_what_is_sealed_can_be_verified_and_read(wire: LibraryWire, credential: UserCredential) -> None:
    engine = make_engine(credential, ENGINE_ID)

    sealed = decode_envelope(Sealer(wire, credential, engine).seal_get([SYS_DESCR, SYS_UP_TIME]))

    pdu = read_content(sealed, credential, engine)
    assert (pdu.kind, [row[0] for row in pdu.varbinds]) == (PduKind.GET, [SYS_DESCR, SYS_UP_TIME])
    assert sealed.is_authenticated is (credential.auth_protocol is not None)
    assert sealed.is_encrypted is (credential.priv_protocol is not None)
    # The digest held: only the kind of PDU is wrong.
    with pytest.raises(UnexpectedAnswer):
        open_answer(sealed, credential, engine)


@pytest.mark.parametrize("credential", ALL, ids=level)
@pytest.mark.parametrize("size", range(9))
def test_what_we_seal_can_be_opened(credential: UserCredential, size: int) -> None:
    engine = make_engine(credential, ENGINE_ID)
    row = (SYS_DESCR, Tag.OCTET_STRING, b"x" * size)
    message = Envelope(
        message_id=77,
        is_authenticated=credential.auth_protocol is not None,
        is_encrypted=credential.priv_protocol is not None,
        engine_id=ENGINE_ID,
        engine_boots=3,
        engine_time=4_711,
        user=b"noc",
        body=encode_scoped(b"engine", b"context", encode_pdu(Pdu(PduKind.RESPONSE, 9, 0, 0, [row]))),
        is_reportable=True,
    )

    sealed = decode_envelope(seal_envelope(message, credential, engine))

    assert list(open_answer(sealed, credential, engine).pdu.varbinds) == [row]
    scoped = read_scoped(sealed, credential, engine)
    assert (scoped.context_engine_id, scoped.context_name) == (b"engine", b"context")
    assert (sealed.message_id, sealed.engine_boots, sealed.engine_time) == (77, 3, 4_711)
    assert sealed.is_reportable


def test_no_two_messages_look_alike(wire: LibraryWire) -> None:
    sealer = Sealer(wire, SECRET, make_engine(SECRET, ENGINE_ID))

    sealed = [decode_envelope(sealer.seal_get([SYS_DESCR])) for _ in range(50)]

    assert len({message.salt for message in sealed}) == 50
    assert len({message.message_id for message in sealed}) == 50


sub_ids = st.one_of(st.integers(0, 300), st.integers(0, 2**32 - 1))
oids = st.tuples(st.tuples(st.integers(0, 2), st.integers(0, 39)), st.lists(sub_ids, max_size=40)).map(
    lambda parts: (*parts[0], *parts[1])
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(oid=oids, repetitions=st.integers(1, 1_000))
def test_the_library_asks_for_what_it_is_reported(wire: LibraryWire, oid: Oid, repetitions: int) -> None:
    engine = SnmpEngine(ENGINE_ID)
    sealer = Sealer(wire, PLAIN, engine)

    bulk = read_content(decode_envelope(sealer.seal_get_bulk(oid, repetitions)), PLAIN, engine)
    get = read_content(decode_envelope(sealer.seal_get([oid, SYS_DESCR])), PLAIN, engine)

    assert (bulk.kind, bulk.error_status, bulk.error_index) == (PduKind.GET_BULK, 0, repetitions)
    assert [row[0] for row in bulk.varbinds] == [oid]
    assert [row[0] for row in get.varbinds] == [oid, SYS_DESCR]


@pytest.mark.parametrize("credential", [SIGNED, SECRET], ids=level)
def test_a_digest_made_with_another_key_is_forged(wire: LibraryWire, credential: UserCredential) -> None:
    engine = make_engine(credential, ENGINE_ID)
    other = make_engine(replace(credential, auth_key=b"another-key"), ENGINE_ID)
    sealed = decode_envelope(Sealer(wire, credential, other).seal_get([SYS_DESCR]))

    with pytest.raises(ForgedAnswer, match="digest"):
        open_answer(sealed, credential, engine)


@pytest.mark.parametrize(
    ("sender", "engine_id"), [(replace(SIGNED, user="guest"), ENGINE_ID), (SIGNED, b"\x80\x00\x1f\x88\x04other")]
)
def test_another_user_or_engine_is_forged(wire: LibraryWire, sender: UserCredential, engine_id: bytes) -> None:
    sealed = decode_envelope(Sealer(wire, sender, make_engine(sender, engine_id)).seal_get([SYS_DESCR]))

    with pytest.raises(ForgedAnswer, match="another"):
        open_answer(sealed, SIGNED, make_engine(SIGNED, ENGINE_ID))


def test_a_signature_that_nobody_asked_for_is_forged(wire: LibraryWire) -> None:
    engine = make_engine(SECRET, ENGINE_ID)
    sealed = decode_envelope(Sealer(wire, SECRET, engine).seal_get([SYS_DESCR]))

    with pytest.raises(ForgedAnswer, match="has no key"):
        open_answer(sealed, PLAIN, engine)
    with pytest.raises(ForgedAnswer, match="has no privacy"):
        read_content(sealed, SIGNED, engine)


def test_an_unsigned_response_is_for_users_without_a_key(wire: LibraryWire) -> None:
    question = decode_envelope(Sealer(wire, PLAIN, SnmpEngine(ENGINE_ID)).seal_get([SYS_DESCR]))
    rows = [(SYS_DESCR, Tag.OCTET_STRING, b"x")]
    response = decode_envelope(encode_sealed(question, ENGINE_ID, Pdu(PduKind.RESPONSE, 1, 0, 0, rows)))

    assert open_answer(response, PLAIN, SnmpEngine(ENGINE_ID)).pdu.varbinds == rows
    with pytest.raises(ForgedAnswer, match="less protected"):
        open_answer(response, SIGNED, make_engine(SIGNED, ENGINE_ID))


def test_an_engine_is_reported_by_an_unsigned_report_only(wire: LibraryWire) -> None:
    question = decode_envelope(Sealer(wire, None, SnmpEngine(b"")).seal_refresh())
    reported = decode_envelope(encode_sealed(question, ENGINE_ID, report(4)))
    nameless = decode_envelope(encode_sealed(question, b"", report(4)))
    response = decode_envelope(encode_sealed(question, ENGINE_ID, Pdu(PduKind.RESPONSE, 1, 0, 0, [])))

    assert open_report(reported).envelope.engine_id == ENGINE_ID
    for wrong in (nameless, response):
        with pytest.raises(UnexpectedAnswer):
            open_report(wrong)


def damaged(data: bytes, rng: random.Random) -> bytes:
    spoiled = bytearray(data)
    at = rng.randrange(len(spoiled))
    kind = rng.randrange(4)
    if kind == 0:
        spoiled[at] ^= 1 << rng.randrange(8)
    elif kind == 1:
        del spoiled[at:]
    elif kind == 2:
        del spoiled[at : at + rng.randrange(1, 9)]
    else:
        spoiled[at:at] = rng.randbytes(rng.randrange(1, 9))
    return bytes(spoiled)


@pytest.mark.parametrize("credential", ALL[1:], ids=level)
def test_no_damaged_message_passes_for_genuine(wire: LibraryWire, credential: UserCredential) -> None:
    rng = random.Random(SEED)  # noqa: S311 - seeded on purpose
    engine = make_engine(credential, ENGINE_ID)
    sealed = Sealer(wire, credential, engine).seal_get([SYS_DESCR, SYS_UP_TIME])

    for _ in range(400):
        data = damaged(sealed, rng)
        if data == sealed:
            continue
        with pytest.raises(MalformedMessage) as caught:
            open_answer(decode_envelope(data), credential, engine)
        # That one is raised only behind the digest.
        assert not isinstance(caught.value, UnexpectedAnswer)


@pytest.mark.parametrize("credential", ALL, ids=level)
def test_content_that_does_not_decrypt_is_malformed_and_nothing_worse(
    wire: LibraryWire, credential: UserCredential
) -> None:
    rng = random.Random(SEED)  # noqa: S311 - seeded on purpose
    engine = make_engine(credential, ENGINE_ID)
    sealed = decode_envelope(Sealer(wire, credential, engine).seal_get([SYS_DESCR, SYS_UP_TIME]))
    unread = 0

    for _ in range(300):
        try:
            read_content(replace(sealed, body=damaged(sealed.body, rng)), credential, engine)
        except MalformedMessage:
            unread += 1

    assert unread > 100


def test_salts_of_another_size_are_malformed(wire: LibraryWire) -> None:
    for credential in (SECRET, replace(SECRET, priv_protocol=PrivProtocol.DES)):
        engine = make_engine(credential, ENGINE_ID)
        sealed = decode_envelope(Sealer(wire, credential, engine).seal_get([SYS_DESCR]))
        with pytest.raises(MalformedMessage):
            read_content(replace(sealed, salt=b"short"), credential, engine)
