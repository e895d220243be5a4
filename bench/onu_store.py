"""What storing a poll of ONUs costs, compared with the way that comes to mind first: one ORM upsert a value.

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
    from facho.polling.domain.onu_table import OnuTable, RawValues

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
    from facho.infrastructure.secrets import Secret
    from facho.onus.store import save_inventory
    from facho.polling.domain.onu_presence import OnuIdentity, Walk

    olt = Olt.objects.create(name="bench", host="127.0.0.1", address="127.0.0.1", community=Secret("public"))
    found = {place: OnuIdentity(f"BNCH{number:08}") for number, place in enumerate(_places())}
    save_inventory(olt.id, Walk(found, is_complete=True), now=START)
    return olt.id


def _places() -> list[Any]:
    from facho.polling.vendors.index import Place

    return [Place(0, 1, number // ONUS_PER_PORT, number % ONUS_PER_PORT) for number in range(ONUS)]


def _table(polls: int, percent: int) -> "OnuTable":
    """Read other values of so many percent of the ONUs than the poll before; a hundredth of them changes its state."""
    import numpy as np

    from facho.polling.domain.onu_state import DownCause, RunState
    from facho.polling.domain.onu_table import OnuColumn, OnuTable, pack_place

    number = np.arange(ONUS)
    turn = np.where(number % 100 < percent, polls, 0)
    is_down = (turn % 2 > 0) & (number % 100 == 0)
    raw = {
        "onu.run_state": 1 + is_down,
        "onu.last_down_cause": np.full(ONUS, 2),
        "onu.distance": 1_000 + number + turn % 3,
        "onu.rx_power": -2_000 - 100 * (number % 7) - turn % 11,
        "onu.tx_power": 200 + turn % 13,
        "onu.temperature": 40 + turn % 17,
    }
    words = {"onu.run_state": (RunState.ONLINE, RunState.OFFLINE), "onu.last_down_cause": tuple(DownCause)}
    scales = {"onu.rx_power": 100, "onu.tx_power": 100}
    columns = []
    for key, values in raw.items():
        oid, decoder = f"1.3.6.1.4.1.2011.6.128.1.1.2.{len(columns)}", _Scaled(scales.get(key, 1))
        rest: dict[str, Any] = {"numbers": values / scales.get(key, 1)}
        if key in words:
            rest = {"codes": (values - 1).astype(np.int16), "words": words[key]}
        columns.append(OnuColumn(key, oid, "bench", _raw_of(values), decoder, **rest))
    return OnuTable(np.array([pack_place(*place) for place in _places()], np.int64), tuple(columns))


class _Scaled:
    def __init__(self, scale: int) -> None:
        self._scale = scale

    def value_of(self, tag: int, raw: int | bytes | None) -> float | None:
        """Read a number."""
        return raw / self._scale if isinstance(raw, int) else None


def _raw_of(values: Any) -> "RawValues":
    import numpy as np

    from facho.polling.domain.onu_table import IS_INTEGER, RawValues

    size = len(values)
    return RawValues(np.full(size, 2, np.uint8), values.astype(np.int64), np.full(size, IS_INTEGER, np.int32), b"")


def _poll(olt_id: int, clock: _Clock, percent: int) -> Callable[[], None]:
    from django.db import transaction

    from facho.onus.store import save_table

    clock.polls += 1
    now, table = clock.now, _table(clock.polls, percent)

    @transaction.atomic
    def store() -> None:
        save_table(olt_id, table, now=now)

    return store


def _plain_poll(olt_id: int, clock: _Clock) -> Callable[[], None]:
    """Store the values one by one, as rows of the table that has one for each value."""
    from django.db import transaction

    from facho.hosts.models import OltData

    clock.polls += 1
    now, table = clock.now, _table(clock.polls, 10)
    values = [
        (str(number), column.oid, str(value))
        for number in range(ONUS)
        for column in table.columns
        for value in (column.raw.at(number),)
    ]

    @transaction.atomic
    def store() -> None:
        for index, oid, value in values:
            OltData.objects.update_or_create(
                olt_id=olt_id, oid=oid, index=index, defaults={"value": value, "updated_at": now}
            )

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
