"""A fibre is cut, the OLT says so, and the outage with its cause is there in seconds; a lie changes nothing."""

import asyncio
import socket
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.hostile_fleet import OltLine, Product, running_product
from facho.polling.vendors.index import Place
from facho.simulator.config import SimulatorConfig
from facho.simulator.life import STILL
from facho.simulator.server import SimulatedOlt, Simulation

pytestmark = pytest.mark.slow

VENDOR, ONUS_OF_A_PORT = "huawei_smartax", 64
PATIENCE_SECONDS = 300.0
# Ten times the five seconds that are promised on an idle OLT: the machine does other things too.
MOST_SECONDS = 50.0
OUTAGE = "SELECT frame, slot, port, cause FROM outages WHERE ended_at IS NULL"
STATES = "SELECT run_state, COUNT(*) FROM onus_onureading GROUP BY 1"
OUTCOMES = "SELECT outcome, COUNT(*) FROM traps WHERE meaning = 'onu_los' GROUP BY 1"
READS = "SELECT COUNT(*) FROM snmp_executions WHERE origin = 'trap'"


def free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as tried:
        tried.bind(("127.0.0.1", 0))
        return int(tried.getsockname()[1])


async def until(is_true: Callable[[], bool], seconds: float = PATIENCE_SECONDS) -> float:
    """Wait, while the simulated OLT goes on, and return how long it took."""
    began = time.monotonic()
    while not is_true():
        assert time.monotonic() < began + seconds, "not in time"
        await asyncio.to_thread(Product.look, None)  # type: ignore[arg-type]
    return time.monotonic() - began


def is_known(product: Product, onus: int) -> bool:
    """Tell whether every ONU was found and its state read."""
    states = dict(product.rows(STATES))
    return sum(states.values()) == onus and "unknown" not in states


def ports_of(olt: SimulatedOlt) -> list[Place]:
    """Return its ports, those with the most ONUs first."""
    return [port for port, _ in Counter(onu.place.pon for onu in olt.world.onus).most_common()]


async def play(folder: Path, receiver: int, *, cuts: int) -> tuple[list[float], SimulatedOlt]:
    """Cut port after port, and return how long each took to be an outage of that port."""
    config = SimulatorConfig(
        vendor=VENDOR, olts=1, onus=8 * ONUS_OF_A_PORT, life=STILL, traps=("127.0.0.1", receiver), latency_ms=5
    )
    took: list[float] = []
    async with Simulation.start(config) as simulation:
        [olt] = simulation.olts
        line = OltLine("OLT", "127.0.0.1", str(olt.port), VENDOR, config.community)
        with running_product(folder, {"OLT": line}, pollers=4) as product:
            await asyncio.to_thread(product.command, "traps", "on")
            await asyncio.to_thread(product.command, "node", "run", "--all")
            await until(lambda: is_known(product, config.onus))
            await until(lambda: bool(product.rows("SELECT 1 FROM traps_trapreceiver")))
            for number in range(cuts):
                port = ports_of(olt)[number % 8]
                olt.world.cut(port)
                took.append(await until(lambda port=port: (*port[:3], "fibre") in product.rows(OUTAGE)))  # type: ignore[misc]
                olt.world.restore(port)
                await until(lambda: not product.rows(OUTAGE))
            assert olt.counters.max_in_flight == 1

            assert olt.traps is not None
            before, reads = dict(product.rows(STATES)), product.rows(READS)[0][0]
            lies = olt.traps.lie()
            assert lies > 4 * ONUS_OF_A_PORT
            await until(lambda: dict(product.rows(OUTCOMES)).get("not_confirmed", 0) > 0)
            assert dict(product.rows(STATES)) == before
            assert product.rows(READS)[0][0] - reads <= 3
            assert not product.rows(OUTAGE)
    return took, olt


@pytest.mark.parametrize("cuts", [2, pytest.param(50, marks=pytest.mark.thorough)])
def test_a_cut_fibre_is_an_outage_within_seconds_and_a_lie_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record_property: Callable[[str, object], None], cuts: int
) -> None:
    """Never two requests in flight; states are what was read."""
    receiver = free_port()
    monkeypatch.setenv("FACHO_TRAPS_BIND", f"127.0.0.1:{receiver}")

    took, _olt = asyncio.run(play(tmp_path, receiver, cuts=cuts))

    record_property("seconds from a cut to its outage", sorted(round(each, 2) for each in took))
    assert sorted(took)[int(len(took) * 0.95)] <= MOST_SECONDS
