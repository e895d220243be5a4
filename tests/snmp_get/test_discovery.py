"""Discovery on simulated OLTs: by what ONUs are known again, and what a walk that broke off still proves."""

from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest

from facho.onus.models import Onu, OnuEvent
from facho.polling.domain.execution_state import FailureKind, QueryType
from facho.polling.domain.onu_presence import MISSES_APART
from facho.polling.vendors import loader
from facho.polling.vendors.loader import load_definitions, use_own_definitions
from facho.simulator.agent import Faults
from facho.simulator.responder import LoopKind
from facho.simulator.world import SimulatedOnu
from factories import NOW
from snmp_get.olt_bench import Bench, Spent, on_bench

pytestmark = pytest.mark.django_db(transaction=True)

SERIAL, MAC = "onu.serial", "onu.mac"
EPON = "epon_of_a_test"
PAGE = load_definitions()["huawei_smartax"].polling.max_repetitions


@pytest.fixture
def epon(tmp_path: Path) -> Iterator[str]:
    """A family that tells no serials, only hardware addresses."""
    vsol = (files("facho.polling.vendors") / "definitions" / "vsol_gpon_v1600g.yaml").read_text("utf-8")
    text = vsol.replace("key: vsol_gpon_v1600g", f"key: {EPON}").replace("gpon_sn_text", "mac").replace(SERIAL, MAC)
    (tmp_path / f"{EPON}.yaml").write_text(text)
    use_own_definitions(tmp_path)
    yield EPON
    loader._own_folders.remove(tmp_path)
    load_definitions.cache_clear()


def in_walking_order(bench: Bench) -> list[SimulatedOnu]:
    return sorted(bench.simulated.world.onus, key=lambda onu: onu.place)


def rows() -> dict[int, str]:
    return dict(Onu.objects.filter(is_present=True, misses=0).values_list("id", "serial"))


def missed() -> set[str]:
    return set(Onu.objects.exclude(misses=0).values_list("serial", flat=True))


def test_onus_without_serials_are_known_again_by_their_hardware_addresses(epon: str) -> None:
    async def scene(bench: Bench) -> None:
        world = bench.simulated.world
        [job] = [job for job in load_definitions()[epon].jobs if job.query_type is QueryType.DISCOVERY]
        await bench.collect(job.query_type, job.columns)
        mover, target = next(iter(world.onus)), list(world.ports)[-1]
        world.move(mover, target)

        collected = await bench.collect(job.query_type, job.columns)

        assert (collected.failure, collected.summary["onus"]) == (None, 40)
        moved_to.extend(mover.place)

    moved_to: list[int] = []
    on_bench(scene, vendor=epon)

    assert Onu.objects.filter(is_present=True, serial="", mac__regex=r"^02(:[0-9A-F]{2}){5}$").count() == 40
    event = OnuEvent.objects.get()
    assert (event.kind, event.pon_port.port, event.onu_number) == ("moved", *moved_to[2:])


def test_an_onu_that_says_nothing_of_itself_is_known_again_by_its_place() -> None:
    async def scene(bench: Bench) -> None:
        await bench.discover()
        before.update(await bench.collector.devices.database.run(rows))
        bench.simulated.world.garble(next(iter(bench.simulated.world.onus)))

        collected = await bench.collect(QueryType.DISCOVERY, [SERIAL])

        assert (collected.failure, collected.summary["onus"]) == (None, 40)

    before: dict[int, str] = {}
    on_bench(scene)

    assert rows() == before
    assert not OnuEvent.objects.exists()


def test_a_discovery_may_read_serials_and_hardware_addresses() -> None:
    async def scene(bench: Bench) -> None:
        collected = await bench.collect(QueryType.DISCOVERY, [SERIAL, MAC])
        assert (collected.failure, collected.summary["onus"]) == (None, 40)

    on_bench(scene)

    assert not Onu.objects.filter(serial="").exists()
    assert not Onu.objects.filter(mac="").exists()


@pytest.mark.parametrize("columns", [(SERIAL,), (SERIAL, MAC)])
def test_a_walk_that_broke_off_judges_the_ports_that_it_left_behind_and_no_others(columns: tuple[str, ...]) -> None:
    async def scene(bench: Bench) -> None:
        await bench.collect(QueryType.DISCOVERY, columns)
        first, *_, last = onus = in_walking_order(bench)
        assert first.place.pon < onus[2 * PAGE].place.pon
        for onu in (first, last):
            bench.simulated.world.remove(onu)
        gone.extend((first.serial, last.serial))

        for now in (NOW, NOW + MISSES_APART):
            collected = await bench.collect(QueryType.DISCOVERY, columns, Spent(3), now=now)
            assert collected.failure is not None
            assert collected.summary["refused_rows"] == 0

    gone: list[str] = []
    on_bench(scene, onus=4 * PAGE)

    assert [onu.serial for onu in Onu.objects.filter(is_present=False)] == gone[:1]
    assert missed() == {gone[0]}


def test_a_table_out_of_order_says_of_no_port_that_it_was_read_to_its_end() -> None:
    async def scene(bench: Bench) -> None:
        await bench.discover()
        bench.simulated.world.remove(in_walking_order(bench)[0])
        bench.simulated.faults = Faults(loop=LoopKind.WRAP)

        collected = await bench.collect(QueryType.DISCOVERY, [SERIAL])

        assert collected.failure is not None
        assert collected.failure.kind is FailureKind.LOOP

    on_bench(scene)

    assert missed() == set()


def test_a_family_that_tells_no_onus_apart_cannot_be_discovered() -> None:
    async def scene(bench: Bench) -> None:
        collected = await bench.collect(QueryType.DISCOVERY, [])
        assert collected.failure is not None
        assert "generic has no column that tells ONUs apart" in collected.failure.message
        assert bench.simulated.counters.requests == 0

    on_bench(scene, vendor="generic")
