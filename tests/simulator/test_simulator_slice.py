"""The thin slice: a simulated OLT on a real UDP port tells exactly what its world holds."""

from raw_manager import RawManager

from facho.polling.snmp.oid import SYS_DESCR, SYS_NAME, SYS_OBJECT_ID, SYS_UP_TIME
from facho.polling.vendors.recognition import recognise
from facho.simulator.config import SimulatorConfig
from facho.simulator.server import SimulatedOlt, Simulation

HUAWEI = SimulatorConfig(vendor="huawei_smartax", onus=100)


async def read_column(manager: RawManager, olt: SimulatedOlt, key: str) -> dict[object, object]:
    column = olt.definition.column(key)
    rows = await manager.walk(olt, column.oid)
    return {column.index.decode(oid[len(column.oid) :]): column.decode(tag, value).value for oid, tag, value in rows}


async def test_walked_columns_say_what_the_world_holds(manager: RawManager) -> None:
    async with Simulation.start(HUAWEI) as simulation:
        olt = simulation.olts[0]

        serials = await read_column(manager, olt, "onu.serial")
        descriptions = await read_column(manager, olt, "onu.description")
        states = await read_column(manager, olt, "onu.run_state")

        onus = list(olt.world.onus)
        assert len(onus) == 100
        assert serials == {onu.place: onu.serial for onu in onus}
        assert descriptions == {onu.place: onu.description for onu in onus}
        assert states == {onu.place: onu.state for onu in onus}


async def test_only_online_onus_have_a_power(manager: RawManager) -> None:
    async with Simulation.start(HUAWEI) as simulation:
        olt = simulation.olts[0]

        powers = await read_column(manager, olt, "onu.rx_power")

        assert {place for place, power in powers.items() if power is not None} == {
            onu.place for onu in olt.world.onus if onu.is_online
        }
        assert all(-40 < power < -8 for power in powers.values() if isinstance(power, float))


async def test_the_system_group_is_recognised_as_the_family(manager: RawManager) -> None:
    async with Simulation.start(HUAWEI) as simulation:
        olt = simulation.olts[0]

        reply = await manager.get(olt, SYS_DESCR, SYS_OBJECT_ID, SYS_UP_TIME, SYS_NAME)

        descr, object_id, uptime, name = (value for _, _, value in reply.varbinds)
        assert recognise(object_id, descr.decode()) is olt.definition
        assert uptime > 0
        assert name == olt.name.encode()


async def test_the_same_seed_gives_the_same_customers() -> None:
    async with Simulation.start(HUAWEI) as first, Simulation.start(HUAWEI) as second:
        one, two = first.olts[0].world, second.olts[0].world

        assert [(onu.serial, onu.description, onu.place) for onu in one.onus] == [
            (onu.serial, onu.description, onu.place) for onu in two.onus
        ]
