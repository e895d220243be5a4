"""What a probe finds out about OLTs that cannot be asked, of real agents on real sockets."""

import asyncio
import errno
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from facho.hosts.models import Olt
from facho.infrastructure.gateway import ThreadGateway
from facho.infrastructure.secrets import Secret
from facho.polling.domain.collection import CollectRequest
from facho.polling.domain.execution_state import ProbeFinding, QueryType
from facho.polling.snmp.errors import AgentRefused
from facho.polling.snmp.network import Network
from facho.polling.snmp.target import Patience
from facho.snmp_get import diagnosis, identity
from facho.snmp_get.diagnosis import ADVICE, diagnose, find_cause
from facho.snmp_get.identity import IdentityCollector, ProbeReport
from servers.snmpd import Snmpd, SnmpdUser, private_snmpd

pytestmark = pytest.mark.django_db(transaction=True)

AUTH_KEY, PRIV_KEY, WRONG_KEY = "canary-auth-7f3a", "canary-priv-7f3a", "canary-wrong-7f3a"
V3 = {
    "snmp_version": "3",
    "v3_user": "noc",
    "v3_auth_protocol": "SHA-256",
    "v3_auth_key": Secret(AUTH_KEY),
    "v3_priv_protocol": "AES",
    "v3_priv_key": Secret(PRIV_KEY),
}
BRIEF = Patience(timeout_s=0.3, tries=2)


class Always:
    """A permit that never ends."""

    def check(self) -> None:
        """Allow it."""


@pytest.fixture(scope="module")
def snmpd() -> Iterator[Snmpd]:
    user = SnmpdUser("noc", "SHA-256", AUTH_KEY, "AES", PRIV_KEY)
    with private_snmpd(users=[user]) as agent:
        yield agent


@pytest.fixture(autouse=True)
def in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for a loopback as long as one needs to."""
    monkeypatch.setattr(identity, "PATIENCE", BRIEF)
    monkeypatch.setattr(diagnosis, "ONCE", BRIEF)


@pytest.fixture
def deaf_port() -> Iterator[int]:
    """A port that takes everything and answers nothing."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as deaf:
        deaf.bind(("127.0.0.1", 0))
        yield deaf.getsockname()[1]


def probe(port: int, **fields: Any) -> ProbeReport:
    values = {"name": "centro", "host": "127.0.0.1", "address": "127.0.0.1", "community": Secret("public"), **fields}
    olt = Olt.objects.create(port=port, **values)

    async def run() -> ProbeReport:
        database = ThreadGateway()
        async with Network() as network:
            collector = IdentityCollector(network, database)
            await collector.collect(CollectRequest(olt.pk, olt.address, olt.port, "", QueryType.GET, ()), Always())
        await database.close()
        return collector.report

    return asyncio.run(run())


def test_an_agent_that_is_deaf_to_a_wrong_community_is_found_to_be_there(snmpd: Snmpd) -> None:
    report = probe(snmpd.port, community=Secret("canary-wrong"))

    assert report.finding is ProbeFinding.SPEAKS_V3
    assert not report.answered


@pytest.mark.parametrize(
    ("change", "finding"),
    [
        ({"v3_user": "nobody"}, ProbeFinding.UNKNOWN_USER),
        ({"v3_auth_key": Secret(WRONG_KEY)}, ProbeFinding.WRONG_AUTH),
        ({"v3_priv_key": Secret(WRONG_KEY)}, ProbeFinding.WRONG_PRIV),
        ({"v3_auth_protocol": "", "v3_priv_protocol": ""}, ProbeFinding.NOT_ALLOWED),
        ({"v3_auth_key": Secret("short")}, ProbeFinding.BAD_CREDENTIAL),
    ],
)
def test_what_is_wrong_with_a_user_is_told_apart(snmpd: Snmpd, change: dict[str, Any], finding: ProbeFinding) -> None:
    assert probe(snmpd.port, **{**V3, **change}).finding is finding


def test_silence_stays_silence_where_nothing_else_speaks(deaf_port: int) -> None:
    summary = probe(deaf_port).summary

    assert (summary["finding"], summary["asked_from"]) == ("silent", "127.0.0.1")
    assert (summary["packets"], summary["retransmissions"], summary["round_trips"]) == (2, 1, 0)
    assert "round_trip_ms" not in summary


def test_an_olt_that_answered_before_is_asked_nothing_more_when_it_is_silent(
    snmpd: Snmpd, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(identity, "explain_silence", None)

    assert (
        probe(snmpd.port, community=Secret("wrong"), sys_object_id="1.3.6.1.4.1.2011.2.300").finding
        is ProbeFinding.SILENT
    )


def test_a_port_on_which_nothing_listens_is_reported_at_once() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as gone:
        gone.bind(("127.0.0.1", 0))
        port = gone.getsockname()[1]

    assert probe(port).finding is ProbeFinding.PORT_CLOSED


def test_an_address_to_which_no_way_leads_is_reported_at_once() -> None:
    error = AgentRefused("10.0.0.1 port 161: ENETUNREACH", number=errno.ENETUNREACH)

    assert find_cause(error) is ProbeFinding.NO_ROUTE


@pytest.mark.parametrize("finding", list(ProbeFinding))
def test_every_finding_can_be_explained(finding: ProbeFinding) -> None:
    place = {"address": "10.0.0.1", "port": 161, "from": "10.0.0.9", "version": "SNMPv2c", "user": "noc"}

    reported = diagnose(finding, place)

    assert finding in ADVICE
    assert reported.title
    assert reported.checks
    assert "%" not in f"{reported.meaning}{reported.checks}"
