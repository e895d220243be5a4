"""Simulated OLTs on real UDP ports and the engine that polls them, hours of both in seconds.

Scheduler, claims, runner, collectors and stores are the product's own, joined by its wiring; only the clock is ours,
and the database is asked on the loop itself, since on that clock no time passes meanwhile.
"""

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, ParamSpec, TypeVar
from unittest.mock import patch

from bench.virtual_engine import DirectGateway, add_simulated_olt
from bench.virtual_loop import VirtualTimeLoop
from django.db import connection
from django.test import override_settings

from facho.core.processes.housekeeping import probe_suspended_olts, report_silence
from facho.core.wiring import ENGINE, build_engine, open_parts
from facho.hosts.models import Olt
from facho.polling.domain.ports import ClockReading
from facho.simulator.server import SimulatedOlt, Simulation, SimulatorConfig
from facho.snmp_jobs.application import apply_ready_made_jobs
from facho.snmp_jobs.models import WorkflowNode
from facho.zabbix_pollers import scheduler

P = ParamSpec("P")
T = TypeVar("T")

EPOCH = datetime(2030, 1, 1, tzinfo=UTC)
INTERVAL = timedelta(minutes=5)
# What happens before a poll happens so long before it.
BEFORE = timedelta(seconds=30)
# How often the engine looks; it also looks when a run has ended.
LOOK_SECONDS = 60.0
LEASE_SECONDS = 10 * LOOK_SECONDS
# World time passes when a test says so.
STANDSTILL = 1e-9
# The jobs that tell of ONUs, at the pace of one poll; the others read the OLT itself.
ABOUT_ONUS = ("descubrimiento", "potencia")


def moment_of(seconds: float) -> datetime:
    return EPOCH + timedelta(seconds=seconds)


class Fleet:
    """The OLTs with their rows, in the same order; `seconds` have passed since the worlds began."""

    def __init__(self, runner: asyncio.Runner, simulation: Simulation) -> None:
        self.olts = simulation.olts
        self.rows = [_add_olt(simulated) for simulated in simulation.olts]
        self._runner, self._simulation = runner, simulation
        self._parts: Any = None
        self._began_at = runner.get_loop().time()

    @property
    def seconds(self) -> float:
        return self._runner.get_loop().time() - self._began_at

    @property
    def now(self) -> datetime:
        return moment_of(self.seconds)

    @property
    def next_poll_at(self) -> datetime:
        return EPOCH + -((EPOCH - self.now) // INTERVAL) * INTERVAL

    def poll(self, polls: int = 1) -> None:
        """Let the engine work until all nodes had so many turns more, and stop a little before the next one."""
        for _ in range(polls):
            self.live_until(self.next_poll_at + INTERVAL - BEFORE)

    def live_until(self, moment: datetime) -> None:
        """Let the engine work until then."""
        self._runner.run(self._live((moment - EPOCH).total_seconds()))

    async def engage(self, stack: AsyncExitStack) -> None:
        """Start the engine."""
        parts: Any = await stack.enter_async_context(open_parts(ENGINE))
        self._parts = replace(parts, clock=_Clock(self), database=DirectGateway())
        engine = build_engine(self._parts)
        stop = asyncio.Event()
        loop = asyncio.create_task(engine.scheduler.scheduler_loop(stop))

        async def disengage() -> None:
            stop.set()
            engine.scheduler.on_task_completed()
            await loop
            await engine.executor.drain(timeout_seconds=1_000)
            # A running loop has a connection of its own, which nobody else would close.
            connection.close()

        stack.push_async_callback(disengage)

    async def _live(self, until: float) -> None:
        while (left := until - self.seconds) > 0:
            await asyncio.sleep(min(LOOK_SECONDS, left))
            clock = self._simulation.clock
            clock.skip(max(self.seconds - clock.now(), 0.0))
            for simulated in self.olts:
                simulated.refresh()
            await probe_suspended_olts(self._parts)
            await report_silence(self._parts)


class _Clock:
    """The fleet's time, as wall clock and as monotonic clock."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet

    def now(self) -> datetime:
        return self._fleet.now

    def monotonic(self) -> float:
        return self._fleet.seconds

    def reading(self) -> ClockReading:
        return ClockReading(*[self._fleet.seconds] * 3)


@contextmanager
def polled(config: SimulatorConfig) -> Iterator[Fleet]:
    """Play OLTs and poll them, all their ONUs every five minutes; the first poll is over when this begins."""
    config = replace(config, speed=STANDSTILL, started_at=EPOCH)
    lease = override_settings(FACHO_LEASE_SECONDS=LEASE_SECONDS)
    look = patch.object(scheduler, "TICK_SECONDS", LOOK_SECONDS)
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner, lease, look:
        stack = AsyncExitStack()
        try:
            fleet = Fleet(runner, runner.run(stack.enter_async_context(Simulation.start(config))))
            runner.run(fleet.engage(stack))
            fleet.poll()
            yield fleet
        finally:
            runner.run(stack.aclose())


def _add_olt(simulated: SimulatedOlt) -> Olt:
    olt = add_simulated_olt(simulated)
    apply_ready_made_jobs(olt, now=EPOCH)
    masters = WorkflowNode.objects.filter(workflow__olt=olt, is_chain_node=False)
    masters.exclude(job__slug__in=ABOUT_ONUS).update(enabled=False, next_run_at=None)
    grid = {"interval_seconds": INTERVAL.total_seconds(), "offset_seconds": 0, "next_run_at": EPOCH}
    masters.filter(job__slug__in=ABOUT_ONUS).update(**grid)
    return olt
