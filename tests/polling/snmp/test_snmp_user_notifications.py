"""Traps and informs of v3 users: proof before content, clocks of both sides, and what strangers cannot cause."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_snmp_notifications import notifications
from test_snmp_user_security import ALL, AUTH_KEY, PRIV_KEY, level

from facho.polling.snmp import notifications as subject
from facho.polling.snmp.ber import Oid, PduKind, Tag, VarBind
from facho.polling.snmp.notifications import Hearing, Notification, NotificationEar, Refused, encode_notification
from facho.polling.snmp.oid import GENERIC_TRAPS, USM_STATS
from facho.polling.snmp.target import AuthProtocol, Community, Credential, PrivProtocol, SnmpVersion, UserCredential
from facho.polling.snmp.user_security import (
    Opened,
    decode_envelope,
    is_signed,
    make_engine,
    read_content,
    seal_envelope,
)

OURS = b"\x80\x00\x1f\x88\x04facho"
THEIRS = b"\x80\x00\x07\xdb\x03\x00\x11\x22\x33\x44\x55"
PLAIN = UserCredential("noc")
SIGNED = UserCredential("noc", AuthProtocol.SHA, AUTH_KEY)
SECRET = UserCredential("noc", AuthProtocol.SHA_256, AUTH_KEY, PrivProtocol.AES, PRIV_KEY)
LINK_DOWN: Oid = (*GENERIC_TRAPS, 3)
INDEX: VarBind = ((1, 3, 6, 1, 2, 1, 2, 2, 1, 1, 7), Tag.INTEGER, 7)
TRAP = Notification(SnmpVersion.V3, LINK_DOWN, (INDEX,), uptime_ticks=4_711, engine_id=THEIRS)
INFORM = replace(TRAP, is_inform=True)
# How much larger than its cause a report is: our engine's id and clock, and the counter.
REPORT_BYTES = 2 * len(OURS) + 48


@dataclass
class World:
    """An ear, and a clock to turn."""

    now: float = 1_000.0
    boots: int = 5
    ear: NotificationEar = field(init=False)

    def __post_init__(self) -> None:
        self.ear = NotificationEar(engine_id=OURS, engine_boots=self.boots, monotonic=lambda: self.now)

    def hear(self, data: bytes, *credentials: Credential) -> Hearing:
        return self.ear.hear(data, credentials)

    def trap(self, clock: tuple[int, int], number: int = 1, *, user: UserCredential = SIGNED) -> Refused | None:
        """Send a trap at a time of the sender's engine and return why it does not count."""
        return self.hear(encode_notification(TRAP, user, request_id=number, clock=clock), user).refused

    def inform(self, user: UserCredential = SECRET, *, clock: tuple[int, int] | None = None) -> bytes:
        clock = clock or (self.boots, int(self.now - 1_000.0))
        return encode_notification(INFORM, user, request_id=77, clock=clock, receiver_id=OURS)


@pytest.fixture
def world() -> World:
    return World()


def opened(reply: bytes | None, user: UserCredential) -> Opened:
    assert reply is not None
    envelope = decode_envelope(reply)
    assert envelope.engine_id == OURS
    engine = make_engine(user, OURS)
    if envelope.is_authenticated:
        assert is_signed(envelope, user, engine)
    return Opened(envelope, read_content(envelope, user, engine))


def reason(reply: bytes | None, user: UserCredential = PLAIN) -> int:
    """Return the number of the counter that a report names."""
    report = opened(reply, user)
    assert report.is_report
    ((oid, tag, count),) = report.pdu.varbinds
    assert (oid[:-2], oid[-1], tag) == (USM_STATS, 0, Tag.COUNTER32)
    assert isinstance(count, int)
    assert count > 0
    return oid[-2]


def resealed(data: bytes, credential: UserCredential, **changes: object) -> bytes:
    """Open a message of the user, change its envelope and seal it again."""
    envelope = decode_envelope(data)
    engine = make_engine(credential, envelope.engine_id)
    body = subject.read_scoped(envelope, credential, engine).data
    changed = replace(envelope, body=body, digest=b"", salt=b"", **changes)  # type: ignore[arg-type]
    return seal_envelope(changed, credential, make_engine(credential, changed.engine_id))


@pytest.mark.parametrize("credential", ALL, ids=level)
def test_a_trap_at_the_level_of_its_credential_counts(world: World, credential: UserCredential) -> None:
    data = encode_notification(TRAP, credential, clock=(3, 100))

    assert world.hear(data, Community(b"public"), UserCredential("other"), credential) == Hearing(TRAP)


@pytest.mark.parametrize("credential", ALL, ids=level)
def test_an_inform_is_answered_at_its_level(world: World, credential: UserCredential) -> None:
    data = world.inform(credential)

    hearing = world.hear(data, credential)

    assert hearing.notification == INFORM
    answer = opened(hearing.reply, credential)
    assert (answer.pdu.kind, answer.pdu.request_id) == (PduKind.RESPONSE, 77)
    assert list(answer.pdu.varbinds)[2:] == [INDEX]
    assert answer.envelope.message_id == decode_envelope(data).message_id
    assert answer.envelope.is_encrypted is (credential.priv_protocol is not None)
    assert len(hearing.reply or b"") <= len(data) + 8


@settings(max_examples=30)
@given(notifications, st.sampled_from([PLAIN, SIGNED, SECRET]))
def test_what_is_encoded_for_a_user_is_heard(notification: Notification, credential: UserCredential) -> None:
    sent = replace(notification, version=SnmpVersion.V3, engine_id=THEIRS, tail=b"")

    data = encode_notification(sent, credential, clock=(5, 0), receiver_id=OURS)

    assert World().hear(data, credential).notification == sent


@pytest.mark.parametrize(
    ("sender", "credential", "refused"),
    [
        (PLAIN, UserCredential("other"), Refused.USER),
        (PLAIN, SIGNED, Refused.LEVEL),
        (PLAIN, SECRET, Refused.LEVEL),
        (UserCredential("noc", AuthProtocol.SHA_256, AUTH_KEY), SECRET, Refused.LEVEL),
        (SIGNED, PLAIN, Refused.SIGNATURE),
        (SECRET, UserCredential("noc", AuthProtocol.SHA_256, AUTH_KEY), Refused.SIGNATURE),
        (UserCredential("noc", AuthProtocol.SHA, b"another-key"), SIGNED, Refused.SIGNATURE),
        (UserCredential("noc", AuthProtocol.MD5, AUTH_KEY), SIGNED, Refused.SIGNATURE),
        (replace(SECRET, priv_key=b"another-key"), SECRET, Refused.SIGNATURE),
        (replace(SECRET, priv_protocol=PrivProtocol.DES), SECRET, Refused.SIGNATURE),
        (PLAIN, Community(b"public"), Refused.VERSION),
    ],
)
def test_a_wrong_user_level_or_key_is_refused(
    world: World, sender: UserCredential, credential: Credential, refused: Refused
) -> None:
    trap = encode_notification(TRAP, sender)

    assert world.hear(trap, credential) == Hearing(refused=refused)
    assert world.ear.engines == {}
    assert world.hear(world.inform(sender), credential).refused is refused


def test_of_two_users_with_one_name_the_one_with_the_right_key_counts(world: World) -> None:
    other = replace(SECRET, auth_key=b"another-key")

    assert world.hear(encode_notification(TRAP, SECRET), other, SECRET).notification == TRAP
    assert world.hear(world.inform(), other, SECRET).notification == INFORM


def test_an_address_without_credentials_gets_no_answer(world: World) -> None:
    discovery = resealed(world.inform(PLAIN), PLAIN, engine_id=b"", user=b"")

    for data in (discovery, world.inform(), world.inform(PLAIN), encode_notification(TRAP, SECRET)):
        assert world.hear(data) == Hearing(refused=Refused.USER)
        assert world.hear(data, Community(b"public")) == Hearing(refused=Refused.VERSION)


def test_a_repeated_trap_is_refused(world: World) -> None:
    data = encode_notification(TRAP, SECRET, clock=(3, 100))

    assert world.hear(data, SECRET).refused is None
    assert world.hear(data, SECRET) == Hearing(refused=Refused.TIME)


def test_a_repeated_inform_is_answered_again_and_does_not_count(world: World) -> None:
    data = world.inform()

    assert world.hear(data, SECRET).notification == INFORM
    again = world.hear(data, SECRET)

    assert (again.notification, again.refused) == (None, Refused.TIME)
    assert opened(again.reply, SECRET).pdu.kind is PduKind.RESPONSE


@pytest.mark.parametrize(
    ("clock", "refused"),
    [
        ((7, 10_000), None),
        ((7, 9_850), None),
        ((7, 9_849), Refused.TIME),
        ((7, 0), Refused.TIME),
        ((6, 99_999), Refused.TIME),
        ((8, 0), None),
        ((7, 99_999), None),
        ((0x7FFF_FFFF, 99_999), Refused.TIME),
    ],
)
def test_a_trap_older_than_the_window_is_refused(world: World, clock: tuple[int, int], refused: Refused | None) -> None:
    assert world.trap((7, 10_000)) is None

    assert world.trap(clock, 2) is refused


def test_the_clock_of_an_engine_runs_on_with_ours(world: World) -> None:
    world.trap((7, 10_000))
    world.now += 1_000

    assert world.trap((7, 10_848), 2) is Refused.TIME
    assert world.trap((7, 10_900), 3) is None


def test_an_engine_that_counts_slowly_is_not_shut_out(world: World) -> None:
    world.trap((7, 10_000))
    world.now += 30 * 86_400

    # A two-thousandth slow: twenty minutes in a month.
    assert world.trap((7, 10_000 + 30 * 86_400 - 1_296), 2) is None


def test_a_trap_out_of_order_does_not_turn_the_clock_back(world: World) -> None:
    world.trap((7, 10_000))
    world.trap((7, 9_900), 2)

    assert world.ear.engines == {THEIRS: (7, 10_000)}


def test_only_authenticated_traps_set_clocks(world: World) -> None:
    world.trap((7, 10_000), user=PLAIN)
    world.hear(world.inform(), SECRET)
    world.hear(encode_notification(TRAP, replace(SIGNED, auth_key=b"another-key"), clock=(9, 1)), SIGNED)

    assert world.ear.engines == {}


def test_clocks_are_given_back_after_a_restart(world: World) -> None:
    world.trap((7, 10_000))

    later = World(boots=6)
    for engine_id, clock in world.ear.engines.items():
        later.ear.learn(engine_id, *clock)

    assert later.trap((7, 9_000)) is Refused.TIME
    assert later.trap((7, 10_001)) is None


def test_a_clock_that_was_read_from_the_engine_replaces_ours(world: World) -> None:
    """An OLT that does not count its boots would be refused until its time has caught up."""
    world.trap((1, 10_000))
    assert world.trap((1, 20), 2) is Refused.TIME

    world.ear.learn(THEIRS, 1, 30)

    assert world.trap((1, 40), 3) is None


@pytest.mark.parametrize("user", [b"", b"noc"])
def test_our_engine_is_shown_to_those_that_ask(world: World, user: bytes) -> None:
    world.now += 60
    discovery = resealed(world.inform(PLAIN), PLAIN, engine_id=b"", user=user, engine_boots=0, engine_time=0)

    hearing = world.hear(discovery, SECRET)

    assert (hearing.notification, hearing.refused) == (None, None)
    assert reason(hearing.reply) == 4
    answer = opened(hearing.reply, PLAIN)
    assert (answer.envelope.engine_boots, answer.envelope.engine_time) == (5, 60)
    assert answer.pdu.request_id == 77
    assert len(hearing.reply or b"") <= len(discovery) + REPORT_BYTES


@pytest.mark.parametrize("clock", [(5, 151), (4, 0), (6, 0), (0, 0)])
def test_an_inform_outside_the_window_learns_our_clock_with_proof(world: World, clock: tuple[int, int]) -> None:
    hearing = world.hear(world.inform(clock=clock), SECRET)

    assert (hearing.notification, hearing.refused) == (None, Refused.TIME)
    assert reason(hearing.reply, SECRET) == 2
    answer = opened(hearing.reply, SECRET).envelope
    assert (answer.is_authenticated, answer.engine_boots, answer.engine_time) == (True, 5, 0)


@pytest.mark.parametrize("clock", [(5, 150), (5, 0), (5, 300)])
def test_an_inform_inside_the_window_counts(world: World, clock: tuple[int, int]) -> None:
    world.now += 150

    assert world.hear(world.inform(clock=clock), SECRET).notification == INFORM


@pytest.mark.parametrize(
    ("sender", "credential", "statistic"),
    [
        (PLAIN, UserCredential("other"), 3),
        (PLAIN, SIGNED, 1),
        (SIGNED, PLAIN, 1),
        (replace(SIGNED, auth_key=b"another-key"), SIGNED, 5),
        (replace(SECRET, priv_key=b"another-key"), SECRET, 6),
    ],
)
def test_a_report_says_why_an_inform_is_refused(
    world: World, sender: UserCredential, credential: UserCredential, statistic: int
) -> None:
    data = world.inform(sender)

    reply = world.hear(data, credential).reply

    assert reason(reply) == statistic
    assert len(reply or b"") <= len(data) + REPORT_BYTES


def test_an_inform_to_another_engine_is_shown_ours(world: World) -> None:
    for user in (PLAIN, SECRET):
        data = encode_notification(INFORM, user, receiver_id=b"\x80\x00\x1f\x88\x04earlier")

        hearing = world.hear(data, user)

        assert (hearing.refused, reason(hearing.reply)) == (Refused.USER, 4)
    assert world.ear.engines == {}


def test_a_trap_never_gets_an_answer(world: World) -> None:
    foreign = encode_notification(TRAP, replace(SIGNED, auth_key=b"another-key"))
    to_us = encode_notification(replace(TRAP, engine_id=OURS), SIGNED, clock=(5, 0))
    nameless = encode_notification(replace(TRAP, engine_id=b""), PLAIN)

    for data, refused in ((foreign, Refused.SIGNATURE), (to_us, Refused.USER), (nameless, Refused.USER)):
        assert world.hear(data, SIGNED) == Hearing(refused=refused)


def test_a_trap_that_claims_to_want_a_report_counts(world: World) -> None:
    """Some agents set the flag in every message."""
    data = resealed(encode_notification(TRAP, SECRET, clock=(3, 100)), SECRET, is_reportable=True)

    assert world.hear(data, SECRET) == Hearing(TRAP)


@pytest.mark.parametrize("kind", [PduKind.GET, PduKind.RESPONSE, PduKind.REPORT])
def test_other_messages_of_a_user_are_malformed(world: World, kind: PduKind) -> None:
    envelope = decode_envelope(encode_notification(TRAP, PLAIN))
    pdu_at = subject.read_scoped(envelope, PLAIN, make_engine(PLAIN, THEIRS)).pdu_at
    body = envelope.body[:pdu_at] + bytes((kind,)) + envelope.body[pdu_at + 1 :]
    data = seal_envelope(replace(envelope, body=body), PLAIN, make_engine(PLAIN, THEIRS))

    assert world.hear(data, PLAIN) == Hearing(refused=Refused.MALFORMED)


def test_signed_nonsense_is_malformed(world: World) -> None:
    envelope = replace(decode_envelope(encode_notification(TRAP, SIGNED)), body=b"\x30\x00", digest=b"")

    data = seal_envelope(envelope, SIGNED, make_engine(SIGNED, THEIRS))

    assert world.hear(data, SIGNED) == Hearing(refused=Refused.MALFORMED)


def users(count: int) -> Iterable[UserCredential]:
    return (replace(SIGNED, auth_key=b"s3cr3t-%d" % number) for number in range(count))


def test_invented_engines_cost_no_hashing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[UserCredential] = []
    derive = subject.derive_keys
    monkeypatch.setattr(subject, "derive_keys", lambda user: made.append(user) or derive(user))
    envelope = decode_envelope(encode_notification(TRAP, replace(SIGNED, auth_key=b"another-key")))

    for number in range(500):
        data = subject.seal_envelope(replace(envelope, engine_id=b"engine-%d" % number), PLAIN, make_engine(PLAIN, b""))
        assert world.hear(data, SIGNED).refused is Refused.SIGNATURE

    assert made == [SIGNED]


def test_keys_are_made_at_a_bounded_rate(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[UserCredential] = []
    keys = subject.derive_keys(SIGNED)
    monkeypatch.setattr(subject, "derive_keys", lambda user: made.append(user) or keys)
    inform = world.inform(SIGNED)

    hearings = [world.hear(inform, user) for user in users(500)]

    assert len(made) == 100
    # Without a report: the sender tries again, and then there is time for its keys.
    assert hearings[-1] == Hearing(refused=Refused.USER)
    world.now += 1
    for user in users(500):
        world.hear(inform, user)
    assert len(made) == 120


def test_memory_is_bounded(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_MAX_CLOCKS", "_MAX_DIGESTS", "_MAX_KEYS"):
        monkeypatch.setattr(subject, name, 8)

    for number, user in enumerate(users(30)):
        trap = replace(TRAP, engine_id=b"engine-%d" % number)
        assert world.hear(encode_notification(trap, user), user).refused is None

    assert list(world.ear.engines) == [b"engine-%d" % number for number in range(22, 30)]
    assert len(world.ear._digests) == len(world.ear._keys._kept) == 8


@pytest.mark.parametrize(
    ("engine_id", "boots"), [(b"", 1), (b"1234", 1), (bytes(33), 1), (OURS, -1), (OURS, 2**31 - 1)]
)
def test_an_engine_of_ours_is_one_of_the_standard(engine_id: bytes, boots: int) -> None:
    with pytest.raises(ValueError, match="engine"):
        NotificationEar(engine_id=engine_id, engine_boots=boots, monotonic=lambda: 0.0)


def test_an_envelope_shows_whether_a_report_is_wanted() -> None:
    trap, inform = (
        decode_envelope(encode_notification(message, PLAIN, receiver_id=OURS)) for message in (TRAP, INFORM)
    )

    assert (trap.is_reportable, inform.is_reportable) == (False, True)
