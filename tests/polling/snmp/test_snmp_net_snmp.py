"""SNMPv3 against net-snmp's own agent: the same rows as snmpbulkwalk, and every way to be denied."""

from collections.abc import AsyncIterator, Iterable, Iterator

import pytest
from snmp_relay import Relay, Tamper, faithful, relay
from snmp_scripted_agent import Allowed, Lapsing

from facho.polling.domain.execution_state import FailureKind
from facho.polling.snmp.batch import BatchOptions, get_batched
from facho.polling.snmp.ber import Oid, Tag, VarBind
from facho.polling.snmp.errors import AccessDenied, AgentTimeout, ForgedAnswer, OwnershipLost
from facho.polling.snmp.network import Network
from facho.polling.snmp.oid import SYS_DESCR, SYS_UP_TIME, SYSTEM
from facho.polling.snmp.session import Session
from facho.polling.snmp.target import (
    SUPPORTED,
    AuthProtocol,
    Patience,
    PrivProtocol,
    SnmpVersion,
    Target,
    UserCredential,
)
from facho.polling.snmp.user_security import decode_envelope
from facho.polling.snmp.walk import WalkOptions, walk_columns
from servers.snmpd import Snmpd, SnmpdUser, private_snmpd, walk

# Also the sign by which the tests of this folder are made to wait in real time.
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("snmpd")]

AUTH_KEY, PRIV_KEY = "s3cr3t-auth-key", "s3cr3t-priv-key"
INTERFACES: Oid = (1, 3, 6, 1, 2, 1, 2)
INTERFACES_X: Oid = (1, 3, 6, 1, 2, 1, 31)
VIEWS: Oid = (1, 3, 6, 1, 6, 3, 16)
TABLE: Oid = (1, 3, 6, 1, 4, 1, 99_999, 1)
ONUS = range(1, 301)
COLUMNS: list[Oid] = [(*TABLE, n) for n in range(1, 7)]
# Only this counts on between two reads.
VOLATILE = {Tag.COUNTER32, Tag.COUNTER64, Tag.TIMETICKS}
IMPATIENT = Patience(0.3, 2)


def credential_of(auth: AuthProtocol | None, priv: PrivProtocol | None) -> UserCredential:
    name = f"u-{auth or 'none'}-{priv or 'none'}".lower()
    return UserCredential(name, auth, AUTH_KEY.encode() if auth else b"", priv, PRIV_KEY.encode() if priv else b"")


def snmpd_user(credential: UserCredential) -> SnmpdUser:
    # net-snmp writes AES256 where we write AES-256.
    return SnmpdUser(
        credential.user,
        credential.auth_protocol or "",
        credential.auth_key.decode(),
        (credential.priv_protocol or "").replace("-", ""),
        credential.priv_key.decode(),
    )


PLAIN = credential_of(None, None)
SIGNED = credential_of(AuthProtocol.SHA, None)
SECRET = credential_of(AuthProtocol.SHA_256, PrivProtocol.AES)
ALL = [PLAIN, *(credential_of(auth, priv) for auth, privs in SUPPORTED.items() for priv in (None, *privs))]


def objects() -> list[VarBind]:
    rows: list[VarBind] = []
    for onu in ONUS:
        rows += [
            ((*TABLE, 1, onu), Tag.OCTET_STRING, b"HWTC%08X" % onu),
            ((*TABLE, 2, onu), Tag.INTEGER, -onu),
            ((*TABLE, 3, onu), Tag.GAUGE32, 4_000_000_000 + onu),
            ((*TABLE, 4, onu), Tag.COUNTER32, 3_000_000_000 + onu),
            ((*TABLE, 5, onu), Tag.OBJECT_IDENTIFIER, (1, 3, 6, 1, 4, 1, 99_999, 4_294_967_295, onu)),
            ((*TABLE, 6, onu), Tag.OCTET_STRING, b"customer %d " % onu * (onu % 9)),
        ]
    return rows


@pytest.fixture(scope="module")
def snmpd() -> Iterator[Snmpd]:
    with private_snmpd(users=map(snmpd_user, ALL), objects=objects()) as agent:
        yield agent


def open_session(network: Network, port: int, credential: UserCredential, permit: object = None) -> Session:
    target = Target("127.0.0.1", credential, SnmpVersion.V3, port)
    return network.open(target, permit or Allowed())  # type: ignore[arg-type]


async def walk_ours(session: Session, root: Oid) -> list[VarBind]:
    result = await walk_columns(session, [root])
    assert result.failure is None
    return [((*root, *suffix), tag, value) for suffix, tag, value in result.rows[0]]


def steady(rows: Iterable[VarBind]) -> list[VarBind]:
    return [(oid, tag, None if tag in VOLATILE else value) for oid, tag, value in rows]


@pytest.mark.parametrize("credential", ALL, ids=lambda credential: credential.user)
async def test_every_security_level_reads_the_rows_that_snmpbulkwalk_reads(
    snmpd: Snmpd, network: Network, credential: UserCredential
) -> None:
    session = open_session(network, snmpd.port, credential)

    for root in (SYSTEM, INTERFACES, INTERFACES_X):
        theirs = walk(snmpd.endpoint, snmpd_user(credential).arguments, root)
        ours = await walk_ours(session, root)
        assert steady(ours) == steady(theirs)
        assert len(ours) > 10


@pytest.mark.parametrize("credential", [PLAIN, SIGNED, SECRET], ids=lambda credential: credential.user)
async def test_a_large_table_comes_whole_with_types_and_values(
    snmpd: Snmpd, network: Network, credential: UserCredential
) -> None:
    theirs = walk(snmpd.endpoint, snmpd_user(credential).arguments, TABLE)

    result = await walk_columns(open_session(network, snmpd.port, credential), COLUMNS)

    assert result.complete
    ours = [(column + row[0], *row[1:]) for column, rows in zip(COLUMNS, result.rows, strict=True) for row in rows]
    assert ours == theirs == sorted(objects())
    assert result.stats.traffic.retransmissions == 0


async def test_a_long_subtree_of_many_tables_is_the_same_too(snmpd: Snmpd, network: Network) -> None:
    theirs = walk(snmpd.endpoint, snmpd_user(SECRET).arguments, VIEWS)

    assert steady(await walk_ours(open_session(network, snmpd.port, SECRET), VIEWS)) == steady(theirs)


async def test_batches_read_every_onu_and_name_what_is_missing(snmpd: Snmpd, network: Network) -> None:
    onus = [[(*column, onu) for column in COLUMNS] for onu in (*ONUS, 999)]

    # Sixty of these values do not fit into the messages that the library allows: the agent says tooBig.
    result = await get_batched(open_session(network, snmpd.port, SECRET), onus, BatchOptions(max_varbinds=60))

    assert result.complete
    assert not result.failures
    assert [row for answer in result.answers[:-1] for row in answer or ()] == sorted(
        objects(), key=lambda row: (row[0][-1], row[0])
    )
    assert {tag for _, tag, _ in result.answers[-1] or ()} <= {Tag.NO_SUCH_INSTANCE, Tag.NO_SUCH_OBJECT}


@pytest.mark.parametrize(
    "wrong",
    [
        UserCredential("nobody"),
        UserCredential("nobody", AuthProtocol.SHA, AUTH_KEY.encode()),
        UserCredential(SIGNED.user, AuthProtocol.SHA, b"another-key"),
        UserCredential(SIGNED.user, AuthProtocol.MD5, AUTH_KEY.encode()),
        UserCredential(SIGNED.user),
        UserCredential(SIGNED.user, AuthProtocol.SHA, AUTH_KEY.encode(), PrivProtocol.AES, PRIV_KEY.encode()),
        UserCredential(SECRET.user, AuthProtocol.SHA_256, AUTH_KEY.encode()),
        UserCredential(SECRET.user, AuthProtocol.SHA_256, AUTH_KEY.encode(), PrivProtocol.AES, b"another-key"),
        UserCredential(SECRET.user, AuthProtocol.SHA_256, AUTH_KEY.encode(), PrivProtocol.DES, PRIV_KEY.encode()),
    ],
    ids=[
        "no such user",
        "no such user with a key",
        "wrong authentication key",
        "wrong authentication protocol",
        "too low a level for an authenticated user",
        "a level that the user has not",
        "too low a level for an encrypting user",
        "wrong privacy key",
        "wrong privacy protocol",
    ],
)
async def test_a_wrong_credential_is_denied_without_naming_a_key(
    snmpd: Snmpd, network: Network, wrong: UserCredential
) -> None:
    session = open_session(network, snmpd.port, wrong)

    with pytest.raises(AccessDenied) as caught:
        await session.get([SYS_UP_TIME], patience=IMPATIENT)

    assert caught.value.kind is FailureKind.AUTH
    assert "s3cr3t" not in str(caught.value)
    assert session.traffic.packets <= 6


@pytest.fixture
async def between(snmpd: Snmpd) -> AsyncIterator[Relay]:
    async with relay(snmpd.port) as standing_between:
        yield standing_between


async def test_lost_packets_cost_repetitions_and_nothing_else(network: Network, between: Relay) -> None:
    between.tamper = lambda number, data: [] if number % 7 == 3 else [data]
    session = open_session(network, between.port, SECRET)

    result = await walk_columns(session, COLUMNS[:2], WalkOptions(patience=Patience(0.2, 4)))

    assert [len(rows) for rows in result.rows] == [len(ONUS)] * 2
    assert result.stats.traffic.retransmissions > 0


def with_wrong_digest(_number: int, data: bytes) -> Iterable[bytes]:
    at = decode_envelope(data).digest_at
    return [data[:at] + bytes((data[at] ^ 1,)) + data[at + 1 :]] if decode_envelope(data).digest else [data]


def with_changed_content(_number: int, data: bytes) -> Iterable[bytes]:
    return [data[:-1] + bytes((data[-1] ^ 1,))] if decode_envelope(data).digest else [data]


@pytest.mark.parametrize("tamper", [with_wrong_digest, with_changed_content])
@pytest.mark.parametrize("credential", [SIGNED, SECRET], ids=lambda credential: credential.user)
async def test_forged_answers_are_never_believed(
    network: Network, between: Relay, tamper: Tamper, credential: UserCredential
) -> None:
    session = open_session(network, between.port, credential)
    await session.get([SYS_UP_TIME])
    between.tamper = tamper

    with pytest.raises(ForgedAnswer):
        await session.get([SYS_DESCR], patience=IMPATIENT)


async def test_the_true_answer_is_taken_after_a_forged_one(network: Network, between: Relay) -> None:
    between.tamper = lambda number, data: [*with_wrong_digest(number, data), data, data]
    session = open_session(network, between.port, SECRET)

    assert (await session.get([SYS_DESCR]))[0][1] == Tag.OCTET_STRING
    assert (await session.get([SYS_UP_TIME]))[0][1] == Tag.TIMETICKS
    assert session.traffic.retransmissions == 0


async def test_an_agent_that_falls_silent_gets_as_many_packets_as_tries(network: Network, between: Relay) -> None:
    session = open_session(network, between.port, SECRET)
    await session.get([SYS_UP_TIME])
    between.tamper = lambda *_: []
    sent_before = len(between.questions)

    with pytest.raises(AgentTimeout):
        await session.get([SYS_UP_TIME], patience=Patience(0.1, 3))

    assert len(between.questions) == sent_before + 3
    assert len(set(between.questions[sent_before:])) == 1


async def test_after_a_silence_the_clock_is_read_again(network: Network, between: Relay) -> None:
    session = open_session(network, between.port, SIGNED)
    await session.get([SYS_UP_TIME])
    between.tamper = lambda *_: []
    with pytest.raises(AgentTimeout):
        await session.get([SYS_UP_TIME], patience=Patience(0.1, 1))

    between.tamper = faithful
    sent_before = len(between.questions)
    await session.get([SYS_UP_TIME])

    assert len(between.questions) == sent_before + 2


async def test_a_clock_that_may_have_drifted_is_read_again(
    network: Network, between: Relay, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = open_session(network, between.port, SIGNED)
    await session.get([SYS_UP_TIME])
    assert len(between.questions) == 3

    await session.get([SYS_UP_TIME])
    assert len(between.questions) == 4

    monkeypatch.setattr("facho.polling.snmp.network.CLOCK_GOOD_FOR_SECONDS", -1.0)
    await session.get([SYS_UP_TIME])
    assert len(between.questions) == 6


@pytest.mark.parametrize(("credential", "packets"), [(PLAIN, 1), (SIGNED, 2), (SECRET, 3)])
async def test_what_is_known_of_an_engine_is_not_asked_again(
    network: Network, between: Relay, credential: UserCredential, packets: int
) -> None:
    for _ in range(3):
        session = open_session(network, between.port, credential)
        await session.get([SYS_UP_TIME])
        await session.close()

    assert len(between.questions) == 1 + 3 * packets


async def test_a_replaced_device_is_found_out_during_a_walk(network: Network, between: Relay) -> None:
    session = open_session(network, between.port, SECRET)
    await session.get([SYS_UP_TIME])

    with private_snmpd(users=[snmpd_user(SECRET)]) as other:
        between.upstream = other.port
        varbinds = await session.get([SYS_UP_TIME])

    assert varbinds[0][1] == Tag.TIMETICKS


async def test_a_restarted_agent_is_asked_on_its_new_clock(network: Network) -> None:
    with private_snmpd(users=[snmpd_user(SECRET)]) as agent:
        session = open_session(network, agent.port, SECRET)
        await session.get([SYS_UP_TIME])

        agent.restart()
        varbinds = await session.get([SYS_UP_TIME], patience=IMPATIENT)

    assert varbinds[0][1] == Tag.TIMETICKS
    # Discovery, clock, privacy and the question; then the question that comes too late, and all but discovery again.
    assert session.traffic.packets == 4 + 1 + 3


@pytest.mark.parametrize("lasts", [0, 1, 2, 3, 10])
async def test_a_lost_permit_stops_the_next_packet(network: Network, between: Relay, lasts: int) -> None:
    session = open_session(network, between.port, SECRET, permit=Lapsing(lasts))

    result = await walk_columns(session, COLUMNS)

    assert isinstance(result.failure, OwnershipLost)
    assert not result.complete
    assert len(between.questions) == session.traffic.packets == lasts
