"""Keeps the history of values that somebody wants kept: of an OID, one number in blocks; of an OLT's row, another.

It belongs into the transaction that stores the values. What is no number is not kept; of a counter its growth is.
Numbers are given out once and for all, so both have their limits: a device that invents rows gets no more of them.
"""

import logging
import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from facho.hosts.models import OltData
from facho.hosts.olt_data import OltValue
from facho.hosts.value_history_models import HistoryOid, HistoryRow
from facho.onus.history import Samples, append
from facho.onus.history_family import OLTS
from facho.onus.history_metrics import OWN_NUMBERS
from facho.onus.known_onus import PLACE
from facho.onus.models import Onu
from facho.polling.vendors.index import Place

logger = logging.getLogger(__name__)

MAX_ROWS_PER_OLT = 4_096


def save_olt_history(olt_id: int, values: Iterable[OltValue], *, now: datetime) -> None:
    """Keep values of an OLT that were just stored."""
    tables: dict[str, dict[str, float]] = defaultdict(dict)
    for oid, index, number in _with_growth(olt_id, list(values), now):
        if number is not None:
            tables[oid][index] = number
    if not tables:
        return
    metrics = _number_oids(tables)
    rows = _number_rows(olt_id, {index for table in tables.values() for index in table})
    samples = [_of_olt(olt_id, metrics[oid], rows, table) for oid, table in tables.items() if oid in metrics]
    append(now, *samples, family=OLTS)


def save_onu_history(olt_id: int, values: Mapping[Place, Mapping[str, str]], *, now: datetime) -> None:
    """Keep values of ONUs, by place and OID; they follow the ONU, as all its history does."""
    tables: dict[str, dict[Place, float]] = defaultdict(dict)
    for place, texts in values.items():
        for oid, text in texts.items():
            if (number := _number(text)) is not None:
                tables[oid][place] = number
    if not tables:
        return
    metrics = _number_oids(tables)
    onus = _load_onus(olt_id)
    append(now, *(_of_onus(metrics[oid], onus, table) for oid, table in tables.items() if oid in metrics))


def find_metric(oid: str) -> int | None:
    """Return the number of an OID's history; None if it never had one."""
    return HistoryOid.objects.filter(oid=oid).values_list("number", flat=True).first()


def find_row(olt_id: int, index: str) -> int | None:
    """Return the number of a row in an OLT's history; None if it never had one."""
    return HistoryRow.objects.filter(olt_id=olt_id, index=index).values_list("id", flat=True).first()


def _with_growth(olt_id: int, values: Sequence[OltValue], now: datetime) -> Iterator[tuple[str, str, float | None]]:
    growth = _load_growth(olt_id, {value.oid for value in values if value.is_counter}, now)
    for value in values:
        number = growth.get((value.oid, value.index)) if value.is_counter else _number(value.value)
        yield value.oid, value.index, number


def _load_growth(olt_id: int, oids: Collection[str], now: datetime) -> dict[tuple[str, str], float | None]:
    if not oids:
        return {}
    stored = OltData.objects.filter(olt_id=olt_id, oid__in=oids, updated_at=now).order_by()
    return {(oid, index): rate for oid, index, rate in stored.values_list("oid", "index", "per_second")}


def _of_olt(olt_id: int, metric: int, rows: Mapping[str, int], table: Mapping[str, float]) -> Samples:
    known = [index for index in table if index in rows]
    ids = [rows[index] for index in known]
    return Samples(ids, [olt_id] * len(ids), {metric: [table[index] for index in known]})


def _of_onus(metric: int, onus: Mapping[Place, tuple[int, int]], table: Mapping[Place, float]) -> Samples:
    known = [place for place in table if place in onus]
    ids, ports = [onus[place][0] for place in known], [onus[place][1] for place in known]
    return Samples(ids, ports, {metric: [table[place] for place in known]})


def _load_onus(olt_id: int) -> dict[Place, tuple[int, int]]:
    onus = Onu.objects.filter(olt_id=olt_id, is_present=True, misses=0).order_by()
    rows = onus.values_list("id", "pon_port_id", *PLACE)
    return {Place(*place): (onu_id, port_id) for onu_id, port_id, *place in rows}


def _number_oids(oids: Collection[str]) -> dict[str, int]:
    """Return the number of each OID, new ones for those that have none; when all are given out, it has none."""
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
    """Return the number of each row, new ones for those that have none, up to what one OLT may have."""
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
