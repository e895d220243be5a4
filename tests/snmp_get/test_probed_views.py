"""The SNMP test of a new OLT: what it tells of an SNMP view that hides ONUs, or their serials."""

import pytest

from facho.polling.domain.collection import CollectRequest
from facho.polling.domain.execution_state import ProbeFinding, QueryType
from facho.polling.snmp.network import Network
from facho.polling.vendors.definition import MAC, SERIAL
from facho.polling.vendors.loader import load_definitions
from facho.snmp_get.identity import IdentityCollector, ProbeReport
from snmp_get.closed_views import COUNTING, FAMILIES, identity_keys, onu_keys
from snmp_get.olt_bench import Always, Bench, on_bench

ONUS = 30

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("key", FAMILIES)
def test_the_snmp_test_tells_what_the_view_hides_before_the_first_discovery(key: str) -> None:
    family = load_definitions()[key]
    has_serials = family.has_column(SERIAL) or family.has_column(MAC)

    async def scene(bench: Bench) -> None:
        findings.append((await probe(bench)).finding)
        bench.simulated.close_columns(identity_keys(family))
        findings.append((await probe(bench)).finding)
        bench.simulated.close_columns(onu_keys(family))
        findings.append((await probe(bench)).finding)

    findings: list[ProbeFinding | None] = []
    on_bench(scene, vendor=key, onus=ONUS)

    serials = ProbeFinding.SERIALS_HIDDEN if has_serials else None
    assert findings == [None, serials, ProbeFinding.ONUS_HIDDEN if key in COUNTING else None]


async def probe(bench: Bench) -> ProbeReport:
    database = bench.collector.devices.database
    # A family that is recognised by the closed table was chosen by hand.
    vendor = bench.simulated.definition.key
    request = CollectRequest(bench.olt.id, bench.olt.address, bench.olt.port, vendor, QueryType.GET, ())
    async with Network() as network:
        collector = IdentityCollector(network, database)
        collected = await collector.collect(request, Always())
    assert collected.failure is None
    return collector.report


def test_a_probe_of_an_olt_with_known_onus_does_not_look_for_them() -> None:
    async def scene(bench: Bench) -> None:
        await bench.discover()
        bench.simulated.close_columns([SERIAL])
        assert (await probe(bench)).finding is None

    on_bench(scene, onus=ONUS)
