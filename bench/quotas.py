"""Whether quotas are counted, judged and foreseen rightly: a week of 100 OLTs by the rules alone, in virtual time,
and six hours of 20 OLTs through the database, in virtual time too.

Run as a program it plays the six hours on the database of DATABASE_URL (or SQLite) and prints its figures as JSON.
"""

import asyncio
import json
import logging
import os
import sys
import time
from typing import Any

from bench.both_databases import TESTS, measure_on_both
from bench.private_database import private_database
from bench.report import Section, Target

WEEK_HOURS = 7 * 24
WEEK_OLTS = 100
# Two worlds that a forecast has to do with: in one old outages last, in the other they end as any.
OUTAGES = ("any scale", "without memory")
HOURS, OLTS = 6, 20
# A look each second, and a pass every five, would take an hour.
TICK_SECONDS, PASS_SECONDS, PROBE_SECONDS = 10.0, 15.0, 10.0


def measure_rules() -> Section:
    """Play the weeks, and compare the rules with the journals."""
    rows, targets = [], []
    for lengths in OUTAGES:
        found = _play_week(lengths)
        rows.append([f"outages of lengths {lengths}", *found.values()])
        targets += [
            Target(f"{lengths}: hours that are not counted as the journal has them", found["wrong"], 0),
            Target(f"{lengths}: s from an hour's end to a violation that was certain", found["late"], 60),
            Target(
                f"{lengths}: % of the violations of early cause that were not announced in time",
                found["unannounced"],
                10,
            ),
            Target(f"{lengths}: % of the announcements that were false", found["false"], 10),
        ]
    head = ("Week of 100 OLTs", "Quotas", "Wrong", "Violations", "Late, s", "Not announced, %", "False, %", "CPU, s")
    return Section("Quotas by the rules alone", head, rows, targets)


def measure_tables() -> Section:
    """Play the hours on both databases, and compare the trackers with an independent count."""
    figures = measure_on_both("bench.quotas")
    targets = [
        target
        for name, found in figures.items()
        for target in (
            Target(f"{name}: trackers that differ from an independent count", found["wrong"], 0),
            Target(f"{name}: violations that are missing or groundless", found["misjudged"], 0),
            Target(f"{name}: s from when it was certain to a violation", found["late"], 60),
        )
    ]
    head = ("Database", "Trackers", "Slots", "Wrong", "Violations", "Misjudged", "Late, s", "CPU, s")
    rows = [[name, *found.values()] for name, found in figures.items()]
    return Section(f"Quotas of {HOURS} hours of {OLTS} OLTs", head, rows, targets)


def _play_week(lengths: str) -> dict[str, float]:
    sys.path.insert(0, str(TESTS / "polling" / "domain"))
    from quota_truth import measure_foresight, measure_lateness, miscounted
    from virtual_fleet import make_fleet
    from virtual_quotas import QuotaNetwork

    began_at = time.process_time()
    network = QuotaNetwork(*make_fleet(WEEK_OLTS, hours=WEEK_HOURS, lengths=lengths, seed=1))
    network.play()
    foresight = measure_foresight(network)
    return {
        "quotas": foresight.hours,
        "wrong": len(miscounted(network)),
        "violations": foresight.violations,
        "late": measure_lateness(network),
        "silent": (1 - foresight.share_told) * 100,
        "false": foresight.share_false * 100,
        "cpu": time.process_time() - began_at,
    }


def main() -> None:
    with private_database(os.environ.get("DATABASE_URL")):
        print(json.dumps(_play_hours()))


def _play_hours() -> dict[str, Any]:
    from bench.counted_hours import compare
    from bench.polled_hours import Pace, PolledHours
    from bench.virtual_loop import VirtualTimeLoop
    from facho.zabbix_pollers import scheduler

    # Thousands of runs have nothing to say besides the figures.
    logging.getLogger("facho").setLevel(logging.ERROR)
    scheduler.TICK_SECONDS = TICK_SECONDS

    async def play() -> PolledHours:
        world = PolledHours(Pace(PASS_SECONDS, PROBE_SECONDS), olts=OLTS, hours=HOURS)
        await world.play()
        return world

    began_at = time.process_time()
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        compared = compare(runner.run(play()))
    return {
        "trackers": compared.trackers,
        "slots": compared.slots,
        "wrong": len(compared.wrong),
        "violations": compared.violations,
        "misjudged": len(compared.unraised | compared.groundless),
        "late": compared.worst_seconds,
        "cpu": time.process_time() - began_at,
    }


if __name__ == "__main__":
    main()
