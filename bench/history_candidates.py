"""The ways to keep history that were weighed against each other: `python -m bench.history_candidates` prints them.

Each keeps the receive power of a few PON ports for a month in a table of its own, or all metrics where it cannot keep
one alone. With an argument it measures on the database of DATABASE_URL (or SQLite) and prints JSON.
"""

import json
import os
import struct
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from statistics import median
from typing import Any

import numpy as np
from django.db import connection, transaction

from bench.both_databases import measure_on_both
from bench.history_values import samples_of
from bench.private_database import private_database
from bench.report import Section
from facho.onus.history_codec import HistoryGrid, Poll, decode_grid, decode_poll, encode_grid, encode_poll, join
from facho.onus.history_models import MISSING, Ints, Metric, to_steps

FIRST_SECOND, DAY_SECONDS, POLL_SECONDS = 1_767_225_600, 86_400, 300
DAYS, PORTS, ONUS_PER_PORT = 30, 4, 64
ONUS = PORTS * ONUS_PER_PORT
SAMPLES = ONUS * DAYS * DAY_SECONDS // POLL_SECONDS
ROUNDS = 5
RX = Metric.RX_POWER
# An ONU and a port in the middle.
ONU, PORT = 100, 1


@dataclass(frozen=True, slots=True)
class Candidate:
    """A table with its rows, and how to read one ONU and one PON port out of it; `metrics` of them are in it."""

    name: str
    columns: str
    key: str
    rows: Callable[[], Iterable[tuple[Any, ...]]]
    read_onu: Callable[[], Ints]
    read_port: Callable[[], Ints]
    metrics: int = 1


def main() -> None:
    if len(sys.argv) > 1:
        with private_database(os.environ.get("DATABASE_URL")):
            print(json.dumps({candidate.name: _measure(candidate) for candidate in CANDIDATES}))
        return
    figures = measure_on_both("bench.history_candidates", "here")
    rows = [[way, *figures["SQLite"][way], *figures["PostgreSQL"][way]] for way in figures["SQLite"]]
    head = ["Way", *(f"{name}: {what}" for name in figures for what in ("bytes a sample", "ONU, ms", "PON, ms"))]
    print(Section("Ways to keep history", head, rows, []).markdown)


def _measure(candidate: Candidate) -> tuple[float, float, float]:
    before = _bytes_on_disk()
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE candidate ({candidate.columns.format(blob=_BLOB[connection.vendor])})")
        marks = ", ".join(["%s"] * len(candidate.columns.split(",")))
        with transaction.atomic():
            cursor.executemany(f"INSERT INTO candidate VALUES ({marks})", candidate.rows())  # noqa: S608 our own names
        cursor.execute(f"CREATE UNIQUE INDEX candidate_key ON candidate ({candidate.key})")
        cursor.execute("VACUUM ANALYZE candidate" if connection.vendor == "postgresql" else "ANALYZE")
        size = (_bytes_on_disk() - before) / (SAMPLES * candidate.metrics)
        times = [_median_ms(read, values) for read, values in _reads(candidate)]
        cursor.execute("DROP TABLE candidate")
    return size, times[0], times[1]


def _reads(candidate: Candidate) -> list[tuple[Callable[[], Ints], Ints]]:
    """Return the ways to read with what has to come out."""
    port = slice(PORT * ONUS_PER_PORT, (PORT + 1) * ONUS_PER_PORT)
    return [(candidate.read_onu, _values(RX)[ONU]), (candidate.read_port, _values(RX)[port])]


def _median_ms(read: Callable[[], Ints], expected: Ints) -> float:
    taken = []
    for _ in range(ROUNDS):
        began_at = time.perf_counter()
        found = read()
        taken.append((time.perf_counter() - began_at) * 1000)
        np.testing.assert_array_equal(found, expected)
    return median(taken)


def _bytes_on_disk() -> int:
    if connection.vendor == "sqlite":
        return int(
            _fetch("SELECT (page_count - freelist_count) * 4096 FROM pragma_page_count, pragma_freelist_count")[0][0]
        )
    return int(_fetch("SELECT coalesce(pg_total_relation_size(to_regclass('candidate')), 0)")[0][0])


def _fetch(sql: str, *parameters: int) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return cursor.fetchall()


@cache
def _values(metric: Metric) -> Ints:
    """Return the whole month in steps, one row an ONU."""
    days = [samples_of(ONUS, _at(day), seed=day)[metric] for day in range(DAYS)]
    month = np.concatenate(days, axis=1)
    return to_steps(metric, month.ravel()).reshape(month.shape)


def _at(day: int) -> Ints:
    first = FIRST_SECOND + day * DAY_SECONDS
    return np.arange(first, first + DAY_SECONDS, POLL_SECONDS, dtype=np.int64)


def _day_grid(metric: Metric, day: int, onus: slice) -> HistoryGrid:
    a_day = DAY_SECONDS // POLL_SECONDS
    return HistoryGrid(
        np.arange(ONUS, dtype=np.int64)[onus],
        _at(day),
        _values(metric)[np.newaxis, onus, day * a_day : (day + 1) * a_day],
    )


def _onus_of(port: int) -> slice:
    return slice(port * ONUS_PER_PORT, (port + 1) * ONUS_PER_PORT)


def _sample_rows() -> Iterable[tuple[Any, ...]]:
    for number, at in enumerate(np.concatenate([_at(day) for day in range(DAYS)]).tolist()):
        for onu, value in enumerate(_values(RX)[:, number].tolist()):
            yield onu, at, None if value == MISSING else value


def _of_samples(where: str, *parameters: int) -> Ints:
    rows = _fetch(f"SELECT value FROM candidate WHERE {where} ORDER BY onu, at", *parameters)  # noqa: S608 our own
    return np.array([MISSING if value is None else value for (value,) in rows], dtype=np.int64)


def _poll_rows() -> Iterable[tuple[Any, ...]]:
    onus = np.arange(ONUS, dtype=np.int64)
    for number, at in enumerate(np.concatenate([_at(day) for day in range(DAYS)]).tolist()):
        poll = Poll(at, onus, onus // ONUS_PER_PORT, {RX: _values(RX)[:, number]})
        yield at, encode_poll(poll)


def _of_polls(onus: slice | int) -> Ints:
    rows = _fetch("SELECT data FROM candidate ORDER BY at")
    return np.stack([decode_poll(data).values[RX][onus] for (data,) in rows], axis=-1)


def _onu_day_rows() -> Iterable[tuple[Any, ...]]:
    for day in range(DAYS):
        yield from ((onu, day, encode_grid(_day_grid(RX, day, slice(onu, onu + 1)))) for onu in range(ONUS))


def _of_onu_days(first: int, last: int) -> Ints:
    rows = _fetch("SELECT data FROM candidate WHERE onu BETWEEN %s AND %s ORDER BY onu, day", first, last)
    days = [decode_grid(data).layers[0, 0] for (data,) in rows]
    return np.concatenate(days).reshape(last - first + 1, -1)


def _port_day_rows() -> Iterable[tuple[Any, ...]]:
    for day in range(DAYS):
        yield from ((port, day, encode_grid(_day_grid(RX, day, _onus_of(port)))) for port in range(PORTS))


def _of_port_days(onu: int | None) -> Ints:
    rows = _fetch("SELECT data FROM candidate WHERE port = %s ORDER BY day", PORT)
    return join([decode_grid(data, onu) for (data,) in rows]).layers[0]


def _all_metric_rows() -> Iterable[tuple[Any, ...]]:
    for day in range(DAYS):
        for port in range(PORTS):
            blocks = [encode_grid(_day_grid(metric, day, _onus_of(port))) for metric in Metric]
            yield port, day, struct.pack("<6I", *map(len, blocks)) + b"".join(blocks)


def _of_all_metrics(onu: int | None) -> Ints:
    rows = _fetch("SELECT data FROM candidate WHERE port = %s ORDER BY day", PORT)
    blocks = [bytes(data)[24 : 24 + struct.unpack_from("<I", data)[0]] for (data,) in rows]
    return join([decode_grid(block, onu) for block in blocks]).layers[0]


_BLOB = {"sqlite": "BLOB", "postgresql": "BYTEA"}
CANDIDATES = (
    Candidate(
        "a row for each sample",
        "onu BIGINT, at BIGINT, value SMALLINT",
        "onu, at",
        _sample_rows,
        lambda: _of_samples("onu = %s", ONU),
        lambda: _of_samples("onu BETWEEN %s AND %s", *_ends()).reshape(ONUS_PER_PORT, -1),
    ),
    Candidate(
        "a block for each poll",
        "at BIGINT, data {blob}",
        "at",
        _poll_rows,
        lambda: _of_polls(ONU),
        lambda: _of_polls(_onus_of(PORT)),
    ),
    Candidate(
        "a block for each ONU and day",
        "onu BIGINT, day BIGINT, data {blob}",
        "onu, day",
        _onu_day_rows,
        lambda: _of_onu_days(ONU, ONU)[0],
        lambda: _of_onu_days(*_ends()),
    ),
    Candidate(
        "a block for each port, day and metric",
        "port BIGINT, day BIGINT, data {blob}",
        "port, day",
        _port_day_rows,
        lambda: _of_port_days(ONU)[0],
        lambda: _of_port_days(None),
    ),
    Candidate(
        "a block for each port and day",
        "port BIGINT, day BIGINT, data {blob}",
        "port, day",
        _all_metric_rows,
        lambda: _of_all_metrics(ONU)[0],
        lambda: _of_all_metrics(None),
        metrics=len(Metric),
    ),
)


def _ends() -> tuple[int, int]:
    return PORT * ONUS_PER_PORT, (PORT + 1) * ONUS_PER_PORT - 1


if __name__ == "__main__":
    main()
