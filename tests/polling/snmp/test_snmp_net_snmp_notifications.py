"""Notifications of net-snmp's own snmptrap and snmpinform: counted with the right credential, refused with others."""

import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from test_snmp_net_snmp import ALL, AUTH_KEY, PLAIN, PRIV_KEY, SECRET, SIGNED, snmpd_user

from facho.polling.snmp.ber import Tag, VarBind
from facho.polling.snmp.notifications import Hearing, Notification, NotificationEar, Refused
from facho.polling.snmp.oid import GENERIC_TRAPS, format_oid
from facho.polling.snmp.target import AuthProtocol, Community, Credential, PrivProtocol, SnmpVersion, UserCredential
from servers.snmpd import start_notifier

pytestmark = pytest.mark.slow

ENTERPRISE = (1, 3, 6, 1, 4, 1, 99_999)
VARBINDS: tuple[VarBind, ...] = (
    ((*ENTERPRISE, 1, 0), Tag.INTEGER, -7),
    ((*ENTERPRISE, 2, 4_194_313_728, 54), Tag.OCTET_STRING, b"HG8546M"),
    ((*ENTERPRISE, 3, 0), Tag.OBJECT_IDENTIFIER, (1, 3, 6, 1)),
)
VARBIND_WORDS = [
    *(f"{format_oid(VARBINDS[0][0])} i -7".split()),
    *(f"{format_oid(VARBINDS[1][0])} s HG8546M".split()),
    *(f"{format_oid(VARBINDS[2][0])} o 1.3.6.1".split()),
]
SNMP_TRAP_OID = (*ENTERPRISE, 0, 18)
V2_WORDS = ["4711", format_oid(SNMP_TRAP_OID), *VARBIND_WORDS]
PUBLIC = Community(b"public")
TOOLS = ["snmptrap", "snmpinform"]
ENGINE_ID = "0x80001f8804746573746572"


def make_ear() -> NotificationEar:
    return NotificationEar(engine_id=b"\x80\x00\x1f\x88\x04facho", engine_boots=1, monotonic=time.monotonic)


@dataclass
class Listener:
    """A port with an ear behind it."""

    folder: Path
    udp: socket.socket
    ear: NotificationEar = field(default_factory=make_ear)
    received: list[bytes] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.udp.bind(("127.0.0.1", 0))
        self.udp.settimeout(0.02)

    def hear(
        self, tool: str, arguments: list[str], *credentials: Credential, words: list[str] = V2_WORDS
    ) -> tuple[bool, list[Hearing]]:
        """Run the tool until it ends; return whether it was content, and what was heard."""
        endpoint = f"udp:127.0.0.1:{self.udp.getsockname()[1]}"
        hearings = []
        with start_notifier(tool, [*arguments, "-r1", "-t0.5", endpoint], words, self.folder) as process:
            while True:
                has_ended = process.poll() is not None
                try:
                    data, sender = self.udp.recvfrom(65_535)
                except TimeoutError:
                    if has_ended:
                        break
                    continue
                self.received.append(data)
                hearings.append(self.ear.hear(data, credentials))
                if hearings[-1].reply:
                    self.udp.sendto(hearings[-1].reply, sender)
        return process.returncode == 0, hearings


@pytest.fixture
def listener(tmp_path: Path) -> Iterator[Listener]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        yield Listener(tmp_path, udp)


def v3_arguments(user: UserCredential) -> list[str]:
    return snmpd_user(user).arguments


def named(user: UserCredential) -> str:
    return user.user


def test_a_trap_of_v1_counts(listener: Listener) -> None:
    words = [format_oid(ENTERPRISE), "192.0.2.9", "6", "18", "4711", *VARBIND_WORDS]

    _, hearings = listener.hear("snmptrap", ["-v1", "-c", "public"], PUBLIC, words=words)

    expected = Notification(SnmpVersion.V1, SNMP_TRAP_OID, VARBINDS, uptime_ticks=4_711, agent_address="192.0.2.9")
    assert hearings == [Hearing(expected)]


@pytest.mark.parametrize("generic", range(6))
def test_a_generic_trap_of_v1_has_the_oid_of_v2(listener: Listener, generic: int) -> None:
    words = [format_oid(ENTERPRISE), "192.0.2.9", str(generic), "0", "4711"]

    _, (hearing,) = listener.hear("snmptrap", ["-v1", "-c", "public"], PUBLIC, words=words)

    assert hearing.notification is not None
    assert hearing.notification.oid == (*GENERIC_TRAPS, generic + 1)


@pytest.mark.parametrize("tool", TOOLS)
def test_v2c_counts_and_informs_are_answered(listener: Listener, tool: str) -> None:
    is_content, (hearing,) = listener.hear(tool, ["-v2c", "-c", "public@eventId=1"], PUBLIC)

    assert is_content
    assert hearing.notification == Notification(
        SnmpVersion.V2C, SNMP_TRAP_OID, VARBINDS, uptime_ticks=4_711, is_inform=tool == "snmpinform", tail=b"eventId=1"
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-v1"], [format_oid(ENTERPRISE), "192.0.2.9", "6", "18", "4711"]),
        (["-v2c"], V2_WORDS),
        (["-v2c", "-Ci"], V2_WORDS),
    ],
    ids=["v1", "v2c", "inform"],
)
def test_another_community_is_refused_in_silence(listener: Listener, arguments: list[str], words: list[str]) -> None:
    is_content, hearings = listener.hear("snmptrap", [*arguments, "-c", "private"], PUBLIC, words=words)

    assert is_content is ("-Ci" not in arguments)
    assert set(hearings) == {Hearing(refused=Refused.COMMUNITY)}


@pytest.mark.parametrize("credential", ALL, ids=named)
def test_a_trap_at_every_level_counts_once(listener: Listener, credential: UserCredential) -> None:
    _, hearings = listener.hear("snmptrap", [*v3_arguments(credential), "-e", ENGINE_ID], PUBLIC, credential)

    engine_id = bytes.fromhex(ENGINE_ID[2:])
    expected = Notification(SnmpVersion.V3, SNMP_TRAP_OID, VARBINDS, uptime_ticks=4_711, engine_id=engine_id)
    assert hearings == [Hearing(expected)]
    if credential.auth_protocol:
        assert list(listener.ear.engines) == [engine_id]
        assert listener.ear.hear(listener.received[0], [credential]) == Hearing(refused=Refused.TIME)


@pytest.mark.parametrize("credential", ALL, ids=named)
def test_an_inform_at_every_level_is_answered(listener: Listener, credential: UserCredential) -> None:
    is_content, hearings = listener.hear("snmpinform", v3_arguments(credential), PUBLIC, credential)

    assert is_content
    assert hearings[-1].notification is not None
    assert hearings[-1].notification.is_inform
    assert (hearings[-1].notification.oid, hearings[-1].notification.varbinds) == (SNMP_TRAP_OID, VARBINDS)
    # Before it there was the question for our engine, which counts for nothing.
    assert all((hearing.notification, hearing.refused) == (None, None) for hearing in hearings[:-1])


@pytest.mark.parametrize("credential", [SIGNED, SECRET], ids=named)
@pytest.mark.parametrize("clock", ["1,1000", "0,0", "7,0"])
def test_an_inform_with_another_clock_learns_ours(listener: Listener, credential: UserCredential, clock: str) -> None:
    arguments = [*v3_arguments(credential), "-e", "0x" + listener.ear.engine_id.hex(), "-Z", clock]

    is_content, hearings = listener.hear("snmpinform", arguments, credential)

    assert is_content
    assert [hearing.refused for hearing in hearings] == [Refused.TIME, None]
    assert hearings[-1].notification is not None


def test_an_inform_to_another_engine_is_shown_ours(listener: Listener) -> None:
    is_content, hearings = listener.hear("snmpinform", [*v3_arguments(SECRET), "-e", ENGINE_ID], SECRET)

    assert hearings[0].reply is not None
    assert hearings[0].refused is Refused.USER
    # The tool was given the engine by hand, and does not look for another.
    assert not is_content


WRONG = {
    "no such user": (UserCredential("nobody"), Refused.USER),
    "no such user with a key": (UserCredential("nobody", AuthProtocol.SHA, AUTH_KEY.encode()), Refused.USER),
    "wrong authentication key": (replace(SIGNED, auth_key=b"another-key"), Refused.SIGNATURE),
    "wrong authentication protocol": (replace(SIGNED, auth_protocol=AuthProtocol.MD5), Refused.SIGNATURE),
    "unsigned": (UserCredential(SIGNED.user), Refused.LEVEL),
    "encrypted though it should not": (
        replace(SIGNED, priv_protocol=PrivProtocol.AES, priv_key=PRIV_KEY.encode()),
        Refused.SIGNATURE,
    ),
    "unencrypted": (replace(SECRET, priv_protocol=None, priv_key=b""), Refused.LEVEL),
    "wrong privacy key": (replace(SECRET, priv_key=b"another-key"), Refused.SIGNATURE),
    "wrong privacy protocol": (replace(SECRET, priv_protocol=PrivProtocol.DES), Refused.SIGNATURE),
    "signed though it should not": (
        UserCredential(PLAIN.user, AuthProtocol.SHA, AUTH_KEY.encode()),
        Refused.SIGNATURE,
    ),
}


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize(("wrong", "refused"), WRONG.values(), ids=WRONG)
def test_a_wrong_user_level_or_key_is_refused(
    listener: Listener, tool: str, wrong: UserCredential, refused: Refused
) -> None:
    is_content, hearings = listener.hear(tool, v3_arguments(wrong), PLAIN, SIGNED, SECRET)

    assert is_content is (tool == "snmptrap")
    assert not any(hearing.notification for hearing in hearings)
    assert {hearing.refused for hearing in hearings} - {None} == {refused}
    assert listener.ear.engines == {}


@pytest.mark.parametrize("tool", TOOLS)
def test_v3_where_a_community_is_expected_is_refused_in_silence(listener: Listener, tool: str) -> None:
    is_content, hearings = listener.hear(tool, v3_arguments(SECRET), PUBLIC)

    assert is_content is (tool == "snmptrap")
    assert set(hearings) == {Hearing(refused=Refused.VERSION)}


def test_a_trap_of_the_past_is_refused(listener: Listener) -> None:
    outcomes = []
    for clock in ("5,100000", "5,99900", "5,99000", "4,200000", "6,1"):
        arguments = [*v3_arguments(SECRET), "-e", ENGINE_ID, "-Z", clock]
        _, (hearing,) = listener.hear("snmptrap", arguments, SECRET)
        outcomes.append(hearing.refused)

    assert outcomes == [None, None, Refused.TIME, Refused.TIME, None]
    assert listener.ear.engines == {bytes.fromhex(ENGINE_ID[2:]): (6, 1)}
