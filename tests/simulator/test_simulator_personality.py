"""Every family tells through its own tables what the world holds, and is recognised as itself."""

import pytest
from raw_manager import RawManager
from world_factory import TELLING_CAUSES, true_identities

from facho.polling.domain.onu_state import DownCause
from facho.polling.snmp.ber import VarBind
from facho.polling.snmp.oid import SYS_DESCR, SYS_OBJECT_ID
from facho.polling.vendors.column import Column
from facho.polling.vendors.loader import load_definitions, recognise, recognise_by_tables
from facho.simulator.personality import UPLINKS, identity_of
from facho.simulator.readings import hardware_address, read_optics
from facho.simulator.server import SimulatedOlt, Simulation, SimulatorConfig
from facho.simulator.world import STILL, SimulatedOnu
from learned_rows import GIVING_IDS, learned, rows_of_its_own

FAMILIES = sorted(load_definitions())
WITH_ONUS = [key for key in FAMILIES if load_definitions()[key].onu_indexes]
WITH_AUTOFIND = [key for key in FAMILIES if load_definitions()[key].has_column("autofind.serial")]


def config_for(family: str) -> SimulatorConfig:
    return SimulatorConfig(vendor=family, onus=50, life=STILL, offline_share=0.3)


def lost_by_scale(column: Column) -> float:
    """Return how many dB a column may lose: half a step, or what a tenth of a microwatt means at weak light."""
    is_linear = column.rule.decoder.name == "milliwatt_10000"
    return 0.6 if is_linear else 0.011 + float(column.rule.scale) / 2


async def walk_column(manager: RawManager, olt: SimulatedOlt, key: str) -> list[VarBind]:
    return await manager.walk(olt, olt.definition.column(key).oid)


# A family may have neither.
TEXTS = {"onu.description", "onu.name"}


async def read_column(manager: RawManager, olt: SimulatedOlt, key: str) -> dict[object, object]:
    names = [row for name in olt.definition.naming_columns for row in await walk_column(manager, olt, name)]
    column = learned(olt.definition, names).column(key)
    rows = await manager.walk(olt, column.oid)
    return {place: column.decode(tag, value).value for place, (_, tag, value) in rows_of_its_own(column, rows)}


@pytest.mark.parametrize("family", GIVING_IDS)
async def test_identities_and_states_are_those_of_the_world(family: str, manager: RawManager) -> None:
    async with Simulation.start(config_for(family)) as simulation:
        olt = simulation.olts[0]

        identities = await read_column(manager, olt, *olt.definition.identity_columns())
        states = await read_column(manager, olt, "onu.run_state")

        assert identities == true_identities(olt.world, olt.definition)
        assert states == {onu.place: onu.state for onu in olt.world.onus}


@pytest.mark.parametrize("family", GIVING_IDS)
async def test_light_is_that_of_the_world_and_missing_when_offline(family: str, manager: RawManager) -> None:
    async with Simulation.start(config_for(family)) as simulation:
        olt = simulation.olts[0]

        powers = await read_column(manager, olt, "onu.rx_power")
        tolerance = lost_by_scale(olt.definition.column("onu.rx_power"))

        for onu in olt.world.onus:
            expected = read_optics(onu, at=0.0).rx_dbm if onu.is_online else None
            assert powers.get(onu.place) == (expected if expected is None else pytest.approx(expected, abs=tolerance))


@pytest.mark.parametrize("family", TELLING_CAUSES)
async def test_the_cause_of_an_absence_is_reported(family: str, manager: RawManager) -> None:
    async with Simulation.start(config_for(family)) as simulation:
        olt = simulation.olts[0]

        causes = await read_column(manager, olt, "onu.last_down_cause")

        for onu in olt.world.onus:
            if not onu.is_online:
                assert causes[onu.place] in reported_as(onu)


def reported_as(onu: SimulatedOnu) -> set[DownCause]:
    power_lost = {DownCause.DYING_GASP, DownCause.POWER_OFF}
    return power_lost if onu.last_down_cause is DownCause.DYING_GASP else {DownCause.LOS}


@pytest.mark.parametrize("family", [key for key in GIVING_IDS if TEXTS & set(load_definitions()[key].columns)])
async def test_customers_can_be_told_apart_by_what_the_operator_wrote(family: str, manager: RawManager) -> None:
    async with Simulation.start(config_for(family)) as simulation:
        olt = simulation.olts[0]
        key = "onu.description" if olt.definition.has_column("onu.description") else "onu.name"

        texts = await read_column(manager, olt, key)

        assert texts == {onu.place: onu.description for onu in olt.world.onus}


@pytest.mark.parametrize("family", FAMILIES)
async def test_every_column_answers_in_order_and_with_readable_values(family: str, manager: RawManager) -> None:
    async with Simulation.start(config_for(family)) as simulation:
        olt = simulation.olts[0]
        walked = await manager.walk(olt, (1, 3), repetitions=60)

        oids = [oid for oid, _, _ in walked]
        assert oids == sorted(set(oids))
        for column in olt.definition.columns.values():
            rows = [row for row in walked if row[0][: len(column.oid)] == column.oid]
            assert rows, column.key
            for _, tag, value in rows:
                decoded = column.decode(tag, value)
                # A serial may stand where another kind of ONU has its hardware address.
                is_shared = column.shares in ("onu.serial", "autofind.serial")
                allowed = (None, "sentinel", "malformed") if is_shared else (None, "sentinel")
                assert decoded.reason in allowed, (column.key, tag, value)


@pytest.mark.parametrize("family", FAMILIES)
async def test_the_system_group_tells_the_family(family: str, manager: RawManager) -> None:
    async with Simulation.start(config_for(family)) as simulation:
        olt = simulation.olts[0]

        reply = await manager.get(olt, SYS_OBJECT_ID, SYS_DESCR)

        (_, _, object_id), (_, _, description) = reply.varbinds
        verdict = recognise(object_id, description.decode())
        assert recognise_by_tables(verdict, object_id, olt.definition.recognition.tables) is olt.definition


@pytest.mark.parametrize("family", FAMILIES)
def test_every_model_is_recognised_as_its_family(family: str) -> None:
    definition = load_definitions()[family]

    for number in range(len(definition.recognition.models) + 1):
        identity = identity_of(definition, number)
        verdict = recognise(identity.object_id, identity.description)
        assert recognise_by_tables(verdict, identity.object_id, definition.recognition.tables) is definition


@pytest.mark.parametrize("family", WITH_ONUS)
async def test_interfaces_are_named_after_their_ports(family: str, manager: RawManager) -> None:
    names = load_definitions()["generic"].column("if.name")
    async with Simulation.start(config_for(family)) as simulation:
        olt = simulation.olts[0]

        rows = await manager.walk(olt, names.oid)

        ports = [f"GPON {place.frame}/{place.slot}/{place.port}".encode() for place in olt.world.ports]
        assert sorted(value for _, _, value in rows if value.startswith(b"GPON")) == sorted(ports)
        assert len(rows) == len(ports) + UPLINKS


@pytest.mark.parametrize("family", WITH_AUTOFIND)
async def test_who_waits_is_reported_until_it_is_authorised(family: str, manager: RawManager) -> None:
    async with Simulation.start(config_for(family)) as simulation:
        olt = simulation.olts[0]
        [stranger] = olt.waiting

        waiting = await read_column(manager, olt, "autofind.serial")
        has_serial = olt.definition.has_column("onu.serial")
        assert list(waiting.values()) == [stranger.serial if has_serial else hardware_address(stranger.serial)]
        olt.authorise(stranger.serial)

        assert await read_column(manager, olt, "autofind.serial") == {}
        [identity] = olt.definition.identity_columns()
        assert set(waiting.values()) <= set((await read_column(manager, olt, identity)).values())
