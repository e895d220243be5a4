"""Families whose rows have numbers without a meaning: what they are is learned from the device in every run."""

from datetime import timedelta

import pytest

from facho.onus.models import Onu, OnuReading
from facho.polling.domain.execution_state import FailureKind, QueryType
from facho.polling.domain.onu_state import DownCause
from facho.polling.vendors.index import onu_number, spell_serial
from facho.polling.vendors.loader import load_definitions
from facho.simulator.agent import Faults
from factories import NOW
from snmp_get.olt_bench import Bench, on_bench

pytestmark = pytest.mark.django_db(transaction=True)

BDCOM, UFIBER = "bdcom_gpon", "ubiquiti_ufiber"
LATER = NOW + timedelta(minutes=10)


def reported_places() -> dict[str, tuple[int, ...]]:
    rows = Onu.objects.filter(is_present=True, misses=0)
    return {row[0]: row[1:] for row in rows.values_list("serial", "pon_port__slot", "pon_port__port", "onu_id")}


def test_who_moves_is_read_where_it_is_now_although_its_number_is_new() -> None:
    async def scene(bench: Bench) -> None:
        await bench.discover()
        world = bench.simulated.world
        mover = next(iter(world.onus))
        world.move(mover, list(world.ports)[-1])
        await bench.discover()
        world.describe(mover, "CLI-77777 New street")
        await bench.collect(QueryType.GET, ["onu.description"])
        moved.append((mover.serial, tuple(mover.place[1:])))

    moved: list[tuple[str, tuple[int, ...]]] = []
    on_bench(scene, vendor=BDCOM)

    [(serial, place)] = moved
    assert reported_places()[serial] == place
    assert Onu.objects.get(serial=serial).description == "CLI-77777 New street"


def test_who_left_since_the_discovery_has_no_light_and_breaks_nothing() -> None:
    async def scene(bench: Bench) -> None:
        await bench.discover()
        gone = next(iter(bench.simulated.world.onus))
        bench.simulated.world.remove(gone)
        collected = await bench.collect(QueryType.GET, ["onu.description"])
        assert (collected.failure, collected.summary["onus"]) == (None, 40)

    on_bench(scene, vendor=BDCOM)


def test_a_device_that_does_not_tell_all_its_names_is_not_read() -> None:
    """Half a list of names would put values under the wrong ONUs or take ONUs away."""

    async def scene(bench: Bench) -> None:
        await bench.discover()
        bench.simulated.faults = Faults(silent_after=1, silent_seconds=1_000)
        collected = await bench.collect(QueryType.DISCOVERY, ["onu.serial"], now=LATER)
        assert collected.failure
        assert collected.failure.kind is FailureKind.TIMEOUT

    on_bench(scene, vendor=BDCOM)

    assert len(reported_places()) == 40


def test_an_onu_without_an_id_stays_on_its_port_while_it_is_away() -> None:
    async def scene(bench: Bench) -> None:
        await bench.discover()
        onu = next(iter(bench.simulated.world.onus))
        bench.simulated.world.take_down(onu, DownCause.LOS)
        await bench.collect(QueryType.DISCOVERY, ["onu.serial"], now=LATER)
        await bench.collect(QueryType.WALK, ["onu.run_state"], now=LATER)
        away.append((onu.serial, onu.place.port))

    away: list[tuple[str, int]] = []
    on_bench(scene, vendor=UFIBER)

    [(serial, port)] = away
    assert reported_places()[serial] == (0, port, onu_number(serial))
    assert OnuReading.objects.get(onu__serial=serial).run_state == "offline"


def test_an_onu_that_was_never_seen_on_a_port_is_counted_and_not_listed() -> None:
    async def scene(bench: Bench) -> None:
        onu = next(iter(bench.simulated.world.onus))
        bench.simulated.world.take_down(onu, DownCause.LOS)
        collected = await bench.collect(QueryType.DISCOVERY, ["onu.serial"])
        assert (collected.summary["onus"], collected.summary["refused_rows"]) == (39, 1)

    on_bench(scene, vendor=UFIBER)


@pytest.mark.parametrize(
    ("suffix", "value"),
    [
        (spell_serial("UBNT20731888"), 70_000_000_000),
        (spell_serial("UBNT2073zzzz"), 1),
        ((12, 1, 2, 3), 1),
        ((), 1),
        ((2**32,) * 13, 1),
    ],
)
def test_hostile_rows_are_nobody(suffix: tuple[int, ...], value: int) -> None:
    learned = load_definitions()[UFIBER].learn({"onu.pon_port": {suffix: value}})

    place = learned.decode_index(suffix)

    assert place is None or place.port == value


@pytest.mark.parametrize("name", ["GPON0/1", "GPON0/1:", "xGPON0/1:1", "GPON0/1:1x", "GPON0/1:999999", "GPON٣/1:1"])
def test_another_name_is_no_onu(name: str) -> None:
    learned = load_definitions()[BDCOM].learn({"onu.id": {(7,): name}})

    assert learned.decode_index((7,)) is None


def test_of_two_rows_with_one_name_the_first_one_stands() -> None:
    learned = load_definitions()[BDCOM].learn({"onu.id": {(9,): "GPON0/1:1", (7,): "GPON0/1:1"}})

    assert learned.decode_index((9,)) is None
    assert learned.decode_index((7,)) == (0, 0, 1, 1)


def test_before_it_has_learned_anything_a_definition_knows_no_row() -> None:
    family = load_definitions()[BDCOM]

    assert family.decode_index((7,)) is None
    with pytest.raises(ValueError, match=r"known by onu\.id only"):
        family.column("onu.rx_power").instance(family.learn({"onu.id": {(7,): "GPON0/1:1"}}).decode_index((7,)))
