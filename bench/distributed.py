"""What messages cost: the same work by the embedded engine, and by one, two and four workers.

Run as a program it measures on one database, SQLite or a private PostgreSQL, and prints its figures as JSON, because
Django is set up once in a process. `make bench BENCH=messages` measures both.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from bench.both_databases import TESTS, empty_database
from bench.fleet import VENDOR, running_fleet
from bench.private_database import private_database
from bench.processes import own_module, running, tree_seconds
from bench.report import Section, Target

OLTS, ONUS, LATENCY_MS = 30, 250, 5.0
FEW_ONUS, FIXED_MS = 2, 20.0
POLLERS = 15
WORKERS = (1, 2, 4)
PATIENCE_SECONDS = 180.0
LOOK_SECONDS = 0.02
EMBEDDED = "embedded"
THROUGHPUT = "Executions a second"
CPU, SERVERS_CPU = "CPU ms per execution", "Servers' CPU ms per execution"
TO_START, TO_START_P95 = "Claim to start, ms, middle", "Claim to start, ms, p95"
TO_NEXT_START = "End to next start, ms, middle"
COLUMNS = (THROUGHPUT, CPU, SERVERS_CPU, TO_START, TO_START_P95, TO_NEXT_START)


def measure_section(*, olts: int = OLTS, onus: int = ONUS) -> Section:
    """Measure both modes and compare them; the comparison is between the two on PostgreSQL."""
    figures = {f"{EMBEDDED}, SQLite": _figures("sqlite", olts, onus)[EMBEDDED]}
    on_postgresql = _figures("postgresql", olts, onus)
    figures[f"{EMBEDDED}, PostgreSQL"] = on_postgresql.pop(EMBEDDED)
    figures |= on_postgresql
    embedded, one = figures[f"{EMBEDDED}, PostgreSQL"], figures[_workers(1)]
    return Section(
        f"The ready-made jobs of {olts} OLTs with {onus} ONUs, {POLLERS} pollers, by engine and by workers",
        ("Processes", *COLUMNS),
        [(name, *(found[column] for column in COLUMNS)) for name, found in figures.items()],
        [
            Target("CPU per execution of scheduler and one worker, of the engine's", one[CPU] / embedded[CPU], 2),
            Target("ms that a message adds between claim and start, middle", one[TO_START] - embedded[TO_START], 50),
        ],
    )


def measure_fixed_cost(*, olts: int = OLTS) -> Section:
    """Measure OLTs with next to no ONUs: what is left is what an execution costs before its first value."""
    figures = _figures("postgresql", olts, FEW_ONUS)
    costs = {name: found[CPU] + found[SERVERS_CPU] for name, found in figures.items()}
    return Section(
        f"The fixed cost of an execution: {olts} OLTs with {FEW_ONUS} ONUs, on PostgreSQL",
        ("Processes", "CPU ms per execution, servers included", SERVERS_CPU),
        [(name, cost, figures[name][SERVERS_CPU]) for name, cost in costs.items()],
        [Target("CPU ms per execution of scheduler and one worker, servers included", costs[_workers(1)], FIXED_MS)],
    )


def main() -> None:
    """Measure on one database."""
    database, olts, onus = sys.argv[1:]
    sys.path.insert(0, str(TESTS))
    with ExitStack() as world, running_fleet(olts=int(olts), onus=int(onus), latency_ms=LATENCY_MS) as fleet:
        folder = Path(world.enter_context(tempfile.TemporaryDirectory()))
        folder.chmod(0o711)
        measure = _measure_on_sqlite if database == "sqlite" else _measure_on_postgresql
        print(json.dumps(measure(folder, fleet.ports)))


def _workers(count: int) -> str:
    return f"{count} worker{'s' if count > 1 else ''} and a scheduler"


def _figures(database: str, olts: int, onus: int) -> dict[str, dict[str, float]]:
    command = own_module("bench.distributed", database, str(olts), str(onus))
    ended = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    return dict(json.loads(ended.stdout))


def _measure_on_sqlite(_folder: Path, ports: list[int]) -> dict[str, Any]:
    with private_database():
        _fill(ports)
        return {EMBEDDED: _measure_engine(servers=[])}


def _measure_on_postgresql(folder: Path, ports: list[int]) -> dict[str, Any]:
    from servers.postgresql import private_server
    from servers.redis import private_redis

    for name in ("database", "redis"):
        (folder / name).mkdir(mode=0o711)
    with private_server(folder / "database") as database, private_redis(folder / "redis") as redis:
        servers = [server.process.pid for server in (database, redis) if server.process]
        with private_database(empty_database(database.url)):
            _fill(ports)
            figures = {EMBEDDED: _measure_engine(servers=servers)}
            for count in WORKERS:
                figures[_workers(count)] = _measure_workers(count, redis, folder, servers)
            return figures


def _fill(ports: list[int]) -> None:
    """Have the fleet with its ready-made jobs, which run when they are asked for and at no other time."""
    from facho.hosts.models import Olt
    from facho.infrastructure.secrets import Secret
    from facho.snmp_jobs.application import apply_ready_made_jobs
    from facho.snmp_jobs.models import WorkflowNode

    for number, port in enumerate(ports):
        olt = Olt.objects.create(
            name=f"olt-{number}",
            host="127.0.0.1",
            address="127.0.0.1",
            port=port,
            vendor=VENDOR,
            community=Secret("public"),
            # Known, so that nobody probes it.
            sys_object_id="1.3.6.1.4.1.2011.2.248",
        )
        apply_ready_made_jobs(olt, now=_now())
    WorkflowNode.objects.update(next_run_at=None)


def _measure_engine(servers: list[int]) -> dict[str, float]:
    @contextmanager
    def engine(pollers: int) -> Iterator[list[int]]:
        environ = {**os.environ, "FACHO_POLLERS": str(pollers)}
        command = own_module("facho.core.processes", "facho.core.processes.engine")
        with running(command, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environ) as process:
            yield [process.pid]

    with engine(POLLERS) as pids:
        found = _measure_work(pids, servers)
    with engine(1):
        return found | _measure_hop()


def _measure_workers(count: int, redis: Any, folder: Path, servers: list[int]) -> dict[str, float]:
    from servers.cluster import Cluster

    @contextmanager
    def cluster(pollers: int) -> Iterator[list[int]]:
        redis.client().flushall()
        own = {"FACHO_MODE": "distributed", "REDIS_URL": redis.url, "FACHO_POLLERS": str(pollers)}
        processes = Cluster(redis, folder, {**os.environ, **own})
        try:
            for number in range(count):
                # As many as in the work before: a worker without a free slot asks for messages once a second only.
                processes.start_worker(f"worker-{number}", slots=POLLERS + 1)
            processes.start_scheduler()
            yield [process.pid for process in processes.processes.values()]
        finally:
            processes.stop_all()

    with cluster(POLLERS) as pids:
        found = _measure_work(pids, servers)
    with cluster(1):
        return found | _measure_hop()


def _measure_work(pids: list[int], servers: list[int]) -> dict[str, float]:
    """Have everything done once to get warm, then once more for the figures."""
    _do_all()
    before, servers_before, began_at = tree_seconds(*pids), tree_seconds(*servers), time.perf_counter()
    executions = _do_all()
    seconds = time.perf_counter() - began_at
    return {
        THROUGHPUT: executions / seconds,
        CPU: (tree_seconds(*pids) - before) / executions * 1000,
        SERVERS_CPU: (tree_seconds(*servers) - servers_before) / executions * 1000,
    }


def _measure_hop() -> dict[str, float]:
    """Let one poller do one thing after the other: nothing waits but for the way from claim to start."""
    from facho.executions.models import Execution

    last = Execution.objects.order_by("-id").values_list("id", flat=True).first() or 0
    _do_all()
    runs = list(Execution.objects.filter(id__gt=last, chain_position=0).order_by("started_at"))
    # The first ones find cold processes.
    runs = runs[len(runs) // 4 :]
    to_start = [(run.started_at - run.created_at).total_seconds() * 1000 for run in runs if run.started_at]
    ends = _ends([run.id for run in runs])
    between = [
        (later.started_at - ends[run.id]).total_seconds() * 1000 for run, later in pairwise(runs) if later.started_at
    ]
    return {TO_START: median(to_start), TO_START_P95: quantiles(to_start, n=20)[18], TO_NEXT_START: median(between)}


def _ends(masters: list[int]) -> dict[int, datetime]:
    """Return when each composite ended: its last chain member, or the master alone."""
    from django.db.models import Max
    from django.db.models.functions import Coalesce, Greatest

    from facho.executions.models import Execution

    rows = Execution.objects.filter(id__in=masters).annotate(chain_end=Max("chain_executions__finished_at"))
    end = Greatest("finished_at", Coalesce("chain_end", "finished_at"))
    return dict(rows.annotate(end=end).values_list("id", "end"))


def _do_all() -> int:
    """Ask for every master, wait for the last end, and return how many executions that took."""
    from facho.executions.models import Execution
    from facho.snmp_jobs.models import WorkflowNode

    known = Execution.objects.count()
    WorkflowNode.objects.filter(master_node=None).update(run_requested_at=_now())
    give_up_at = time.monotonic() + PATIENCE_SECONDS
    while _is_at_work():
        if time.monotonic() > give_up_at:
            raise TimeoutError("the work is not done")
        time.sleep(LOOK_SECONDS)
    return Execution.objects.count() - known


def _is_at_work() -> bool:
    from facho.executions.models import Execution
    from facho.snmp_jobs.models import WorkflowNode

    failed = Execution.objects.exclude(status__in=("PENDING", "RUNNING", "SUCCESS")).values_list("error", flat=True)
    if failed:
        raise RuntimeError(f"a run failed, so the figures would mean nothing: {failed[0]}")
    is_asked_for = WorkflowNode.objects.exclude(run_requested_at=None).exists()
    return is_asked_for or Execution.objects.filter(finished_at=None).exists()


def _now() -> datetime:
    return datetime.now(UTC)


if __name__ == "__main__":
    main()
