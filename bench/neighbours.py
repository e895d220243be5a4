"""What it costs to tell other systems of every ONU: SmartOLT's lists, and metrics for Prometheus and Telegraf.

It fills SQLite and PostgreSQL with ONUs and reads each answer to its end. Memory is what Python holds at its most
while an answer is written, measured by a read of its own, since counting it makes reading slower.
"""

import json
import os
import sys
import time
import tracemalloc
from collections.abc import Iterator
from typing import Any

from django.db import connection

from bench.both_databases import measure_on_both
from bench.onu_fleet import fill
from bench.private_database import private_database
from bench.report import Section, Target

MB = 1_000_000
ONUS = 100_000


def measure_section() -> Section:
    figures = measure_on_both("bench.neighbours", str(ONUS))
    rows = [(name, *row) for name, found in figures.items() for row in found["rows"]]
    return Section(
        f"Answers about {ONUS:,} ONUs for other systems",
        ("Database", "Answer", "seconds", "of them CPU here", "MB sent", "MB held", "queries"),
        rows,
        [
            Target("seconds of CPU of the slowest answer", max(row[3] for row in rows), 10),
            Target("MB held for the largest answer", max(row[5] for row in rows), 40),
        ],
    )


def main() -> None:
    with private_database(os.environ.get("DATABASE_URL")):
        fill(int(sys.argv[1]))
        print(json.dumps({"rows": list(_measure())}))


def _measure() -> Iterator[tuple[str, float, float, float, float, int]]:
    from django.test.utils import CaptureQueriesContext

    from facho.infrastructure.spreadsheet import write_json
    from facho.neighbours import smartolt
    from facho.neighbours.onu_metrics import known_onus, write_influx, write_prometheus

    def listed(shape: Any) -> Iterator[bytes]:
        return write_json(map(shape, smartolt.load_in_batches(smartolt.select_onus())))

    answers = {
        "SmartOLT: get_onus_statuses": lambda: listed(smartolt.shape_status),
        "SmartOLT: get_onus_signals": lambda: listed(smartolt.shape_signal),
        "SmartOLT: get_all_onus_details": lambda: listed(smartolt.shape_details),
        "Prometheus": lambda: write_prometheus(known_onus(), ONUS),
        "Influx line protocol": lambda: write_influx(known_onus(), ONUS),
    }
    for name, answer in answers.items():
        start, cpu = time.perf_counter(), time.process_time()
        sent = sum(map(len, answer()))
        seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
        tracemalloc.start()
        with CaptureQueriesContext(connection) as captured:
            for _part in answer():
                pass
        _now, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        yield name, round(seconds, 2), round(cpu, 2), round(sent / MB, 1), round(peak / MB, 1), len(captured)


if __name__ == "__main__":
    main()
