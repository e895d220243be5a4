"""net-snmp's own tools agree with us: its walker about the simulator, and our engine about its agent."""

import asyncio

import pytest
from engine_world import Always, playing

from facho.polling.snmp.ber import Oid, Tag, VarBind
from facho.polling.snmp.network import Network
from facho.polling.snmp.oid import SYS_UP_TIME
from facho.polling.snmp.session import Session
from facho.polling.snmp.target import Community, SnmpVersion, Target
from facho.polling.snmp.walk import WalkOptions, walk_columns
from facho.polling.vendors.loader import load_definitions
from facho.simulator.server import SimulatorConfig
from facho.simulator.world import STILL
from servers.snmpd import COMMUNITY, private_snmpd, walk

pytestmark = pytest.mark.slow

EVERYTHING: Oid = (1, 3, 6, 1)
ENTERPRISE: Oid = (1, 3, 6, 1, 4, 1, 99_999)
# Without the tree of the agent's own maker, whose floating point numbers are no type of the standard.
STANDARD: tuple[Oid, ...] = ((1, 3, 6, 1, 2, 1), (1, 3, 6, 1, 6))
ONUS = 120
AS_V2C = ("-v2c", "-c", COMMUNITY)


async def walk_with_us(session: Session, root: Oid, repetitions: int = 25) -> list[VarBind]:
    result = await walk_columns(session, [root], WalkOptions(max_repetitions=repetitions))
    assert result.failure is None
    return [(root + suffix, tag, value) for suffix, tag, value in result.rows[0]]


def without_uptime(rows: list[VarBind]) -> list[VarBind]:
    """Leave out the one value that is another one at each question."""
    return [row for row in rows if row[0] != SYS_UP_TIME]


@pytest.mark.parametrize("vendor", sorted(load_definitions()))
async def test_snmpbulkwalk_sees_on_the_simulator_what_we_see(vendor: str) -> None:
    config = SimulatorConfig(vendor=vendor, onus=ONUS, community=COMMUNITY, life=STILL, offline_share=0.2)
    async with playing(config) as scene:
        theirs = await asyncio.to_thread(walk, f"udp:{scene.olt.host}:{scene.olt.port}", AS_V2C, EVERYTHING)
        ours = await walk_with_us(scene.session, EVERYTHING)

    assert without_uptime(ours) == without_uptime(theirs)
    assert len(ours) > (ONUS if load_definitions()[vendor].onu_indexes else 4)


async def test_columns_side_by_side_are_what_snmpbulkwalk_sees_one_by_one() -> None:
    config = SimulatorConfig(vendor="huawei_smartax", onus=ONUS, community=COMMUNITY, life=STILL, offline_share=0.2)
    async with playing(config) as scene:
        columns = scene.columns(("onu.serial", "onu.description", "onu.run_state", "onu.distance", "onu.rx_power"))
        endpoint = f"udp:{scene.olt.host}:{scene.olt.port}"
        theirs = [await asyncio.to_thread(walk, endpoint, AS_V2C, column) for column in columns]
        result = await walk_columns(scene.session, columns)

    assert result.complete
    assert [
        [(column + suffix, tag, value) for suffix, tag, value in rows]
        for column, rows in zip(columns, result.rows, strict=True)
    ] == theirs


def show(rows: int) -> list[VarBind]:
    """Objects of every type that snmpd can be made to show, with extremes and neighbours of different length."""
    columns: list[tuple[int, list[int | bytes | Oid]]] = [
        (Tag.INTEGER, [0, -1, 2_147_483_647, -2_147_483_648, 255]),
        (Tag.OCTET_STRING, [b"", b"ONT 7", b"x" * 400]),
        (Tag.OBJECT_IDENTIFIER, [(1, 3, 6, 1, 4, 1, 4_294_967_295, 1), (1, 3)]),
        (Tag.COUNTER32, [0, 4_294_967_295]),
        (Tag.GAUGE32, [0, 4_294_967_295]),
        (Tag.TIMETICKS, [0, 4_294_967_295]),
    ]
    return [
        ((*ENTERPRISE, 1, number, 4_194_304_000 + row // 8 * 256, row % 8), tag, values[row % len(values)])
        for number, (tag, values) in enumerate(columns, start=1)
        for row in range(rows)
    ]


@pytest.mark.parametrize("repetitions", [1, 10, 50])
async def test_we_see_on_snmpd_what_snmpbulkwalk_sees(repetitions: int) -> None:
    objects = show(20)
    with private_snmpd(objects=objects) as agent:
        theirs = await asyncio.to_thread(walk, agent.endpoint, AS_V2C, ENTERPRISE)
        async with Network() as network:
            target = Target(agent.address, Community(COMMUNITY.encode()), port=agent.port)
            ours = await walk_with_us(network.open(target, Always()), ENTERPRISE, repetitions)

    assert ours == theirs == objects


@pytest.mark.parametrize("root", STANDARD)
async def test_we_see_the_machine_behind_snmpd_as_snmpbulkwalk_does(root: Oid) -> None:
    with private_snmpd() as agent:
        before = await asyncio.to_thread(walk, agent.endpoint, AS_V2C, root)
        async with Network() as network:
            target = Target(agent.address, Community(COMMUNITY.encode()), port=agent.port)
            ours = await walk_with_us(network.open(target, Always()), root)
        after = await asyncio.to_thread(walk, agent.endpoint, AS_V2C, root)

    # The machine lives: what two walks of net-snmp agree on has not changed meanwhile.
    still = set(before) & set(after)
    assert still <= set(ours)
    assert len(still) > 0.5 * len(before)


async def test_we_see_snmpd_by_version_1_as_its_own_walker_does() -> None:
    objects = show(10)
    with private_snmpd(objects=objects) as agent:
        async with Network() as network:
            target = Target(agent.address, Community(COMMUNITY.encode()), SnmpVersion.V1, agent.port)
            ours = await walk_with_us(network.open(target, Always()), ENTERPRISE)

    assert ours == objects
