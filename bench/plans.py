"""Plans against what then really happened: the whole engine polls simulated OLTs for some hours of virtual time.

Starts and lengths that were planned an hour ahead are compared with the executions of the same slots, and the minutes
of work that were foreseen with those that were used. Also ways to foresee a length, on simulated histories.
Needs a database and Django.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from random import Random
from statistics import median, quantiles
from typing import Any

from django.db import connection
from django.db.models import Sum

from bench.report import Section, Target
from bench.truth import EPOCH
from bench.virtual_engine import DirectGateway, LoopClock, add_simulated_olt
from bench.virtual_loop import VirtualTimeLoop
from facho.core.wiring import build_engine, open_parts
from facho.execution_coordinator.coordinator import ExecutionCoordinator
from facho.execution_coordinator.feasibility import load_feasibility
from facho.execution_coordinator.models import ExecutionPlan, PlanStatus
from facho.executions.models import Execution
from facho.hosts.models import Olt
from facho.polling.domain.feasibility import RUNS_REMEMBERED, PastRun, estimate_seconds
from facho.simulator.agent import CostModel, Faults
from facho.simulator.server import Simulation, SimulatorConfig
from facho.simulator.world import STILL, Chassis
from facho.snmp_jobs.application import apply_ready_made_jobs

HOUR = timedelta(hours=1)
# In the first one it is learned how long runs take.
HOURS = 3
OLTS = 3
ONUS = 600
LOST = 0.02
KEEP_SECONDS = 60.0
# The scheduler looks once a second.
START_ERROR_SECONDS = 1.0
HISTORIES = 200


@dataclass(frozen=True, slots=True)
class Compared:
    """Planned runs beside real ones: errors in seconds, and how many had no counterpart."""

    start_errors: Sequence[float]
    length_errors: Sequence[float]
    missing: int
    unplanned: int
    minutes_errors: Sequence[float]


def measure_section() -> Section:
    """Play the hours and compare; then the ways to foresee a length."""
    # Hundreds of runs have nothing to say besides the figures.
    logging.getLogger("facho").setLevel(logging.WARNING)
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(play(olts=OLTS, onus=ONUS, hours=HOURS))
    compared = compare(hours=HOURS)
    lengths = [("length of a run: " + name, *errors) for name, errors in foresee_lengths().items()]
    return Section(
        f"Plans of {OLTS} simulated OLTs with {ONUS} ONUs, {LOST:.0%} of replies lost, against what they did",
        ("Foreseen", "Error in the middle", "Error at p95"),
        [
            ("start of a run, s", *_middle_and_p95(compared.start_errors)),
            ("length of a run, s", *_middle_and_p95(compared.length_errors)),
            ("minutes of SNMP per hour", *_middle_and_p95(compared.minutes_errors)),
            *lengths,
        ],
        [
            Target("Median error of the predicted start, s", median(compared.start_errors), START_ERROR_SECONDS),
            Target("Planned runs that did not happen", compared.missing, 0),
            Target("Runs that were not planned", compared.unplanned, 0),
        ],
    )


async def play(*, olts: int, onus: int, hours: int) -> None:
    """Let scheduler, pollers, collectors and plans work on simulated OLTs with their ready-made jobs."""
    config = SimulatorConfig(
        vendor="huawei_smartax",
        olts=olts,
        onus=onus,
        chassis=Chassis(cards=2, ports_per_card=16, used_ports=22),
        life=STILL,
        started_at=EPOCH,
        faults=Faults(loss=LOST, cost=CostModel()),
    )
    Olt.objects.all().delete()
    async with Simulation.start(config) as simulation, open_parts("bench") as parts:
        clock: Any = LoopClock(EPOCH)
        gateway: Any = DirectGateway()
        for simulated in simulation.olts:
            apply_ready_made_jobs(add_simulated_olt(simulated), now=clock.now())
        engine = build_engine(replace(parts, database=gateway, clock=clock))
        # Plans are made again when the first discovery of an OLT is over, so the whole pass is played.
        coordinator = ExecutionCoordinator()
        stop = asyncio.Event()
        loop = asyncio.create_task(engine.scheduler.scheduler_loop(stop))
        while clock.now() < EPOCH + hours * HOUR:
            coordinator.run_pass(clock.now())
            await asyncio.sleep(KEEP_SECONDS)
        stop.set()
        await loop
        await engine.executor.drain(timeout_seconds=1_000)
        # A running loop has a connection of its own, which no one else would close.
        connection.close()


def compare(*, hours: int) -> Compared:
    """Hold the plans of the hours after the first against the executions of their slots."""
    since, until = EPOCH + HOUR, EPOCH + hours * HOUR
    planned = {
        (run["node_id"], datetime.fromisoformat(run["slot_at"])): run
        for plan in ExecutionPlan.objects.filter(period_start__gte=since, period_start__lt=until)
        if plan.status in (PlanStatus.ACTIVE, PlanStatus.COMPLETED)
        for run in plan.plan_data
    }
    masters = Execution.objects.filter(slot_at__gte=since, slot_at__lt=until, master_execution__isnull=True)
    real = {(run.node_id, run.slot_at): run for run in masters}
    # What was due in the last seconds had no time left.
    ended = {key for key in planned if key[1] < until - timedelta(seconds=KEEP_SECONDS)}
    pairs = [(planned[key], real[key]) for key in planned.keys() & real.keys()]
    return Compared(
        start_errors=[
            abs((run.created_at - datetime.fromisoformat(plan["starts_at"])).total_seconds()) for plan, run in pairs
        ],
        length_errors=[abs(_seconds(run) - plan["seconds"]) for plan, run in pairs if plan["seconds"] is not None],
        missing=len(ended - real.keys()),
        unplanned=len(real.keys() - planned.keys()),
        minutes_errors=list(_minutes_errors(hours)),
    )


def _minutes_errors(hours: int) -> Iterator[float]:
    """Yield by how much the work of an hour was misjudged, for each OLT."""
    span = {"slot_at__gte": EPOCH + HOUR, "slot_at__lt": EPOCH + hours * HOUR}
    for olt_id, found in load_feasibility().items():
        runs = Execution.objects.filter(olt_id=olt_id, **span).aggregate(total=Sum("duration_ms"))
        used = (runs["total"] or 0) / 60_000 / (hours - 1)
        yield abs(found.judged.minutes_per_hour - used)


def _seconds(master: Execution) -> float:
    """Return how long a composite held its OLT."""
    members = Execution.objects.filter(master_execution=master).aggregate(total=Sum("duration_ms"))
    return (master.duration_ms + (members["total"] or 0)) / 1000


def foresee_lengths() -> dict[str, tuple[float, float]]:
    """Compare ways to foresee the next run's length, by their error in per cent, over simulated histories.

    Runs take a fixed time and a time for each ONU, vary by a tenth, and one in twenty takes twice as long. ONUs come
    and leave by the day, and now and then a whole card of them is added.
    """
    ways: dict[str, Callable[[Sequence[PastRun], int], float]] = {
        "scaled median (ours), %": lambda runs, onus: estimate_seconds(runs, onus=onus) or 0.0,
        "plain median, %": lambda runs, onus: median(run.seconds for run in runs),
        "last run, %": lambda runs, onus: runs[-1].seconds,
        "last run, scaled, %": lambda runs, onus: runs[-1].seconds * onus / runs[-1].onus,
        "scaled mean, %": lambda runs, onus: sum(run.seconds * onus / run.onus for run in runs) / len(runs),
    }
    errors: dict[str, list[float]] = {name: [] for name in ways}
    luck = Random(1)
    for _ in range(HISTORIES):
        history = _history(luck)
        for number in range(RUNS_REMEMBERED, len(history)):
            past, next_run = history[number - RUNS_REMEMBERED : number], history[number]
            for name, foresee in ways.items():
                error = abs(foresee(past, next_run.onus) - next_run.seconds) / next_run.seconds
                errors[name].append(error * 100)
    return {name: _middle_and_p95(found) for name, found in errors.items()}


def _history(luck: Random) -> list[PastRun]:
    onus, runs = luck.randrange(50, 2_000), []
    fixed_seconds, seconds_per_onu = luck.uniform(0, 2), luck.choice((0.005, 0.02, 0.1))
    for _ in range(5 * RUNS_REMEMBERED):
        onus = max(onus + luck.randrange(-3, 5), 1) + (onus // 2 if luck.random() < 0.01 else 0)
        online = round(onus * luck.uniform(0.9, 1.0))
        seconds = (fixed_seconds + seconds_per_onu * online) * luck.uniform(0.9, 1.1)
        runs.append(PastRun(seconds * (2 if luck.random() < 0.05 else 1), online))
    return runs


def _middle_and_p95(errors: Sequence[float]) -> tuple[float, float]:
    return median(errors), quantiles(errors, n=20, method="inclusive")[18]
