"""Reading the states that a notification hints at, from simulated OLTs over real UDP."""

import pytest

from facho.executions.store import save_rows
from facho.onus.models import Onu, Outage
from facho.polling.domain.collection import Collected, CollectRequest
from facho.polling.domain.execution_state import QueryType
from facho.polling.domain.hints import HintedRead, ReadScope
from facho.polling.domain.onu_state import DownCause
from facho.polling.vendors.loader import load_definitions
from factories import NOW
from snmp_get.olt_bench import Always, Bench, on_bench

pytestmark = pytest.mark.django_db(transaction=True)

VENDORS = [key for key, definition in load_definitions().items() if definition.onu_indexes]


async def read(bench: Bench, hint: HintedRead) -> Collected:
    request = CollectRequest(
        bench.olt.id, bench.olt.address, bench.olt.port, bench.olt.vendor, QueryType.GET, columns=(), hint=hint
    )
    collected = await bench.collector.collect(request, Always())
    await bench.collector.devices.database.run(save_rows, request.olt_id, collected.rows, now=NOW)
    return collected


def fullest_port() -> tuple[tuple[int, int, int], list[Onu]]:
    onus = list(Onu.objects.select_related("pon_port").order_by("id"))
    of: dict[tuple[int, int, int], list[Onu]] = {}
    for onu in onus:
        of.setdefault((onu.pon_port.frame, onu.pon_port.slot, onu.pon_port.port), []).append(onu)
    return max(of.items(), key=lambda item: len(item[1]))


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_port_of_every_family_is_read_with_one_request_at_a_time(vendor: str) -> None:
    async def scene(bench: Bench) -> None:
        await bench.discover()
        port, onus = await bench.collector.devices.database.run(fullest_port)

        collected = await read(bench, HintedRead(ReadScope.PORT, *port))

        assert collected.failure is None
        assert int(collected.summary["onus"]) >= len(onus)
        assert bench.simulated.counters.max_in_flight == 1

    on_bench(scene, vendor=vendor)


def test_one_onu_is_one_packet() -> None:
    async def scene(bench: Bench) -> None:
        await bench.discover()
        port, onus = await bench.collector.devices.database.run(fullest_port)

        collected = await read(bench, HintedRead(ReadScope.PORT, *port, onus[0].onu_id))

        assert (collected.failure, collected.summary["packets"], collected.summary["onus"]) == (None, 1, 1)

    on_bench(scene)


def test_a_port_that_went_dark_is_an_outage_after_the_hinted_read() -> None:
    async def scene(bench: Bench) -> None:
        await bench.discover()
        port, onus = await bench.collector.devices.database.run(fullest_port)
        await read(bench, HintedRead(ReadScope.STATES))
        serials = {onu.serial for onu in onus}
        for each in bench.simulated.world.onus:
            if each.serial in serials:
                bench.simulated.world.take_down(each, DownCause.LOS)

        await read(bench, HintedRead(ReadScope.PORT, *port))

    on_bench(scene)

    [outage] = Outage.objects.all()
    assert (outage.scope, outage.cause, outage.ended_at) == ("pon", "fibre", None)


def test_a_place_that_is_not_known_is_looked_for_by_a_walk() -> None:
    async def scene(bench: Bench) -> None:
        await bench.discover()

        collected = await read(bench, HintedRead(ReadScope.PORT, 9, 9, 9))

        assert collected.failure is None
        assert int(collected.summary["onus"]) > 1

    on_bench(scene)
