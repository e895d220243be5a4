"""`python -m bench` measures what the engine costs and tells whether its promises hold; `make bench` runs it.

With names of parts it measures those alone and keeps each under its name. A million ONUs and the answers to other
systems are measured only when they are named: they take minutes and gigabytes more.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping

from bench import (
    distributed,
    end_to_end,
    exporter,
    gets,
    growth,
    history,
    light,
    light_cost,
    neighbours,
    onu_list,
    onu_store,
    pages,
    quotas,
    report,
    run_cost,
    scheduling,
    slots,
    sustained,
    walk_cost,
)
from bench.private_database import private_database
from bench.report import Section

Measure = Callable[[argparse.Namespace], Iterable[Section]]


def main() -> int:
    """Measure, print, keep; 1 when a promise does not hold."""
    options = _arguments()
    if not options.parts:
        return report.print_sections(_measure(PARTS, options), keep_as=report.WHOLE)
    ended = [report.print_sections(_measure([name], options), keep_as=name) for name in options.parts]
    return max(ended)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    names = [*PARTS, *WHEN_NAMED]
    parser.add_argument("parts", nargs="*", metavar="part", help=f"what to measure alone: {', '.join(names)}")
    parser.add_argument("--rounds", type=int, default=5, help="times that each client walks the fleet (default: 5)")
    parser.add_argument("--olts", type=int, default=200, help="OLTs of the fleet (default: 200)")
    parser.add_argument("--onus", type=int, default=500, help="ONUs of each OLT (default: 500)")
    parser.add_argument("--history-onus", type=int, default=20_000, help="ONUs with a history (default: 20,000)")
    parser.add_argument("--listed-onus", type=int, default=1_000_000, help="ONUs of the list (default: 1,000,000)")
    parser.add_argument(
        "--interval", type=int, default=0, help="seconds (default: 300 for 100,000 ONUs, less for fewer)"
    )
    parser.add_argument("--sustained-seconds", type=float, default=300.0, help="of sustained load (default: 300)")
    parser.add_argument("--growth-seconds", type=float, default=180.0, help="of each size (default: 180)")
    parser.add_argument("--peers", action="store_true", help="with Zabbix, installed if need be and if root")
    options = parser.parse_args()
    if unknown := [name for name in options.parts if name not in names]:
        parser.error(f"no such part: {', '.join(unknown)}; there are {', '.join(names)}")
    return options


def _measure(names: Iterable[str], options: argparse.Namespace) -> Iterator[Section]:
    """Measure parts one after the other, and print how long each took."""
    for name in names:
        began_at = time.monotonic()
        yield from {**PARTS, **WHEN_NAMED}[name](options)
        print(f"{name}: {time.monotonic() - began_at:.0f} s\n", flush=True)


def _walk(options: argparse.Namespace) -> Iterator[Section]:
    names = [walk_cost.FACHO, walk_cost.DECODED, walk_cost.GUFO]
    if exporter.is_available():
        names.append(walk_cost.EXPORTER)
    found = walk_cost.measure_walks(names, olts=options.olts, onus=options.onus, rounds=options.rounds)
    yield walk_cost.describe(found)


def _values(options: argparse.Namespace) -> Iterator[Section]:
    return end_to_end.measure_sections(
        olts=options.olts,
        onus=options.onus,
        rounds=options.rounds,
        interval_seconds=options.interval,
        peers=options.peers,
    )


def _devices(options: argparse.Namespace) -> Iterator[Section]:
    with private_database():
        # Its models can be imported only now.
        from bench import chassis, plans

        yield chassis.measure_section(rounds=options.rounds)
        yield chassis.measure_first_contact()
        yield plans.measure_section()


PARTS: Mapping[str, Measure] = {
    "values": _values,
    "sustained": lambda options: [
        sustained.measure_section(olts=options.olts, onus=options.onus, seconds=options.sustained_seconds)
    ],
    "gets": lambda options: [gets.measure_section(olts=options.olts, onus=options.onus, rounds=options.rounds)],
    "runs": lambda _: (measure() for measure in (run_cost.measure_section, distributed.measure_fixed_cost)),
    "walk": _walk,
    "store": lambda _: [onu_store.measure_section()],
    "list": lambda options: [onu_list.measure_section(options.listed_onus)],
    "pages": lambda _: [pages.measure_section()],
    "history": lambda options: [history.measure_section(options.history_onus)],
    "scheduling": lambda _: [scheduling.measure_section()],
    "messages": lambda _: [distributed.measure_section()],
    "quotas": lambda _: (measure() for measure in (quotas.measure_rules, quotas.measure_tables)),
    "slots": lambda _: (measure() for measure in (slots.measure_rules, slots.measure_tables)),
    "light": lambda _: [light.measure_section()],
    "light-cost": lambda _: [light_cost.measure_section()],
    "devices": _devices,
    "growth": lambda options: [
        growth.measure_section(growth.SIZES, interval_seconds=growth.INTERVAL_SECONDS, seconds=options.growth_seconds)
    ],
}
WHEN_NAMED: Mapping[str, Measure] = {
    "neighbours": lambda _: [neighbours.measure_section()],
    "million": lambda options: [growth.measure_million(options.growth_seconds)],
}


if __name__ == "__main__":
    sys.exit(main())
