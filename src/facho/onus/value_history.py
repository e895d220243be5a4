"""Keeps the history of values that somebody wants kept: of an OID, one number in blocks; of an OLT's row, another.

It belongs into the transaction that stores the values. Only numbers are kept; for a counter, its rate.
Numbers are given out once and for all, so both have their limits: a device that invents rows gets no more of them.
"""

import logging
import math
from collections import defaultdict
from collections.abc import Collection, Iterable
from datetime import datetime

import numpy as np

from facho.hosts.history_models import HistoryOid, HistoryRow
from facho.hosts.models import OltData
from facho.onus.history import Samples, append
from facho.onus.history_family import OLTS
from facho.onus.history_metrics import OWN_NUMBERS, Floats
from facho.onus.present_onus import load_onus
from facho.onus.raw_values import has_value
from facho.polling.domain.collection import OltValue
from facho.polling.domain.onu_table import IS_INTEGER, OnuTable, RawValues, raw_text
from facho.polling.snmp.ber import Tag

logger = logging.getLogger(__name__)

MAX_ROWS_PER_OLT = 4_096


def save_olt_history(olt_id: int, values: Iterable[OltValue], *, now: datetime) -> None:
    tables: dict[str, dict[str, float]] = defaultdict(dict)
    read = list(values)
    growth = _load_growth(olt_id, {value.oid for value in read if value.is_counter}, now)
    for value in read:
        number = growth.get((value.oid, value.index)) if value.is_counter else _number(value.value)
        if number is not None:
            tables[value.oid][value.index] = number
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
    """Return the number of an OID's history; None if it has none."""
    return HistoryOid.objects.filter(oid=oid).values_list("number", flat=True).first()


def find_row(olt_id: int, index: str) -> int | None:
    """Return the number of a row in an OLT's history; None if it has none."""
    return HistoryRow.objects.filter(olt_id=olt_id, index=index).values_list("id", flat=True).first()


def _load_growth(olt_id: int, oids: Collection[str], now: datetime) -> dict[tuple[str, str], float | None]:
    if not oids:
        return {}
    stored = OltData.objects.filter(olt_id=olt_id, oid__in=oids, updated_at=now).order_by()
    return {(oid, index): rate for oid, index, rate in stored.values_list("oid", "index", "per_second")}


def _number_oids(oids: Collection[str]) -> dict[str, int]:
    """Return the number of each OID, assigning new ones; none when all are used."""
    known = _known_oids(oids)
    if len(known) < len(oids):
        taken = set(HistoryOid.objects.values_list("number", flat=True))
        free = [number for number in OWN_NUMBERS if number not in taken]
        new = zip(free, sorted(set(oids) - set(known)), strict=False)
        HistoryOid.objects.bulk_create(
            [HistoryOid(number=number, oid=oid) for number, oid in new], ignore_conflicts=True
        )
        known = _known_oids(oids)
    if len(known) < len(oids):
        logger.warning("history.numbers_spent oids=%s", len(oids) - len(known))
    return known


def _known_oids(oids: Collection[str]) -> dict[str, int]:
    return dict(HistoryOid.objects.filter(oid__in=oids).values_list("oid", "number"))


def _number_rows(olt_id: int, indexes: Collection[str]) -> dict[str, int]:
    """Return the number of each row, assigning new ones up to the limit per OLT."""
    known = _known_rows(olt_id)
    missing = sorted(set(indexes) - set(known))
    new = missing[: max(0, MAX_ROWS_PER_OLT - len(known))]
    if len(new) < len(missing):
        logger.warning("history.rows_spent olt=%s rows=%s", olt_id, len(missing) - len(new))
    if not new:
        return known
    HistoryRow.objects.bulk_create([HistoryRow(olt_id=olt_id, index=index) for index in new], ignore_conflicts=True)
    return _known_rows(olt_id)


def _known_rows(olt_id: int) -> dict[str, int]:
    return dict(HistoryRow.objects.filter(olt_id=olt_id).values_list("index", "id"))


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
