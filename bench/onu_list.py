"""How long a page of the list of ONUs takes when there are a million of them.

Run as a program, with a number of ONUs, it measures on the database of DATABASE_URL (or SQLite, with a tenth of them:
the embedded product is made for that many) and prints JSON. A page is a whole request to the API: the user, the
conditions, the count, the rows and their JSON.
"""

import json
import os
import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any

from django.db import connection

from bench.both_databases import measure_on_both
from bench.onu_fleet import fill
from bench.private_database import private_database
from bench.processes import cpu_seconds
from bench.report import Section, Target

TIMES = 7
SQLITE_SHARE = 10
FILTERS = {
    "all": "",
    "an OLT": "olt=olt-07919",
    "a port": "pon_port=70",
    "online": "state=online",
    "offline": "state=offline",
    "unknown": "state=unknown",
    "absent": "state=absent",
    "a cause": "cause=los",
    "offline for a cause": "state=offline&cause=los",
    "dark": "rx_power_max=-29",
    "a range of power": "rx_power_min=-27&rx_power_max=-25",
    "a serial": "search=HWTC9E37",
    "a customer": "search=customer 12345",
    "an address": "search=street 499 ",
    "a text of nobody": "search=zzqqxx",
    "a text of a third": "search=HWTC",
    "a text of one in forty": "search=business",
    "a text, offline": "search=street 499 &state=offline",
}
ORDERS = ("place", "serial", "-description", "rx_power", "-rx_power", "-state_since", "-first_seen")
SORTED = ("all", "offline", "dark", "an OLT")
LATER = {"all, page 100": "page=100", "by power, page 100": "ordering=rx_power&page=100"}


def measure_section(onus: int) -> Section:
    """Measure on both databases and hold PostgreSQL against what was promised."""
    figures = measure_on_both("bench.onu_list", str(onus))
    rows = [(name, *row) for name, found in figures.items() for row in found["rows"]]
    slowest = max(row[1] for row in figures["PostgreSQL"]["rows"] if row[0] not in LATER)
    queries = max(found["queries"] for found in figures.values())
    return Section(
        f"A page of {onus:,} ONUs in PostgreSQL, of {onus // SQLITE_SHARE:,} in SQLite",
        ("Database", "Page", "p50, ms", "max, ms", "CPU, ms"),
        rows,
        [
            Target("PostgreSQL: ms of the slowest first page, p50", slowest, 200),
            Target("queries of a page, the most", queries, 9),
        ],
    )


def main() -> None:
    with private_database(os.environ.get("DATABASE_URL")):
        onus = int(sys.argv[1])
        fill(onus if connection.vendor == "postgresql" else onus // SQLITE_SHARE)
        print(json.dumps(_measure()))


def _measure() -> dict[str, Any]:
    from django.contrib.auth.models import User
    from django.test.utils import CaptureQueriesContext
    from rest_framework.test import APIClient

    client = APIClient()
    client.force_login(User.objects.create_superuser("bench"))

    def ask(query: str) -> None:
        answer = client.get(f"/api/v1/onus/?{query}", headers={"host": "127.0.0.1"})
        if answer.status_code != 200:
            sys.exit(f"{query}: {answer.content[:300]!r}")

    queries, rows = 0, []
    for name, query in _pages().items():
        with CaptureQueriesContext(connection) as captured:
            ask(query)
        queries = max(queries, len(captured))
        rows.append((name, *_times(lambda query=query: ask(query))))  # type: ignore[misc]
    return {"rows": rows, "queries": queries}


def _pages() -> dict[str, str]:
    by_order = {f"{name}, by {order}": f"{FILTERS[name]}&ordering={order}" for name in SORTED for order in ORDERS}
    return FILTERS | by_order | LATER


def _times(ask: Callable[[], None]) -> tuple[float, float, float]:
    """Return the median and the longest wall time in ms, and the CPU of this process and of its backend."""
    backend = _backend()
    walls = []
    cpu = time.process_time() + (cpu_seconds(backend) if backend else 0)
    for _ in range(TIMES):
        start = time.perf_counter()
        ask()
        walls.append((time.perf_counter() - start) * 1000)
    cpu = time.process_time() + (cpu_seconds(backend) if backend else 0) - cpu
    return median(walls), max(walls), cpu * 1000 / TIMES


def _backend() -> int | None:
    if connection.vendor != "postgresql":
        return None
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        return int(cursor.fetchone()[0])


if __name__ == "__main__":
    main()
