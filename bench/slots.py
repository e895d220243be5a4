"""Whether any slot gets lost, doubled or vanishes when everything happens: a million executions by the rules alone, and
some hours through the database, both in virtual time.

`python -m bench.slots` plays both and prints what was found; it ends with an error when a slot is unaccounted for.
"""

import argparse
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

EXECUTIONS = 1_000_000
HOURS, OLTS = 4, 20
# A look each second, and a pass every five, would take an hour.
TICK_SECONDS, PASS_SECONDS, PROBE_SECONDS = 10.0, 15.0, 10.0
ON_ONE_DATABASE = "--on-one-database"


def measure_rules(executions: int = EXECUTIONS) -> Section:
    """Play storm after storm, each with another fate, until there were so many executions."""
    sys.path[:0] = [str(TESTS), str(TESTS / "polling" / "domain")]
    from virtual_storm import play_storm

    began_at = time.process_time()
    seed, found = 1, play_storm(1)
    while found.executions < executions:
        seed += 1
        found += play_storm(seed)
        print(f"{found.executions:,} executions", end="\r", file=sys.stderr, flush=True)
    head = ("Storms", "Executions", "Slots owed", "Served", "Skipped", "Broken off", "CPU, s")
    cpu_seconds = time.process_time() - began_at
    row = [seed, found.executions, found.owed, found.served, found.skipped, found.interrupted, cpu_seconds]
    targets = [
        Target("operations that met on an OLT", found.overlaps, 0),
        Target("slots that were started twice", found.doubled, 0),
        Target("owed slots neither served nor reported as skipped", found.unaccounted, 0),
    ]
    return Section("Slots in storms, by the rules alone", head, [row], targets)


def measure_tables() -> Section:
    """Play hours on both databases, with every step of every node noted by the database."""
    figures = measure_on_both("bench.slots", ON_ONE_DATABASE)
    targets = [
        target
        for name, found in figures.items()
        for target in (
            Target(f"{name}: slots that were started twice", found["doubled"], 0),
            Target(f"{name}: owed slots without a run, a reason or a line in the log", found["unaccounted"], 0),
        )
    ]
    head = ("Database", "Executions", "Slots owed", "Served", "Skipped", "Broken off and reported", "CPU, s")
    columns = ("executions", "owed", "served", "skipped", "reported", "cpu")
    rows = [[name, *(found[column] for column in columns)] for name, found in figures.items()]
    return Section(f"Slots of {HOURS} stormy hours of {OLTS} OLTs", head, rows, targets)


def play_hours(*, olts: int = OLTS, hours: int = HOURS) -> dict[str, Any]:
    """Play hours with kills, a clock that is set and people who change things, and audit every slot."""
    sys.path.insert(0, str(TESTS))
    from bench.polled_hours import Pace, PolledHours
    from bench.virtual_loop import VirtualTimeLoop
    from facho.executions.models import Execution
    from slot_audit import audit_database, noting_steps

    async def play() -> None:
        world = PolledHours(Pace(PASS_SECONDS, PROBE_SECONDS), olts=olts, hours=hours, is_stormy=True)
        await world.play()

    with noting_steps():
        with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
            runner.run(play())
        audit = audit_database(in_virtual_time=True)
    return {
        "executions": Execution.objects.count(),
        "owed": audit.owed,
        "served": audit.fates["success"] + audit.fates["failed"],
        "skipped": sum(count for fate, count in audit.fates.items() if fate.startswith("skipped")),
        "reported": audit.fates["broken off, reported"],
        "doubled": len(audit.started_twice),
        "unaccounted": len(audit.unaccounted),
        "examples": audit.unaccounted[:5],
    }


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.slots", description=__doc__)
    parser.add_argument("--executions", type=int, default=EXECUTIONS, help="by the rules alone (default: 1,000,000)")
    parser.add_argument(ON_ONE_DATABASE, action="store_true", help="only the hours, on the database of DATABASE_URL")
    arguments = parser.parse_args()
    if arguments.on_one_database:
        with private_database(os.environ.get("DATABASE_URL")):
            print(json.dumps(_measure_hours()))
        return 0
    sections = [measure_rules(arguments.executions), measure_tables()]
    for section in sections:
        print(section.markdown)
    return 0 if all(target.is_met for section in sections for target in section.targets) else 1


def _measure_hours() -> dict[str, Any]:
    from facho.zabbix_pollers import scheduler

    # Thousands of runs have nothing to say besides the figures.
    logging.getLogger("facho").setLevel(logging.ERROR)
    scheduler.TICK_SECONDS = TICK_SECONDS
    began_at = time.process_time()
    return {**play_hours(), "cpu": time.process_time() - began_at}


if __name__ == "__main__":
    sys.exit(main())
