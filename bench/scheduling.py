"""What scheduling costs: a tick with everything due, from one run's end to the next one's start, and doing nothing.

Run as a program it measures on the database of DATABASE_URL (or SQLite) and prints its figures as JSON, because
Django is set up once in a process.
"""

import asyncio
import json
import os
import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from random import Random
from statistics import median, quantiles
from typing import TYPE_CHECKING, Any

from bench.both_databases import measure_on_both
from bench.private_database import private_database
from bench.report import Section, Target

if TYPE_CHECKING:
    from facho.polling.domain.collection import Collected, CollectRequest, RunControl

SIZES = (100, 1_000, 10_000, 100_000)
NODES_PER_OLT = 10
INTERVAL_SECONDS = 300
POLLERS = 10
IDLE_SECONDS = 10.0
# Some ninety hand-overs each; the middle one counts, since a machine that stops for a moment spoils a round.
GAP_ROUNDS = 3
# As long as a poll of the states of a PON or two takes.
RUN_SECONDS = (2.0, 5.0)


def measure_section() -> Section:
    figures = measure_on_both("bench.scheduling")
    targets = [
        target
        for name, found in figures.items()
        for target in (
            Target(f"{name}: statements of a tick with 10,000 nodes due", found["statements"], 9),
            Target(f"{name}: ms from a run's end to the next start on its OLT, p99", found["gap_p99_ms"], 50),
            Target(f"{name}: share of a core of an idle scheduler with 10,000 nodes, %", found["idle_percent"], 2),
        )
    ]
    rows = [
        [name, f"{size:,}", found["idle_tick_ms"][str(size)], found["due_tick_ms"][str(size)]]
        for name, found in figures.items()
        for size in SIZES
    ]
    return Section("Scheduling", ("Database", "Nodes", "Tick, none due, ms", "Tick, all due, ms"), rows, targets)


def main() -> None:
    with private_database(os.environ.get("DATABASE_URL")):
        print(json.dumps(_measure()))


def _measure() -> dict[str, Any]:
    figures: dict[str, Any] = {"idle_tick_ms": {}, "due_tick_ms": {}}
    for size in SIZES:
        _fill(size)
        figures["idle_tick_ms"][size] = _tick_ms(_later())
        figures["due_tick_ms"][size] = _tick_ms(_now())
        if size == 10_000:
            figures["statements"] = _statements()
            _schedule(_later())
            figures["idle_percent"] = _idle_percent()
    figures["gap_p99_ms"] = _gap_p99_ms()
    return figures


def _now() -> datetime:
    return datetime.now(UTC)


def _later() -> datetime:
    """Return a time at which nothing is due yet, and no node waits for longer than its interval."""
    return _now() + timedelta(seconds=INTERVAL_SECONDS)


def _fill(nodes: int) -> None:
    """Have so many nodes, ten on each OLT."""
    from facho.hosts.models import Olt
    from facho.infrastructure.secrets import Secret
    from facho.snmp_jobs.models import SnmpJob, Workflow, WorkflowNode
    from facho.zabbix_pollers.models import LeaderLease

    # Who measured before is gone, and the next one need not watch its lease run out.
    LeaderLease.objects.all().delete()
    Olt.objects.all().delete()
    jobs = [
        SnmpJob.objects.get_or_create(vendor="", slug=f"job-{n}", defaults={"name": f"Job {n}", "query_type": "walk"})[
            0
        ]
        for n in range(NODES_PER_OLT)
    ]
    olts = Olt.objects.bulk_create(
        [
            Olt(
                name=f"olt-{n}",
                host="127.0.0.1",
                address="127.0.0.1",
                port=n + 1,
                community=Secret("public"),
                discovered_at=datetime.now(UTC),
            )
            for n in range(nodes // NODES_PER_OLT)
        ],
        batch_size=500,
    )
    workflows = Workflow.objects.bulk_create([Workflow(olt=olt) for olt in olts], batch_size=500)
    WorkflowNode.objects.bulk_create(
        [
            WorkflowNode(workflow=workflow, job=job, interval_seconds=INTERVAL_SECONDS)
            for workflow in workflows
            for job in jobs
        ],
        batch_size=500,
    )


def _schedule(moment: datetime) -> None:
    from facho.executions.models import Execution
    from facho.snmp_jobs.models import WorkflowNode
    from facho.zabbix_pollers.models import Poller

    Execution.objects.all().delete()
    Poller.objects.all().delete()
    WorkflowNode.objects.update(next_run_at=moment)


class _Nobody:
    """An executor that lets the claims lie."""

    def start(self, execution_id: int, token: int) -> None:
        """Do nothing."""

    def cancel(self, execution_id: int, reason: str) -> None:
        """Do nothing."""


@contextmanager
def _scheduler() -> Iterator[Any]:
    from facho.infrastructure.gateway import SystemClock, ThreadGateway
    from facho.zabbix_pollers.poller_manager import PollerManager
    from facho.zabbix_pollers.scheduler import Leases, ZabbixScheduler

    database = ThreadGateway()
    pollers = PollerManager(start_pollers=POLLERS, database=database, executor=_Nobody(), owner="bench")
    yield ZabbixScheduler(pollers, database, SystemClock(), "bench", Leases(60, 20))
    asyncio.run(database.close())


def _tick_ms(due_at: datetime) -> float:
    seconds = []
    with _scheduler() as scheduler:

        async def ticks() -> None:
            await scheduler.pollers.prepare()
            await scheduler.tick()
            for _ in range(5):
                await scheduler.database.run(_schedule, due_at)
                await scheduler.pollers.prepare()
                began_at = time.perf_counter()
                await scheduler.tick()
                seconds.append(time.perf_counter() - began_at)

        asyncio.run(ticks())
    return sorted(seconds)[2] * 1000


def _statements() -> int:
    """Count what one tick asks of the database, begin and end of transactions left out."""
    from facho.infrastructure import gateway as infrastructure_gateway

    infrastructure_gateway.THREADS["postgresql"] = 1
    with _scheduler() as scheduler:

        async def tick() -> int:
            await scheduler.pollers.prepare()
            await scheduler.tick()
            await scheduler.database.run(_schedule, _now())
            await scheduler.pollers.prepare()
            await scheduler.database.run(_count, is_on=True)
            await scheduler.tick()
            return int(await scheduler.database.run(_count, is_on=False))

        statements = asyncio.run(tick())
    infrastructure_gateway.THREADS["postgresql"] = 4
    return statements


def _count(*, is_on: bool) -> int:
    from django.db import connection, reset_queries

    connection.force_debug_cursor = is_on
    found = [q for q in connection.queries if q["sql"].split()[0] in ("SELECT", "INSERT", "UPDATE", "DELETE")]
    reset_queries()
    return len(found)


def _idle_percent() -> float:
    """Let the scheduler look every second for a while, and return the CPU it used."""
    with _scheduler() as scheduler:

        async def idle() -> float:
            stop = asyncio.Event()
            loop = asyncio.create_task(scheduler.scheduler_loop(stop))
            await asyncio.sleep(2)
            before = _cpu_seconds()
            await asyncio.sleep(IDLE_SECONDS)
            used = _cpu_seconds() - before
            stop.set()
            await loop
            return used

        return asyncio.run(idle()) / IDLE_SECONDS * 100


def _cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


class _Short:
    """A collector that takes a few seconds, and notes when each OLT was let go and taken again."""

    def __init__(self) -> None:
        self.ended_at: dict[int, float] = {}
        self.gaps: list[list[float]] = []
        self._random = Random(1)

    async def collect(self, request: "CollectRequest", control: "RunControl") -> "Collected":
        """Take a while, and tell the time since the OLT's run before."""
        from facho.polling.domain.collection import Collected

        now = time.perf_counter()
        if request.olt_id in self.ended_at:
            self.gaps[-1].append(now - self.ended_at[request.olt_id])
        await asyncio.sleep(self._random.uniform(*RUN_SECONDS))
        self.ended_at[request.olt_id] = time.perf_counter()
        return Collected({"onus": 0}, was_heard=True)


def _gap_p99_ms() -> float:
    """Run ten OLTs whose nodes are all due at once, so that each end is followed by a start."""
    from facho.core.wiring import open_parts
    from facho.executions.runner import InProcessExecutor
    from facho.snmp_jobs.models import WorkflowNode
    from facho.zabbix_pollers.poller_manager import PollerManager
    from facho.zabbix_pollers.scheduler import Leases, ZabbixScheduler

    _fill(POLLERS * NODES_PER_OLT)
    # On wishes alone: a slot that comes when an OLT has long been idle would count as a gap.
    WorkflowNode.objects.update(next_run_at=None)
    collector = _Short()

    async def run() -> None:
        async with open_parts("bench") as parts:
            executor = InProcessExecutor(parts.runner(collector), lambda: scheduler.on_task_completed())
            pollers = PollerManager(
                start_pollers=POLLERS, database=parts.database, executor=executor, owner=parts.owner
            )
            scheduler = ZabbixScheduler(pollers, parts.database, parts.clock, parts.owner, Leases(60, 20))
            stop = asyncio.Event()
            loop = asyncio.create_task(scheduler.scheduler_loop(stop))
            for _ in range(GAP_ROUNDS):
                collector.ended_at.clear()
                collector.gaps.append([])
                await parts.database.run(WorkflowNode.objects.update, run_requested_at=_now())
                # As long as ten runs in a row can take.
                await asyncio.sleep(NODES_PER_OLT * RUN_SECONDS[1])
            stop.set()
            await loop
            await executor.drain(timeout_seconds=30)

    asyncio.run(run())
    return median(quantiles(gaps, n=100, method="inclusive")[98] for gaps in collector.gaps) * 1000


if __name__ == "__main__":
    main()
