"""Fills an empty database with ONUs, their readings and customers: one statement a table, since they may be a million.

The values look random and are the same at every run.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from django.db import connection

ONUS_PER_PORT = 64
PORTS_PER_OLT = 16
ONUS_PER_OLT = ONUS_PER_PORT * PORTS_PER_OLT
# One OLT in this number is silent.
SILENT_EVERY = 200
DISCOVERED_AT = datetime(2026, 3, 1, 12, tzinfo=UTC)

_HASH = "((n * 2654435761) % 4294967296)"
_DIALECTS = {
    "postgresql": {
        "numbers": "(SELECT n::bigint FROM generate_series(0, {onus} - 1) AS n) AS numbers",
        "hex": "lpad(upper(to_hex({hash})), 8, '0')",
        "now": "timestamptz '2026-03-01 12:00:00+00'",
        "then": "timestamptz '2026-03-01 12:00:00+00' - {hash} % 10000000 * interval '1 second'",
    },
    "sqlite": {
        "numbers": (
            "(WITH RECURSIVE r(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM r WHERE n < {onus} - 1) SELECT n FROM r)"
        ),
        "hex": "printf('%08X', {hash})",
        "now": "'2026-03-01 12:00:00'",
        "then": "datetime('2026-03-01 12:00:00', '-' || ({hash} % 10000000) || ' seconds')",
    },
}
_STATEMENTS = {
    "onus_ponport": """
        INSERT INTO onus_ponport (id, olt_id, frame, slot, port, created_at)
        SELECT n + 1, {first_olt} + n / {ports}, 0, n % {ports} / 8 + 1, n % 8, {now}
        FROM {numbers} WHERE n < {olts} * {ports}""",
    "onus_onu": """
        INSERT INTO onus_onu (id, olt_id, pon_port_id, onu_id, serial, mac, description, name, model, firmware,
            admin_state, is_present, first_seen_at, absent_since, misses)
        SELECT n + 1, {first_olt} + n / ({ports} * {per_port}), n / {per_port} + 1, n % {per_port},
            CASE n % 3 WHEN 0 THEN 'HWTC' WHEN 1 THEN 'ZTEG' ELSE 'VSOL' END || {hex}, '',
            'customer ' || ({hash} % 1000000), '', 'ONT', 'V1', 'enabled', n % 100 <> 13, {then},
            CASE WHEN n % 100 = 13 THEN {now} END, 0
        FROM {numbers}""",
    "onus_onureading": """
        INSERT INTO onus_onureading (onu_id, run_state, state_since, last_down_cause, distance_m, rx_power_cdbm,
            flap_changes)
        SELECT n + 1,
            CASE WHEN {hash} % 100 < 92 THEN 'online' WHEN {hash} % 10000 = 9999 THEN 'unknown' ELSE 'offline' END,
            CASE WHEN {hash} % 50 <> 0 THEN {then} END,
            CASE {hash} % 8 WHEN 0 THEN 'los' WHEN 1 THEN 'dying_gasp' ELSE '' END, {hash} % 20000,
            CASE WHEN {hash} % 100 < 92 THEN -1500 - {hash} % 1250 - {hash} / 7 % 300 END, 0
        FROM {numbers}""",
    "onu_customers": """
        INSERT INTO onu_customers (onu_id, label, address, phone, notes, tags, updated_at)
        SELECT n + 1, 'Customer ' || ({hash} % 999983), 'Street ' || ({hash} % 5000) || ' number ' || (n % 300),
            '+1 555 ' || ({hash} % 10000000), '', CASE WHEN n % 40 = 0 THEN 'business' ELSE '' END, {now}
        FROM {numbers}""",
}


def fill(onus: int) -> None:
    olts = -(-onus // ONUS_PER_OLT)
    values = {"onus": onus, "olts": olts, "ports": PORTS_PER_OLT, "per_port": ONUS_PER_PORT, "hash": _HASH}
    values |= {name: text.format(**values) for name, text in _DIALECTS[connection.vendor].items()}
    values |= {"first_olt": _make_olts(olts)}
    with connection.cursor() as cursor:
        for table, statement in _STATEMENTS.items():
            with _without_indexes(table):
                cursor.execute(statement.format(**values))
        # The OLTs too: without their number PostgreSQL plans for a handful of them.
        cursor.execute("VACUUM ANALYZE" if connection.vendor == "postgresql" else "ANALYZE")


@contextmanager
def _without_indexes(table: str) -> Iterator[None]:
    """Make a table's indexes after its rows, which takes a tenth of the time on PostgreSQL."""
    if connection.vendor != "postgresql":
        yield
        return
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT indexname, indexdef FROM pg_indexes WHERE tablename = %s AND NOT EXISTS"
            " (SELECT 1 FROM pg_constraint WHERE conname = indexname) AND indexdef NOT LIKE 'CREATE UNIQUE%%'",
            [table],
        )
        indexes = cursor.fetchall()
        for name, _ in indexes:
            cursor.execute(f"DROP INDEX {name}")
        yield
        cursor.execute("SET maintenance_work_mem = '256MB'")
        for _, definition in indexes:
            cursor.execute(definition)


def _make_olts(count: int) -> int:
    """Make so many OLTs, whose names are not in the order of their ids; return the first id."""
    from facho.hosts.models import Olt, Reachability

    olts = Olt.objects.bulk_create(
        Olt(
            name=f"olt-{number * 7919 % 100_003:05}",
            host="127.0.0.1",
            address="127.0.0.1",
            port=number + 1,
            reachability=Reachability.UP if number % SILENT_EVERY else Reachability.DOWN,
            discovered_at=DISCOVERED_AT,
        )
        for number in range(count)
    )
    return olts[0].id
