"""A simulated OLT on a real UDP port with its row, and a collector to try on it."""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from facho.executions.store import save_rows
from facho.hosts.models import Olt
from facho.infrastructure.gateway import ThreadGateway
from facho.polling.domain.collection import Collected, CollectRequest, FreeOid, Rows, RunProgress
from facho.polling.domain.execution_state import QueryType
from facho.polling.snmp.errors import OwnershipLost
from facho.polling.snmp.network import Network
from facho.simulator.server import SimulatedOlt, Simulation, SimulatorConfig
from facho.simulator.world import STILL
from facho.snmp_get.collector import OltCollector
from facho.snmp_get.reading import Devices
from factories import NOW, make_olt


class Always:
    """A permit that never ends."""

    def check(self) -> None:
        """Allow it."""

    async def should_yield(self) -> bool:
        return False

    def show(self, progress: RunProgress) -> None:
        """Show it to nobody."""

    def wants_rows(self) -> bool:
        return False


class Yielding(Always):
    """A permit under which another node always waits."""

    async def should_yield(self) -> bool:
        return True


class HandingOver(Always):
    """A permit of a read that takes long: it stores each port when it is finished."""

    def __init__(self, bench: "Bench", now: datetime) -> None:
        self.bench, self.now = bench, now
        self.shown: list[RunProgress] = []
        self.handed: list[tuple[Rows, ...]] = []

    def show(self, progress: RunProgress) -> None:
        self.shown.append(progress)

    def wants_rows(self) -> bool:
        return True

    async def hand_over(self, *rows: Rows) -> None:
        self.handed.append(rows)
        self.now += timedelta(seconds=20)
        await self.bench.collector.devices.database.run(save_rows, self.bench.olt.id, rows, now=self.now)


class Spent(Always):
    """A permit that allows so many packets."""

    def __init__(self, packets: int) -> None:
        self.left = packets

    def check(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise OwnershipLost("another owner holds the claim")


class Bench:
    """A simulated OLT with its row, and a collector to try on it."""

    def __init__(self, simulated: SimulatedOlt, collector: OltCollector, olt: Olt) -> None:
        self.simulated, self.collector, self.olt = simulated, collector, olt

    async def collect(
        self,
        query_type: QueryType,
        columns: Sequence[str],
        permit: Any = None,
        *,
        oids: Sequence[FreeOid] = (),
        cursor: Mapping[str, int] | None = None,
        now: datetime = NOW,
    ) -> Collected:
        """Collect and store, as a run does."""
        request = CollectRequest(
            self.olt.id,
            self.olt.address,
            self.olt.port,
            self.olt.vendor,
            query_type,
            tuple(columns),
            cursor=cursor,
            oids=tuple(oids),
        )
        collected = await self.collector.collect(request, permit or Always())
        await self.collector.devices.database.run(save_rows, self.olt.id, collected.rows, now=now)
        return collected

    async def discover(self) -> None:
        await self.collect(QueryType.DISCOVERY, self.simulated.definition.job("descubrimiento").columns)
        await self.collect(QueryType.WALK, ["onu.run_state"])
        self.simulated.reset_counters()


def on_bench(
    scene: Any, *, vendor: str = "huawei_smartax", onus: int = 40, timeout: float = 0.2, **wishes: Any
) -> None:
    """Play a scene with one simulated OLT."""

    async def run() -> None:
        database = ThreadGateway()
        config = SimulatorConfig(vendor=vendor, onus=onus, life=STILL, offline_share=0.0, **wishes)
        async with Simulation.start(config) as simulation, Network() as network:
            [simulated] = simulation.olts
            olt = await database.run(make_olt, port=simulated.port, vendor=simulated.vendor)
            await scene(Bench(simulated, OltCollector(Devices(network, database, timeout)), olt))
        await database.close()

    asyncio.run(run())
