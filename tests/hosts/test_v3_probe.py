"""From the form to the wire: an OLT saved for SNMPv3 is read from a real agent with what was saved."""

import asyncio
from collections.abc import Iterator

import pytest

from facho.hosts.inventory import import_olts
from facho.hosts.models import Olt
from facho.hosts.olt_entry import OltEntry
from facho.infrastructure.gateway import ThreadGateway
from facho.infrastructure.secrets import Secret
from facho.polling.domain.collection import CollectRequest
from facho.polling.domain.execution_state import FailureKind, QueryType
from facho.polling.snmp.network import Network
from facho.snmp_get.identity import IdentityCollector, ProbeReport
from servers.snmpd import Snmpd, SnmpdUser, private_snmpd

pytestmark = pytest.mark.django_db(transaction=True)

AUTH_KEY, PRIV_KEY = "canary-auth-7f3a", "canary-priv-7f3a"


class Always:
    """A permit that never ends."""

    def check(self) -> None:
        """Allow it."""


@pytest.fixture(scope="module")
def snmpd() -> Iterator[Snmpd]:
    user = SnmpdUser("noc", "SHA-256", AUTH_KEY, "AES256", PRIV_KEY)
    with private_snmpd(users=[user], config=["sysName olt-centro"]) as agent:
        yield agent


def save_olt(port: int, auth_key: str) -> Olt:
    entry = OltEntry(
        "centro",
        "127.0.0.1",
        port=str(port),
        version="3",
        v3_user="noc",
        v3_auth_protocol="SHA-256",
        v3_auth_key=Secret(auth_key),
        v3_priv_protocol="AES-256",
        v3_priv_key=Secret(PRIV_KEY),
    )
    import_olts([entry])
    return Olt.objects.get()


def probe(olt: Olt) -> ProbeReport:
    async def run() -> ProbeReport:
        database = ThreadGateway()
        async with Network() as network:
            collector = IdentityCollector(network, database)
            request = CollectRequest(olt.pk, olt.address, olt.port, "", QueryType.GET, ())
            await collector.collect(request, Always())
        await database.close()
        return collector.report

    return asyncio.run(run())


def test_an_olt_is_read_with_the_keys_that_were_saved(snmpd: Snmpd) -> None:
    report = probe(save_olt(snmpd.port, AUTH_KEY))

    assert report.identity is not None
    assert report.identity.sys_name == "olt-centro"
    assert report.identity.sys_object_id.startswith("1.3.6.1.4.1.8072")
    # Engine, clock and keys are found out first: the round trip is that of one packet, not of all.
    assert report.round_trip_ms is not None
    assert report.summary["round_trips"] == report.summary["packets"] > 1
    assert report.round_trip_ms <= int(report.summary["longest_round_trip_ms"]) + 1


def test_a_wrong_key_is_reported_as_such_and_not_shown(snmpd: Snmpd) -> None:
    report = probe(save_olt(snmpd.port, "canary-wrong-7f3a"))

    assert report.failure is not None
    assert report.failure.kind is FailureKind.AUTH
    assert "canary" not in report.failure.message
