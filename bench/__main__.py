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
    scheduling,
    walk_cost,
)
from bench.private_database import private_database
from bench.report import Section


def main() -> int:
    """Measure, print, keep; 1 when a promise does not hold."""
    sections = []
    for section in _measure(_arguments()):
        print(section.markdown, flush=True)
        sections.append(section)
    report.save("engine", sections)
    broken = [target.name for section in sections for target in section.targets if not target.is_met]
    print(f"Broken: {'; '.join(broken)}" if broken else "All promises hold.")
    return 1 if broken else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="times that each client walks the fleet (default: 5)")
    parser.add_argument("--olts", type=int, default=200, help="OLTs of the fleet (default: 200)")
    parser.add_argument("--onus", type=int, default=500, help="ONUs of each OLT (default: 500)")
    parser.add_argument("--history-onus", type=int, default=50_000, help="ONUs with a history (default: 50,000)")
    parser.add_argument("--listed-onus", type=int, default=1_000_000, help="ONUs of the list (default: 1,000,000)")
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
    yield quotas.measure_rules()
    yield quotas.measure_tables()
    yield onu_store.measure_section()
    yield end_to_end.measure_section(olts=arguments.olts, onus=arguments.onus, rounds=arguments.rounds)
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
