"""What a polled value costs from the device to the database: the product, a bare pipeline, and with peers Zabbix.

All read the same columns of one simulated fleet, with one request in flight for each OLT and as many OLTs at once. They
take turns; before each round the world moves on by five minutes and then stands still with its pages encoded, so that
all find the same changes. Each has a database server of its own. CPU is that of all its processes with their children,
the server's included.
"""

import json
import math
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any, Protocol

from bench.bare import BareColumn, BareTask
from bench.both_databases import TESTS, private_server
from bench.fleet import VENDOR, Fleet, running_fleet
from bench.processes import Conversation, conversation, tree_seconds
from bench.product import KEYS, ProductTask, percentile, running_product
from bench.report import Section, Target
from bench.zabbix import NoZabbix, ZabbixTask, find_version, running_zabbix
from facho.polling.vendors.column import Column
from facho.polling.vendors.index import Place
from facho.polling.vendors.loader import load_definitions

LATENCY_MS = 5.0
STEP_SECONDS = 300.0
BARE, PRODUCT, ON_SQLITE, ZABBIX = "bare pipeline", "product", "product on SQLite", "Zabbix"
OF_BARE, OF_ZABBIX, OF_POSTGRESQL, OF_ZABBIX_AT_INTERVAL = 1.5, 0.5, 1.0, 1.0
CPU_SECONDS_PER_MILLION = 10.0
ENGINE_MB = 250.0
# A simulator that is busier than this would be what is measured.
SIMULATOR_SHARE = 0.8
# A smaller fleet is polled more often, so that as many values come in a second as from this one.
INTERVAL_SECONDS, INTERVAL_ONUS = 300, 100_000
SETTLE_SECONDS, MIN_WINDOW_SECONDS = 10.0, 60.0


class Pipeline(Protocol):
    """Polls the whole fleet once when asked; its processes are its own and those of its database server."""

    own: tuple[int, ...]
    server: tuple[int, ...]

    def poll(self) -> dict[str, Any]:
        """Return when all values are stored, and tell how many."""

    def schedule(self, interval_seconds: int) -> object:
        """Poll at an interval; 0: no more."""

    def count_stored(self) -> int:
        """Return how many values have been stored so far."""


@dataclass(frozen=True, slots=True)
class PipelineSample:
    """One round of one pipeline; CPU in seconds per million values."""

    cpu: float
    server_cpu: float
    simulator_share: float
    values_per_second: float
    gaps_ms: Sequence[float]
    engine_mb: float
    asked_again: int


def measure_sections(*, olts: int, onus: int, rounds: int, interval_seconds: int, peers: bool) -> Iterator[Section]:
    """Measure saturated and, next to Zabbix, at an interval; compare with what was promised."""
    sys.path.insert(0, str(TESTS))
    with ExitStack() as stack:
        fleet = stack.enter_context(running_fleet(olts=olts, onus=onus, latency_ms=LATENCY_MS, speed=1.0))
        pipelines = dict(_start(stack, fleet, peers=peers))
        title = f"From {olts} OLTs with {onus} ONUs each to a database, {len(KEYS)} values an ONU"
        yield describe(title, measure_rounds(fleet, pipelines, rounds), peers=peers)
        if not peers:
            return
        for name in (BARE, ON_SQLITE):
            del pipelines[name]
        seconds = interval_seconds or max(INTERVAL_SECONDS * olts * onus // INTERVAL_ONUS, 1)
        yield _measure_interval(fleet, pipelines, seconds)


def _start(stack: ExitStack, fleet: Fleet, *, peers: bool) -> Iterator[tuple[str, Pipeline]]:
    definition = load_definitions()[VENDOR]
    columns = [definition.column(key) for key in KEYS]
    repetitions, at_once = definition.polling.max_repetitions, max(len(fleet.ports) // 4, 1)
    bare_columns = [_bare_column(column) for column in columns]
    yield BARE, stack.enter_context(_bare(BareTask("", fleet.ports, bare_columns, repetitions, at_once)))
    yield PRODUCT, stack.enter_context(running_on_postgresql(ProductTask(fleet.ports, at_once)))
    yield ON_SQLITE, _Driven(stack.enter_context(running_product(ProductTask(fleet.ports, at_once), None)))
    if not peers:
        return
    try:
        version = find_version()
    except NoZabbix as reason:
        print(f"No line of Zabbix: {reason}", flush=True)
        return
    indexes = {
        port: [".".join(map(str, columns[0].index.encode(Place(*map(int, at.split("/")))))) for at in onus]
        for port, onus in fleet.truth(KEYS[:1]).items()
    }
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    task = ZabbixTask(indexes, bare_columns, repetitions, at_once)
    yield f"{ZABBIX} {version}", stack.enter_context(running_zabbix(task, folder))


class _Driven:
    """A pipeline in a process of its own, or one that such a process drives."""

    def __init__(self, driver: Conversation, server: tuple[int, ...] = ()) -> None:
        self.server = server
        self._driver = driver
        self.own: tuple[int, ...] = (driver.ask("pid"),)

    def poll(self) -> dict[str, Any]:
        return dict(self._driver.ask("poll"))

    def schedule(self, interval_seconds: int) -> object:
        return self._driver.ask("schedule", interval_seconds)

    def count_stored(self) -> int:
        return int(self._driver.ask("count_stored"))


@contextmanager
def _bare(task: BareTask) -> Iterator[Pipeline]:
    with private_server() as (url, server):
        argument = json.dumps({**asdict(task), "database": url})
        with conversation("bench.bare", argument) as driver:
            yield _Driven(driver, (server,))


@contextmanager
def running_on_postgresql(task: ProductTask) -> Iterator[Pipeline]:
    """Run the product on a PostgreSQL of its own."""
    with private_server() as (url, server), running_product(task, url) as driver:
        yield _Driven(driver, (server,))


def _bare_column(column: Column) -> BareColumn:
    sentinels = [sentinel for sentinel in column.rule.sentinels if isinstance(sentinel, int)]
    return BareColumn(column.key, list(column.oid), float(column.rule.scale), sentinels)


def measure_rounds(fleet: Fleet, pipelines: dict[str, Pipeline], rounds: int) -> dict[str, list[PipelineSample]]:
    """Let the pipelines take turns, in another order each time; the first round, in which all is new, is left out."""
    samples: dict[str, list[PipelineSample]] = {name: [] for name in pipelines}
    names = list(pipelines)
    for number in range(rounds + 1):
        fleet.move_on(STEP_SECONDS, KEYS)
        for name in names[number % len(names) :] + names[: number % len(names)]:
            sample = _sample(pipelines[name], fleet)
            samples[name] += [sample] if number else []
    return samples


def _sample(pipeline: Pipeline, fleet: Fleet) -> PipelineSample:
    own, server, simulator = tree_seconds(*pipeline.own), tree_seconds(*pipeline.server), fleet.cpu_seconds
    began_at = time.perf_counter()
    told = pipeline.poll()
    seconds, values = time.perf_counter() - began_at, told["values"]
    own, server = tree_seconds(*pipeline.own) - own, tree_seconds(*pipeline.server) - server
    return PipelineSample(
        cpu=(own + server) / values * 1e6,
        server_cpu=server / values * 1e6,
        simulator_share=(fleet.cpu_seconds - simulator) / seconds,
        values_per_second=values / seconds,
        gaps_ms=told.get("gaps_ms", ()),
        engine_mb=told.get("engine_mb", 0.0),
        asked_again=told.get("asked_again", 0),
    )


def describe(title: str, samples: dict[str, list[PipelineSample]], *, peers: bool) -> Section:
    """Put medians in a table, with what they promise."""
    cpu = {name: median(sample.cpu for sample in taken) for name, taken in samples.items()}
    shares = {name: median(sample.simulator_share for sample in taken) for name, taken in samples.items()}
    return Section(
        title,
        (
            "Pipeline",
            "CPU s per million values",
            "Of the bare one",
            "Of it the server's",
            "Values a second",
            "Simulator, cores",
            "Walks asked again",
            "A poller idle between runs p99, ms",
        ),
        [
            (
                name,
                cpu[name],
                cpu[name] / cpu[BARE],
                median(sample.server_cpu for sample in taken),
                median(sample.values_per_second for sample in taken),
                shares[name],
                sum(sample.asked_again for sample in taken),
                # What waits here waits to be stored: all OLTs are asked for at once.
                percentile(gaps, 99) if (gaps := [gap for sample in taken for gap in sample.gaps_ms]) else "",
            )
            for name, taken in samples.items()
        ],
        [
            Target("CPU per value, of the bare pipeline's", cpu[PRODUCT] / cpu[BARE], OF_BARE),
            *_of_zabbix(cpu, OF_ZABBIX, peers=peers),
            Target("CPU s per million values", cpu[PRODUCT], CPU_SECONDS_PER_MILLION),
            Target("CPU per value on SQLite, of that on PostgreSQL", cpu[ON_SQLITE] / cpu[PRODUCT], OF_POSTGRESQL),
            Target("MB of the engine", max(sample.engine_mb for sample in samples[PRODUCT]), ENGINE_MB),
            Target("Cores of the simulator", max(shares[BARE], shares[PRODUCT]), SIMULATOR_SHARE),
        ],
    )


def _of_zabbix(cpu: Mapping[str, float], at_most: float, *, peers: bool) -> list[Target]:
    """Compare with Zabbix, if that was asked for; what was asked for and could not be measured does not hold."""
    zabbix = next((cost for name, cost in cpu.items() if name.startswith(ZABBIX)), math.nan)
    return [Target("CPU per value, of Zabbix's", cpu[PRODUCT] / zabbix, at_most)] if peers else []


def _measure_interval(fleet: Fleet, pipelines: dict[str, Pipeline], interval_seconds: int) -> Section:
    """Let all poll at the same interval at the same time; the first one, in which they get in step, does not count."""
    fleet.go_on()
    for pipeline in pipelines.values():
        pipeline.schedule(interval_seconds)
    time.sleep(interval_seconds + SETTLE_SECONDS)
    # Counting what a server has stored is work of that server, so it is done outside of what is measured.
    stored = _stored(pipelines)
    before = _cpu(pipelines)
    time.sleep(max(interval_seconds, MIN_WINDOW_SECONDS))
    after = _cpu(pipelines)
    cost = {
        name: (after[name] - before[name]) / (count - stored[name]) * 1e6 for name, count in _stored(pipelines).items()
    }
    for pipeline in pipelines.values():
        pipeline.schedule(0)
    return Section(
        f"The same fleet at an interval of {interval_seconds} s",
        ("Pipeline", "CPU s per million values"),
        list(cost.items()),
        _of_zabbix(cost, OF_ZABBIX_AT_INTERVAL, peers=True),
    )


def _cpu(pipelines: Mapping[str, Pipeline]) -> dict[str, float]:
    return {name: tree_seconds(*pipeline.own, *pipeline.server) for name, pipeline in pipelines.items()}


def _stored(pipelines: Mapping[str, Pipeline]) -> dict[str, int]:
    return {name: pipeline.count_stored() for name, pipeline in pipelines.items()}
