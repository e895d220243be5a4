"""What watching the light of a large network costs through the database, and whether any poll starts later for it.

A small network with a month behind it is watched for a day, poll by poll, and judged at its end; CPU is that of this
process and of all of the server's, scaled to 100,000 ONUs. Then an engine starts nodes of other OLTs one by one, as on
a grid, alone and while both analyses run without a pause in a thread of their own, as they do in the product.

Run as a program it measures on the database of DATABASE_URL, or SQLite; `make bench BENCH=light` measures both.
"""

import asyncio
import json
import os
import resource
import sys
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np

from bench.both_databases import measure_on_both
from bench.fleet import running_fleet
from bench.private_database import private_database
from bench.processes import cpu_seconds
from bench.report import Section, Target
from bench.run_cost import LATENCY_MS, ONE_BY_ONE, TOGETHER, _prepare, _run_all, _server_pid, _tree_seconds

if TYPE_CHECKING:
    from facho.core.wiring import Parts
    from facho.infrastructure.gateway import ThreadGateway
    from facho.onus.models import Onu

PORTS, ONUS_OF_A_PORT, PAST_DAYS = 64, 40, 30
POLLS, POLL_SECONDS = 288, 300
NETWORK = 100_000
OLTS, ROUNDS = 40, 6
HOST = "192.0.2.1"
AT_MOST_CPU, AT_MOST_LATER_MS, AT_MOST_MB = 60.0, 500.0, 512.0


def measure_section() -> Section:
    figures = measure_on_both("bench.light_cost")
    rows = [
        (
            name,
            found["watch"],
            found["judge"],
            found["watcher_mb"],
            found["alone_ms"][0],
            found["with_ms"][0],
            found["alone_ms"][1],
            found["with_ms"][1],
        )
        for name, found in figures.items()
    ]
    targets = []
    for name, found in figures.items():
        targets += [
            Target(f"{name}: CPU seconds a day for 100,000 ONUs", found["watch"] + found["judge"], AT_MOST_CPU),
            Target(
                f"{name}: ms that the 99th of 100 starts is later with the analysis",
                max(found["with_ms"][1] - found["alone_ms"][1], 0.0),
                AT_MOST_LATER_MS,
            ),
            Target(f"{name}: MB for 100,000 ONUs", found["watcher_mb"], AT_MOST_MB),
        ]
    head = (
        "Database",
        "CPU s a day, every poll",
        "CPU s a day, daily judgement",
        "MB kept and peak",
        "Start late alone, median ms",
        "with the analysis",
        "Start late alone, p99 ms",
        "with the analysis, p99",
    )
    return Section(f"Watching light through the database, for {NETWORK:,} ONUs", head, rows, targets)


def main() -> None:
    """Measure on one database; prints the figures as JSON."""
    with private_database(os.environ.get("DATABASE_URL")):
        print(json.dumps(asyncio.run(_measure())))


async def _measure() -> dict[str, Any]:
    from facho.core.wiring import build_engine, open_parts

    with running_fleet(olts=OLTS, onus=2, latency_ms=LATENCY_MS) as fleet:
        async with open_parts("bench") as parts:
            await parts.database.run(_prepare, fleet.ports)
            aside = parts.database.aside()
            day_end = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
            figures: dict[str, Any] = await aside.run(_cost, day_end)
            engine, stop = build_engine(parts), asyncio.Event()
            scheduling = asyncio.create_task(engine.scheduler.scheduler_loop(stop))
            for slug in ("discovery", "state"):
                await _run_all(parts, slug, TOGETHER)
            figures |= await _lateness(parts, aside, day_end)
            await aside.close()
            stop.set()
            await scheduling
            await engine.executor.drain(timeout_seconds=30)
    return figures


async def _lateness(parts: "Parts", aside: "ThreadGateway", day_end: datetime) -> dict[str, tuple[float, float]]:
    """Let rounds without and with the analysis take turns: other work of the machine hits both alike."""
    late: dict[str, list[float]] = {"alone_ms": [], "with_ms": []}
    for _ in range(ROUNDS):
        for name, its in late.items():
            is_over, since = asyncio.Event(), datetime.now(UTC)
            analysing = asyncio.create_task(_analyse(aside, day_end, is_over)) if name == "with_ms" else None
            await _run_all(parts, "state", ONE_BY_ONE)
            is_over.set()
            if analysing:
                await analysing
            its += await parts.database.run(_late_ms, since)
    return {name: (float(np.median(its)), float(np.percentile(its, 99))) for name, its in late.items()}


async def _analyse(aside: "ThreadGateway", day_end: datetime, is_over: asyncio.Event) -> None:
    from facho.plant.days import judge_days
    from facho.plant.watch import LightWatcher

    while not is_over.is_set():
        await aside.run(_forget_day, day_end)
        for work in (LightWatcher().look, judge_days):
            left = 1
            while left and not is_over.is_set():
                left = await aside.run(work, day_end)


def _late_ms(since: datetime) -> list[float]:
    """Return how long after their slots runs started, in milliseconds."""
    from facho.executions.models import Execution

    runs = Execution.objects.filter(slot_at__gte=since, started_at__isnull=False)
    times = runs.values_list("started_at", "slot_at")
    return [(started - slot) / timedelta(milliseconds=1) for started, slot in times if started and slot]


def _cost(day_end: datetime) -> dict[str, float]:
    """Watch a day and judge it; the writing of the polls and their compaction are not counted."""
    from facho.onus.history import Samples, append
    from facho.onus.history_models import Metric
    from facho.plant.days import judge_days
    from facho.plant.watch import LightWatcher

    onus = _fill()
    _write_past(onus, day_end)
    rng, ids, ports = np.random.default_rng(1), [onu.id for onu in onus], [onu.pon_port_id for onu in onus]
    level = rng.uniform(-26, -16, len(onus))
    watcher, server, watch = LightWatcher(), _server_pid(), 0.0
    before_mb = _peak_mb()
    for poll in range(POLLS):
        at = day_end - timedelta(seconds=POLL_SECONDS * (POLLS - poll))
        values: dict[int, list[float | None]] = {
            metric: (level + rng.normal(0, 0.08, len(onus))).tolist()
            for metric in (Metric.RX_POWER, Metric.OLT_RX_POWER)
        }
        append(at, Samples.of(ids, ports, values))
        began = _cpu(server)
        while watcher.look(at + timedelta(seconds=30)):
            pass
        watch += _cpu(server) - began
    began = _cpu(server)
    while judge_days(day_end):
        pass
    judge = _cpu(server) - began
    scale = NETWORK / len(onus)
    kept = sum(
        array.nbytes
        for group in watcher._groups.values()
        for array in (group.onu_ids, group.ports, group.state.recent, group.state.noise_db, group.state.last)
    )
    # What is kept grows with the network; what a batch needs does not.
    memory = kept / 2**20 * scale + (_peak_mb() - before_mb)
    return {"watch": round(watch * scale, 1), "judge": round(judge * scale, 1), "watcher_mb": round(memory, 1)}


def _cpu(server: int | None) -> float:
    return cpu_seconds(os.getpid()) + _tree_seconds(server)


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _fill() -> "list[Onu]":
    from facho.hosts.models import Olt
    from facho.infrastructure.secrets import Secret
    from facho.onus.models import Onu, OnuReading, PonPort

    # It is not polled: the engine serves the others.
    olt = Olt.objects.create(
        name="watched", host="192.0.2.1", address="192.0.2.1", vendor="huawei", community=Secret("public")
    )
    ports = PonPort.objects.bulk_create(
        PonPort(olt=olt, frame=0, slot=number // 16, port=number % 16) for number in range(PORTS)
    )
    now = datetime.now(UTC)
    onus = Onu.objects.bulk_create(
        Onu(olt=olt, pon_port=port, onu_id=number, first_seen_at=now - timedelta(days=90))
        for port in ports
        for number in range(ONUS_OF_A_PORT)
    )
    OnuReading.objects.bulk_create(OnuReading(onu=onu, distance_m=1_000 + onu.onu_id) for onu in onus)
    return onus


def _write_past(onus: "list[Onu]", day_end: datetime) -> None:
    """Let each port have its days up to yesterday."""
    from facho.onus.history_codec import DAY_SECONDS, HistoryGrid, encode_bundle
    from facho.plant.days import DaySeries
    from facho.plant.models import PortDays

    rng, yesterday = np.random.default_rng(2), day_end - timedelta(days=1)
    at = int(yesterday.timestamp()) - DAY_SECONDS * np.arange(PAST_DAYS, 0, -1)
    by_port: dict[int, list[int]] = {}
    for onu in onus:
        by_port.setdefault(onu.pon_port_id, []).append(onu.id)
    for port, ids in by_port.items():
        onu_ids = np.array(sorted(ids), dtype=np.int64)
        grids = []
        for series in DaySeries:
            level = {DaySeries.NOISE: 8, DaySeries.JUMPS: 0}.get(series, -2_100)
            days = level + np.rint(rng.normal(0, 3, (1, len(ids), PAST_DAYS))).astype(np.int64)
            grids.append((port, int(series), HistoryGrid(onu_ids, at, days)))
        PortDays.objects.create(pon_port_id=port, ends_at=yesterday, data=encode_bundle(grids))


def _forget_day(day_end: datetime) -> None:
    """Let the day be judged once more."""
    from facho.plant.models import PortDays

    PortDays.objects.update(ends_at=day_end - timedelta(days=1))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        sys.exit("It takes no arguments.")
    main()
