"""What storing a poll of ONUs costs, beside the way that comes to mind first: one ORM upsert a value.

Run as a program it measures on the database of DATABASE_URL (or SQLite) and prints its figures as JSON. The product
stores typed values, raw values, events, outages and history; the plain way stores the raw values alone. CPU time is
that of this process and, on PostgreSQL, of the server's process for its session.
"""

import json
import os
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from bench.both_databases import measure_on_both
from bench.private_database import private_database
from bench.report import Section, Target

if TYPE_CHECKING:
    from facho.onus.store import Reading

ONUS = 1_000
ONUS_PER_PORT = 64
KEYS = ("run_state", "last_down_cause", "distance", "rx_power", "tx_power", "temperature")
VALUES = ONUS * len(KEYS)
CHANGED_PERCENT = (0, 10, 100)
ROUNDS, PLAIN_ROUNDS = 7, 3
START = datetime(2026, 1, 1, tzinfo=UTC)
STATEMENTS = 15
TIMES_FASTER = 10


def measure_section() -> Section:
    """Measure on both databases and compare with what was promised."""
    figures = measure_on_both("bench.onu_store")
    targets = [target for name, found in figures.items() for target in _targets(name, found)]
    head = ("Database", "Changed", "Statements", "Values per CPU second", "Plain upserts", "Times faster", "CPU, ms")
    rows = [
        (
            name,
            f"{percent} %",
            found["statements"][str(percent)],
            VALUES / found["seconds"][str(percent)],
            VALUES / found["plain_seconds"],
            found["plain_seconds"] / found["seconds"][str(percent)],
            1000 * found["seconds"][str(percent)],
        )
        for name, found in figures.items()
        for percent in CHANGED_PERCENT
    ]
    return Section(f"Storing a poll of {ONUS:,} ONUs with {len(KEYS)} values each", head, rows, targets)


def _targets(name: str, found: dict[str, Any]) -> tuple[Target, ...]:
    share = found["seconds"]["10"] / found["plain_seconds"]
    return (
        Target(f"{name}: statements, everything changed", found["statements"]["100"], STATEMENTS),
        Target(
            f"{name}: CPU of plain upserts that storing with 10 % changed takes, %", 100 * share, 100 / TIMES_FASTER
        ),
        Target(f"{name}: CPU of an unchanged poll, of one with 10 % changed", _ratio(found, "0", "10"), 1),
    )


def _ratio(found: dict[str, Any], one: str, other: str) -> float:
    return float(found["seconds"][one] / found["seconds"][other])


def main() -> None:
    """Measure on one database."""
    with private_database(os.environ.get("DATABASE_URL")):
        print(json.dumps(_measure()))


def _measure() -> dict[str, Any]:
    olt_id = _fill()
    clock = _Clock()
    figures: dict[str, Any] = {"statements": {}, "seconds": {}}
    for percent in CHANGED_PERCENT:
        # The way from one share to the next is no poll to measure.
        _poll(olt_id, clock, percent)()
        figures["statements"][percent] = _statements(_poll(olt_id, clock, percent))
        figures["seconds"][percent] = median(_cpu_seconds(_poll(olt_id, clock, percent)) for _ in range(ROUNDS))
    figures["plain_seconds"] = median(_cpu_seconds(_plain_poll(olt_id, clock)) for _ in range(PLAIN_ROUNDS))
    return figures


class _Clock:
    """Counts polls; every one is five minutes after the one before, and its values are another's where they change."""

    def __init__(self) -> None:
        self.polls = 0

    @property
    def now(self) -> datetime:
        return START + timedelta(minutes=5 * self.polls)


def _fill() -> int:
    from facho.hosts.models import Olt
    from facho.hosts.secrets import Secret
    from facho.onus.store import save_inventory
    from facho.polling.domain.onu_match import Identity
    from facho.polling.domain.onu_presence import Walk

    olt = Olt.objects.create(name="bench", host="127.0.0.1", address="127.0.0.1", community=Secret("public"))
    found = {place: Identity(f"BNCH{number:08}") for number, place in enumerate(_places())}
    save_inventory(olt.id, Walk(found, is_complete=True), now=START)
    return olt.id


def _places() -> list[Any]:
    from facho.polling.vendors.index import Place

    return [Place(0, 1, number // ONUS_PER_PORT, number % ONUS_PER_PORT) for number in range(ONUS)]


def _readings(polls: int, percent: int) -> "list[Reading]":
    """Read other values of so many percent of the ONUs than the poll before; a hundredth of them changes its state."""
    from facho.onus.store import Reading

    readings = []
    for number, place in enumerate(_places()):
        turn = polls if number % 100 < percent else 0
        is_down = bool(turn % 2) and number % 100 == 0
        values: dict[str, object] = {
            "onu.run_state": "offline" if is_down else "online",
            "onu.last_down_cause": "dying_gasp",
            "onu.distance": 1_000 + number + turn % 3,
            "onu.rx_power": -20 - (number % 7) - turn % 11 / 100,
            "onu.tx_power": 2 + turn % 13 / 100,
            "onu.temperature": 40 + turn % 17,
        }
        raw = {f"1.3.6.1.4.1.2011.6.128.1.1.2.{column}": str(value) for column, value in enumerate(values.values())}
        readings.append(Reading(place, values, raw))
    return readings


def _poll(olt_id: int, clock: _Clock, percent: int) -> Callable[[], None]:
    from django.db import transaction

    from facho.onus.store import save_readings

    clock.polls += 1
    now, readings = clock.now, _readings(clock.polls, percent)

    @transaction.atomic
    def store() -> None:
        save_readings(olt_id, readings, now=now)

    return store


def _plain_poll(olt_id: int, clock: _Clock) -> Callable[[], None]:
    from django.db import transaction

    from facho.onus.models import Onu, OnuData

    clock.polls += 1
    now, readings = clock.now, _readings(clock.polls, 10)
    ids = Onu.objects.filter(olt_id=olt_id).order_by("pon_port__port", "onu_id").values_list("id", flat=True)
    values = [
        (onu_id, oid, value)
        for onu_id, reading in zip(ids, readings, strict=True)
        for oid, value in reading.raw.items()
    ]

    @transaction.atomic
    def store() -> None:
        for onu_id, oid, value in values:
            OnuData.objects.update_or_create(onu_id=onu_id, oid=oid, defaults={"value": value, "updated_at": now})

    return store


def _statements(work: Callable[[], object]) -> int:
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    with CaptureQueriesContext(connection) as captured:
        work()
    return len(captured)


def _cpu_seconds(work: Callable[[], object]) -> float:
    server = _server_seconds()
    began_at = time.process_time()
    work()
    return time.process_time() - began_at + _server_seconds() - server


def _server_seconds() -> float:
    """Return the CPU time of the server's process for our session; SQLite works in ours."""
    from django.db import connection

    if connection.vendor != "postgresql":
        return 0.0
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        (pid,) = cursor.fetchone()
    # The fields after the name in parentheses begin with the third; user and system time are the 14th and 15th.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
