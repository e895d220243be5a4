"""A pass over a simulated MA5608T by the product's own strategies, and the same columns walked one by one.

Time is the OLT's: from question to answer, time-outs included, at the scale of the simulated costs. Storing the
rows is not part of it; what was stored is compared with the simulated world. Needs a database and Django.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import ParamSpec, TypeVar
from unittest.mock import patch

from django.db import connection

from bench.report import Section, Target
from bench.truth import EPOCH, true_rows
from bench.virtual_engine import DirectGateway, add_simulated_olt
from bench.virtual_loop import VirtualTimeLoop
from facho.executions.store import save_rows
from facho.hosts.models import Olt
from facho.onus.models import Onu
from facho.onus.present_onus import PLACE
from facho.onus.raw_values import load_blocks
from facho.polling.domain.collection import CollectRequest
from facho.polling.domain.execution_state import QueryType
from facho.polling.domain.onu_table import raw_text
from facho.polling.snmp.network import Network
from facho.polling.snmp.oid import format_oid
from facho.polling.vendors.definition import Definition
from facho.polling.vendors.index import Place
from facho.simulator.agent import CostModel, Faults
from facho.simulator.server import SimulatedOlt, Simulation, SimulatorConfig
from facho.simulator.world import STILL, Chassis
from facho.snmp_get import collector
from facho.snmp_get.collector import OltCollector
from facho.snmp_get.reading import Devices

P = ParamSpec("P")
T = TypeVar("T")

VENDOR = "huawei_smartax"
AT_MOST = 0.35
# Of the pass on the real clock: minutes in seconds, with time-outs that a busy machine does not reach by itself.
REAL_TIME_SCALE = 0.02
ONUS = 817
LOST = 0.05
OFFLINE = 0.1
UNLIMITED_SECONDS = 3600.0
# Of a PON port or three, and about ten ONUs with their light.
FIRST_ONUS, ANSWERED_BYTES = 200, 1_500
# A size that stays without an answer costs a time-out of live columns, which is as long as a read.
FIRST_AT_MOST = 3.0
# So slow that light and counters stand still.
WORLD_SPEED = 1e-6
SERIAL, DESCRIPTION = "onu.serial", "onu.description"
STATE = ("onu.run_state", "onu.last_down_cause", "onu.distance", "onu.last_up", "onu.last_down")
LIGHT = (
    "onu.rx_power",
    "onu.tx_power",
    "onu.olt_rx_power",
    "onu.temperature",
    "onu.voltage",
    "onu.bias",
    "onu.catv_rx_power",
)

Steps = Sequence[tuple[QueryType, tuple[str, ...]]]

# As the ready-made jobs of the definition do it: cheap columns by walk, light fused, of ONUs online, port by port.
OURS: Steps = (
    (QueryType.DISCOVERY, (SERIAL,)),
    (QueryType.GET, (DESCRIPTION,)),
    (QueryType.WALK, STATE),
    (QueryType.GET, LIGHT),
)
ONE_BY_ONE: Steps = (
    (QueryType.DISCOVERY, (SERIAL,)),
    *((QueryType.WALK, (key,)) for key in (DESCRIPTION, *STATE, *LIGHT)),
)


@dataclass(frozen=True, slots=True)
class Pass:
    """What one pass took, in unscaled seconds of the OLT, and how true its rows are."""

    seconds: float
    busy_seconds: float
    packets: int
    max_in_flight: int
    rows: int
    rows_wrong: int


def measure_section(*, rounds: int) -> Section:
    """Compare both ways on a virtual clock, with another OLT in each round, and once on the real one."""
    ours = [_play(OURS, seed=seed) for seed in range(1, rounds + 1)]
    singly = [_play(ONE_BY_ONE, seed=seed) for seed in range(1, rounds + 1)]
    real = [asyncio.run(measure_pass(steps, seed=1, time_scale=REAL_TIME_SCALE)) for steps in (OURS, ONE_BY_ONE)]
    ratio = median(one.seconds / other.seconds for one, other in zip(ours, singly, strict=True))
    return Section(
        f"A pass over a simulated MA5608T with {ONUS} ONUs, {LOST:.0%} of replies lost",
        ("Way", "Seconds of the OLT", "Its processor busy", "Packets", "Values", "Wrong or missing"),
        [
            ("ours", *_medians(ours)),
            ("columns one by one", *_medians(singly)),
            (f"ours, real clock x {REAL_TIME_SCALE:g}", *_medians(real[:1])),
            (f"columns one by one, real clock x {REAL_TIME_SCALE:g}", *_medians(real[1:])),
        ],
        [
            Target("Time, of columns one by one", ratio, AT_MOST),
            Target("The same on the real clock", real[0].seconds / real[1].seconds, AT_MOST),
            Target("Wrong or missing values", sum(done.rows_wrong for done in (*ours, *singly, *real)), 0),
            Target("Requests in flight", max(done.max_in_flight for done in (*ours, *singly, *real)), 1),
        ],
    )


def measure_first_contact() -> Section:
    """Read the light of ONUs that were never read, and again, from an OLT that leaves large requests unanswered."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        first, following = runner.run(_read_light_twice())
    return Section(
        f"The first light of {FIRST_ONUS} ONUs of an OLT that answers at most {ANSWERED_BYTES} bytes, and the next",
        ("Read", "Seconds of the OLT"),
        [("first", first), ("next", following)],
        [Target("Time of the first read of light, of the next one's", first / following, FIRST_AT_MOST)],
    )


async def _read_light_twice() -> tuple[float, float]:
    faults = Faults(cost=CostModel(), lost_above=ANSWERED_BYTES)
    config = SimulatorConfig(
        vendor=VENDOR, onus=FIRST_ONUS, speed=WORLD_SPEED, life=STILL, started_at=EPOCH, faults=faults
    )
    async with Simulation.start(config) as simulation, Network() as network:
        [simulated] = simulation.olts
        olt = _add_olt(simulated)
        collector_of_olt = OltCollector(Devices(network, DirectGateway(), UNLIMITED_SECONDS))
        seconds = [
            await _run(collector_of_olt, CollectRequest(olt.id, olt.address, olt.port, olt.vendor, query_type, keys))
            for query_type, keys in ((QueryType.DISCOVERY, (SERIAL,)), *[(QueryType.GET, LIGHT)] * 2)
        ]
        connection.close()
        return seconds[1], seconds[2]


def _play(steps: Steps, *, seed: int) -> Pass:
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(measure_pass(steps, seed=seed))


def _medians(passes: Sequence[Pass]) -> tuple[float, ...]:
    return (
        median(done.seconds for done in passes),
        median(done.busy_seconds for done in passes),
        median(done.packets for done in passes),
        median(done.rows for done in passes),
        sum(done.rows_wrong for done in passes),
    )


async def measure_pass(steps: Steps, *, seed: int, time_scale: float = 1.0) -> Pass:
    """Play the OLT and read it once; the running loop's clock tells the time."""
    config = SimulatorConfig(
        vendor=VENDOR,
        onus=ONUS,
        chassis=Chassis(cards=2, ports_per_card=16, used_ports=22),
        offline_share=OFFLINE,
        seed=seed,
        speed=WORLD_SPEED,
        life=STILL,
        started_at=EPOCH,
        faults=Faults(loss=LOST, cost=CostModel(time_scale=time_scale)),
    )
    async with Simulation.start(config) as simulation, Network() as network:
        [simulated] = simulation.olts
        olt = _add_olt(simulated)
        seconds = 0.0
        with patch.object(collector, "load_definitions", return_value=_hastened(simulated.definition, time_scale)):
            for query_type, keys in steps:
                request = CollectRequest(olt.id, olt.address, olt.port, olt.vendor, query_type, keys)
                seconds += await _run(OltCollector(Devices(network, DirectGateway(), UNLIMITED_SECONDS)), request)
        counted = simulated.counters
        rows, wrong = _check(olt, simulated)
        # A running loop has a connection of its own, which no one else would close.
        connection.close()
        return Pass(
            seconds=seconds / time_scale,
            busy_seconds=counted.busy_seconds / time_scale,
            packets=counted.requests + counted.retransmissions,
            max_in_flight=counted.max_in_flight,
            rows=rows,
            rows_wrong=wrong,
        )


class _Undisturbed:
    def check(self) -> None:
        """Allow every packet."""

    async def should_yield(self) -> bool:
        """Let the pass end in one go."""
        return False

    def show(self, progress: object) -> None:
        """Show it to nobody."""

    def wants_rows(self) -> bool:
        """Store at the end."""
        return False


async def _run(reader: OltCollector, request: CollectRequest) -> float:
    """Carry out one operation as a run does, and return how long it took."""
    loop = asyncio.get_running_loop()
    began_at = loop.time()
    collected = await reader.collect(request, _Undisturbed())
    seconds = loop.time() - began_at
    if collected.failure is not None:
        raise RuntimeError(f"{request.columns}: {collected.failure.message}")
    save_rows(request.olt_id, collected.rows, now=EPOCH)
    return seconds


def _hastened(definition: Definition, time_scale: float) -> Mapping[str, Definition]:
    """Wait as much less as the OLT is faster."""
    classes = {
        cost: replace(way, timeout_seconds=way.timeout_seconds * time_scale)
        for cost, way in definition.polling.classes.items()
    }
    return {definition.key: replace(definition, polling=replace(definition.polling, classes=classes))}


def _add_olt(simulated: SimulatedOlt) -> Olt:
    Olt.objects.all().delete()
    return add_simulated_olt(simulated)


def _check(olt: Olt, simulated: SimulatedOlt) -> tuple[int, int]:
    """Count the values that the world has, and those of them that are not stored as they are.

    Light of an ONU that is offline is no value: it may be missing.
    """
    stored = _stored(olt, simulated.definition)
    online = {onu.place for onu in simulated.world.onus if onu.is_online}
    rows = wrong = 0
    for key in (SERIAL, DESCRIPTION, *STATE, *LIGHT):
        column = simulated.definition.column(key)
        for suffix, tag, value in true_rows(simulated, key):
            place = column.index.decode(suffix)
            told = stored.get((place, key))
            true = column.decode(tag, value).value if key in (SERIAL, DESCRIPTION) else raw_text(tag, value)
            rows += 1
            wrong += told != true and not (told is None and key in LIGHT and place not in online)
    return rows, wrong


def _stored(olt: Olt, definition: Definition) -> dict[tuple[Place | None, str], str]:
    onus = Onu.objects.filter(olt=olt, is_present=True).values_list("id", "serial", "description", *PLACE)
    places = {onu_id: Place(*place) for onu_id, _, _, *place in onus}
    keys = {format_oid(definition.column(key).oid): key for key in (*STATE, *LIGHT)}
    found: dict[tuple[Place | None, str], str] = {
        (place, keys[oid]): told[0]
        for oid, block in load_blocks(olt.id, keys).by_oid.items()
        for onu_id, place in places.items()
        if (told := block.text_of(onu_id))
    }
    for onu_id, serial, description, *_ in onus:
        found[places[onu_id], SERIAL] = serial
        found[places[onu_id], DESCRIPTION] = description
    return found
