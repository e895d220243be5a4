"""Values of many ONUs as arrays: what a poll reads, compares and stores without an object for each value."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from ipaddress import IPv4Address
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from facho.polling.domain.onu_state import OnuPlace

# The tag of a value that did not come.
NO_VALUE = 0
# What an agent sends instead of a value: NULL, noSuchObject, noSuchInstance, endOfMibView.
NO_VALUE_TAGS = frozenset((0x05, 0x80, 0x81, 0x82))
# The size of a value that is no octets.
IS_INTEGER = -1
_OBJECT_IDENTIFIER, _IP_ADDRESS, _COUNTER64 = 0x06, 0x40, 0x46
_WITHOUT_VALUE = NO_VALUE_TAGS | {NO_VALUE}
# The longest raw value that is written in full.
MAX_TEXT = 255
# Bits of frame, slot, port and ONU in a packed place. An ONU without a number of its own has one made of its serial or
# the whole index, so it takes half; no chassis has as many slots or ports as the others hold.
PLACE_BITS = (8, 9, 15, 31)
# A place that cannot be packed, and so is in no table.
NOWHERE = -1
Raw = int | bytes | tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class Reading:
    """Decoded values of one ONU by their column key; only what was read."""

    place: OnuPlace
    values: dict[str, object]


@dataclass(frozen=True, slots=True, eq=False)
class RawValues:
    """Values as they came; entry i of every array is of one row.

    `tags` are BER types. `numbers` are the integers (of Counter64 the 64 bits as they are), or, where `sizes` is not
    IS_INTEGER, where a value's octets begin in `octets`. Values of type OBJECT IDENTIFIER are their encoded content.
    """

    tags: NDArray[np.uint8]
    numbers: NDArray[np.int64]
    sizes: NDArray[np.int32]
    octets: bytes

    def __len__(self) -> int:
        return len(self.tags)

    def at(self, row: int) -> int | bytes | None:
        """Return one value: an integer, octets, or None if none came."""
        return self._value(int(self.tags[row]), int(self.numbers[row]), int(self.sizes[row]))

    def some(self, rows: NDArray[np.intp]) -> list[int | bytes | None]:
        """Return the values of these rows, each as `at` does."""
        return list(map(self._value, self.tags[rows].tolist(), self.numbers[rows].tolist(), self.sizes[rows].tolist()))

    def _value(self, tag: int, number: int, size: int) -> int | bytes | None:
        if tag in _WITHOUT_VALUE:
            return None
        if size != IS_INTEGER:
            return self.octets[number : number + size]
        return number & 0xFFFF_FFFF_FFFF_FFFF if tag == _COUNTER64 else number


class ValueDecoder(Protocol):
    """Decodes single values of a column: texts, times, and whatever becomes a row."""

    def value_of(self, tag: int, raw: int | bytes | None) -> Any:
        """Return the typed value; None if it has none or cannot be true."""


@dataclass(frozen=True, slots=True, eq=False)
class OnuColumn:
    """One column of a poll, one entry per ONU of its table.

    A column of quantities has `numbers` (NaN: no value), one with a vocabulary `codes` (positions in `words`, -1: no
    value); all others are decoded one by one, by `decoder`, where they changed. Columns of one OID share their `raw`.
    An OID that no column of the definition stands for has neither key, rule nor decoder: its raw values are all.
    """

    key: str
    oid: str
    # Changes when the definition decodes the column in another way: equal raw values may then mean another value.
    rule: str
    raw: RawValues
    decoder: ValueDecoder | None = None
    numbers: NDArray[np.float64] | None = None
    codes: NDArray[np.int16] | None = None
    words: Sequence[StrEnum] = ()
    # Where the column counts, if not everywhere; and the columns that stand in where it has no value, the best first.
    # `numbers` and `codes` heed both.
    counts: NDArray[np.bool_] | None = None
    stand_ins: "tuple[OnuColumn, ...]" = ()

    def values_of(self, rows: NDArray[np.intp]) -> list[Any]:
        """Return the typed values of these rows; None where there is none or it cannot be true."""
        if self.codes is not None:
            return [None if code < 0 else self.words[code] for code in self.codes[rows].tolist()]
        if self.decoder is None:
            return [None] * len(rows)
        values = list(map(self.decoder.value_of, self.raw.tags[rows].tolist(), self.raw.some(rows)))
        if self.counts is not None:
            counted = zip(values, self.counts[rows].tolist(), strict=True)
            values = [value if counts else None for value, counts in counted]
        for column in self.stand_ins:
            others = zip(values, column.values_of(rows), strict=True)
            values = [other if value in (None, "") and other is not None else value for value, other in others]
        return values


@dataclass(frozen=True, slots=True, eq=False)
class OnuTable:
    """What a poll read: one entry of every column per place, places ascending and unique."""

    places: NDArray[np.int64]
    columns: tuple[OnuColumn, ...]
    # Values that could not be true, by reason.
    rejects: Mapping[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.places)

    def readings(self, rows: NDArray[np.intp] | None = None) -> list[Reading]:
        """Decode these rows, or all: the values that came, of every column."""
        wanted = np.arange(len(self)) if rows is None else rows
        found = [Reading(unpack_place(place), {}) for place in self.places[wanted].tolist()]
        for column in self.columns:
            tags = column.raw.tags[wanted].tolist()
            for tag, value, reading in zip(tags, column.values_of(wanted), found, strict=True) if column.key else ():
                if tag != NO_VALUE or value is not None:
                    reading.values[column.key] = value
        return found


def pack_place(frame: int, slot: int, port: int, onu: int) -> int:
    """Return a place as one number that sorts like the place; NOWHERE if a part of it does not fit its PLACE_BITS."""
    packed, fits = _pack((frame, slot, port, onu))
    return packed if fits else NOWHERE


def pack_places(parts: Sequence[NDArray[np.int64] | int], is_valid: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Pack many places, given by their parts; NOWHERE for those that do not fit or are not valid."""
    packed, fits = _pack(parts)
    return np.where(is_valid & fits, packed, NOWHERE)


def _pack(parts: Sequence[Any]) -> tuple[Any, Any]:
    packed, fits = 0, True
    for part, bits in zip(parts, PLACE_BITS, strict=True):
        fits = fits & (part >= 0) & (part < 1 << bits)
        packed = packed << bits | part
    return packed, fits


def unpack_place(packed: int) -> OnuPlace:
    parts = []
    for bits in reversed(PLACE_BITS):
        parts.append(packed & (1 << bits) - 1)
        packed >>= bits
    onu, port, slot, frame = parts
    return frame, slot, port, onu


def raw_text(tag: int, raw: Raw) -> str:
    """Write a value as it came: printable, of bounded length."""
    if type(raw) is int:
        return str(raw)
    if not isinstance(raw, bytes):
        return _cut(".".join(map(str, raw))) if isinstance(raw, tuple) else str(raw)
    if tag == _OBJECT_IDENTIFIER:
        return _cut(_dotted(raw))
    if tag == _IP_ADDRESS and len(raw) == 4:
        return str(IPv4Address(raw))
    text = _printable(raw)
    return _cut(f"0x{raw.hex()}" if text is None else text)


def is_odd(tag: int, raw: Raw) -> bool:
    """Whether octets cannot be shown as they came, because they are no printable text or too long."""
    is_text = isinstance(raw, bytes) and tag not in (_IP_ADDRESS, _OBJECT_IDENTIFIER)
    return is_text and (len(raw) > MAX_TEXT or _printable(raw) is None)  # type: ignore[arg-type]


def _printable(raw: bytes) -> str | None:
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return None
    return text if text.isprintable() else None


def _dotted(content: bytes) -> str:
    """Write the encoded content of an object identifier, which the codec has checked."""
    sub_ids, number = [], 0
    for byte in content:
        number = number << 7 | byte & 0x7F
        if byte < 0x80:
            sub_ids.append(number)
            number = 0
    first, *rest = sub_ids or [0]
    top = min(first // 40, 2)
    return ".".join(map(str, (top, first - 40 * top, *rest)))


def _cut(text: str) -> str:
    return text if len(text) <= MAX_TEXT else f"{text[: MAX_TEXT - 1]}…"
