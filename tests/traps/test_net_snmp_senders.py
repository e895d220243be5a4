"""Traps and informs of net-snmp's own tools at a running receiver: stored with what they mean, or refused."""

import asyncio
from pathlib import Path

import pytest

from facho.hosts.models import Olt
from facho.infrastructure.secrets import Secret
from facho.traps import receiver
from facho.traps.models import OltTraps, Trap, TrapSender
from factories import make_olt
from servers.snmpd import start_notifier
from traps.test_trap_receiver import FRAME, GASP, HUAWEI, ONT, PORT, SLOT, Scene, listening

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]

PLACE = [word for name, value in ((FRAME, 0), (SLOT, 1), (PORT, 6), (ONT, 54)) for word in (name, "i", str(value))]
V1_WORDS = [f"{HUAWEI}.128.1.1.12.2.2", "192.0.2.9", "6", "18", "4711", *PLACE]
V2_WORDS = ["4711", GASP, *PLACE]
KEYS = ("s3cr3t-auth-key", "s3cr3t-priv-key")
V3 = ["-v3", "-u", "noc"]
SIGNED = ["-l", "authNoPriv", "-a", "SHA-256", "-A", KEYS[0]]
SECRET = ["-l", "authPriv", "-a", "SHA-256", "-A", KEYS[0], "-x", "AES", "-X", KEYS[1]]
LEVELS = {"noAuthNoPriv": ["-l", "noAuthNoPriv"], "authNoPriv": SIGNED, "authPriv": SECRET}


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GATHER_SECONDS", "SETTLE_SECONDS", "REPORT_SECONDS", "SENDERS_SECONDS", "LOOK_SECONDS"):
        monkeypatch.setattr(receiver, name, 0.1)


def v3_olt(level: str) -> Olt:
    olt = make_olt()
    olt.snmp_version, olt.v3_user = "3", "noc"
    if level != "noAuthNoPriv":
        olt.v3_auth_protocol, olt.v3_auth_key = "SHA-256", Secret(KEYS[0])
    if level == "authPriv":
        olt.v3_priv_protocol, olt.v3_priv_key = "AES", Secret(KEYS[1])
    olt.save()
    return olt


def send(folder: Path, tool: str, arguments: list[str], words: list[str], *, counts: bool) -> bool:
    """Run the tool, wait until what it sent counts or is refused, and return whether it was content."""
    contents = []

    async def scene(it: Scene) -> None:
        assert it.reception.listens_at
        options = [*arguments, "-r1", "-t0.5", f"udp:127.0.0.1:{it.reception.listens_at[1]}"]
        with start_notifier(tool, options, words, folder) as process:
            contents.append(await asyncio.to_thread(process.wait, 30) == 0)
        await it.until((Trap if counts else TrapSender).objects.exists)

    listening(scene)
    return contents[0]


def assert_gasp() -> None:
    [message] = Trap.objects.all()
    assert (message.meaning, message.place) == ("onu_dying_gasp", "0/1/6/54")


@pytest.mark.parametrize(
    ("tool", "version", "words"),
    [("snmptrap", "-v1", V1_WORDS), ("snmptrap", "-v2c", V2_WORDS), ("snmpinform", "-v2c", V2_WORDS)],
)
def test_with_the_community_it_is_stored(tmp_path: Path, tool: str, version: str, words: list[str]) -> None:
    make_olt()

    assert send(tmp_path, tool, [version, "-c", "public"], words, counts=True)

    assert_gasp()


@pytest.mark.parametrize("tool", ["snmptrap", "snmpinform"])
@pytest.mark.parametrize("level", LEVELS)
def test_with_the_user_it_is_stored_at_every_level(tmp_path: Path, tool: str, level: str) -> None:
    v3_olt(level)

    assert send(tmp_path, tool, [*V3, *LEVELS[level]], V2_WORDS, counts=True)

    assert_gasp()
    # Informs are addressed to our engine; a signed trap shows the engine of the OLT, and it is kept.
    assert bool(OltTraps.objects.get().engine_id) is (tool == "snmptrap" and level != "noAuthNoPriv")


@pytest.mark.parametrize("tool", ["snmptrap", "snmpinform"])
@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["-v3", "-u", "nobody", *SECRET], "user"),
        ([*V3, *SECRET[:-1], "another-key"], "signature"),
        ([*V3, *SIGNED[:-1], "another-key"], "level"),
        ([*V3, *SIGNED], "level"),
        (["-v2c", "-c", "public"], "version"),
    ],
    ids=["another user", "another key", "a lower level with another key", "a lower level", "a community"],
)
def test_with_another_user_key_or_level_it_is_refused(
    tmp_path: Path, tool: str, arguments: list[str], reason: str
) -> None:
    v3_olt("authPriv")

    is_content = send(tmp_path, tool, arguments, V2_WORDS, counts=False)

    assert is_content is (tool == "snmptrap")
    assert {sender.reason for sender in TrapSender.objects.all()} == {reason}
    assert not Trap.objects.exists()
