"""Every family from the first packet to stored rows: recognised, discovered and read as the simulated OLT is."""

import pytest

from facho.infrastructure.gateway import ThreadGateway
from facho.onus.models import Onu, OnuReading
from facho.polling.domain.collection import CollectRequest
from facho.polling.domain.execution_state import QueryType
from facho.polling.snmp.network import Network
from facho.polling.vendors.definition import Definition
from facho.polling.vendors.index import Place
from facho.polling.vendors.loader import load_definitions
from facho.simulator.readings import read_optics
from facho.simulator.world import Chassis, SimulatedOnu
from facho.snmp_get.identity import IdentityCollector
from snmp_get.closed_views import stored_place
from snmp_get.olt_bench import Always, Bench, on_bench

FAMILIES = [key for key, each in load_definitions().items() if each.onu_indexes]
ONUS, PORTS = 500, 8
# Tenths of a microwatt tell weak light coarsely.
LIGHT_STEP_DB = 0.6

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("key", FAMILIES)
def test_olt_of_500_onus_is_recognised_discovered_and_read(key: str) -> None:
    family, truth = load_definitions()[key], list[SimulatedOnu]()

    async def scene(bench: Bench) -> None:
        assert await recognised_vendor(bench) == key
        for job in family.jobs:
            if job.slug in ("descubrimiento", "descripcion", "estado", "potencia"):
                collected = await bench.collect(job.query_type, job.columns)
                assert collected.failure is None, job.slug
        assert bench.simulated.counters.max_in_flight == 1
        truth.extend(bench.simulated.world.onus)

    on_bench(scene, vendor=key, onus=ONUS, chassis=Chassis(1, PORTS, PORTS))

    assert Onu.objects.count() == len(truth) == ONUS
    assert not OnuReading.objects.exclude(run_state="online").exists()
    assert stored() == pytest.approx(expected(family, truth), abs=LIGHT_STEP_DB)


@pytest.mark.parametrize("is_closed", [False, True], ids=["both-trees", "second-tree"])
def test_c320_without_the_usual_tables_of_light_is_read_from_those_of_the_c600(is_closed: bool) -> None:
    truth, values = list[SimulatedOnu](), list[int]()
    job = load_definitions()["zte_c300_c320"].job("potencia")

    async def scene(bench: Bench) -> None:
        bench.simulated.close_columns(job.columns if is_closed else ())
        await bench.discover()
        assert (await bench.collect(job.query_type, job.columns)).failure is None
        values.append(bench.simulated.counters.varbinds)
        truth.extend(bench.simulated.world.onus)

    on_bench(scene, vendor="zte_c300_c320")

    # No ONU is asked in both trees.
    assert values[0] < 2 * len(job.columns) * len(truth)
    optics = [read_optics(onu, at=0.0) for onu in truth]
    expected = [(each.rx_dbm * 100, each.olt_rx_dbm * 100, each.temperature_c * 10) for each in optics]
    stored = OnuReading.objects.values_list("rx_power_cdbm", "olt_rx_power_cdbm", "temperature_tenths")
    assert sorted(stored) == [pytest.approx(each, abs=0.5) for each in sorted(expected)]


async def recognised_vendor(bench: Bench) -> str:
    database = ThreadGateway()
    request = CollectRequest(bench.olt.id, bench.olt.address, bench.olt.port, "", QueryType.GET, ())
    async with Network() as network:
        collector = IdentityCollector(network, database)
        await collector.collect(request, Always())
    await database.close()
    assert collector.report.identity is not None
    return collector.report.identity.vendor


def stored() -> dict[tuple[Place, str, int | None], float]:
    places = [f"onu__pon_port__{part}" for part in ("frame", "slot", "port")]
    rows = OnuReading.objects.values_list(*places, "onu__onu_id", "onu__description", "distance_m", "rx_power_cdbm")
    return {(Place(*place), text, distance): light / 100 for *place, text, distance, light in rows}


def expected(family: Definition, truth: list[SimulatedOnu]) -> dict[tuple[Place, str, int | None], float]:
    has_distance, has_text = family.has_column("onu.distance"), family.has_column("onu.description")
    return {
        (
            stored_place(family, onu),
            onu.description if has_text else "",
            onu.distance_m if has_distance else None,
        ): read_optics(onu, at=0.0).rx_dbm
        for onu in truth
    }
