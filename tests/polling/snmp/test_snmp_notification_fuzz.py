"""Damaged notifications of every version: each ends as a hearing, and none that was signed still counts."""

import random
from collections.abc import Callable
from dataclasses import replace

import pytest
from test_snmp_fuzz import Vandal
from test_snmp_notifications import PUBLIC, VECTORS
from test_snmp_user_notifications import INFORM, OURS, PLAIN, REPORT_BYTES, SECRET, SIGNED, TRAP, World

from facho.polling.snmp.ber import Tag
from facho.polling.snmp.notifications import Hearing, NotificationEar, encode_notification
from facho.polling.snmp.target import Credential, UserCredential
from facho.polling.snmp.user_security import decode_envelope, make_engine, read_scoped, seal_envelope

SEED = 3_091_919
COUNTS = [4_000, pytest.param(100_000, marks=[pytest.mark.slow, pytest.mark.thorough])]
# What a response may be longer than its inform.
RESPONSE_BYTES = 8
LONG = replace(TRAP, varbinds=(*TRAP.varbinds, ((1, 3, 6, 1, 4, 1, 99_999, 1), Tag.OCTET_STRING, b"x" * 300)))
USERS = (PLAIN, SIGNED, SECRET)
CREDENTIALS: tuple[Credential, ...] = (PUBLIC, *USERS)


def originals() -> list[bytes]:
    """Return what OLTs send, as often with v3 as with a community."""
    plain = [bytes.fromhex(vector["hex"]) for vector in VECTORS]
    sealed = [
        encode_notification(message, user, clock=(5, 0), receiver_id=OURS)
        for user in USERS
        for message in (TRAP, INFORM, LONG)
    ]
    return plain + sealed * 2


def check(hearing: Hearing, data: bytes) -> None:
    """A datagram counts, is refused, or asks for our engine; and what goes back is not much more than what came."""
    assert isinstance(hearing, Hearing)
    assert hearing.notification is None or hearing.refused is None
    assert hearing.notification or hearing.refused or hearing.reply
    allowed = RESPONSE_BYTES if hearing.notification else REPORT_BYTES
    assert len(hearing.reply or b"") <= len(data) + allowed


@pytest.mark.parametrize("count", COUNTS)
def test_a_damaged_notification_ends_as_a_hearing(count: int) -> None:
    vandal, world, intact = Vandal(SEED), World(), originals()
    counted = refused = 0

    for number in range(count):
        data = vandal.damage(vandal.rng.choice(intact))
        hearing = world.hear(data, *CREDENTIALS)

        check(hearing, data)
        counted += hearing.notification is not None
        refused += hearing.refused is not None
        assert world.hear(data).reply is None, (SEED, number, data.hex())

    # Damage inside a value leaves a notification whole; most damage does not.
    assert counted > count // 50
    assert refused > count // 2


@pytest.mark.parametrize("user", [SIGNED, SECRET], ids=["signed", "encrypted"])
@pytest.mark.parametrize("count", [1_000, pytest.param(20_000, marks=[pytest.mark.slow, pytest.mark.thorough])])
def test_no_damaged_notification_of_a_user_with_a_key_counts(user: UserCredential, count: int) -> None:
    vandal, world = Vandal(SEED), World()
    intact = [encode_notification(message, user, clock=(5, 0), receiver_id=OURS) for message in (TRAP, INFORM)]

    for number in range(count):
        data = vandal.damage(vandal.rng.choice(intact))

        assert data in intact or world.hear(data, user).notification is None, (SEED, number, data.hex())
    assert world.ear.engines == {} or set(world.ear.engines) == {TRAP.engine_id}


@pytest.mark.parametrize("count", COUNTS)
def test_content_that_is_damaged_and_then_signed_ends_as_a_hearing(count: int) -> None:
    """A broken agent that has the keys passes every check but that of the content."""
    vandal = Vandal(SEED)
    world = World()
    seals = [sealing(user, is_inform=is_inform) for user in USERS for is_inform in (False, True)]
    counted = 0

    for _ in range(count):
        seal = vandal.rng.choice(seals)
        data = seal(vandal)
        hearing = world.hear(data, *CREDENTIALS)

        check(hearing, data)
        counted += hearing.notification is not None
    assert 0 < counted < count


def sealing(user: UserCredential, *, is_inform: bool) -> Callable[[Vandal], bytes]:
    envelope = decode_envelope(encode_notification(INFORM if is_inform else TRAP, user, clock=(5, 0), receiver_id=OURS))
    engine = make_engine(user, envelope.engine_id)
    body = read_scoped(envelope, user, engine).data
    bare = replace(envelope, digest=b"", salt=b"")

    def seal(vandal: Vandal) -> bytes:
        return seal_envelope(replace(bare, body=vandal.damage(body)), user, engine)

    return seal


def test_noise_ends_as_a_hearing() -> None:
    rng = random.Random(SEED)  # noqa: S311 - seeded on purpose
    ear = NotificationEar(engine_id=OURS, engine_boots=5, monotonic=lambda: 0.0)

    for _ in range(2_000):
        data = rng.choice((b"", b"\x30", b"\x30\x20\x02\x01\x01", b"\x30\x20\x02\x01\x03")) + rng.randbytes(
            rng.randrange(60)
        )
        check(ear.hear(data, CREDENTIALS), data)
