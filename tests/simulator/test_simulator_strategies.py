"""On the simulated chassis with measured costs, what is gentle is also what is fast."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from raw_manager import RawManager

from facho.polling.snmp.ber import Oid, PduKind
from facho.simulator.agent import CostModel, Faults
from facho.simulator.server import SimulatedOlt, Simulation, SimulatorConfig
from facho.simulator.world import STILL, Chassis
from learned_rows import rows_of_its_own

# A pass of minutes takes a fraction of a second.
SCALE = 0.0005
CHASSIS = SimulatorConfig(
    vendor="huawei_smartax",
    onus=817,
    chassis=Chassis(2, 16, 22),
    offline_share=0.1,
    life=STILL,
    faults=Faults(cost=CostModel(time_scale=SCALE)),
)
OPTICAL = ("temperature", "bias", "tx_power", "rx_power", "voltage", "olt_rx_power", "catv_rx_power")


@pytest.fixture
async def olt() -> AsyncIterator[SimulatedOlt]:
    async with Simulation.start(CHASSIS) as simulation:
        yield simulation.olts[0]


async def walk_together(manager: RawManager, olt: SimulatedOlt, columns: list[Oid]) -> float:
    """Walk columns side by side and return what it cost the OLT in real seconds."""
    olt.reset_counters()
    last = list(columns)
    while last[0][: len(columns[0])] == columns[0]:
        rows = (await manager.get_bulk(olt, *last, repetitions=25)).varbinds
        last = [oid for oid, _, _ in rows[-len(columns) :]]
    return olt.counters.busy_seconds / SCALE


def optical_columns(olt: SimulatedOlt) -> list[Oid]:
    return [olt.definition.column(f"onu.{name}").oid for name in OPTICAL]


async def test_fused_columns_cost_a_fraction_of_single_ones(manager: RawManager, olt: SimulatedOlt) -> None:
    columns = optical_columns(olt)

    fused = await walk_together(manager, olt, columns)
    single = sum([await walk_together(manager, olt, [column]) for column in columns])

    assert 80 < fused < 200
    assert fused < 0.2 * single


async def test_an_empty_port_is_cheap_to_probe_and_dear_to_read(manager: RawManager, olt: SimulatedOlt) -> None:
    empty = next(port.place for port in olt.world.ports.values() if not port.onus)
    pon = olt.definition.columns["pon.onu_count"].index.encode(empty)
    state = olt.definition.column("onu.run_state").oid

    olt.reset_counters()
    await manager.get_bulk(olt, state + pon, repetitions=1)
    probed = olt.counters.busy_seconds / SCALE
    olt.reset_counters()
    await manager.get_bulk(olt, *[column + pon for column in optical_columns(olt)], repetitions=25)
    read = olt.counters.busy_seconds / SCALE

    assert probed < 0.06
    assert read > 2.5


async def test_three_at_once_take_longer_than_one_after_the_other(manager: RawManager, olt: SimulatedOlt) -> None:
    columns = tuple(optical_columns(olt))

    olt.reset_counters()
    for _ in range(3):
        await manager.ask(olt, PduKind.GET_BULK, columns, fields=(0, 25))
    in_turn = olt.counters.busy_seconds
    olt.reset_counters()
    for _ in range(3):
        await manager.send(olt, PduKind.GET_BULK, columns, fields=(0, 25))
    for _ in range(3):
        await manager.receive()

    assert olt.counters.max_in_flight == 3
    assert olt.counters.busy_seconds == pytest.approx(1.35 * in_turn)


async def test_replies_wait_for_the_work_before_them(manager: RawManager, olt: SimulatedOlt) -> None:
    dear = await manager.send(olt, PduKind.GET_BULK, tuple(optical_columns(olt)), fields=(0, 25))
    cheap = await manager.send(olt, PduKind.GET_NEXT, ((1, 3),))

    assert [(await manager.receive()).request_id for _ in range(2)] == [dear, cheap]


async def test_a_fleet_of_hundreds_answers_in_one_process() -> None:
    config = SimulatorConfig(vendor="mixed", olts=300, onus=10, life=STILL)
    managers = [RawManager() for _ in range(10)]
    async with Simulation.start(config) as simulation:

        async def ask_some(manager: RawManager, olts: list[SimulatedOlt]) -> int:
            columns = [(olt, olt.definition.column("onu.run_state")) for olt in olts]
            return sum([len(rows_of_its_own(column, await manager.walk(olt, column.oid))) for olt, column in columns])

        shares = [simulation.olts[at :: len(managers)] for at in range(len(managers))]
        answered = await asyncio.gather(*map(ask_some, managers, shares))

        assert sum(answered) == 3_000
        assert max(olt.counters.max_in_flight for olt in simulation.olts) == 1
    for manager in managers:
        manager.close()
