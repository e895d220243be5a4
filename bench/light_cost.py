"""What all analysis of light costs in a large network, through the database, and whether any poll starts later for it.

Ports of the simulated plant, with its faults, have a month behind them. Some days follow poll by poll: each poll is
watched, each day is judged at its end and added to the running month, of which it is the last. CPU is that of this
process and of all of the server's, scaled to 100,000 ONUs. Then an engine starts nodes of other OLTs one by one, as on
a grid, alone and while all analysis runs without a pause in threads of its own, as it does in the product.

Run as a program it measures on the database of DATABASE_URL, or SQLite; `make bench BENCH=light-cost` measures both.
"""

import asyncio
import gc
import json
import os
import sys
import time
import tracemalloc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np

from bench.both_databases import measure_on_both
from bench.fleet import running_fleet
from bench.plant import PlantSettings, simulate_port
from bench.private_database import private_database
from bench.report import Section, Target
from bench.run_cost import LATENCY_MS, ONE_BY_ONE, TOGETHER, _prepare, _run_all, _server_pid, _tree_seconds
from facho.simulator.plant import PlantFault, TrueFault

if TYPE_CHECKING:
    from facho.core.wiring import Parts
    from facho.infrastructure.gateway import ThreadGateway
    from facho.onus.models import Onu, PonPort

PORTS, PAST_DAYS, PLAYED_DAYS = 160, 31, 2
POLLS, POLL_SECONDS = 288, 300
NETWORK = 100_000
# What a new watcher looks back at.
WAITING = timedelta(hours=2)
OLTS, ROUNDS = 40, 6
AT_MOST_CPU, AT_MOST_MB = 60.0, 512.0
# Half a second of the scheduler's one goes unnoticed; the analysis never pauses here, unlike in the product.
AT_MOST_LATER_MS = {"the median of": 100.0, "the 99th of 100": 500.0}


def measure_section() -> Section:
    return describe(measure_on_both("bench.light_cost"))


def describe(figures: Mapping[str, dict[str, Any]]) -> Section:
    rows: list[tuple[str, str]] = []
    targets = []
    for name, found in figures.items():
        rows += [
            (f"{name}: {what}", f"{found[key]:,}")
            for what, key in (
                ("ONUs that were watched", "onus"),
                ("findings of the days that were watched", "findings"),
                ("ONUs named as their evidence", "evidence"),
                ("ports whose tree was inferred", "trees"),
                ("CPU s a day, every poll", "watch"),
                ("CPU s a day, looks without a poll", "idle"),
                ("CPU s a day, daily judgement", "judge"),
                ("CPU s a day, the running month", "months"),
                ("CPU s when a month is over", "final"),
                ("CPU s when the next one begins", "first"),
                ("MB kept of all ONUs", "kept_mb"),
                ("MB more that the largest batch needs", "batch_mb"),
                ("starts compared, with and without the analysis", "starts"),
                ("polls that the analysis looked at meanwhile", "looked_at"),
            )
        ]
        late = ((way, *found[key]) for way, key in (("alone", "alone_ms"), ("with the analysis", "with_ms")))
        rows += [
            (f"{name}: ms that starts are late {way}, median and 99th of 100", f"{a:.0f}, {b:.0f}")
            for way, a, b in late
        ]
        targets += [
            Target(
                f"{name}: CPU seconds a day for 100,000 ONUs",
                found["watch"] + found["idle"] + found["judge"] + found["months"],
                AT_MOST_CPU,
            ),
            Target(
                f"{name}: CPU seconds of the dearest day of a month",
                found["watch"] + found["idle"] + found["judge"] + max(found["final"], found["first"]),
                AT_MOST_CPU,
            ),
            *(
                Target(
                    f"{name}: ms that {which} starts is later with the analysis",
                    max(found["with_ms"][place] - found["alone_ms"][place], 0.0),
                    at_most,
                )
                for place, (which, at_most) in enumerate(AT_MOST_LATER_MS.items())
            ),
            Target(f"{name}: MB for 100,000 ONUs", found["kept_mb"] + found["batch_mb"], AT_MOST_MB),
        ]
    return Section(
        f"All analysis of light through the database, for {NETWORK:,} ONUs", ("What", "Figure"), rows, targets
    )


def main() -> None:
    """Measure on one database; prints the figures as JSON."""
    with private_database(os.environ.get("DATABASE_URL")):
        print(json.dumps(asyncio.run(_measure())))


async def _measure() -> dict[str, Any]:
    from facho.core.processes import supervisor
    from facho.core.wiring import build_engine, open_parts

    # As every engine does before it starts.
    supervisor.collect_seldom()
    supervisor.switch_often()
    with running_fleet(olts=OLTS, onus=2, latency_ms=LATENCY_MS) as fleet:
        async with open_parts("bench") as parts:
            await parts.database.run(_prepare, fleet.ports)
            aside = parts.database.aside()
            # The last days of a month are its dearest.
            day_end = datetime.now(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
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


async def _lateness(parts: "Parts", aside: "ThreadGateway", day_end: datetime) -> dict[str, Any]:
    """Let rounds without and with the analysis take turns: other work of the machine hits both alike."""
    late: dict[str, list[float]] = {"alone_ms": [], "with_ms": []}
    looked_at = 0
    for _ in range(ROUNDS):
        for name, its in late.items():
            is_over, since = asyncio.Event(), datetime.now(UTC)
            analysing = asyncio.create_task(_analyse(aside, day_end, is_over)) if name == "with_ms" else None
            await _run_all(parts, "state", ONE_BY_ONE)
            is_over.set()
            if analysing:
                looked_at += await analysing
            its += await parts.database.run(_late_ms, since)
    if not looked_at:
        raise RuntimeError("the analysis had no poll to look at")
    figures = {name: (float(np.median(its)), float(np.percentile(its, 99))) for name, its in late.items()}
    return {**figures, "starts": sum(map(len, late.values())), "looked_at": looked_at}


async def _analyse(aside: "ThreadGateway", day_end: datetime, is_over: asyncio.Event) -> int:
    """Do all of the analysis again and again; return how many rows of polls it looked at."""
    from facho.plant.days import judge_days
    from facho.plant.months import compute_some
    from facho.plant.watch import LightWatcher

    looked_at = 0
    while not is_over.is_set():
        await aside.run(_forget_day, day_end)
        watcher = LightWatcher()
        for work in (watcher.look, judge_days, compute_some):
            left = 1
            while left and not is_over.is_set():
                left = await aside.run(work, day_end + WAITING)
                looked_at += left * (work == watcher.look)
    return looked_at


def _late_ms(since: datetime) -> list[float]:
    """Return how long after their slots runs started, in milliseconds."""
    from facho.executions.models import Execution

    runs = Execution.objects.filter(slot_at__gte=since, started_at__isnull=False)
    times = runs.values_list("started_at", "slot_at")
    return [(started - slot) / timedelta(milliseconds=1) for started, slot in times if started and slot]


@dataclass(slots=True)
class Meter:
    """CPU seconds of this process and of the server while work runs until nothing is left."""

    server: int | None
    seconds: float = 0.0

    def run(self, work: Callable[[datetime], int], now: datetime) -> None:
        began = self._cpu()
        while work(now):
            pass
        self.seconds += self._cpu() - began

    def _cpu(self) -> float:
        # A look takes a few milliseconds, which the kernel's own accounts of a process do not show.
        return time.process_time() + _tree_seconds(self.server)


def _cost(day_end: datetime) -> dict[str, float]:
    """Live some days; the writing of the polls and their compaction are not counted, as they are elsewhere."""
    from facho.core.processes.housekeeping import LIGHT_SECONDS
    from facho.onus.compaction import CompactionLimits, compact
    from facho.onus.history import Samples, append
    from facho.plant.days import judge_days
    from facho.plant.models import FindingOnu, LightFinding, OnuBox
    from facho.plant.months import compute_some
    from facho.plant.watch import LightWatcher

    began_at = day_end - timedelta(days=PAST_DAYS + PLAYED_DAYS)
    ports = [_write_port(number, began_at) for number in range(PORTS)]
    ids, places = (np.concatenate([getattr(port, name) for port in ports]) for name in ("onu_ids", "pon_port_ids"))
    server, lived_at = _server_pid(), began_at + timedelta(days=PAST_DAYS)
    for work in (judge_days, compute_some):
        Meter(server).run(work, lived_at + timedelta(minutes=30))
    idle, watch, judge, months, final, first = (Meter(server) for _ in range(6))
    watcher = LightWatcher()
    for poll in range(PAST_DAYS * POLLS, (PAST_DAYS + PLAYED_DAYS) * POLLS):
        at = began_at + timedelta(seconds=POLL_SECONDS * poll)
        idle.run(watcher.look, at)
        append(at, Samples(ids, places, _values(ports, poll)))
        watch.run(watcher.look, at + timedelta(seconds=30))
        if (poll + 1) % POLLS == 0:
            night = at + timedelta(seconds=POLL_SECONDS)
            while compact(night + timedelta(hours=3), CompactionLimits()):
                pass
            judge.run(judge_days, night)
            # Before the month is over, its last days count as one more of the running one.
            months.run(compute_some, night - timedelta(minutes=1))
    final.run(compute_some, day_end + timedelta(minutes=30))
    first.run(compute_some, day_end + timedelta(days=1, minutes=30))
    scale = NETWORK / len(ids)
    # The last hours once more, which wait: compaction took all polls of the days before.
    for poll in range(-round(WAITING.total_seconds() / POLL_SECONDS), 0):
        append(day_end + WAITING + timedelta(seconds=POLL_SECONDS * poll), Samples(ids, places, _values(ports, poll)))
    kept_mb, batch_mb = _memory_mb(day_end)
    # A look that finds no poll costs the same in every network; one that found some ends with such a look.
    look = idle.seconds / (PLAYED_DAYS * POLLS)
    return {
        "onus": len(ids),
        "findings": LightFinding.objects.filter(found_at__gt=lived_at).count(),
        "evidence": FindingOnu.objects.filter(finding__found_at__gt=lived_at).count(),
        "trees": OnuBox.objects.values("pon_port").distinct().count(),
        "watch": round((watch.seconds - idle.seconds) * scale / PLAYED_DAYS, 1),
        "idle": round(look * 86_400 / LIGHT_SECONDS, 1),
        "judge": round(judge.seconds * scale / PLAYED_DAYS, 1),
        "months": round(months.seconds * scale / PLAYED_DAYS, 1),
        "final": round(final.seconds * scale, 1),
        "first": round(first.seconds * scale, 1),
        # What is kept grows with the network; what a batch needs does not.
        "kept_mb": round(kept_mb * scale, 1),
        "batch_mb": round(batch_mb, 1),
    }


def _values(ports: "Sequence[LivedPort]", poll: int) -> dict[int, Any]:
    return {metric: np.concatenate([port.values[metric][:, poll] for port in ports]) for metric in ports[0].values}


def _memory_mb(day_end: datetime) -> tuple[float, float]:
    """Do all of it once more and trace it: what a watcher keeps, and the most that any step needs on top."""
    from facho.plant.days import judge_days
    from facho.plant.months import compute_some
    from facho.plant.watch import LightWatcher

    watcher, now, steps = LightWatcher(), day_end + WAITING, []
    _forget_day(day_end)
    tracemalloc.start()
    for work in (watcher.look, judge_days, compute_some):
        left = 1
        while left:
            tracemalloc.reset_peak()
            before, _ = tracemalloc.get_traced_memory()
            left = work(now)
            steps.append(tracemalloc.get_traced_memory()[1] - before)
        if work == watcher.look:
            gc.collect()
            kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return kept / 2**20, max(steps) / 2**20


@dataclass(frozen=True, slots=True, eq=False)
class LivedPort:
    """A port of the plant in the database: its ONUs, and all that is read of them, a column for each poll."""

    onu_ids: Any
    pon_port_ids: Any
    values: dict[int, Any]


def _write_port(number: int, began_at: datetime) -> LivedPort:
    """Write a port with its past, and with the outages that its cuts are, also those to come."""
    from facho.hosts.models import Olt
    from facho.infrastructure.secrets import Secret
    from facho.onus.history_models import STATE_CODES, Metric
    from facho.onus.models import Onu, OnuReading, PonPort

    days = PAST_DAYS + PLAYED_DAYS
    readings = simulate_port(f"cost {number}", PlantSettings(days=days))
    # It is not polled: the engine serves the others.
    olt, _is_new = Olt.objects.get_or_create(
        name="watched",
        defaults={"host": "192.0.2.1", "address": "192.0.2.1", "vendor": "huawei", "community": Secret("public")},
    )
    port = PonPort.objects.create(olt=olt, frame=0, slot=number // 16, port=number % 16)
    onus = Onu.objects.bulk_create(
        Onu(olt=olt, pon_port=port, onu_id=place, first_seen_at=began_at - timedelta(days=90))
        for place in range(len(readings.distance_m))
    )
    OnuReading.objects.bulk_create(
        OnuReading(onu=onu, distance_m=round(float(metres)), run_state="online")
        for onu, metres in zip(onus, readings.distance_m, strict=True)
    )
    state = np.where(np.isfinite(readings.rx_dbm), STATE_CODES["online"], np.nan)
    state[readings.is_dark] = STATE_CODES["offline"]
    ids = np.array([onu.id for onu in onus], dtype=np.int64)
    values: dict[int, Any] = {
        Metric.STATE: state,
        Metric.RX_POWER: readings.rx_dbm,
        Metric.OLT_RX_POWER: readings.olt_rx_dbm,
    }
    lived = LivedPort(ids, np.full(len(ids), port.id), values)
    _write_past(lived, began_at)
    for fault in readings.faults:
        if fault.kind is PlantFault.CUT:
            _write_cut(port, [onus[row] for row in np.flatnonzero(fault.members)], began_at, fault)
    return lived


def _write_past(port: LivedPort, began_at: datetime) -> None:
    from facho.onus.history_codec import HistoryGrid, encode_grid
    from facho.onus.history_models import HistorySamples, HistoryStay, to_steps

    at, place = int(began_at.timestamp()) + POLL_SECONDS * np.arange(PAST_DAYS * POLLS), int(port.pon_port_ids[0])
    blocks = []
    for metric, values in port.values.items():
        steps = to_steps(metric, values[:, : len(at)].ravel()).reshape(len(values), -1)
        for day in range(PAST_DAYS):
            its = slice(day * POLLS, (day + 1) * POLLS)
            block = encode_grid(HistoryGrid(port.onu_ids, at[its], steps[np.newaxis, :, its]))
            ends_at = began_at + timedelta(days=day + 1)
            blocks.append(HistorySamples(pon_port_id=place, metric=metric, ends_at=ends_at, data=block))
    HistorySamples.objects.bulk_create(blocks)
    HistoryStay.objects.bulk_create(HistoryStay(onu_id=onu, pon_port_id=place) for onu in port.onu_ids.tolist())


def _write_cut(port: "PonPort", onus: "Sequence[Onu]", began_at: datetime, fault: TrueFault) -> None:
    from facho.onus.models import OnuEvent, Outage
    from facho.onus.words import EventKinds

    start, end = (began_at + timedelta(seconds=float(edge)) for edge in (fault.since, fault.until))
    count, place = len(onus), {"frame": port.frame, "slot": port.slot, "port": port.port}
    Outage.objects.create(
        **{"olt": port.olt, "scope": "pon", **place, "cause": "fibre", "affected": count, "down": count},
        started_at=start,
        resumed_at=start,
        ended_at=end,
    )
    OnuEvent.objects.bulk_create(
        OnuEvent(olt=port.olt, pon_port=port, onu=onu, onu_number=onu.onu_id, at=at, kind=kind)
        for onu in onus
        for at, kind in ((start, EventKinds.DOWN), (end, EventKinds.UP))
    )


def _forget_day(day_end: datetime) -> None:
    """Let the day be judged once more, and all of the month be computed again, as if somebody had asked for it."""
    from facho.plant.models import MonthRun, PortDays, PortMonth

    PortDays.objects.update(ends_at=day_end - timedelta(days=1))
    PortMonth.objects.all().delete()
    MonthRun.objects.update(wanted_at=day_end)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        sys.exit("It takes no arguments.")
    main()
