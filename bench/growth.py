"""What happens when a network grows: 10,000 and 100,000 ONUs (`make bench BENCH=growth`), or a million of them.

The whole product on PostgreSQL polls six values of each ONU at an interval. Told are what it keeps of its schedule,
what it needs, how pages are while it polls, and the first thing that breaks. A million ONUs (`BENCH=million`) take
minutes until all are found, and gigabytes for the simulator; longer intervals are tried until one holds.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace

from bench.product import KEYS
from bench.report import Section, Target
from bench.sustained import ScheduledProduct, scheduled_product

SIZES = (10_000, 100_000)
ONUS_PER_OLT = 500
ONUS_PER_PLAYER = 250_000
# Two, which come due together: one waits for the other's end, so each OLT is handed over once an interval.
NODES_PER_OLT = 2
INTERVAL_SECONDS = 60
DAY_SECONDS = 86_400
MILLION, MILLION_INTERVALS = 1_000_000, (60, 120, 300)
SHOWN: Mapping[str, str] = {
    "values_per_second": "Values a second",
    "cadence_p50": "Cadence p50, s",
    "cadence_p99": "Cadence p99, s",
    "late_p99": "Late p99, s",
    "claim_p99": "Claimed late p99, s",
    "hand_over_p99_ms": "End to next start p99, ms",
    "hand_overs": "of ends",
    "skipped": "Missed slots",
    "cores": "Cores",
    "engine_mb": "Engine, MB",
    "database_mb": "Database, MB",
    "mb_a_day": "Database, MB a day",
    "wal_bytes": "WAL, bytes a value",
    "page_ms": "Slowest page, ms",
}
# What breaks, in the order in which it is named, with its bound and the column that tells it.
BOUNDS: Mapping[str, tuple[str, float]] = {
    "simulator_share": ("the simulator is what is measured, cores of a process", 0.8),
    "failed": ("runs fail", 0),
    "skipped": ("slots are missed", 0),
    "claim_p99": ("the scheduler's tick is late, s", 5),
    "late_p99": ("runs start late, s", 30),
    "hand_over_p99_ms": ("an OLT waits between two runs, ms", 50),
    "cores": ("the cores do not suffice", 1.9),
    "engine_mb": ("memory of the engine, MB for 100,000 ONUs", 250),
    "page_ms": ("pages are slow while polling, ms", 1000),
}


def measure_section(sizes: Sequence[int], *, interval_seconds: int, seconds: float) -> Section:
    """Measure each size; a size at which something breaks is the last."""
    found = dict(_measure(sizes, interval_seconds, seconds))
    broken = {size: first_to_break(size, figures) for size, figures in found.items()}
    return Section(
        f"Growth: {len(KEYS)} values of each ONU every {interval_seconds} s",
        ("ONUs", *SHOWN.values(), "Breaks first"),
        [(size, *(figures[name] for name in SHOWN), broken[size] or "nothing") for size, figures in found.items()],
        [Target(f"Things that break with {size:,} ONUs", int(bool(broken[size])), 0) for size in found],
    )


def measure_million(seconds: float) -> Section:
    """Poll a million ONUs at the shortest interval that holds."""
    found: dict[int, dict[str, float]] = {}
    with _network(MILLION, MILLION_INTERVALS[0]) as product:
        for interval in MILLION_INTERVALS:
            # Fewer intervals than one would see a part of the network only.
            found[interval] = _watch(replace(product, interval_seconds=interval), max(seconds, interval))
            if not first_to_break(MILLION, found[interval]):
                break
    broken = {interval: first_to_break(MILLION, figures) for interval, figures in found.items()}
    held = next((interval for interval, reason in broken.items() if not reason), math.inf)
    return Section(
        f"{MILLION:,} ONUs, {len(KEYS)} values of each",
        ("Interval, s", *SHOWN.values(), "Breaks first"),
        [
            (interval, *(figures[name] for name in SHOWN), broken[interval] or "nothing")
            for interval, figures in found.items()
        ],
        [Target(f"Seconds of the interval that holds with {MILLION:,} ONUs", held, MILLION_INTERVALS[-1])],
    )


def _measure(sizes: Sequence[int], interval_seconds: int, seconds: float) -> Iterator[tuple[int, dict[str, float]]]:
    for size in sizes:
        with _network(size, interval_seconds) as product:
            figures = _watch(product, seconds)
        yield size, figures
        if first_to_break(size, figures):
            return


def _network(size: int, interval_seconds: int) -> AbstractContextManager[ScheduledProduct]:
    olts, players = -(-size // ONUS_PER_OLT), -(-size // ONUS_PER_PLAYER)
    onus = min(size, ONUS_PER_OLT)
    return scheduled_product(
        olts=olts, onus=onus, interval_seconds=interval_seconds, players=players, nodes=NODES_PER_OLT
    )


def _watch(product: ScheduledProduct, seconds: float) -> dict[str, float]:
    figures = product.watch(seconds)
    figures["mb_a_day"] = figures["growth_mb"] / seconds * DAY_SECONDS
    figures["wal_bytes"] = figures["wal_mb"] * 1e6 / max(figures["values_per_second"] * seconds, 1)
    figures["page_ms"] = max(product.driver.ask("pages").values())
    product.driver.ask("schedule", 0)
    return figures


def first_to_break(size: int, figures: Mapping[str, float]) -> str:
    """Name the first thing beyond its bound, with both; empty when all hold."""
    for name, (words, bound) in BOUNDS.items():
        allowed = bound * max(size / 100_000, 1) if name == "engine_mb" else bound
        if figures[name] > allowed:
            return f"{words}: {figures[name]:.3g} (at most {allowed:g})"
    return ""
