"""What joins the product's own engine to virtual time: its clock, its database, and the simulator's OLTs as rows.

Needs a database and Django.
"""

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import ParamSpec, TypeVar

from facho.hosts.models import Olt
from facho.infrastructure.secrets import Secret
from facho.polling.domain.ports import ClockReading
from facho.simulator.server import SimulatedOlt

P = ParamSpec("P")
T = TypeVar("T")


class LoopClock:
    """The loop's time, as wall clock and as monotonic clock."""

    def __init__(self, start: datetime) -> None:
        self._start = start
        self._loop = asyncio.get_running_loop()
        self._began_at = self._loop.time()
        # By how much somebody set the wall clock.
        self.shift = timedelta(0)

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self._loop.time() - self._began_at) + self.shift

    def monotonic(self) -> float:
        return self._loop.time()

    def reading(self) -> ClockReading:
        """Read every clock: here they never part."""
        return ClockReading(*[self._loop.time()] * 3)

    async def wait_until(self, moment: datetime) -> None:
        await asyncio.sleep(max((moment - self.now()).total_seconds(), 0))


class DirectGateway:
    """Calls the store at once: virtual time stands still meanwhile."""

    async def run(self, call: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return call(*args, **kwargs)

    async def run_long(self, call: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self.run(call, *args, **kwargs)


def add_simulated_olt(simulated: SimulatedOlt) -> Olt:
    return Olt.objects.create(
        name=simulated.name,
        host=simulated.host,
        address=simulated.host,
        port=simulated.port,
        vendor=simulated.vendor,
        community=Secret(simulated.community),
    )
