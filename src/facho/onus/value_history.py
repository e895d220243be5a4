"""Keeps the history of values that somebody wants kept: of an OID, one number in blocks; of an OLT's row, another.

It belongs into the transaction that stores the values. Only numbers are kept; for a counter, its rate.
Numbers are given out once and for all, so both have their limits: a device that invents rows gets no more of them.
"""

import logging
import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime

import numpy as np

from facho.hosts.history_models import HistoryOid, HistoryRow
from facho.hosts.models import OltData
from facho.onus.history import OLTS, Samples, append
from facho.onus.history_models import OWN_NUMBERS, Floats
from facho.onus.present_onus import load_onus
from facho.onus.raw_values import has_value
from facho.polling.domain.collection import OltValue
from facho.polling.domain.onu_table import IS_INTEGER, OnuTable, RawValues, raw_text
from facho.polling.snmp.ber import Tag

logger = logging.getLogger(__name__)

MAX_ROWS_PER_OLT = 4_096
# Pages plot these figures of cards, uplinks and PON ports, whatever a job's settings. One number per name serves all
# brands, so that few of the available numbers are used.
FIGURES = (
    "board.cpu",
    "board.memory",
    "board.temperature",
    "board.control_cpu",
    "board.control_memory",
    "chassis.cpu",
    "chassis.memory",
    "chassis.temperature",
    "if.in_octets",
    "if.out_octets",
    "module.temperature",
    "module.tx_power",
    "pon.bias",
    "pon.in_octets",
    "pon.out_octets",
    "pon.temperature",
    "pon.tx_power",
)
# A chassis whose every service port is an interface has more; those with the lowest indexes are its cards and uplinks.
MAX_FIGURE_ROWS = 512


def save_olt_figures(olt_id: int, values: Iterable[OltValue], *, now: datetime) -> None:
    """Keep what the pages show over time; of a table with very many rows the first."""
    tables: dict[str, list[OltValue]] = defaultdict(list)
    for value in values:
        if value.name in FIGURES:
            tables[value.name].append(value)
    first = [sorted(rows, key=_index_of)[:MAX_FIGURE_ROWS] for rows in tables.values()]
    _save(olt_id, {(value.name, value.index): value for rows in first for value in rows}, now)


def save_olt_history(olt_id: int, values: Iterable[OltValue], *, now: datetime) -> None:
    """Keep the values of OIDs that somebody wants kept."""
    _save(olt_id, {(value.oid, value.index): value for value in values}, now)


def _index_of(value: OltValue) -> tuple[int, ...]:
    return tuple(int(part) for part in value.index.split(".") if part.isdecimal())


def _save(olt_id: int, values: Mapping[tuple[str, str], OltValue], now: datetime) -> None:
    """Store values by the name of their series and their row."""
    tables: dict[str, dict[str, float]] = defaultdict(dict)
    growth = _load_growth(olt_id, {value.oid for value in values.values() if value.is_counter}, now)
    for (series, index), value in values.items():
        number = growth.get((value.oid, index)) if value.is_counter else _number(value.value)
        if number is not None:
            tables[series][index] = number
    if not tables:
        return
    metrics = _number_oids(tables)
    rows = _number_rows(olt_id, {index for table in tables.values() for index in table})
    samples = []
    for oid, metric in metrics.items():
        known = [index for index in tables[oid] if index in rows]
        numbers = {metric: [tables[oid][index] for index in known]}
        samples.append(Samples.of([rows[index] for index in known], [olt_id] * len(known), numbers))
    append(now, *samples, family=OLTS)


def save_onu_history(olt_id: int, table: OnuTable, oids: Collection[str], *, now: datetime) -> None:
    """Keep a history of the values that ONUs have of these OIDs; it follows the ONU."""
    numbers = {
        c.oid: numbers for c in table.columns if c.oid in oids and not np.isnan(numbers := _numbers(c.raw)).all()
    }
    if not numbers:
        return
    onus = load_onus(olt_id, now=now)
    rows, here = onus.find(table.places)
    samples = []
    for oid, metric in _number_oids(numbers).items():
        is_kept = ~np.isnan(numbers[oid][rows])
        ids, ports = onus.ids[here[is_kept]], onus.pon_port_ids[here[is_kept]]
        samples.append(Samples(ids, ports, {metric: numbers[oid][rows[is_kept]]}))
    append(now, *samples)


def _numbers(raw: RawValues) -> Floats:
    """Return values as numbers; NaN for a text that is none. Only texts are read one by one."""
    numbers = raw.numbers.astype(np.float64)
    is_unsigned = raw.tags == Tag.COUNTER64
    numbers[is_unsigned] = raw.numbers[is_unsigned].view(np.uint64)
    came = has_value(raw)
    numbers[~came] = np.nan
    for row in np.flatnonzero(came & (raw.sizes != IS_INTEGER)).tolist():
        number = _number(raw_text(int(raw.tags[row]), raw.at(row)))
        numbers[row] = np.nan if number is None else number
    return numbers


def find_metric(oid: str) -> int | None:
    return HistoryOid.objects.filter(oid=oid).values_list("number", flat=True).first()


def find_metrics(oids: Collection[str]) -> dict[str, int]:
    """Return the numbers of figures or OIDs that have a history; one query."""
    return dict(HistoryOid.objects.filter(oid__in=oids).values_list("oid", "number"))


def find_rows(olt_id: int) -> dict[str, int]:
    """Return the numbers of all rows of an OLT by their index; one query."""
    return dict(HistoryRow.objects.filter(olt_id=olt_id).values_list("index", "id"))


def find_row(olt_id: int, index: str) -> int | None:
    return HistoryRow.objects.filter(olt_id=olt_id, index=index).values_list("id", flat=True).first()


def _load_growth(olt_id: int, oids: Collection[str], now: datetime) -> dict[tuple[str, str], float | None]:
    if not oids:
        return {}
    stored = OltData.objects.filter(olt_id=olt_id, oid__in=oids, updated_at=now).order_by()
    return {(oid, index): rate for oid, index, rate in stored.values_list("oid", "index", "per_second")}


def _number_oids(oids: Collection[str]) -> dict[str, int]:
    """Return the number of each OID, assigning new ones; none when all are used."""
    known = find_metrics(oids)
    if len(known) < len(oids):
        taken = set(HistoryOid.objects.values_list("number", flat=True))
        free = [number for number in OWN_NUMBERS if number not in taken]
        new = zip(free, sorted(set(oids) - set(known)), strict=False)
        HistoryOid.objects.bulk_create(
            [HistoryOid(number=number, oid=oid) for number, oid in new], ignore_conflicts=True
        )
        known = find_metrics(oids)
    if len(known) < len(oids):
        logger.warning("history.numbers_spent oids=%s", len(oids) - len(known))
    return known


def _number_rows(olt_id: int, indexes: Collection[str]) -> dict[str, int]:
    """Return the number of each row, assigning new ones up to the limit per OLT."""
    known = find_rows(olt_id)
    missing = sorted(set(indexes) - set(known))
    new = missing[: max(0, MAX_ROWS_PER_OLT - len(known))]
    if len(new) < len(missing):
        logger.warning("history.rows_spent olt=%s rows=%s", olt_id, len(missing) - len(new))
    if not new:
        return known
    HistoryRow.objects.bulk_create([HistoryRow(olt_id=olt_id, index=index) for index in new], ignore_conflicts=True)
    return find_rows(olt_id)


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
