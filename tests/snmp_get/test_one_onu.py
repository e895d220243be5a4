"""Reading one ONU from simulated OLTs over real UDP: what is asked, of whom, and what becomes of it."""

import pytest

from facho.executions.store import save_rows
from facho.onus.models import Onu, OnuEvent
from facho.polling.domain.collection import Collected, CollectRequest
from facho.polling.domain.execution_state import FailureKind, QueryType
from facho.polling.domain.onu_state import DownCause
from facho.polling.vendors.loader import load_definitions
from factories import NOW
from snmp_get.olt_bench import Always, Bench, on_bench

pytestmark = pytest.mark.django_db(transaction=True)

VENDORS = [key for key, definition in load_definitions().items() if definition.onu_indexes]


async def read(bench: Bench, onu: Onu) -> Collected:
    place = (onu.pon_port.frame, onu.pon_port.slot, onu.pon_port.port, onu.onu_id)
    request = CollectRequest(
        bench.olt.id, bench.olt.address, bench.olt.port, bench.olt.vendor, QueryType.GET, columns=(), onu=place
    )
    collected = await bench.collector.collect(request, Always())
    await bench.collector.devices.database.run(save_rows, request.olt_id, collected.rows, now=NOW)
    return collected


def first_onu() -> Onu:
    return Onu.objects.select_related("pon_port").order_by("id")[0]


@pytest.mark.parametrize("vendor", VENDORS)
def test_state_and_light_of_one_onu_are_read_with_a_few_packets(vendor: str) -> None:
    async def scene(bench: Bench) -> None:
        await bench.discover()
        onu = await bench.collector.devices.database.run(first_onu)

        collected = await read(bench, onu)

        assert collected.failure is None
        # Some families have to tell first what their rows are.
        assert int(collected.summary["packets"]) <= 10
        assert bench.simulated.counters.max_in_flight == 1

    on_bench(scene, vendor=vendor)

    onu = first_onu()
    assert (onu.reading.run_state, onu.reading.rx_power_cdbm is None) == ("online", False)
    assert Onu.objects.filter(reading__rx_power_cdbm__isnull=False).count() == 1


def test_the_light_of_an_onu_that_is_down_is_not_asked_for() -> None:
    async def scene(bench: Bench) -> None:
        await bench.discover()
        onu = await bench.collector.devices.database.run(first_onu)
        world = bench.simulated.world
        world.take_down(next(each for each in world.onus if each.serial == onu.serial), DownCause.DYING_GASP)

        collected = await read(bench, onu)

        assert (collected.failure, collected.summary["packets"]) == (None, 1)

    on_bench(scene)

    reading = first_onu().reading
    assert (reading.run_state, reading.last_down_cause) == ("offline", "dying_gasp")
    assert OnuEvent.objects.get(kind="down").cause == "dying_gasp"


def test_an_onu_that_the_olt_does_not_have_is_a_failure_with_a_reason() -> None:
    async def scene(bench: Bench) -> None:
        await bench.discover()
        onu = await bench.collector.devices.database.run(first_onu)
        onu.onu_id = 127

        collected = await read(bench, onu)

        assert collected.failure is not None
        assert collected.failure.kind is FailureKind.MISSING

    on_bench(scene)
