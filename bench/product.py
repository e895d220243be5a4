"""The product at work on a simulated fleet: `facho run` on a private database, and what a bench asks it to do.

As a program it takes its task as the first argument and answers to lines, because Django is set up once in a process.
The database is that of DATABASE_URL, or an SQLite file. Only `facho run` and its children are the product; the CPU of
this process is no one's.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from statistics import quantiles
from typing import Any

from bench.fleet import VENDOR
from bench.private_database import private_database
from bench.processes import Conversation, answer, conversation, own_mb, own_module, running, tree_of

KEYS = ("onu.run_state", "onu.last_down_cause", "onu.distance", "onu.rx_power", "onu.tx_power", "onu.temperature")
# Where they are stored, and by how much they are multiplied before.
STORED = {
    "run_state": None,
    "last_down_cause": None,
    "distance_m": 1,
    "rx_power_cdbm": 100,
    "tx_power_cdbm": 100,
    "temperature_tenths": 10,
}
KEPT = ("distance_m",)
POLLERS = 50
LOOK_SECONDS = 0.25
ROUND_SECONDS = 900.0
DISCOVERY, STATE = "discovery", "state"
ENGINE_MODULE = "facho.core.processes.engine"
# So late that nothing runs but what is asked for: what has no next run is given one.
PARKED = timedelta(days=1)
# Known, so that nobody probes the OLTs.
SYS_OBJECT_ID = "1.3.6.1.4.1.2011.2.248"


@dataclass(frozen=True, slots=True)
class ProductTask:
    """The fleet that the product polls."""

    ports: list[int]
    pollers: int = POLLERS
    # How it reads its ONUs; as production reads light: by GET.
    query_type: str = "walk"
    # As many nodes of each OLT share the columns; the second one waits until the first has ended.
    nodes: int = 1


@contextmanager
def running_product(task: ProductTask, database_url: str | None) -> Iterator[Conversation]:
    """Talk with a driver whose product has found all ONUs of the fleet."""
    environ = {"DATABASE_URL": database_url or ""}
    with conversation("bench.product", json.dumps(asdict(task)), environ=environ) as driver:
        yield driver


def main() -> None:
    task = ProductTask(**json.loads(sys.argv[1]))
    # An end by a signal takes the product along, too.
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
    with private_database(os.environ.get("DATABASE_URL")):
        _fill(task)
        environ = {**os.environ, "FACHO_POLLERS": str(task.pollers), "FACHO_BIND": "127.0.0.1:0"}
        command = own_module("facho.core.cli.main", "run")
        with running(command, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            poll(DISCOVERY)
            schedule(0)
            functions: Mapping[str, Callable[..., object]] = {
                "pid": lambda: process.pid,
                "poll": lambda: poll(STATE) | {"engine_mb": engine_mb(process.pid)},
                "schedule": schedule,
                "look_back": look_back,
                "slots_skipped": count_skipped_slots,
                "engine_mb": lambda: engine_mb(process.pid),
                "count_stored": count_stored,
                "database_mb": database_mb,
                "compare": compare,
                "pages": time_pages,
            }
            for line in sys.stdin:
                answer(line, functions)


def _fill(task: ProductTask) -> None:
    """Have a row for each OLT, with a node that finds its ONUs and one that reads them; both wait to be asked."""
    from facho.hosts.models import Olt
    from facho.infrastructure.secrets import Secret
    from facho.polling.domain.execution_state import QueryType
    from facho.snmp_jobs.models import SnmpJob, SnmpJobOid, Workflow, WorkflowNode

    reads = {f"{STATE}-{number}": KEYS[number :: task.nodes] for number in range(task.nodes)}
    columns = {DISCOVERY: ("onu.serial",), **reads}
    jobs = [
        SnmpJob.objects.create(
            name=slug,
            slug=slug,
            vendor=VENDOR,
            query_type=QueryType.DISCOVERY if slug == DISCOVERY else QueryType(task.query_type),
        )
        for slug in columns
    ]
    SnmpJobOid.objects.bulk_create(
        SnmpJobOid(job=job, position=position, column_key=key)
        for job in jobs
        for position, key in enumerate(columns[job.slug])
    )
    olts = Olt.objects.bulk_create(
        Olt(
            name=f"olt-{port}",
            host="127.0.0.1",
            address="127.0.0.1",
            port=port,
            vendor=VENDOR,
            community=Secret("public"),
            sys_object_id=SYS_OBJECT_ID,
        )
        for port in task.ports
    )
    workflows, now = Workflow.objects.bulk_create(Workflow(olt=olt) for olt in olts), datetime.now(UTC)
    WorkflowNode.objects.bulk_create(
        WorkflowNode(workflow=workflow, job=job, interval_seconds=PARKED.days * 86_400, next_run_at=now + PARKED)
        for workflow in workflows
        for job in jobs
    )


def poll(slug: str) -> dict[str, Any]:
    """Ask for a run of every OLT's node, and wait for the last end; tell what they brought, and idle times between."""
    from facho.snmp_jobs.models import WorkflowNode

    began_at = datetime.now(UTC)
    wished = WorkflowNode.objects.filter(job__slug__startswith=slug).update(run_requested_at=began_at)
    give_up_at = time.monotonic() + ROUND_SECONDS
    while len(ended := _ended(slug, began_at)) < wished:
        if time.monotonic() > give_up_at:
            raise TimeoutError(f"{len(ended)} of {wished} runs of {slug} ended in {ROUND_SECONDS} s")
        time.sleep(LOOK_SECONDS)
    return {"values": count_values(ended), "gaps_ms": idle_ms(ended)}


def _ended(slug: str, since: datetime) -> "list[Any]":
    """Return the runs of a kind of job that ended, each with the number of its columns as `keys`."""
    from django.db.models import Count

    from facho.executions.models import Execution

    runs = Execution.objects.filter(node__job__slug__startswith=slug, created_at__gte=since, finished_at__isnull=False)
    columns = (
        "status",
        "error",
        "result",
        "poller_id",
        "olt_id",
        "node_id",
        "slot_at",
        "created_at",
        "started_at",
        "finished_at",
    )
    return list(runs.exclude(status="SKIPPED").annotate(keys=Count("node__job__oids")).only(*columns))


def count_values(runs: Sequence[Any]) -> int:
    """Return how many values runs stored; one that failed makes the figures worthless."""
    for run in runs:
        if run.status != "SUCCESS":
            raise RuntimeError(f"a run ended {run.status}: {run.error}")
    return sum(int((run.result or {})["onus"]) * run.keys for run in runs)


def count_stored() -> int:
    """Return how many values all runs have stored so far."""
    from django.db.models import Count

    from facho.executions.models import Execution

    runs = Execution.objects.filter(node__job__slug__startswith=STATE, status="SUCCESS")
    results = runs.annotate(keys=Count("node__job__oids")).values_list("result", "keys")
    return sum(int(result["onus"]) * keys for result, keys in results.iterator())


def idle_ms(runs: Sequence[Any]) -> list[float]:
    """Return how long each poller that had work to do stood idle between a run's end and the next one's start."""
    of_pollers: dict[int, list[tuple[datetime, datetime]]] = {}
    for run in runs:
        if run.started_at and run.finished_at and run.poller_id is not None:
            of_pollers.setdefault(run.poller_id, []).append((run.started_at, run.finished_at))
    return [
        (later[0] - earlier[1]).total_seconds() * 1000
        for spans in of_pollers.values()
        for earlier, later in pairwise(sorted(spans))
    ]


def hand_over_ms(runs: Sequence[Any]) -> list[float]:
    """Return how long after each run's end the next one of its OLT started, where that was due already."""
    of_olts: dict[int, list[Any]] = {}
    for run in runs:
        if run.started_at and run.slot_at:
            of_olts.setdefault(run.olt_id, []).append(run)
    return [
        (later.started_at - earlier.finished_at).total_seconds() * 1000
        for its in of_olts.values()
        for earlier, later in pairwise(sorted(its, key=lambda run: run.started_at))
        if later.slot_at <= earlier.finished_at
    ]


def schedule(interval_seconds: int) -> None:
    """Poll every OLT at an interval, spread over it; 0: no more, and what runs has ended. ONUs are found only once."""
    from facho.executions.models import Execution
    from facho.snmp_jobs.models import WorkflowNode

    now = datetime.now(UTC)
    nodes = WorkflowNode.objects.filter(job__slug__startswith=STATE)
    workflows = nodes.order_by("workflow_id").values_list("workflow_id", flat=True).distinct()
    for number, workflow_id in enumerate(workflows if interval_seconds else ()):
        offset = number * interval_seconds // len(workflows)
        nodes.filter(workflow_id=workflow_id).update(
            interval_seconds=interval_seconds, offset_seconds=offset, next_run_at=now + timedelta(seconds=offset)
        )
    soon = WorkflowNode.objects.exclude(next_run_at__gt=now + PARKED / 2)
    # A claim that is on its way still moves its node to the next slot.
    while not interval_seconds and (
        soon.update(next_run_at=now + PARKED, interval_seconds=PARKED.days * 86_400)
        or Execution.objects.filter(finished_at=None).exists()
    ):
        time.sleep(LOOK_SECONDS)


def look_back(seconds: float) -> dict[str, float]:
    """Tell what the schedule did in the last seconds: what was stored and what was not, and how late it was."""
    since = datetime.now(UTC) - timedelta(seconds=seconds)
    runs = _ended(STATE, since)
    stored = [run for run in runs if run.status == "SUCCESS"]
    claimed = [(run.created_at - run.slot_at).total_seconds() for run in runs if run.slot_at]
    late = [(run.started_at - run.slot_at).total_seconds() for run in runs if run.started_at and run.slot_at]
    starts: dict[int | None, list[datetime]] = {}
    for run in runs:
        if run.started_at:
            starts.setdefault(run.node_id, []).append(run.started_at)
    between = [(b - a).total_seconds() for times in starts.values() for a, b in pairwise(sorted(times))]
    return {
        "values_per_second": count_values(stored) / seconds,
        "failed": len(runs) - len(stored),
        "claim_p99": percentile(claimed, 99),
        "late_p50": percentile(late, 50),
        "late_p99": percentile(late, 99),
        "cadence_p50": percentile(between, 50),
        "cadence_p99": percentile(between, 99),
        "hand_overs": len(handed := hand_over_ms(runs)),
        "hand_over_p99_ms": percentile(handed, 99),
    }


def count_skipped_slots() -> int:
    """Return how many slots have passed without a run so far."""
    from django.db.models import Sum

    from facho.snmp_jobs.models import WorkflowNode

    return int(WorkflowNode.objects.aggregate(total=Sum("slots_skipped"))["total"])


def percentile(values: Sequence[float], percent: int) -> float:
    """Return a percentile; 0 of nothing."""
    if len(values) < 2:
        return max(values, default=0.0)
    return quantiles(values, n=100, method="inclusive")[percent - 1]


def engine_mb(root: int) -> float:
    """Return the memory of all engine processes below the parent."""
    return sum(own_mb(pid) for pid in tree_of(root) if ENGINE_MODULE in Path(f"/proc/{pid}/cmdline").read_text())


def database_mb() -> dict[str, float]:
    """Return how large the database on PostgreSQL is, and how much it has ever written ahead."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_database_size(current_database()), pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')")
        size, written = cursor.fetchone()
    return {"size": float(size) / 1e6, "wal": float(written) / 1e6}


def compare(truth: Mapping[str, Mapping[str, Sequence[object]]]) -> dict[str, Any]:
    """Count values that are not what the simulated world says; give the first as examples."""
    from facho.onus.models import OnuReading

    place = ("onu__pon_port__frame", "onu__pon_port__slot", "onu__pon_port__port", "onu__onu_id")
    rows = OnuReading.objects.filter(onu__is_present=True).values_list("onu__olt__port", *place, *STORED)
    stored = {(str(row[0]), "/".join(map(str, row[1:5]))): row[5:] for row in rows.iterator()}
    wrong = [
        (port, at, name, true, found)
        for port, onus in truth.items()
        for at, values in onus.items()
        for name, true, found in zip(
            STORED, as_stored(values), stored.get((port, at), [None] * len(STORED)), strict=True
        )
        # A device that reports nothing leaves what was known.
        if true != found and not (true is None and name in KEPT)
    ]
    return {"wrong": len(wrong), "examples": wrong[:5], "of": sum(map(len, truth.values())) * len(KEYS)}


def as_stored(values: Sequence[Any]) -> list[object]:
    """Turn what is true, in the order of KEYS, into what is stored."""
    return [
        value if value is None or factor is None else round(value * factor)
        for value, factor in zip(values, STORED.values(), strict=True)
    ]


def time_pages() -> dict[str, float]:
    """Return the milliseconds of pages that people look at, each asked for once to get warm."""
    from django.contrib.auth.models import User
    from django.test import Client

    from facho.hosts.models import Olt
    from facho.onus.models import Onu

    client = Client(headers={"host": "127.0.0.1"})
    client.force_login(User.objects.get_or_create(username="bench", is_superuser=True, is_staff=True)[0])
    pages = ["/", "/onus/", f"/olts/{Olt.objects.earliest('id').id}/", f"/onus/{Onu.objects.earliest('id').id}/"]
    return {page: min(_page_ms(client, page) for _ in range(3)) for page in pages}


def _page_ms(client: Any, page: str) -> float:
    began_at = time.perf_counter()
    reply = client.get(page)
    if reply.status_code != 200:
        raise RuntimeError(f"{page}: {reply.status_code}")
    return (time.perf_counter() - began_at) * 1000


if __name__ == "__main__":
    main()
