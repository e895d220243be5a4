"""`python -m bench.soak` tells whether anything grows: the whole product for an hour, then days in virtual time.

The first part starts `facho demo` on a folder of its own, reads the API every half minute as an operator's script does,
and samples memory and descriptors of every process. The second lets the engine's parts work for days on one loop with a
virtual clock, keeps rows for a day instead of months, and counts rows and objects at the end of each day. Both compare
their first third with their last.
"""

import argparse
import asyncio
import gc
import json
import logging
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from bench.private_database import FOREIGN_NAMES, private_database
from bench.processes import own_module, running
from bench.report import Section, Target
from facho.core.env import PREFIX

if TYPE_CHECKING:
    from facho.core.wiring import Parts
    from facho.execution_coordinator.coordinator import ExecutionCoordinator
    from facho.polling.domain.ports import Clock
    from facho.simulator.server import Simulation

AT_MOST_PERCENT = 5.0

OLTS, ONUS = 20, 200
SAMPLE_SECONDS = 15.0
REQUEST_SECONDS = 30.0
FOUND_SHARE = 0.95
# By then every thread of the web has answered everything, and holds the caches that it will have.
WARM_UP_ROUNDS = 50
PATIENCE_SECONDS = 300.0
# What a script, a scraper and a browser ask for.
PATHS = (
    "/livez",
    "/readyz",
    "/login/",
    "/metrics",
    "/api/v1/olts/",
    "/api/v1/onus/",
    "/api/v1/onus/?search=HWTC",
    "/api/v1/onus/export/?format=csv",
    "/api/v1/executions/",
    "/api/v1/events/",
    "/api/v1/alerts/",
    "/api/v1/outages/",
)

VIRTUAL_OLTS, VIRTUAL_ONUS = 2, 16
DAY = timedelta(days=1)
# Instead of the 1 to 730 days of the product, which would take as many to be seen.
KEPT_DAYS = 1
# Slower than the product, so that a day takes a minute or two; what is stored per run is the same.
INTERVAL_FACTOR = 4
TICK_SECONDS = 60.0
LEASE_SECONDS = 600.0
CHORE_SECONDS = 600.0
# World time passes when we say so.
STANDSTILL = 1e-9

Held = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Product:
    """A running demo."""

    pid: int
    url: str
    token: str

    def read(self, path: str) -> bytes:
        """Return what the product answers; a refusal ends the soak."""
        request = urllib.request.Request(self.url + path, headers={"Authorization": f"Bearer {self.token}"})  # noqa: S310
        with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as answer:  # noqa: S310 our own address
            return bytes(answer.read())

    def sample(self) -> dict[str, Held]:
        """Look at the parent and its children; these are named by the last part of their modules' names."""
        children = [int(pid) for pid in Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()]
        return {"parent": _held(self.pid)} | {_module(pid).rpartition(".")[2]: _held(pid) for pid in children}


def main() -> int:
    arguments = _arguments()
    # An end by SIGTERM takes the demo along, too.
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
    sections = []
    for section in _soak(arguments.minutes, arguments.virtual_days):
        print(section.markdown, flush=True)
        sections.append(section)
    grown = [target.name for section in sections for target in section.targets if not target.is_met]
    print(f"Grew: {'; '.join(grown)}" if grown else "Nothing grew.")
    return 1 if grown else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0, help="of real time (default: 60; 0: none)")
    parser.add_argument("--virtual-days", type=int, default=6, help="of virtual time (default: 6; 0: none)")
    return parser.parse_args()


def _soak(minutes: float, virtual_days: int) -> Iterator[Section]:
    if minutes:
        yield soak_product(minutes)
    if virtual_days:
        with private_database():
            yield soak_engine(virtual_days)


def soak_product(minutes: float) -> Section:
    """Run the product with its simulated OLTs and a client, and compare what its processes hold."""
    samples = []
    # All at once, as a browser does: each time the web needs all the threads that it may have.
    with running_demo() as product, ThreadPoolExecutor(len(PATHS)) as clients:
        _wait_until_polled(product)
        for _ in range(WARM_UP_ROUNDS):
            list(clients.map(product.read, PATHS))
        ends_at = time.monotonic() + minutes * 60
        next_request_at = 0.0
        while (now := time.monotonic()) < ends_at:
            if now >= next_request_at:
                next_request_at = now + REQUEST_SECONDS
                list(clients.map(product.read, PATHS))
            samples.append(product.sample())
            print(
                json.dumps({"minute": round((minutes * 60 - ends_at + now) / 60, 1)} | samples[-1]),
                file=sys.stderr,
                flush=True,
            )
            time.sleep(SAMPLE_SECONDS)
    subjects = {name: [sample[name] for sample in samples] for name in samples[0]}
    return _section(f"{OLTS} OLTs with {ONUS} ONUs each and an API client for {minutes:g} minutes", subjects)


@contextmanager
def running_demo() -> Iterator[Product]:
    """Run the demo on a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        foreign = [name for name in os.environ if name.startswith(PREFIX) or name in FOREIGN_NAMES]
        kept = {name: value for name, value in os.environ.items() if name not in foreign}
        environ = {**kept, "FACHO_DATA_DIR": f"{folder}/data", "FACHO_LANGUAGE": "en"}
        size = ("--olts", str(OLTS), "--onus", str(ONUS))
        command = own_module("facho.core.cli.main", "demo", *size, "--bind", "127.0.0.1:0")
        with running(command, stdout=subprocess.PIPE, env=environ) as process:
            told: dict[str, str] = {}
            while "token" not in told:
                line = process.stdout.readline() if process.stdout else ""
                if not line:
                    raise RuntimeError("the demo ended before it was ready")
                name, _, value = line.strip().partition(": ")
                told[name] = value
            yield Product(process.pid, told["url"], told["token"])


def _wait_until_polled(product: Product) -> None:
    """Wait until the ONUs were found, but for those that wait to be authorised."""
    give_up_at = time.monotonic() + PATIENCE_SECONDS
    while json.loads(product.read("/api/v1/onus/"))["count"] < FOUND_SHARE * OLTS * ONUS:
        if time.monotonic() > give_up_at:
            raise TimeoutError("the OLTs were not polled")
        time.sleep(1)


def _module(pid: int) -> str:
    """Return the module that one of our processes runs: python -m MODULE, or what a child of the parent was given."""
    started, given = Path(f"/proc/{pid}/cmdline").read_text().split("\0")[2:4]
    return given if started == "facho.core.processes" else started


def _held(pid: int) -> Held:
    status = Path(f"/proc/{pid}/status").read_text()
    kilobytes = next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS"))
    return {"MB": int(kilobytes) / 1024, "descriptors": len(os.listdir(f"/proc/{pid}/fd"))}


def _section(title: str, subjects: Mapping[str, Sequence[Held]]) -> Section:
    """Compare the middle of the first third of each subject's samples with that of the last."""
    rows, targets = [], []
    for name, samples in subjects.items():
        for unit in samples[0]:
            values = [sample[unit] for sample in samples]
            third = max(len(values) // 3, 1)
            first, last = median(values[:third]), median(values[-third:])
            growth = (last / first - 1) * 100 if first else 0.0
            rows.append((name, unit, first, last, max(values), growth))
            targets.append(Target(f"Growth of {name}, {unit}, %", growth, AT_MOST_PERCENT))
    return Section(title, ("Of", "What", "First third", "Last third", "Most", "Growth, %"), rows, targets)


def soak_engine(days: int) -> Section:
    """Let the engine's parts live for days on a virtual clock, and compare what is left at the end of each."""
    from bench.virtual_loop import VirtualTimeLoop

    # Thousands of runs have nothing to say besides the figures.
    logging.getLogger("facho").setLevel(logging.WARNING)
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        at_midnight = runner.run(_live(days))
    title = f"{VIRTUAL_OLTS} OLTs with {VIRTUAL_ONUS} ONUs each for {days} virtual days, rows kept for {KEPT_DAYS}"
    return _section(title, {"engine": at_midnight})


async def _live(days: int) -> list[Held]:
    """Poll simulated OLTs whose ONUs fail and return, and run the background tasks of `core.processes.housekeeping`."""
    from django.conf import settings
    from django.db import connection

    from bench.polled_hours import START
    from bench.virtual_engine import DirectGateway, LoopClock
    from facho.core.wiring import build_engine, open_parts
    from facho.execution_coordinator.coordinator import ExecutionCoordinator
    from facho.simulator.server import Simulation, SimulatorConfig
    from facho.simulator.world import NATURAL, STILL
    from facho.zabbix_pollers import scheduler

    clock: Any = LoopClock(START)
    gateway: Any = DirectGateway()
    _stamp_rows_by(clock)
    scheduler.TICK_SECONDS = TICK_SECONDS
    settings.FACHO_LEASE_SECONDS = LEASE_SECONDS
    settings.FACHO_HISTORY_DAYS = settings.FACHO_HISTORY_HOURLY_DAYS = KEPT_DAYS
    # ONUs fail and return. No port fails, because its events of a day would be a third of all rows, and no customer
    # arrives, because a network that grows has more rows.
    life = replace(STILL, failures=NATURAL.failures, bends=NATURAL.bends)
    config = SimulatorConfig(olts=VIRTUAL_OLTS, onus=VIRTUAL_ONUS, started_at=START, speed=STANDSTILL, life=life)
    async with Simulation.start(config) as simulation, open_parts("soak") as opened:
        parts, coordinator = replace(opened, clock=clock, database=gateway), ExecutionCoordinator()
        _add_olts(simulation, START)
        engine, stop = build_engine(parts), asyncio.Event()
        scheduling = asyncio.create_task(engine.scheduler.scheduler_loop(stop))
        at_midnight = []
        for day in range(1, days + 1):
            while clock.now() < START + day * DAY:
                await asyncio.sleep(CHORE_SECONDS)
                _move_worlds(simulation, (clock.now() - START).total_seconds())
                await _keep_house(parts, coordinator)
            at_midnight.append(_left())
            print(json.dumps({"day": day, **at_midnight[-1]}), file=sys.stderr, flush=True)
        stop.set()
        await scheduling
        await engine.executor.drain(timeout_seconds=1_000)
        # A running loop has a connection of its own, which no one else would close.
        connection.close()
    return at_midnight


def _stamp_rows_by(clock: "Clock") -> None:
    """Give rows that take their time from the process, and those made of log lines, the virtual one."""
    from django.utils import timezone

    def record(*args: Any, **kwargs: Any) -> logging.LogRecord:
        made = logging.LogRecord(*args, **kwargs)
        made.created = clock.now().timestamp()
        return made

    timezone.now = clock.now
    logging.setLogRecordFactory(record)


def _add_olts(simulation: "Simulation", now: datetime) -> None:
    from django.db.models import F

    from bench.virtual_engine import add_simulated_olt
    from facho.snmp_jobs.application import apply_ready_made_jobs
    from facho.snmp_jobs.models import WorkflowNode

    for simulated in simulation.olts:
        apply_ready_made_jobs(add_simulated_olt(simulated), now=now)
    WorkflowNode.objects.update(interval_seconds=F("interval_seconds") * INTERVAL_FACTOR)


def _move_worlds(simulation: "Simulation", seconds: float) -> None:
    """Bring the worlds to the loop's time: their own clock runs by the real one."""
    simulation.clock.skip(max(seconds - simulation.clock.now(), 0.0))
    for simulated in simulation.olts:
        simulated.refresh()
        # Its journal is in this process, and is not the engine's.
        simulated.world.journal.clear()


async def _keep_house(parts: "Parts", coordinator: "ExecutionCoordinator") -> None:
    from facho.alerts.engine import run_pass
    from facho.core.processes import housekeeping as processes_housekeeping
    from facho.execution_coordinator.retention import RETENTIONS, delete_expired
    from facho.onus.compaction import CompactionLimits, compact

    await processes_housekeeping.recognise_new_olts(parts)
    await processes_housekeeping.probe_suspended_olts(parts)
    await processes_housekeeping.end_abandoned_runs(parts)
    await processes_housekeeping.report_silence(parts)
    await processes_housekeeping.save_statistics(parts)
    now = parts.clock.now()
    coordinator.run_pass(now)
    run_pass(now)
    while compact(now, CompactionLimits()):
        pass
    for retention in RETENTIONS:
        short = replace(retention, days=min(retention.days, KEPT_DAYS))
        while delete_expired(short, now, processes_housekeeping.CLEANUP_BATCH) == processes_housekeeping.CLEANUP_BATCH:
            pass


def _left() -> Held:
    """Count all rows, and what Python holds after everything that nobody needs was collected."""
    from django.apps import apps

    gc.collect()
    return {
        "rows": sum(model._default_manager.count() for model in apps.get_models()),
        "Python objects": len(gc.get_objects()),
        "blocks of memory": sys.getallocatedblocks(),
        "descriptors": len(os.listdir("/proc/self/fd")),
    }


if __name__ == "__main__":
    sys.exit(main())
