"""What a simulated OLT tells of itself over real UDP, under readable names and in units."""

from datetime import timedelta

import pytest

from facho.hosts.models import OltData
from facho.onus.models import OnuData
from facho.polling.domain.execution_state import QueryType
from facho.polling.snmp.ber import Tag
from facho.polling.snmp.oid import format_oid
from facho.polling.vendors.index import Place
from facho.polling.vendors.loader import load_definitions
from facho.polling.vendors.vocabulary import Scope
from facho.simulator.agent import Faults
from facho.simulator.readings import DRIFT_STEP_SECONDS
from facho.snmp_get.olt_values import OltGathered
from factories import NOW
from snmp_get.olt_bench import Bench, Spent, on_bench

pytestmark = pytest.mark.django_db(transaction=True)

HUAWEI = load_definitions()["huawei_smartax"]
# Every family; the generic one has a system group and interfaces.
FAMILIES = sorted(load_definitions())
OF_OLT = (Scope.BOARD, Scope.PART, Scope.PON, Scope.INTERFACE, Scope.SCALAR)


def reported(key: str) -> dict[str, str]:
    return dict(OltData.objects.filter(name=key).values_list("place", "value"))


@pytest.mark.parametrize("vendor", FAMILIES)
def test_every_ready_made_value_of_the_olt_is_stored_with_its_unit(vendor: str) -> None:
    definition = load_definitions()[vendor]
    jobs = [job for job in definition.jobs if definition.column(job.columns[0]).index.scope in OF_OLT]

    async def scene(bench: Bench) -> None:
        for job in jobs:
            collected = await bench.collect(job.query_type, job.columns)
            assert collected.failure is None, job.slug
        assert bench.simulated.counters.max_in_flight == bool(jobs)

    on_bench(scene, vendor=vendor)

    expected = {(key, str(definition.column(key).unit or "")) for job in jobs for key in job.columns}
    assert set(OltData.objects.exclude(value="").values_list("name", "unit")) == expected


def test_boards_and_ports_are_named_by_their_places_and_interfaces_by_their_names() -> None:
    async def scene(bench: Bench) -> None:
        port = next(place for place, port in bench.simulated.world.ports.items() if port.onus)
        bench.simulated.world.cut(port)
        await bench.collect(QueryType.TABLE, ["board.cpu", "pon.status", "if.name", "if.oper"])
        cut.append("/".join(map(str, port[:3])))
        slots.extend(f"0/{board.slot}" for board in bench.simulated.world.shape.boards)

    cut: list[str] = []
    slots: list[str] = []
    on_bench(scene)

    assert sorted(reported("board.cpu")) == sorted(slots)
    assert {place for place, state in reported("pon.status").items() if state == "down"} == set(cut)
    # Of Huawei's interfaces only the uplinks are read.
    assert {place.rpartition("/")[0] for place in reported("if.oper")} == {"ethernet0/2"}
    assert set(reported("if.oper").values()) == {"up"}


def test_what_cannot_be_true_is_no_value_and_what_is_no_reading_is_no_row() -> None:
    load = HUAWEI.column("board.cpu")
    gathered = OltGathered()

    for index, raw in (((0, 1), 17), ((0, 2), 999), ((0, 3), -1), ((9,), 17)):
        gathered.add(load, index, int(Tag.INTEGER), raw)

    assert [(each.place, each.value, each.unit, each.raw) for each in gathered.named()] == [
        ("0/1", "17", "percent", "17"),
        ("0/2", "", "", "999"),
    ]
    assert gathered.counts == {"out_of_range": 1, "refused_rows": 1}


@pytest.mark.parametrize(
    ("index", "place"),
    [
        ((1, 1, 49, 8, *b"CPU Core"), "1/1/CPU Core"),
        ((1, 1, 49, 1, 50), "1/1/2"),
        ((1, 9, 49, 1, 50), None),
        ((1,), None),
    ],
)
def test_a_row_that_is_named_by_a_text_is_shown_with_it(index: tuple[int, ...], place: str | None) -> None:
    gathered = OltGathered()

    gathered.add(load_definitions()["datacom_dmos"].column("chassis.temperature"), index, int(Tag.INTEGER), 41)

    assert [each.place for each in gathered.named()] == ([place] if place else [])


def test_a_counter_tells_its_growth_between_two_reads() -> None:
    async def scene(bench: Bench) -> None:
        await bench.collect(QueryType.TABLE, ["pon.in_octets"])
        bench.simulated.world.advance(10 * DRIFT_STEP_SECONDS)
        bench.simulated._personality.view.forget_drifting()
        await bench.collect(QueryType.TABLE, ["pon.in_octets"], now=NOW + timedelta(seconds=100))

    on_bench(scene)

    rates = OltData.objects.filter(name="pon.in_octets").values_list("per_second", flat=True)
    assert min(rates) > 0


def test_only_a_table_that_was_read_to_its_end_loses_rows() -> None:
    async def scene(bench: Bench) -> None:
        await bench.collect(QueryType.TABLE, ["board.cpu", "pon.onu_count"])
        broken = await bench.collect(QueryType.TABLE, ["board.cpu", "pon.onu_count"], Spent(0))
        assert broken.failure is not None
        stored.append(await bench.collector.devices.database.run(OltData.objects.count))
        bench.simulated.faults = Faults(max_rows=1)
        await bench.collect(QueryType.TABLE, ["board.cpu", "pon.onu_count"])

    stored: list[int] = []
    on_bench(scene)

    assert stored[0] > 2
    assert OltData.objects.count() == 2


def test_places_of_ports_and_onus_are_not_mixed_up() -> None:
    """Board 0/1 and ONU 0/1/0/0 have the same numbers."""

    async def scene(bench: Bench) -> None:
        await bench.discover()
        await bench.collect(QueryType.WALK, ["board.cpu"])
        assert Place(0, 1) in bench.simulated.world.shape.boards

    on_bench(scene, onus=200)

    assert not OnuData.objects.filter(oid=format_oid(HUAWEI.column("board.cpu").oid)).exists()
