"""What history costs on disk, and how long writing and reading it takes.

Run as a program, with a number of ONUs, it measures on the database of DATABASE_URL (or SQLite) and prints JSON.
One group of PON ports gets thirty days through the product: each poll is appended, and compacted as the leader would.
Around it, blocks of receive power of the other ONUs fill the table: encoded as the product does, but inserted at once.
"""

import json
import os
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import count, islice
from random import Random
from statistics import median, quantiles
from typing import TYPE_CHECKING, Any

import numpy as np
from django.db import connection

from bench.both_databases import measure_on_both
from bench.private_database import private_database
from bench.report import Section, Target

if TYPE_CHECKING:
    from facho.onus.history import Samples
    from facho.onus.models import PonPort

START = datetime(2026, 1, 1, tzinfo=UTC)
DAYS = 30
END = START + timedelta(days=DAYS)
POLL_SECONDS = 300
POLLS_A_DAY = 86_400 // POLL_SECONDS
METRICS = 6
ONUS_PER_PORT = 64
PORTS_PER_OLT = 16
# As many as share the row of a poll.
PRODUCT_PORTS = 8
# PostgreSQL cleans up by itself when a fifth of a table is dead; a month in a minute gives it no time to.
VACUUM_EVERY = timedelta(hours=12)
READS = 40
WAITING_POLLS = 24
DELETED_AT_ONCE = 1_000
# Days of values that the ONUs around share, so that making them up is not what takes the time.
BANK = 50
# The ids of an ONU and of its port.
Place = tuple[int, int]
_numbers = count(1)


def measure_section(onus: int) -> Section:
    """Measure on both databases and compare with what was promised."""
    figures = measure_on_both("bench.history", str(onus))
    targets = [
        target
        for name, found in figures.items()
        for target in (
            Target(f"{name}: bytes a sample, all metrics, indexes included", found["Bytes a sample"], 3),
            Target(f"{name}: bytes a sample of receive power, indexes included", found["Bytes a power"], 3),
            Target(f"{name}: ms to read an ONU's 30 days, p95", found["ONU, ms"], 100),
            Target(f"{name}: ms to read a PON's 30 days, p95", found["PON, ms"], 500),
        )
    ]
    head = ("Database", *next(iter(figures.values())))
    rows = [(name, *found.values()) for name, found in figures.items()]
    return Section(f"History of {onus:,} ONUs, 30 days, a poll every 5 minutes", head, rows, targets)


def main() -> None:
    with private_database(os.environ.get("DATABASE_URL")):
        print(json.dumps(_measure(int(sys.argv[1]))))


def _measure(onus: int) -> dict[str, Any]:
    ports = _make_ports(PRODUCT_PORTS)[0][:PRODUCT_PORTS]
    fleet = _make_onus(ports)
    empty = _bytes_on_disk()
    written = _write_through_the_product(fleet)
    of_product = _bytes_on_disk() - empty
    others = _fill(onus // ONUS_PER_PORT - len(ports))
    of_others = _bytes_on_disk() - empty - of_product
    samples = ONUS_PER_PORT * DAYS * POLLS_A_DAY
    return {
        **written,
        "Bytes a sample": of_product / (len(ports) * samples * METRICS),
        "Bytes a power": of_others / (len(others) * samples),
        **_read_times(fleet, others),
        **_ageing_times(),
    }


@dataclass
class _Cost:
    """Wall milliseconds of each of many calls, and the CPU seconds of all."""

    wall_ms: list[float] = field(default_factory=list)
    cpu_seconds: float = 0.0

    @contextmanager
    def watch(self) -> Iterator[None]:
        wall, cpu = time.perf_counter(), time.process_time()
        yield
        self.wall_ms.append((time.perf_counter() - wall) * 1000)
        self.cpu_seconds += time.process_time() - cpu

    @property
    def p95_ms(self) -> float:
        return quantiles(self.wall_ms, n=20)[18]


def _write_through_the_product(fleet: Sequence[Place]) -> dict[str, float]:
    """Append and compact thirty days of a few ports as they would come in."""
    from facho.onus.history import append

    appends, compactions = _Cost(), _Cost()
    for now, samples in _polls(fleet, range(DAYS)):
        with appends.watch():
            append(now, samples)
        _compact_all(now, compactions)
        if not (now - START) % VACUUM_EVERY:
            _vacuum()
    _compact_all(END + timedelta(hours=3), compactions)
    _vacuum()
    millions = len(fleet) * DAYS * POLLS_A_DAY * METRICS / 1e6
    return {
        "Append, ms": median(appends.wall_ms),
        "Merge, ms": compactions.p95_ms,
        "CPU s a million samples": (appends.cpu_seconds + compactions.cpu_seconds) / millions,
    }


def _compact_all(now: datetime, cost: _Cost) -> None:
    from facho.onus.compaction import CompactionLimits, compact

    consumed = 1
    while consumed:
        watched = _Cost()
        with watched.watch():
            consumed = compact(now, CompactionLimits())
        cost.cpu_seconds += watched.cpu_seconds
        if consumed:
            cost.wall_ms += watched.wall_ms


def _polls(fleet: Sequence[Place], days: Iterable[int]) -> Iterator[tuple[datetime, "Samples"]]:
    from bench.history_values import samples_of
    from facho.onus.history import Samples

    ids, port_ids = [onu_id for onu_id, _ in fleet], [port_id for _, port_id in fleet]
    for day in days:
        at = _times(day)
        values = samples_of(len(fleet), at, seed=day)
        for number, second in enumerate(at.tolist()):
            columns = {metric: column[:, number].tolist() for metric, column in values.items()}
            yield datetime.fromtimestamp(second, UTC), Samples.of(ids, port_ids, columns)


def _times(day: int) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    first = int(START.timestamp()) + day * 86_400
    return np.arange(first, first + 86_400, POLL_SECONDS, dtype=np.int64)


def _make_ports(count: int) -> list[list["PonPort"]]:
    """Make so many ports, and return them by OLT."""
    from facho.hosts.models import Olt
    from facho.infrastructure.secrets import Secret
    from facho.onus.models import PonPort

    made = []
    for _ in range(-(-count // PORTS_PER_OLT)):
        n = next(_numbers)
        olt = Olt.objects.create(
            name=f"olt-{n}", host="127.0.0.1", address="127.0.0.1", port=n, community=Secret("public")
        )
        ports = [PonPort(olt=olt, frame=0, slot=1, port=number) for number in range(PORTS_PER_OLT)]
        made.append(PonPort.objects.bulk_create(ports))
    return made


def _make_onus(ports: Sequence["PonPort"]) -> list[Place]:
    from facho.onus.models import Onu

    onus = Onu.objects.bulk_create(
        [
            Onu(olt_id=port.olt_id, pon_port_id=port.id, onu_id=number, first_seen_at=START)
            for port in ports
            for number in range(ONUS_PER_PORT)
        ],
        batch_size=1_000,
    )
    return [(onu.id, onu.pon_port_id) for onu in onus]


def _fill(port_count: int) -> list["PonPort"]:
    """Give so many ports thirty days of receive power, with the stays that lead to them."""
    from facho.onus.history_models import HistoryStay

    bank = _bank()
    filled = []
    for ports in _make_ports(port_count):
        onus = _make_onus(ports)
        HistoryStay.objects.bulk_create([HistoryStay(onu_id=onu, pon_port_id=port) for onu, port in onus], 1_000)
        for number, port in enumerate(ports):
            ids = [onu for onu, _ in onus[number * ONUS_PER_PORT : (number + 1) * ONUS_PER_PORT]]
            _insert_days(port, ids, bank, first=len(filled) + number)
        filled += ports
    _vacuum()
    return filled


def _bank() -> list[Any]:
    """Return days of values in steps, each of a port."""
    from bench.history_values import samples_of
    from facho.onus.history_models import Metric, to_steps

    rx = Metric.RX_POWER
    days = [samples_of(ONUS_PER_PORT, _times(0), seed=1_000 + n)[rx] for n in range(BANK)]
    return [to_steps(rx, day.ravel()).reshape(1, *day.shape) for day in days]


def _insert_days(port: "PonPort", onu_ids: Sequence[int], bank: Sequence[Any], first: int) -> None:
    from facho.onus.history_codec import HistoryGrid, encode_grid
    from facho.onus.history_models import HistorySamples, Metric

    ids = np.array(onu_ids, dtype=np.int64)
    HistorySamples.objects.bulk_create(
        HistorySamples(
            pon_port=port,
            metric=Metric.RX_POWER,
            ends_at=START + timedelta(days=day + 1),
            data=encode_grid(HistoryGrid(ids, _times(day), bank[(first + 7 * day) % len(bank)])),
        )
        for day in range(DAYS)
    )


def _read_times(fleet: Sequence[Place], others: Sequence["PonPort"]) -> dict[str, float]:
    """Read random ONUs and PON ports, and those of the product's way with two more hours of polls waiting."""
    from facho.onus.history import Resolution, append, read_onu, read_port
    from facho.onus.history_models import Metric
    from facho.onus.models import Onu

    for now, samples in islice(_polls(fleet, [DAYS]), WAITING_POLLS):
        append(now, samples)
    random = Random(1)
    chosen = random.sample([port.id for port in others], READS) + sorted({port_id for _, port_id in fleet})
    span = (Metric.RX_POWER, END - timedelta(days=DAYS), END + timedelta(hours=2))
    onus, ports, by_hours = _Cost(), _Cost(), _Cost()
    for port_id in chosen:
        onu_id = random.choice(list(Onu.objects.filter(pon_port_id=port_id).values_list("id", flat=True)))
        for cost, read in (
            (onus, partial(read_onu, onu_id, *span, Resolution.SAMPLES)),
            (ports, partial(read_port, port_id, *span, Resolution.SAMPLES)),
            (by_hours, partial(read_port, port_id, *span, Resolution.HOURS)),
        ):
            with cost.watch():
                found = read()
            if found.at.size < DAYS * 24:
                sys.exit("A wrong answer is no measurement.")
    return {"ONU, ms": onus.p95_ms, "PON, ms": ports.p95_ms, "PON by hours, ms": by_hours.p95_ms}


def _ageing_times() -> dict[str, float]:
    """Let some blocks become hours, and others expire."""
    from facho.execution_coordinator.retention import delete_expired
    from facho.onus.compaction import CompactionLimits, compact

    folds, deletions = _Cost(), _Cost()
    for _ in range(READS):
        with folds.watch():
            compact(END + timedelta(days=DAYS), CompactionLimits())
    for _ in range(3):
        with deletions.watch():
            delete_expired(END + timedelta(days=3_000), DELETED_AT_ONCE)
    return {"Fold to hours, ms": folds.p95_ms, f"Delete {DELETED_AT_ONCE:,} blocks, ms": max(deletions.wall_ms)}


def _bytes_on_disk() -> int:
    """Return what the history's tables take with their indexes; of SQLite, what all tables take."""
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute(
                "SELECT (page_count - freelist_count) * page_size"
                " FROM pragma_page_count, pragma_freelist_count, pragma_page_size"
            )
        else:
            cursor.execute(
                "SELECT sum(pg_total_relation_size(oid)) FROM pg_class"
                " WHERE relkind = 'r' AND relname LIKE 'onus_history%'"
            )
        return int(cursor.fetchone()[0])


def _vacuum() -> None:
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("VACUUM ANALYZE onus_historypoll, onus_historysamples, onus_historystay")


if __name__ == "__main__":
    main()
