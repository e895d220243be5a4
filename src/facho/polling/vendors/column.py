"""One column of a vendor's table: its OID, its index, and the way from wire to typed value and back.

The way is compiled into closures when a definition is loaded: a walk decodes millions of values, and every
question that can be answered once (which sentinels, which scale, which words) is answered there.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from typing import Any

from facho.polling.snmp.ber import Oid, Tag, Value
from facho.polling.vendors.decoders import INTEGER_TAGS, Decoder
from facho.polling.vendors.index import Index, Place
from facho.polling.vendors.values import (
    MISSING,
    OUT_OF_RANGE,
    SENTINEL,
    UNKNOWN_ENUM,
    WRONG_TYPE,
    Decoded,
    Reject,
    Typed,
)
from facho.polling.vendors.vocabulary import Confidence, Cost, Unit

Decode = Callable[[int, Value], Decoded]
Encode = Callable[[Typed | None], tuple[Tag, Value]]

_MISSING_TAGS = frozenset(map(int, (Tag.NULL, Tag.NO_SUCH_OBJECT, Tag.NO_SUCH_INSTANCE, Tag.END_OF_MIB_VIEW)))


@dataclass(frozen=True, slots=True)
class ValueRule:
    """How a column's values are to be read, as its definition states it."""

    tag: Tag
    decoder: Decoder
    sentinels: tuple[int, ...] = ()
    scale: Fraction = Fraction(1)
    offset: Fraction = Fraction(0)
    low: float = -math.inf
    high: float = math.inf
    # By the number on the wire, or by the text in lower case.
    words: Mapping[int | str, StrEnum] = field(default_factory=dict)
    # Measured quantities are floats on every brand, even where one of them counts in whole units.
    is_measured: bool = False


@dataclass(frozen=True, slots=True)
class Column:
    """A column that can be read. `decode` never raises for what a device sent; `encode` is its inverse."""

    key: str
    oid: Oid
    index: Index
    cost: Cost
    confidence: Confidence
    rule: ValueRule
    decode: Decode = field(repr=False, compare=False)
    encode: Encode = field(repr=False, compare=False)
    unit: Unit | None = None
    note: str = ""
    # Key of the column with the same OID that is read in this one's stead.
    shares: str | None = None

    def instance(self, place: Place) -> Oid:
        """Return the OID of this column's value at a place; ValueError when the place does not fit."""
        return self.oid + self.index.encode(place)


def build_decode(rule: ValueRule) -> Decode:
    """Compile the way from wire to typed value."""
    if rule.words:
        return _decode_words(rule)
    if rule.decoder.name == "integer":
        return _decode_integers(rule)
    return _decode_any(rule)


def build_encode(rule: ValueRule) -> Encode:
    """Compile the way back; the closure raises ValueError for a value that the column cannot carry."""
    raw_of = _encode_words(rule) if rule.words else _encode_numbers(rule) if rule.decoder.is_numeric else None
    encode = raw_of or rule.decoder.encode
    absent = rule.sentinels[0] if rule.sentinels else rule.decoder.absent
    tag = rule.tag

    def encode_value(value: Typed | None) -> tuple[Tag, Value]:
        if value is not None:
            return tag, encode(value)
        if absent is None:
            raise ValueError("this column has no way to say that there is no value")
        return tag, absent

    return encode_value


def _mismatch(tag: int) -> Decoded:
    return MISSING if tag in _MISSING_TAGS else WRONG_TYPE


def _decode_words(rule: ValueRule) -> Decode:
    return _decode_numbered_words(rule) if rule.decoder.is_numeric else _decode_written_words(rule)


def _decode_written_words(rule: ValueRule) -> Decode:
    known = {text: Decoded(word) for text, word in rule.words.items()} | {"": SENTINEL}
    tags, python_type, read = rule.decoder.tags, rule.decoder.python_type, rule.decoder.decode

    def decode(tag: int, raw: Value) -> Decoded:
        if type(raw) is not python_type or tag not in tags:
            return _mismatch(tag)
        return known.get(str(read(raw)).lower(), UNKNOWN_ENUM)

    return decode


def _decode_numbered_words(rule: ValueRule) -> Decode:
    known = {raw: Decoded(word) for raw, word in rule.words.items()} | dict.fromkeys(rule.sentinels, SENTINEL)

    def decode(tag: int, raw: Value) -> Decoded:
        if tag not in INTEGER_TAGS:
            return _mismatch(tag)
        return known.get(raw, UNKNOWN_ENUM)  # type: ignore[arg-type]  # an integer tag carries an integer

    return decode


def _decode_integers(rule: ValueRule) -> Decode:
    # Integer arithmetic and one division round correctly: 7315 x 0.01 - 100 is -26.85, not -26.849999999999994.
    multiplier, offset, divisor = _ratio(rule)
    low, high, sentinels = rule.low, rule.high, frozenset(rule.sentinels)
    is_scaled = rule.is_measured or divisor != 1

    def decode(tag: int, raw: Value) -> Decoded:
        if type(raw) is not int or tag not in INTEGER_TAGS:
            return _mismatch(tag)
        if raw in sentinels:
            return SENTINEL
        value = (raw * multiplier + offset) / divisor if is_scaled else raw * multiplier + offset
        return Decoded(value) if low <= value <= high else OUT_OF_RANGE

    return decode


def _decode_any(rule: ValueRule) -> Decode:
    tags, python_type, read = rule.decoder.tags, rule.decoder.python_type, rule.decoder.decode
    rejects = {reason: Decoded(None, reason) for reason in Reject}
    sentinels = frozenset(rule.sentinels)
    finish: Callable[[Any], Decoded] = _finish_number(rule) if rule.decoder.is_numeric else Decoded

    def decode(tag: int, raw: Value) -> Decoded:
        if type(raw) is not python_type or tag not in tags:
            return _mismatch(tag)
        if raw in sentinels:
            return SENTINEL
        value = read(raw)
        return rejects[value] if type(value) is Reject else finish(value)

    return decode


def _finish_number(rule: ValueRule) -> Callable[[float], Decoded]:
    multiplier, offset, divisor = _ratio(rule)
    low, high = rule.low, rule.high
    is_plain = (multiplier, offset, divisor) == (1, 0, 1)

    def finish(value: float) -> Decoded:
        scaled = value if is_plain else (value * multiplier + offset) / divisor
        return Decoded(scaled) if low <= scaled <= high else OUT_OF_RANGE

    return finish


def _ratio(rule: ValueRule) -> tuple[int, int, int]:
    """Return integers m, o, d so that the value is (raw * m + o) / d."""
    divisor = math.lcm(rule.scale.denominator, rule.offset.denominator)
    return int(rule.scale * divisor), int(rule.offset * divisor), divisor


def _encode_words(rule: ValueRule) -> Callable[[Typed], Value]:
    # Several values may mean the same word; the first one listed is sent.
    raw_of: dict[Typed, Value] = {}
    for raw, word in rule.words.items():
        raw_of.setdefault(word, raw if isinstance(raw, int) else raw.encode())

    def encode(value: Typed) -> Value:
        if value not in raw_of:
            raise ValueError(f"{value!r} is not a word of this column")
        return raw_of[value]

    return encode


def _encode_numbers(rule: ValueRule) -> Callable[[Typed], Value]:
    multiplier, offset, divisor = _ratio(rule)
    encode_raw = rule.decoder.encode

    def encode(value: Typed) -> Value:
        if not isinstance(value, int | float):
            raise ValueError(f"{value!r} is not a number")  # noqa: TRY004 - one error for what does not fit
        return encode_raw((value * divisor - offset) / multiplier)

    return encode
