"""Stores what an OLT tells of itself: reads the rows at hand, compares, and writes only what changed."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from facho.hosts.models import OltData
from facho.polling.domain.counter_rate import per_second

BATCH = 500
MAX_INDEX_LENGTH = 128
MAX_VALUE_LENGTH = 255
MAX_NAME_LENGTH = 60

_SHOWN = ["name", "place", "value", "unit", "raw", "per_second"]


@dataclass(frozen=True, slots=True)
class OltValue:
    """One value: `value` in its unit, `raw` as it came; a counter says so, for its growth is what people ask for."""

    oid: str
    index: str
    name: str
    place: str
    value: str
    unit: str
    raw: str
    is_counter: bool = False


def save_olt_values(olt_id: int, values: Sequence[OltValue], *, whole_oids: Collection[str], now: datetime) -> int:
    """Store the latest values of an OLT; returns how many rows changed.

    Of the OIDs that were read to their end, rows that did not come any more are deleted.
    """
    oids = {value.oid for value in values} | set(whole_oids)
    stored = {(row.oid, row.index): row for row in OltData.objects.filter(olt_id=olt_id, oid__in=oids)}
    wanted = {(value.oid, value.index): _row(olt_id, value, stored, now) for value in values}
    same = [stored[key].pk for key, row in wanted.items() if key in stored and _is_same(row, stored[key])]
    changed = [row for key, row in wanted.items() if key not in stored or not _is_same(row, stored[key])]
    gone = [row.pk for key, row in stored.items() if key not in wanted and row.oid in whole_oids]
    OltData.objects.filter(pk__in=same).update(updated_at=now)
    OltData.objects.filter(pk__in=gone).delete()
    OltData.objects.bulk_create(
        changed,
        batch_size=BATCH,
        update_conflicts=True,
        unique_fields=["olt", "oid", "index"],
        update_fields=[*_SHOWN, "updated_at"],
    )
    return len(changed) + len(gone)


def _row(olt_id: int, value: OltValue, stored: Mapping[tuple[str, str], OltData], now: datetime) -> OltData:
    before = stored.get((value.oid, value.index)) if value.is_counter else None
    return OltData(
        olt_id=olt_id,
        oid=value.oid,
        index=value.index,
        name=value.name[:MAX_NAME_LENGTH],
        place=value.place[:MAX_NAME_LENGTH],
        value=value.value[:MAX_VALUE_LENGTH],
        unit=value.unit,
        raw=value.raw[:MAX_VALUE_LENGTH],
        per_second=_growth(before, value, now) if before else None,
        updated_at=now,
    )


def _growth(before: OltData, value: OltValue, now: datetime) -> float | None:
    if not (before.value.isdecimal() and value.value.isdecimal()):
        return None
    return per_second(int(before.value), int(value.value), read_before=before.updated_at, now=now)


def _is_same(row: OltData, stored: OltData) -> bool:
    return all(getattr(row, name) == getattr(stored, name) for name in _SHOWN)
