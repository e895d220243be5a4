"""What scheduling costs, with ten times the bound that the benchmark prints: a machine under test is noisy."""

import asyncio
import time
from contextlib import suppress
from itertools import cycle
from statistics import median

import pytest

from facho.core.wiring import Parts, open_parts
from facho.executions.runner import InProcessExecutor
from facho.polling.domain.collection import Collected, CollectRequest, RunControl
from facho.snmp_jobs.models import WorkflowNode
from facho.zabbix_pollers.poller_manager import PollerManager
from facho.zabbix_pollers.scheduler import Leases, ZabbixScheduler
from factories import NOW, make_job, make_node, make_olt

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

OLTS, NODES = 4, 12
GAP_SECONDS = 0.5
IDLE_SHARE = 0.2
IDLE_SECONDS = 4.0


class Short:
    """A collector that takes a moment, and notes when each OLT was let go and taken again."""

    def __init__(self) -> None:
        self.ended_at: dict[int, float] = {}
        self.gaps: list[float] = []
        self._seconds = cycle((0.2, 0.55, 0.35, 0.6, 0.25, 0.45, 0.3))

    async def collect(self, request: CollectRequest, control: RunControl) -> Collected:
        if request.olt_id in self.ended_at:
            self.gaps.append(time.perf_counter() - self.ended_at[request.olt_id])
        await self._ask(next(self._seconds))
        self.ended_at[request.olt_id] = time.perf_counter()
        return Collected(was_heard=True)

    async def _ask(self, seconds: float) -> None:
        """Take as long as a device that never answers takes to be given up."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await asyncio.Event().wait()


def build(parts: Parts, collector: Short) -> ZabbixScheduler:
    executor = InProcessExecutor(parts.runner(collector), lambda: scheduler.on_task_completed())
    pollers = PollerManager(start_pollers=OLTS, database=parts.database, executor=executor, owner=parts.owner)
    scheduler = ZabbixScheduler(pollers, parts.database, parts.clock, parts.owner, Leases(60, 20))
    return scheduler


def test_the_end_of_a_run_is_followed_at_once_by_the_next_of_its_olt() -> None:
    """S0-31, S4-11: without waiting for a tick."""
    jobs = [make_job() for _ in range(NODES)]
    for _ in range(OLTS):
        olt = make_olt()
        for job in jobs:
            make_node(olt, job)
    collector = Short()

    async def run() -> None:
        async with open_parts("test") as parts:
            stop = asyncio.Event()
            loop = asyncio.create_task(build(parts, collector).scheduler_loop(stop))
            async with asyncio.timeout(120):
                while len(collector.gaps) < OLTS * (NODES - 1):
                    await asyncio.wait([loop], timeout=0.1)
            stop.set()
            await loop

    asyncio.run(run())

    # The middle of them: a single hiccup of the machine says nothing about the scheduler.
    assert median(collector.gaps) <= GAP_SECONDS


def test_a_scheduler_with_nothing_to_do_uses_next_to_nothing() -> None:
    for _ in range(20):
        make_node(next_run_at=NOW)
    WorkflowNode.objects.update(next_run_at=None)

    async def run() -> float:
        async with open_parts("test") as parts:
            stop = asyncio.Event()
            loop = asyncio.create_task(build(parts, Short()).scheduler_loop(stop))
            await asyncio.wait([loop], timeout=1)
            before = time.process_time()
            await asyncio.wait([loop], timeout=IDLE_SECONDS)
            used = time.process_time() - before
            stop.set()
            await loop
            return used

    assert asyncio.run(run()) / IDLE_SECONDS <= IDLE_SHARE
