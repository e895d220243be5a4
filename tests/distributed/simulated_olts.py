"""Simulated OLTs for tests with processes: they answer from a thread of the test's own process."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

from django.utils import timezone

from facho.executions.models import Execution
from facho.hosts.models import Olt
from facho.polling.domain.execution_state import ExecutionState, QueryType
from facho.simulator.server import SimulatedOlt, Simulation, SimulatorConfig
from facho.simulator.world import STILL
from facho.snmp_jobs.models import WorkflowNode
from factories import make_job, make_node, make_olt

QUICK = SimulatorConfig(vendor="huawei_smartax", onus=8, life=STILL)
# About ten seconds for a discovery.
LONG = SimulatorConfig(vendor="huawei_smartax", onus=1_000, latency_ms=100, life=STILL)


@contextmanager
def simulated(config: SimulatorConfig) -> Iterator[list[SimulatedOlt]]:
    """Play OLTs on a thread of their own."""
    olts: list[SimulatedOlt] = []
    ready, done = Event(), Event()

    async def play() -> None:
        async with Simulation.start(config) as simulation:
            olts.extend(simulation.olts)
            ready.set()
            await asyncio.to_thread(done.wait)

    thread = Thread(target=lambda: asyncio.run(play()), name="devices", daemon=True)
    thread.start()
    assert ready.wait(30)
    try:
        yield olts
    finally:
        done.set()
        thread.join(30)


def add(olts: list[SimulatedOlt], *, interval_seconds: int = 3_600) -> list[WorkflowNode]:
    """Add each OLT with a discovery whose slot is now; all are known, so that nobody probes them."""
    job = make_job(query_type=QueryType.DISCOVERY, columns=())
    now = timezone.now()
    nodes = [
        make_node(make_olt(port=olt.port, vendor=olt.vendor), job, next_run_at=now, interval_seconds=interval_seconds)
        for olt in olts
    ]
    Olt.objects.update(sys_object_id="1.3.6.1.4.1.2011.2.248")
    return nodes


def has_ended(count: int = 1, status: ExecutionState = ExecutionState.SUCCESS) -> bool:
    """Tell whether so many executions are in the state."""
    return Execution.objects.filter(status=status).count() >= count


def is_running() -> bool:
    """Tell whether an execution is in the hands of a worker."""
    return Execution.objects.filter(status=ExecutionState.RUNNING).exists()
