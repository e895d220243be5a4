"""What a polled value costs from the device to PostgreSQL, beside a pipeline that does nothing but read and store.

Both read the same columns of the same simulated fleet, whose light moves and whose ONUs fail and return, each OLT
with one request in flight and as many OLTs at once. The bare pipeline walks, decodes and writes each value, as it
came and decoded, over the one before, an OLT in a statement. The product schedules, claims, walks, decodes, compares,
and stores raw and typed values, events, outages and history. CPU is that of this process and of all of the server's.

Run as a program, with the numbers of OLTs, ONUs and rounds, it measures on the database of DATABASE_URL.
"""

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from bench.both_databases import measure_on_postgresql
from bench.fleet import VENDOR, Fleet, running_fleet
from bench.private_database import private_database
from bench.processes import cpu_seconds, peak_mb
from bench.report import Section, Target

if TYPE_CHECKING:
    from facho.core.wiring import Parts
    from facho.polling.snmp.walk import WalkResult
    from facho.polling.vendors.column import Column

KEYS = ("onu.run_state", "onu.last_down_cause", "onu.distance", "onu.rx_power", "onu.tx_power", "onu.temperature")
LATENCY_MS = 5.0
# A round takes some seconds; the light of an OLT that is polled every five minutes moves as much between two polls.
WORLD_SPEED = 15.0
POLLERS = 50
AT_MOST = 1.5
ROUND_SECONDS = 300.0
LOOK_SECONDS = 0.5

_CREATE = "CREATE TABLE bare (olt int, place text, key text, raw text, value text, PRIMARY KEY (olt, place, key))"
_UPSERT = """
    INSERT INTO bare SELECT %s, * FROM unnest(%s::text[], %s::text[], %s::text[], %s::text[])
    ON CONFLICT (olt, place, key) DO UPDATE SET raw = excluded.raw, value = excluded.value
"""

Round = Callable[[], Awaitable[int]]


def measure_section(*, olts: int, onus: int, rounds: int) -> Section:
    """Measure on PostgreSQL and compare with what was promised."""
    found = measure_on_postgresql("bench.end_to_end", str(olts), str(onus), str(rounds))
    bare, product = found["bare"], found["product"]
    return Section(
        f"From {olts} OLTs with {onus} ONUs each to PostgreSQL, {len(KEYS)} values an ONU",
        ("Pipeline", "CPU s per million values", "Of the bare one", "Of it the server's", "Values", "Peak MB of both"),
        [(*_row("read and store", bare, bare), found["peak_mb"]), (*_row("product", product, bare), found["peak_mb"])],
        [Target("CPU per value, of the bare pipeline's", product["cpu"] / bare["cpu"], AT_MOST)],
    )


def _row(name: str, found: dict[str, float], bare: dict[str, float]) -> tuple[object, ...]:
    return (name, found["cpu"], found["cpu"] / bare["cpu"], found["cpu"] - found["own"], found["values"])


def main(olts: int, onus: int, rounds: int) -> None:
    """Measure on one database; prints the figures as JSON."""
    with private_database(os.environ["DATABASE_URL"]):
        print(json.dumps(asyncio.run(_measure(olts, onus, rounds))))


async def _measure(olts: int, onus: int, rounds: int) -> dict[str, Any]:
    from facho.core.processes.garbage import collect_seldom
    from facho.core.wiring import build_engine, open_parts

    collect_seldom()
    with running_fleet(olts=olts, onus=onus, latency_ms=LATENCY_MS, speed=WORLD_SPEED) as fleet:
        async with open_parts("bench") as parts:
            await parts.database.run(_prepare, fleet.ports)
            engine, stop = build_engine(parts), asyncio.Event()
            scheduling = asyncio.create_task(engine.scheduler.scheduler_loop(stop))
            await _poll_with_product(parts, "discovery")
            product, bare = (lambda: _poll_with_product(parts, "state")), _bare_pipeline(parts, fleet)
            samples: dict[str, list[dict[str, float]]] = {"bare": [], "product": []}
            for number in range(rounds + 1):
                for name, pipeline in (("bare", bare), ("product", product)):
                    sample = await _sample(pipeline, parts)
                    # In the first round all rows are new.
                    samples[name] += [sample] if number else []
            stop.set()
            await scheduling
            await engine.executor.drain(timeout_seconds=30)
    return {**{name: _medians(taken) for name, taken in samples.items()}, "peak_mb": peak_mb(os.getpid())}


async def _sample(pipeline: Round, parts: "Parts") -> dict[str, float]:
    """Run a pipeline over the fleet once, and return what a million values would have cost."""
    server = await parts.database.run(_server_pid)
    own_before, server_before = cpu_seconds(os.getpid()), _tree_seconds(server)
    values = await asyncio.wait_for(pipeline(), ROUND_SECONDS)
    own, of_server = cpu_seconds(os.getpid()) - own_before, _tree_seconds(server) - server_before
    return {"cpu": (own + of_server) / values * 1e6, "own": own / values * 1e6, "values": values}


def _medians(samples: Sequence[dict[str, float]]) -> dict[str, float]:
    return {name: median(sample[name] for sample in samples) for name in samples[0]}


def _prepare(ports: Sequence[int]) -> None:
    """Have a row for each OLT, with a node that finds its ONUs and one that reads them; both run on a wish only."""
    from django.conf import settings
    from django.db import connection

    from facho.hosts.models import Olt
    from facho.hosts.secrets import Secret
    from facho.polling.domain.task_type import QueryType
    from facho.snmp_jobs.models import SnmpJob, SnmpJobOid, Workflow, WorkflowNode

    settings.FACHO_POLLERS = POLLERS
    with connection.cursor() as cursor:
        cursor.execute(_CREATE)
    jobs = [
        SnmpJob.objects.create(name=slug, slug=slug, vendor=VENDOR, query_type=query_type)
        for slug, query_type in (("discovery", QueryType.DISCOVERY), ("state", QueryType.WALK))
    ]
    columns = (("onu.serial",), KEYS)
    SnmpJobOid.objects.bulk_create(
        SnmpJobOid(job=job, position=position, column_key=key)
        for job, keys in zip(jobs, columns, strict=True)
        for position, key in enumerate(keys)
    )
    olts = Olt.objects.bulk_create(
        Olt(
            name=f"olt-{port}",
            host="127.0.0.1",
            address="127.0.0.1",
            port=port,
            vendor=VENDOR,
            community=Secret("public"),
        )
        for port in ports
    )
    workflows = Workflow.objects.bulk_create(Workflow(olt=olt) for olt in olts)
    WorkflowNode.objects.bulk_create(
        WorkflowNode(workflow=workflow, job=job, interval_seconds=300) for workflow in workflows for job in jobs
    )


async def _poll_with_product(parts: "Parts", slug: str) -> int:
    """Ask for a run of every OLT's node, and return how many values they brought when all are over."""
    began_at = datetime.now(UTC)
    wished = await parts.database.run(_wish, slug, began_at)
    while await parts.database.run(_count_ended, slug, began_at) < wished:  # noqa: ASYNC110 the database tells nobody
        await asyncio.sleep(LOOK_SECONDS)
    return await parts.database.run(_sum_values, slug, began_at)


def _wish(slug: str, now: datetime) -> int:
    from facho.snmp_jobs.models import WorkflowNode

    return WorkflowNode.objects.filter(job__slug=slug).update(run_requested_at=now)


def _count_ended(slug: str, since: datetime) -> int:
    from facho.executions.models import Execution

    return Execution.objects.filter(node__job__slug=slug, created_at__gte=since, finished_at__isnull=False).count()


def _sum_values(slug: str, since: datetime) -> int:
    from facho.executions.models import Execution

    runs = Execution.objects.filter(node__job__slug=slug, created_at__gte=since)
    if wrong := runs.exclude(status="SUCCESS").first():
        raise RuntimeError(f"{wrong}: {wrong.error}")
    return sum(int(result["onus"]) for result in runs.values_list("result", flat=True)) * len(KEYS)


def _bare_pipeline(parts: "Parts", fleet: Fleet) -> Round:
    from facho.polling.snmp.target import Community
    from facho.polling.snmp.target import Target as Device
    from facho.polling.snmp.walk import WalkOptions, walk_columns
    from facho.polling.vendors.loader import load_definitions

    definition = load_definitions()[VENDOR]
    columns = [definition.column(key) for key in KEYS]
    options = WalkOptions(max_repetitions=definition.polling.max_repetitions)
    places = asyncio.Semaphore(POLLERS)

    async def poll(port: int) -> int:
        async with places:
            session = parts.network.open(Device("127.0.0.1", Community(b"public"), port=port), _Always())
            walk = await walk_columns(session, [column.oid for column in columns], options)
            if walk.failure is not None:
                raise walk.failure
            return await parts.database.run(_upsert, port, _decode(columns, walk))

    async def poll_all() -> int:
        return sum(await asyncio.gather(*map(poll, fleet.ports)))

    return poll_all


class _Always:
    def check(self) -> None:
        """Allow every packet."""


def _decode(columns: "Sequence[Column]", walk: "WalkResult") -> list[tuple[str, ...]]:
    from facho.snmp_get.raw_text import raw_text

    return [
        (str(column.index.decode(suffix)), column.key, raw_text(tag, value), str(column.decode(tag, value).value))
        for column, rows in zip(columns, walk.rows, strict=True)
        for suffix, tag, value in rows
    ]


def _upsert(olt: int, values: Sequence[tuple[str, ...]]) -> int:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(_UPSERT, [olt, *map(list, zip(*values, strict=True))])
    return len(values)


def _server_pid() -> int:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        (backend,) = cursor.fetchone()
    return _parent(backend)


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def _tree_seconds(server: int) -> float:
    """Return the CPU time of the server and its living processes; one that ends within a round is not counted."""
    children = Path(f"/proc/{server}/task/{server}/children").read_text().split()
    return sum(cpu_seconds(int(pid)) for pid in (server, *children))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
