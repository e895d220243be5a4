"""What happens when a network grows: `python -m bench.growth` polls 10,000 and 100,000 ONUs, or other sizes.

The whole product on PostgreSQL polls six values of each ONU at an interval. Told are what it keeps of its schedule,
what it needs, how pages are while it polls, and the first thing that breaks. A million ONUs take minutes until all are
found, and gigabytes for the simulator.
"""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence

from bench.product import KEYS
from bench.report import Section, Target, print_sections
from bench.sustained import scheduled_product

SIZES = (10_000, 100_000)
ONUS_PER_OLT = 500
ONUS_PER_PLAYER = 250_000
INTERVAL_SECONDS = 60
DAY_SECONDS = 86_400
SHOWN: Mapping[str, str] = {
    "values_per_second": "Values a second",
    "cadence_p50": "Cadence p50, s",
    "cadence_p99": "Cadence p99, s",
    "late_p99": "Late p99, s",
    "claim_p99": "Claimed late p99, s",
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


def _measure(sizes: Sequence[int], interval_seconds: int, seconds: float) -> Iterator[tuple[int, dict[str, float]]]:
    for size in sizes:
        olts, players = -(-size // ONUS_PER_OLT), -(-size // ONUS_PER_PLAYER)
        onus = min(size, ONUS_PER_OLT)
        with scheduled_product(olts=olts, onus=onus, interval_seconds=interval_seconds, players=players) as product:
            figures = product.watch(seconds)
            figures["mb_a_day"] = figures["growth_mb"] / seconds * DAY_SECONDS
            figures["wal_bytes"] = figures["wal_mb"] * 1e6 / max(figures["values_per_second"] * seconds, 1)
            figures["page_ms"] = max(product.driver.ask("pages").values())
            product.driver.ask("schedule", 0)
        yield size, figures
        if first_to_break(size, figures):
            return


def first_to_break(size: int, figures: Mapping[str, float]) -> str:
    """Name the first thing beyond its bound, with both; empty when all hold."""
    for name, (words, bound) in BOUNDS.items():
        allowed = bound * max(size / 100_000, 1) if name == "engine_mb" else bound
        if figures[name] > allowed:
            return f"{words}: {figures[name]:.3g} (at most {allowed:g})"
    return ""


def main() -> int:
    """Measure this alone."""
    parser = argparse.ArgumentParser(prog="python -m bench.growth", description=__doc__)
    parser.add_argument(
        "sizes", nargs="*", type=int, default=list(SIZES), help="numbers of ONUs (default: 10000 100000)"
    )
    parser.add_argument("--interval", type=int, default=INTERVAL_SECONDS, help="seconds (default: 60)")
    parser.add_argument("--seconds", type=float, default=180.0, help="of measuring at each size (default: 180)")
    options = parser.parse_args()
    return print_sections(
        [measure_section(options.sizes, interval_seconds=options.interval, seconds=options.seconds)], keep_as="growth"
    )


if __name__ == "__main__":
    sys.exit(main())
