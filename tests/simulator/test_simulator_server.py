"""Fleets: names, ports, families, values that live, and one broken configuration after the other."""

import socket
from collections.abc import AsyncIterator

import pytest
from raw_manager import RawManager

from facho.polling.domain.onu_state import DownCause
from facho.polling.snmp.oid import SYS_NAME, SYS_UP_TIME
from facho.polling.vendors.loader import load_definitions
from facho.simulator.agent import Faults, PortTaken
from facho.simulator.readings import DRIFT_STEP_SECONDS
from facho.simulator.server import MIXED, ConfigError, SimulatedOlt, Simulation, SimulatorConfig, choose_definitions
from facho.simulator.world import STILL, Chassis, JournalKind, Life

HUAWEI = "huawei_smartax"


@pytest.fixture
async def simulation() -> AsyncIterator[Simulation]:
    async with Simulation.start(SimulatorConfig(vendor=HUAWEI, olts=3, onus=40, life=STILL)) as running:
        yield running


async def read(manager: RawManager, olt: SimulatedOlt, key: str, serial: str) -> object:
    column = olt.definition.column(key)
    reply = await manager.get(olt, column.instance(olt.world.find(serial).place))
    ((_, tag, value),) = reply.varbinds
    return column.decode(tag, value).value


async def test_each_olt_has_its_own_name_port_and_customers(simulation: Simulation) -> None:
    assert [olt.name for olt in simulation.olts] == ["olt-001", "olt-002", "olt-003"]
    assert len({olt.port for olt in simulation.olts}) == 3
    assert len({onu.serial for olt in simulation.olts for onu in olt.world.onus}) == 120


async def test_the_same_seed_makes_the_same_fleet() -> None:
    config = SimulatorConfig(vendor=MIXED, olts=6, onus=20, seed=42)
    async with Simulation.start(config) as first, Simulation.start(config) as second:
        for one, two in zip(first.olts, second.olts, strict=True):
            assert (one.name, one.vendor) == (two.name, two.vendor)
            assert [(onu.serial, onu.description, onu.place) for onu in one.world.onus] == [
                (onu.serial, onu.description, onu.place) for onu in two.world.onus
            ]


async def test_each_olt_answers_for_itself(simulation: Simulation, manager: RawManager) -> None:
    for olt in simulation.olts:
        reply = await manager.get(olt, SYS_NAME)
        assert reply.varbinds[0][2] == olt.name.encode()


async def test_an_olt_is_announced_with_all_that_a_manager_needs(simulation: Simulation) -> None:
    olt = simulation.olts[0]

    assert olt.line == f"olt-001 127.0.0.1 {olt.port} {HUAWEI} public"


async def test_a_mixed_fleet_takes_the_families_in_turn() -> None:
    families = [definition.key for definition in choose_definitions(MIXED)]
    assert families[:2] == ["huawei_smartax", "fiberhome_an5516"]
    assert set(load_definitions()) - set(families) == {"generic", "calix_axos", "calix_exa"}

    async with Simulation.start(SimulatorConfig(vendor=MIXED, olts=len(families) + 1, onus=5)) as simulation:
        assert [olt.vendor for olt in simulation.olts] == [*families, families[0]]


async def test_ports_follow_each_other_from_the_given_one() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        taken = probe.getsockname()[1]
        first = taken - 1

        with pytest.raises(PortTaken, match=str(taken)):
            async with Simulation.start(SimulatorConfig(vendor=HUAWEI, olts=2, onus=1, port=first)):
                pass

    async with Simulation.start(SimulatorConfig(vendor=HUAWEI, olts=2, onus=1, port=first)) as simulation:
        assert [olt.port for olt in simulation.olts] == [first, taken]


async def test_ipv6_is_served(simulation: Simulation) -> None:
    async with Simulation.start(SimulatorConfig(vendor=HUAWEI, onus=1, host="::1")) as over_ipv6:
        assert over_ipv6.olts[0].line.startswith("olt-001 ::1 ")


async def test_a_change_in_the_world_is_seen_at_the_next_question(simulation: Simulation, manager: RawManager) -> None:
    olt = simulation.olts[0]
    onu = next(onu for onu in olt.world.onus if onu.is_online)
    assert await read(manager, olt, "onu.run_state", onu.serial) == "online"

    olt.world.take_down(onu, DownCause.DYING_GASP)

    assert await read(manager, olt, "onu.run_state", onu.serial) == "offline"
    assert await read(manager, olt, "onu.last_down_cause", onu.serial) == "dying_gasp"
    assert await read(manager, olt, "onu.rx_power", onu.serial) is None


async def test_a_moved_onu_answers_at_its_new_place_only(simulation: Simulation, manager: RawManager) -> None:
    olt = simulation.olts[0]
    column = olt.definition.column("onu.serial")
    before = await manager.walk(olt, column.oid)
    onu = next(olt.world.onus)
    source = onu.place

    olt.world.move(onu, next(port.place for port in olt.world.ports.values() if not port.onus))

    after = await manager.walk(olt, column.oid)
    assert {oid for oid, _, _ in before} ^ {oid for oid, _, _ in after} == {
        column.instance(source),
        column.instance(onu.place),
    }
    assert await read(manager, olt, "onu.serial", onu.serial) == onu.serial


async def test_ports_count_their_onus(simulation: Simulation, manager: RawManager) -> None:
    olt = simulation.olts[0]
    column = olt.definition.column("pon.onu_count")
    port = next(port for port in olt.world.ports.values() if port.onus)

    for expected in (len(port.onus), len(port.onus) + 1):
        reply = await manager.get(olt, column.instance(port.place))
        assert reply.varbinds[0][2] == expected
        olt.world.add(port.place)


async def test_light_drifts_with_world_time(simulation: Simulation, manager: RawManager) -> None:
    olt = simulation.olts[0]
    serial = next(onu.serial for onu in olt.world.onus if onu.is_online)

    readings = []
    for _ in range(8):
        readings.append(await read(manager, olt, "onu.rx_power", serial))
        simulation.clock.skip(20 * DRIFT_STEP_SECONDS)

    assert len(set(readings)) > 4


async def test_uptime_grows_with_world_time(simulation: Simulation, manager: RawManager) -> None:
    olt = simulation.olts[0]
    (before,) = (await manager.get(olt, SYS_UP_TIME)).varbinds

    simulation.clock.skip(100)

    (after,) = (await manager.get(olt, SYS_UP_TIME)).varbinds
    assert after[2] - before[2] >= 10_000


async def test_the_journal_tells_what_happened_while_nobody_asked() -> None:
    config = SimulatorConfig(vendor=HUAWEI, onus=40, life=Life(failures=600))
    async with Simulation.start(config) as simulation:
        assert simulation.olts[0].journal == ()

        simulation.clock.skip(3_600)

        assert len(simulation.olts[0].journal) > 100


async def test_counters_are_reported_by_olt(simulation: Simulation, manager: RawManager) -> None:
    await manager.get(simulation.olts[1], SYS_NAME)

    counted = simulation.counters_as_json()

    assert [counted[olt.name]["requests"] for olt in simulation.olts] == [0, 1, 0]


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("huawei", [HUAWEI, "huawei_smartax_epon"]),
        ("Huawei", [HUAWEI, "huawei_smartax_epon"]),
        ("zte", ["zte_c300_c320", "zte_c600_titan"]),
        ("zte_c6", ["zte_c600_titan"]),
    ],
)
def test_a_beginning_names_all_families_of_a_brand(name: str, keys: list[str]) -> None:
    assert [definition.key for definition in choose_definitions(name)] == keys


@pytest.mark.parametrize("name", ["nobody", ""])
def test_unknown_families_are_refused_with_the_list(name: str) -> None:
    with pytest.raises(ConfigError, match=HUAWEI):
        choose_definitions(name)


@pytest.mark.parametrize(
    "wrong",
    [
        {"olts": 0},
        {"onus": -1},
        {"loss": 1.5},
        {"offline_share": -0.1},
        {"latency_ms": -1},
        {"speed": 0},
        {"port": 65_535, "olts": 2},
        {"port": -1},
        {"max_message_bytes": 100},
        {"onus": 200, "chassis": Chassis(1, 8, 1)},
        {"onus": 1, "chassis": Chassis(1, 8, 9)},
    ],
)
def test_what_cannot_be_simulated_is_refused_at_once(wrong: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        SimulatorConfig(**wrong)  # type: ignore[arg-type]


async def test_silence_and_its_end_are_in_the_journal() -> None:
    async with Simulation.start(SimulatorConfig(life=STILL)) as simulation:
        olt = simulation.olts[0]

        for faults in (Faults(is_silent=True), Faults(is_silent=True, loss=0.5), Faults()):
            olt.faults = faults

        assert [entry.kind for entry in olt.journal] == [JournalKind.OLT_SILENT, JournalKind.OLT_HEARD]


async def test_a_short_table_looks_complete_to_a_manager(manager: RawManager) -> None:
    async with Simulation.start(SimulatorConfig(vendor=HUAWEI, life=STILL)) as simulation:
        olt = simulation.olts[0]
        serial = olt.definition.column("onu.serial").oid
        olt.faults = Faults(max_rows=5)

        answer = await manager.get_bulk(olt, serial, repetitions=20)

        assert sum(oid[: len(serial)] == serial for oid, _, _ in answer.varbinds) == 5
