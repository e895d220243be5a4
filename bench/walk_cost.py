"""What walking a fleet costs, against gufo-snmp's asyncio walk and Debian's prometheus-snmp-exporter.

Every round walks the same rows with each client in turn, so that whatever else the machine does hits all of them.
"""

import json
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from statistics import median

from bench.clients import Cost, Task
from bench.exporter import running_exporter
from bench.fleet import VENDOR, Fleet, running_fleet
from bench.processes import ROOT, own_module
from bench.report import Section, Target

KEYS = ["onu.serial", "onu.description", "onu.run_state", "onu.distance", "onu.last_down_cause", "onu.last_up"]
FACHO, DECODED, GUFO, EXPORTER = "facho", "facho-decoded", "gufo", "prometheus-snmp-exporter"
# What the definition of the simulated family asks for.
REPETITIONS = 25
LATENCY_MS = 5.0
CLIENT_SECONDS = 300
# CPU per varbind, as a part of what these need.
AT_MOST = {GUFO: 1.0, EXPORTER: 0.35}
MAX_MEMORY_MB = 150.0

Walk = Callable[[Task], Cost]


class RowsDiffer(Exception):
    """Clients did not read the same number of rows: their costs cannot be compared."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One walk of the fleet: what it cost the client, and what it cost the simulator to answer."""

    cost: Cost
    simulator_seconds: float


@dataclass(frozen=True, slots=True)
class Figures:
    """Medians of one client over all rounds."""

    rows: int
    cpu_us_per_varbind: float
    simulator_us_per_varbind: float
    wall_seconds: float
    peak_mb: float


def measure_walks(names: Sequence[str], *, olts: int, onus: int, rounds: int) -> dict[str, Figures]:
    """Play a fleet and let each client walk it `rounds` times, in turn."""
    with running_fleet(olts=olts, onus=onus, latency_ms=LATENCY_MS) as fleet:
        task = Task(fleet.ports, VENDOR, KEYS, REPETITIONS)
        with _clients(names, task) as clients:
            # Pages are encoded when they are first asked for.
            clients[FACHO](task)
            samples: dict[str, list[Sample]] = {name: [] for name in names}
            for _ in range(rounds):
                for name in names:
                    samples[name].append(_sample(clients[name], task, fleet))
    figures = {name: _summarise(taken) for name, taken in samples.items()}
    if any(found.rows != olts * onus * len(KEYS) for found in figures.values()):
        raise RowsDiffer(", ".join(f"{name} {found.rows}" for name, found in figures.items()))
    return figures


@contextmanager
def _clients(names: Sequence[str], task: Task) -> Iterator[Mapping[str, Walk]]:
    clients: dict[str, Walk] = {name: partial(_walk_in_process, name) for name in names}
    if EXPORTER not in names:
        yield clients
        return
    with tempfile.TemporaryDirectory() as folder, running_exporter(task, Path(folder)) as exporter:
        yield {**clients, EXPORTER: exporter.walk}


def _walk_in_process(name: str, task: Task) -> Cost:
    done = subprocess.run(
        own_module("bench.clients", name),
        input=json.dumps(asdict(task)),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        timeout=CLIENT_SECONDS,
        check=True,
    )
    return Cost(**json.loads(done.stdout))


def _sample(walk: Walk, task: Task, fleet: Fleet) -> Sample:
    before = fleet.cpu_seconds
    return Sample(walk(task), fleet.cpu_seconds - before)


def _summarise(samples: Sequence[Sample]) -> Figures:
    rows = min(sample.cost.rows for sample in samples)
    return Figures(
        rows=rows,
        cpu_us_per_varbind=median(sample.cost.cpu_seconds for sample in samples) / rows * 1e6,
        simulator_us_per_varbind=median(sample.simulator_seconds for sample in samples) / rows * 1e6,
        wall_seconds=median(sample.cost.wall_seconds for sample in samples),
        peak_mb=max(sample.cost.peak_mb for sample in samples),
    )


def describe(found: Mapping[str, Figures]) -> Section:
    ours = found[FACHO]
    return Section(
        f"Walking {len(KEYS)} columns of many OLTs, {ours.rows:,} varbinds",
        ("Client", "CPU µs per varbind", "Relative to Facho", "Memory MB", "Seconds", "Simulator's CPU µs per varbind"),
        [
            (
                name,
                figures.cpu_us_per_varbind,
                figures.cpu_us_per_varbind / ours.cpu_us_per_varbind,
                figures.peak_mb,
                figures.wall_seconds,
                figures.simulator_us_per_varbind,
            )
            for name, figures in found.items()
        ],
        [
            *(
                Target(f"CPU per varbind, of {peer}'s", ours.cpu_us_per_varbind / found[peer].cpu_us_per_varbind, limit)
                for peer, limit in AT_MOST.items()
                if peer in found
            ),
            Target("Memory of the client, MB", ours.peak_mb, MAX_MEMORY_MB),
            Target("Simulator's CPU, of the client's", ours.simulator_us_per_varbind / ours.cpu_us_per_varbind, 1.0),
        ],
    )
