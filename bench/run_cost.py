"""What a run costs before its first value: from claim to finish, of a node that reads next to nothing.

Many OLTs with two ONUs each, one column: what is left is the fixed cost. Runs that come together share ticks and
claims; those that come one by one, as on a grid, have ticks of their own. What follows a run belongs to it: after each
round the coordinator makes a pass, which counts quotas and writes the starts and ends of the round's runs into its log.
CPU is that of this process and of all of the server's. Statements are counted in a round of its own, with the function
of the product that each came from.

Run as a program, with the numbers of OLTs and rounds, it measures on the database of DATABASE_URL, or SQLite;
`make bench BENCH=runs` measures both.
"""

import asyncio
import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from bench.both_databases import measure_on_both
from bench.fleet import VENDOR, running_fleet
from bench.private_database import private_database
from bench.processes import ROOT, cpu_seconds
from bench.report import Section, Target

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper

    from facho.core.wiring import Parts
    from facho.execution_coordinator.coordinator import ExecutionCoordinator
    from facho.infrastructure.gateway import ThreadGateway

OLTS, ONUS, LATENCY_MS = 100, 2, 2.0
ROUNDS = 5
POLLERS = 50
KEY = "onu.run_state"
ROUND_SECONDS = 300.0
LOOK_SECONDS = 0.5
# Between two slots that come one by one: as 200 OLTs with ten jobs of eighty seconds have them.
APART_SECONDS = 0.04
# The next slots of the grid are nearly an hour away, so that nothing runs but what is asked for.
INTERVAL_SECONDS, LAST_SLOT_SECONDS_AGO = 3600, 60
# The coordinator plans twenty OLTs a pass, once.
FIRST_PASSES = 12
TOGETHER, ONE_BY_ONE = "together", "one by one"
AT_MOST_MS = 10.0
# The functions that ask the database most often are shown.
SHOWN = 12
PACKAGE = f"{ROOT / 'src' / 'facho'}/"
# They carry out what others ask.
CARRIERS = ("infrastructure/",)


def measure_section(*, olts: int = OLTS, rounds: int = ROUNDS) -> Section:
    figures = measure_on_both("bench.run_cost", str(olts), str(rounds))
    ways = [(f"{name}, {way}", found[way]) for name, found in figures.items() for way in (TOGETHER, ONE_BY_ONE)]
    rows = [
        (name, found["cpu_ms"], found["own_ms"], found["cpu_ms"] - found["own_ms"], found["statements"], found["calls"])
        for name, found in ways
    ]
    rows += [
        (f"{name}: {function}", "", "", "", count, "")
        for name, found in ways
        for function, count in list(found["by_function"].items())[:SHOWN]
    ]
    return Section(
        f"The fixed cost of a run: {olts} OLTs with {ONUS} ONUs, one column",
        ("Database", "CPU ms per run", "Of it the engine's", "The server's", "Statements per run", "Calls per run"),
        rows,
        [Target(f"{name}: CPU ms per run", found["cpu_ms"], AT_MOST_MS) for name, found in ways],
    )


def main(olts: int, rounds: int) -> None:
    """Measure on one database; prints the figures as JSON."""
    with private_database(os.environ.get("DATABASE_URL")):
        print(json.dumps(asyncio.run(_measure(olts, rounds))))


async def _measure(olts: int, rounds: int) -> dict[str, Any]:
    from facho.core.processes.supervisor import collect_seldom
    from facho.core.wiring import build_engine, open_parts
    from facho.execution_coordinator.coordinator import ExecutionCoordinator

    collect_seldom()
    asked = Asked()
    with running_fleet(olts=olts, onus=ONUS, latency_ms=LATENCY_MS) as fleet, asked.listening():
        async with open_parts("bench") as parts:
            await parts.database.run(_prepare, fleet.ports)
            engine, stop = build_engine(parts), asyncio.Event()
            scheduling = asyncio.create_task(engine.scheduler.scheduler_loop(stop))
            aside = parts.database.aside()
            work = _Work(parts, aside, ExecutionCoordinator())
            for slug in ("discovery", "state"):
                await work.run_all(slug, TOGETHER)
            for _ in range(FIRST_PASSES):
                await work.coordinate()
            figures = {way: await _measure_way(work, asked, way, rounds) for way in (TOGETHER, ONE_BY_ONE)}
            stop.set()
            await scheduling
            await aside.close()
            await engine.executor.drain(timeout_seconds=30)
    return figures


async def _measure_way(work: "_Work", asked: "Asked", way: str, rounds: int) -> dict[str, Any]:
    samples = [await _sample(work, way) for _ in range(rounds)]
    with asked.counting(work.parts):
        runs = await work.run_all("state", way)
    return {
        **{name: median(sample[name] for sample in samples) for name in samples[0]},
        "statements": asked.by_function.total() / runs,
        "calls": asked.calls / runs,
        "by_function": {name: count / runs for name, count in asked.by_function.most_common()},
    }


async def _sample(work: "_Work", way: str) -> dict[str, float]:
    server = await work.parts.database.run(_server_pid)
    own, of_server = cpu_seconds(os.getpid()), _tree_seconds(server)
    runs = await work.run_all("state", way)
    own, of_server = cpu_seconds(os.getpid()) - own, _tree_seconds(server) - of_server
    return {"cpu_ms": (own + of_server) / runs * 1000, "own_ms": own / runs * 1000}


class Asked:
    """The statements of the product while it counts, by the function that they came from, and the calls with them."""

    def __init__(self) -> None:
        self.by_function: Counter[str] = Counter()
        self.calls = 0
        self._is_counting = False

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Hear every connection that is opened meanwhile."""
        from django.db.backends.signals import connection_created

        def hear(connection: "BaseDatabaseWrapper", **_about: object) -> None:
            connection.execute_wrappers.append(self._note)

        connection_created.connect(hear)
        try:
            yield
        finally:
            connection_created.disconnect(hear)

    @contextmanager
    def counting(self, parts: "Parts") -> Iterator[None]:
        """Count from 0 while the block runs."""
        self.by_function, self.calls = Counter(), 0
        submit = parts.database._pool.submit

        def note(*work: Any) -> Any:
            self.calls += 1
            return submit(*work)

        parts.database._pool.submit = note  # type: ignore[method-assign]
        self._is_counting = True
        try:
            yield
        finally:
            self._is_counting = False
            parts.database._pool.submit = submit  # type: ignore[method-assign]

    def _note(self, execute: Callable[..., Any], *statement: Any) -> Any:
        if self._is_counting and (function := _asking_function()):
            self.by_function[function] += 1
        return execute(*statement)


def _asking_function() -> str:
    """Name the function of the product that asks the database now; empty if it is not the product's."""
    frame = sys._getframe()
    while frame is not None:
        path = frame.f_code.co_filename
        if path.startswith(PACKAGE) and not (own := path.removeprefix(PACKAGE)).startswith(CARRIERS):
            return f"{own.removesuffix('.py')}.{frame.f_code.co_name}"
        frame = frame.f_back  # type: ignore[assignment]
    return ""


def _prepare(ports: list[int]) -> None:
    """Have a row for each OLT, with a node that finds its ONUs and one that reads them; neither is due soon."""
    from django.conf import settings

    from facho.hosts.models import Olt
    from facho.infrastructure.secrets import Secret
    from facho.polling.domain.execution_state import QueryType
    from facho.snmp_jobs.models import SnmpJob, SnmpJobOid, Workflow, WorkflowNode

    settings.FACHO_POLLERS = POLLERS
    kinds = (("discovery", QueryType.DISCOVERY, "onu.serial"), ("state", QueryType.WALK, KEY))
    jobs = []
    for slug, query_type, key in kinds:
        jobs.append(SnmpJob.objects.create(name=slug, slug=slug, vendor=VENDOR, query_type=query_type))
        SnmpJobOid.objects.create(job=jobs[-1], position=0, column_key=key)
    place, community = "127.0.0.1", Secret("public")
    olts = Olt.objects.bulk_create(
        Olt(name=f"olt-{port}", host=place, address=place, port=port, vendor=VENDOR, community=community)
        for port in ports
    )
    workflows = Workflow.objects.bulk_create(Workflow(olt=olt) for olt in olts)
    last_slot = int(datetime.now(UTC).timestamp()) - LAST_SLOT_SECONDS_AGO
    grid: dict[str, Any] = {
        "interval_seconds": INTERVAL_SECONDS,
        "offset_seconds": last_slot % INTERVAL_SECONDS,
        "next_run_at": datetime.fromtimestamp(last_slot + INTERVAL_SECONDS, UTC),
    }
    WorkflowNode.objects.bulk_create(
        WorkflowNode(workflow=workflow, job=job, **grid) for workflow in workflows for job in jobs
    )


@dataclass(frozen=True, slots=True)
class _Work:
    """The product's parts, and the coordinator in its own thread."""

    parts: "Parts"
    aside: "ThreadGateway"
    coordinator: "ExecutionCoordinator"

    async def run_all(self, slug: str, way: str) -> int:
        """Have a run of every OLT's node, with what the coordinator makes of them, and return how many they were."""
        runs = await _run_all(self.parts, slug, way)
        await self.coordinate()
        return runs

    async def coordinate(self) -> None:
        await self.aside.run(self.coordinator.run_pass, datetime.now(UTC))


async def _run_all(parts: "Parts", slug: str, way: str) -> int:
    """Ask for a run of every OLT's node, wait until all are over, and return how many they were."""
    began_at = datetime.now(UTC)
    nodes = await parts.database.run(_make_due, slug, way)
    async with asyncio.timeout(ROUND_SECONDS):
        while await parts.database.run(_count_ended, slug, began_at) < nodes:  # noqa: ASYNC110 the database tells nobody
            await asyncio.sleep(LOOK_SECONDS)
    return nodes


def _make_due(slug: str, way: str) -> int:
    """Ask for all nodes at once, or give each a slot of its own; returns how many they are."""
    from facho.snmp_jobs.models import WorkflowNode

    now, nodes = datetime.now(UTC), list(WorkflowNode.objects.filter(job__slug=slug))
    for number, node in enumerate(nodes):
        if way == TOGETHER:
            node.run_requested_at = now
        else:
            node.next_run_at = now + timedelta(seconds=number * APART_SECONDS)
    return WorkflowNode.objects.bulk_update(nodes, ["run_requested_at", "next_run_at"])


def _count_ended(slug: str, since: datetime) -> int:
    from facho.executions.models import Execution

    runs = Execution.objects.filter(node__job__slug=slug, created_at__gte=since, finished_at__isnull=False)
    if wrong := runs.exclude(status="SUCCESS").first():
        raise RuntimeError(f"{wrong}: {wrong.error}")
    return runs.count()


def _server_pid() -> int | None:
    from django.db import connection

    if connection.vendor != "postgresql":
        return None
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        (backend,) = cursor.fetchone()
    return int(Path(f"/proc/{backend}/stat").read_text().rpartition(")")[2].split()[1])


def _tree_seconds(server: int | None) -> float:
    """Return the CPU time of the server and its living processes; one that ends within a round is not counted."""
    if server is None:
        return 0.0
    children = Path(f"/proc/{server}/task/{server}/children").read_text().split()
    return sum(cpu_seconds(int(pid)) for pid in (server, *children))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
