"""What a page costs the server when there are 100,000 ONUs with a day behind them.

Run as a program it measures on the database of DATABASE_URL (or SQLite), and prints JSON. A page is a whole request:
the user, the rows and the HTML. How many queries each may make is in `page_queries.json`, which a test holds too.
"""

import json
import os
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

from django.db import connection

from bench.both_databases import measure_on_both
from bench.onu_fleet import fill
from bench.private_database import private_database
from bench.report import Section, Target

ONUS = 100_000
TIMES = 7
MAX_MS = 300
MAX_KB = 200
# The pages that read history, with a day of polls that wait.
MAX_HISTORY_MS = 200
MAX_LIGHT_CPU_MS = 30
BASELINE = Path(__file__).with_name("page_queries.json")


def measure_section() -> Section:
    figures = measure_on_both("bench.pages")
    rows = [(name, *row) for name, found in figures.items() for row in found["rows"]]
    return Section(
        f"A page with {ONUS:,} ONUs",
        ("Database", "Page", "p50, ms", "max, ms", "kB", "queries"),
        rows,
        [
            Target("ms of the slowest page, p50", max(row[2] for row in rows), MAX_MS),
            Target(
                "ms of the slowest page with history, p50",
                max(row[2] for row in rows if is_of_history(row[1])),
                MAX_HISTORY_MS,
            ),
            *(
                Target(
                    f"{name}: CPU ms of an ONU's light, a day of polls waiting", found["light_cpu_ms"], MAX_LIGHT_CPU_MS
                )
                for name, found in figures.items()
            ),
            Target("kB of the largest page", max(row[4] for row in rows), MAX_KB),
            Target("queries of a page beyond its baseline", max(row[5] - allowed_queries()[row[1]] for row in rows), 0),
        ],
    )


def is_of_history(page: str) -> bool:
    return page in ("/onus/{onu}/", "/olts/{olt}/history/") or "/ports/" in page


def allowed_queries() -> dict[str, int]:
    """Return every page that is watched, with the queries that it makes at most, however many rows there are."""
    allowed: dict[str, int] = json.loads(BASELINE.read_text())
    return allowed


def main() -> None:
    with private_database(os.environ.get("DATABASE_URL")):
        print(json.dumps(_measure()))


def _measure() -> dict[str, Any]:
    from django.utils import timezone

    from bench.fleet_past import give_waiting_polls

    client = client_of_a_filled_product(ONUS)
    give_waiting_polls(timezone.now())
    rows = [(page, *_times(client, address), *cost(client, address)) for page, address in addresses().items()]
    return {"rows": rows, "light_cpu_ms": _cpu_ms(client, f"{addresses()['/onus/{onu}/']}light/")}


def _cpu_ms(client: Any, page: str) -> float:
    """Return the median CPU of this process for a request; on PostgreSQL its server has its own."""
    found = []
    for _ in range(TIMES):
        start = time.process_time()
        client.get(page)
        found.append((time.process_time() - start) * 1000)
    return median(found)


def client_of_a_filled_product(onus: int) -> Any:
    """Make so many ONUs with a day behind them, and log an admin in."""
    from django.contrib.auth.models import User
    from django.test import Client
    from django.utils import timezone

    from bench.fleet_past import give_past

    fill(onus)
    give_past(timezone.now())
    client = Client(headers={"host": "127.0.0.1"})
    client.force_login(User.objects.create_superuser("bench"))
    return client


def addresses() -> dict[str, str]:
    """Put an id of each kind into the pages that need one."""
    from facho.hosts.models import Olt
    from facho.onus.models import Onu, Outage
    from facho.plant.models import Box, LightFinding

    kinds = {"olt": Olt, "onu": Onu, "outage": Outage, "finding": LightFinding, "box": Box}
    ids = {name: model.objects.order_by("id").values_list("id", flat=True)[0] for name, model in kinds.items()}
    port = Onu.objects.select_related("pon_port").order_by("id")[0].pon_port
    return {page: page.format(**ids, port=port) for page in allowed_queries()}


def cost(client: Any, page: str) -> tuple[float, int]:
    """Return the kB of a page and its queries; a first request has warmed it up."""
    from django.test.utils import CaptureQueriesContext

    client.get(page)
    with CaptureQueriesContext(connection) as captured:
        answer = client.get(page)
        queries = len(captured)
    if answer.status_code != 200:
        sys.exit(f"{page}: {answer.status_code}")
    return len(answer.content) / 1000, queries


def _times(client: Any, page: str) -> tuple[float, float]:
    """Return the median and the longest ms."""
    walls = []
    for _ in range(TIMES):
        start = time.perf_counter()
        client.get(page)
        walls.append((time.perf_counter() - start) * 1000)
    return median(walls), max(walls)


if __name__ == "__main__":
    main()
