"""How many values a second the product stores for minutes on end: `make bench BENCH=sustained`.

The whole product on PostgreSQL polls a fleet whose light moves and whose ONUs fail and return, at an interval that asks
for a tenth more than was promised, with history, events and outages as operators have them. In the end world time
stands still, every OLT is polled once more, and what is stored is compared with the simulated world.
"""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from bench.both_databases import TESTS, private_server
from bench.fleet import Fleet, running_fleet
from bench.processes import Conversation, tree_seconds
from bench.product import KEYS, POLLERS, ProductTask, running_product
from bench.report import Section, Target

VALUES_PER_SECOND = 100_000
MORE = 1.1
CORES = 2.0
SECONDS = 300.0
LATENCY_MS = 5.0
ENGINE_MB = 250.0
SIMULATOR_SHARE = 0.8
SETTLE_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class ScheduledProduct:
    """The product on PostgreSQL, with a fleet that it polls at an interval."""

    fleet: Fleet
    driver: Conversation
    pids: tuple[int, ...]
    interval_seconds: int

    def watch(self, seconds: float) -> dict[str, Any]:
        """Let it poll for this time after it has come into step, and return what that brought and cost."""
        self.driver.ask("schedule", self.interval_seconds)
        time.sleep(self.interval_seconds + SETTLE_SECONDS)
        skipped, database = self.driver.ask("slots_skipped"), self.driver.ask("database_mb")
        cores, simulator, began_at = tree_seconds(*self.pids), self.fleet.cpu_seconds, time.perf_counter()
        time.sleep(seconds)
        passed = time.perf_counter() - began_at
        later = self.driver.ask("database_mb")
        return {
            **self.driver.ask("look_back", passed),
            "skipped": self.driver.ask("slots_skipped") - skipped,
            "cores": (tree_seconds(*self.pids) - cores) / passed,
            "simulator_share": (self.fleet.cpu_seconds - simulator) / passed / len(self.fleet.players),
            "database_mb": later["size"],
            "growth_mb": later["size"] - database["size"],
            "wal_mb": later["wal"] - database["wal"],
            "engine_mb": self.driver.ask("engine_mb"),
            "in_flight": self.fleet.max_in_flight,
        }

    def count_wrong(self) -> dict[str, Any]:
        """Stop the world, poll all of it once more, and compare."""
        self.driver.ask("schedule", 0)
        self.fleet.stand_still()
        self.driver.ask("poll")
        return dict(self.driver.ask("compare", self.fleet.truth(KEYS)))


@contextmanager
def scheduled_product(
    *, olts: int, onus: int, interval_seconds: int, players: int, nodes: int = 1
) -> Iterator[ScheduledProduct]:
    """Have everything polled once, with nothing scheduled yet."""
    sys.path.insert(0, str(TESTS))
    with (
        running_fleet(olts=olts, onus=onus, latency_ms=LATENCY_MS, speed=1.0, processes=players) as fleet,
        private_server() as (url, server),
        running_product(ProductTask(fleet.ports, min(POLLERS, olts), nodes=nodes), url) as driver,
    ):
        driver.ask("poll")
        yield ScheduledProduct(fleet, driver, (driver.ask("pid"), server), interval_seconds)


def measure_section(*, olts: int, onus: int, seconds: float, players: int = 1) -> Section:
    interval = max(int(olts * onus * len(KEYS) / (VALUES_PER_SECOND * MORE)), 1)
    with scheduled_product(olts=olts, onus=onus, interval_seconds=interval, players=players) as product:
        found = product.watch(seconds)
        wrong = product.count_wrong()
    for example in wrong["examples"]:
        print(f"wrong: {example}", file=sys.stderr)
    return Section(
        f"{olts} OLTs with {onus} ONUs each every {interval} s, for {seconds:g} s",
        (
            "Values a second",
            "Cores",
            "Missed slots",
            "Failed runs",
            "Late p99, s",
            "Engine, MB",
            "Simulator, cores a process",
        ),
        [
            (
                found["values_per_second"],
                found["cores"],
                found["skipped"],
                found["failed"],
                found["late_p99"],
                found["engine_mb"],
                found["simulator_share"],
            )
        ],
        [
            Target(
                f"{VALUES_PER_SECOND:,} values a second, of those stored",
                VALUES_PER_SECOND / max(found["values_per_second"], 1),
                1,
            ),
            Target("Cores of the product and its server", found["cores"], CORES),
            Target("Missed slots", found["skipped"], 0),
            Target("Failed runs", found["failed"], 0),
            Target(f"Values wrong or missing of {wrong['of']:,}", wrong["wrong"], 0),
            Target("Requests in flight on an OLT", found["in_flight"], 1),
            Target("MB of the engine", found["engine_mb"], ENGINE_MB),
            Target("Cores of each simulator process", found["simulator_share"], SIMULATOR_SHARE),
        ],
    )
