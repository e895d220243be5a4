"""Builds what a poll read from values, for tests that need no walk."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from facho.polling.domain.onu_state import OnuPlace
from facho.polling.domain.onu_table import IS_INTEGER, NO_VALUE, OnuColumn, OnuTable, RawValues, pack_place
from facho.polling.snmp.walk import ColumnRows, Row
from facho.snmp_get.reading import pack_values

_OCTET_STRING, _NULL = 4, 5
RULE = "rule"


@dataclass(frozen=True, slots=True)
class Told:
    """What a device says of one ONU: decoded values by key, and values as they came by OID."""

    place: OnuPlace
    values: dict[str, object]
    raw: dict[str, str]


@dataclass(frozen=True, slots=True)
class KnownTexts:
    """Decodes the texts of a test by looking them up."""

    values: dict[bytes, Any]

    def value_of(self, tag: int, raw: int | bytes | None) -> Any:
        return self.values.get(raw) if isinstance(raw, bytes) and tag == _OCTET_STRING else None


def table_of(*readings: Told, rule: str = RULE, oid_of: Callable[[str], str] = str) -> OnuTable:
    """Return the table of these ONUs; the raw value of a key is the text at `oid_of(key)`, NULL if there is none.

    Numbers make a column of quantities, words one with a vocabulary; raw values of other OIDs have no key.
    """
    ordered = sorted(readings, key=lambda reading: pack_place(*reading.place))
    keys = list(dict.fromkeys(key for reading in ordered for key in reading.values))
    oids = dict.fromkeys(oid for reading in ordered for oid in reading.raw)
    free = [oid for oid in oids if oid not in map(oid_of, keys)]
    columns = [_column(ordered, key, oid_of(key), rule) for key in keys]
    columns += [OnuColumn("", oid, "", _raw(ordered, "", oid)) for oid in free]
    places = [pack_place(*reading.place) for reading in ordered]
    return OnuTable(np.array(places, np.int64), tuple(columns))


def column_rows(rows: Iterable[Row]) -> ColumnRows:
    """Return rows as a walk does, in the order of their suffixes."""
    ordered = sorted(rows, key=lambda row: row[0])
    ends = np.cumsum([len(suffix) for suffix, _, _ in ordered], dtype=np.int64)
    ids = np.array([sub_id for suffix, _, _ in ordered for sub_id in suffix], np.uint32)
    return ColumnRows(ids, ends, pack_values([(tag, value) for _, tag, value in ordered]))


def _column(readings: Iterable[Told], key: str, oid: str, rule: str) -> OnuColumn:
    values = [reading.values.get(key) for reading in readings]
    texts = [reading.raw.get(oid, "").encode() for reading in readings]
    raw, decoder = _raw(readings, key, oid), KnownTexts(dict(zip(texts, values, strict=True)))
    reported = [value for value in values if value is not None]
    if reported and all(isinstance(value, StrEnum) for value in reported):
        words = tuple(type(reported[0]))
        codes = np.array([-1 if value is None else words.index(value) for value in values], np.int16)
        return OnuColumn(key, oid, rule, raw, decoder, codes=codes, words=words)
    if reported and all(type(value) in (int, float) for value in reported):
        numbers = np.array([np.nan if value is None else value for value in values], np.float64)
        return OnuColumn(key, oid, rule, raw, decoder, numbers=numbers)
    return OnuColumn(key, oid, rule, raw, decoder)


def _raw(readings: Iterable[Told], key: str, oid: str) -> RawValues:
    texts = [reading.raw.get(oid) for reading in readings]
    sizes = np.array([IS_INTEGER if text is None else len(text.encode()) for text in texts], np.int32)
    ends = np.cumsum(np.maximum(sizes, 0))
    tags = [
        _OCTET_STRING if text is not None else _NULL if key in reading.values else NO_VALUE
        for text, reading in zip(texts, readings, strict=True)
    ]
    starts = np.where(sizes >= 0, ends - sizes, 0)
    octets = b"".join(text.encode() for text in texts if text is not None)
    return RawValues(np.array(tags, np.uint8), starts.astype(np.int64), sizes, octets)
