"""What a row takes on disk in PostgreSQL: `python -m bench.row_sizes`. `docs/scale.md` is computed from it."""

import json
import os
import sys

from bench.both_databases import measure_on_postgresql
from bench.onu_fleet import fill
from bench.private_database import private_database
from bench.report import Section

ONUS = 100_000
TABLES = ("onus_onu", "onus_onureading", "onu_customers", "onu_events", "snmp_executions")


def measure_section(onus: int = ONUS) -> Section:
    found = measure_on_postgresql("bench.row_sizes", str(onus))
    rows = [(table, count, size / max(count, 1)) for table, (count, size) in found.items()]
    return Section(
        f"Rows of {onus:,} ONUs with a day behind them", ("Table", "Rows", "Bytes a row, with indexes"), rows, []
    )


def main(onus: int) -> None:
    """Measure on the database of DATABASE_URL; prints rows and bytes of each table as JSON."""
    with private_database(os.environ["DATABASE_URL"]):
        from django.db import connection
        from django.utils import timezone

        from bench.fleet_past import give_past

        fill(onus)
        give_past(timezone.now())
        found = {}
        with connection.cursor() as cursor:
            for table in TABLES:
                cursor.execute(f"SELECT count(*), pg_total_relation_size('{table}') FROM {table}")  # noqa: S608 ours
                found[table] = cursor.fetchone()
        print(json.dumps(found))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(int(sys.argv[1]))
    else:
        print(measure_section().markdown)
