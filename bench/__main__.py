"""`python -m bench` measures what the engine costs and tells whether its promises hold; `make bench` runs it."""

import argparse
import sys
from collections.abc import Iterator

from bench import (
    distributed,
    end_to_end,
    exporter,
    history,
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


def main() -> int:
    """Measure, print, keep; 1 when a promise does not hold."""
    ended = report.print_sections(_measure(_arguments()), keep_as=report.WHOLE)
    print("Growth to 100,000 ONUs takes minutes more and has a command of its own: python -m bench.growth")
    return ended


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="times that each client walks the fleet (default: 5)")
    parser.add_argument("--olts", type=int, default=200, help="OLTs of the fleet (default: 200)")
    parser.add_argument("--onus", type=int, default=500, help="ONUs of each OLT (default: 500)")
    parser.add_argument("--history-onus", type=int, default=50_000, help="ONUs with a history (default: 50,000)")
    parser.add_argument("--listed-onus", type=int, default=1_000_000, help="ONUs of the list (default: 1,000,000)")
    parser.add_argument(
        "--interval", type=int, default=0, help="seconds (default: 300 for 100,000 ONUs, less for fewer)"
    )
    parser.add_argument("--sustained-seconds", type=float, default=300.0, help="of sustained load (default: 300)")
    parser.add_argument("--peers", action="store_true", help="with Zabbix, installed if need be and if root")
    return parser.parse_args()


def _measure(arguments: argparse.Namespace) -> Iterator[Section]:
    names = [walk_cost.FACHO, walk_cost.DECODED, walk_cost.GUFO]
    if exporter.is_available():
        names.append(walk_cost.EXPORTER)
    yield walk_cost.describe(
        walk_cost.measure_walks(names, olts=arguments.olts, onus=arguments.onus, rounds=arguments.rounds)
    )
    yield scheduling.measure_section()
    yield distributed.measure_section()
    yield run_cost.measure_section()
    yield distributed.measure_fixed_cost()
    yield quotas.measure_rules()
    yield quotas.measure_tables()
    yield slots.measure_rules()
    yield slots.measure_tables()
    yield onu_store.measure_section()
    yield from end_to_end.measure_sections(
        olts=arguments.olts,
        onus=arguments.onus,
        rounds=arguments.rounds,
        interval_seconds=arguments.interval,
        peers=arguments.peers,
    )
    yield sustained.measure_section(olts=arguments.olts, onus=arguments.onus, seconds=arguments.sustained_seconds)
    yield history.measure_section(arguments.history_onus)
    yield onu_list.measure_section(arguments.listed_onus)
    yield pages.measure_section()
    with private_database():
        # Its models can be imported only now.
        from bench import chassis, plans

        yield chassis.measure_section(rounds=arguments.rounds)
        yield plans.measure_section()


if __name__ == "__main__":
    sys.exit(main())
