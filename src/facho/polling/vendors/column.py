"""One column of a vendor's table: its OID, its index, and the way from wire to typed value and back.

The way is compiled into closures when a definition is loaded: every question that can be answered once (which
sentinels, which scale, which words) is answered there. One rule reads single values and whole columns: arithmetic is
done on a number or on an array of them, octets are read one by one and remembered.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from fractions import Fraction
from functools import lru_cache
from hashlib import blake2b
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from facho.polling.domain.onu_table import IS_INTEGER, NO_VALUE, NO_VALUE_TAGS, OnuColumn, OnuTable, RawValues
from facho.polling.snmp.ber_values import Oid, Tag, Value, decode_oid
from facho.polling.snmp.oid import format_oid
from facho.polling.vendors.decoders import DECODERS, Decoder
from facho.polling.vendors.index import Index, Place
from facho.polling.vendors.schema import Section
from facho.polling.vendors.vocabulary import (
    HONEST,
    MISSING,
    OUT_OF_RANGE,
    PLAUSIBLE,
    SENTINEL,
    UNKNOWN_ENUM,
    VOCABULARIES,
    WRONG_TYPE,
    Confidence,
    Cost,
    Decoded,
    Reject,
    Typed,
    Unit,
)


@dataclass(frozen=True, slots=True)
class RowRule:
    """`fills` is the key that this column stands for in rows without a value of it.

    `when` has the values of other keys under which the column counts. `shown_with` are values of the column itself: a
    device that shows none of them in any row does not tell them apart, and the column says nothing there. `lists` are
    those of rows that are ONUs, in tables with rows for free places. `guard` is a key whose value, where it cannot be
    true, shows that the row has other columns than the definition says.
    """

    fills: str = ""
    when: Mapping[str, tuple[object, ...]] | None = None
    shown_with: tuple[str, ...] = ()
    lists: tuple[object, ...] = ()
    guard: str = ""

    @property
    def is_empty(self) -> bool:
        return not (self.fills or self.when or self.shown_with or self.lists or self.guard)

    @property
    def needed(self) -> tuple[str, ...]:
        """The keys without which it cannot be told whether the column counts."""
        return (*(self.when or ()), *filter(None, [self.guard]))


NO_RULE = RowRule()


def read_row_rule(section: Section) -> RowRule:
    when = section.optional_section("when")
    conditions = {key: when.items(key, object) for key in list(when.data)}
    return RowRule(
        fills=section.text("fills", ""),
        when=conditions or None,
        shown_with=section.items("shown_with", str, required=False),
        lists=section.items("lists", object, required=False),
    )


def settle(rules: Mapping[str, RowRule], table: OnuTable) -> OnuTable:
    columns = {column.key: column for column in table.columns if column.key}
    for key, rule in rules.items():
        if key in columns and rule.shown_with and not _has(columns[key], rule.shown_with).any():
            columns[key] = _limit(columns[key], np.zeros(len(table), np.bool_), rule)
        if key in columns and rule.when is not None:
            columns[key] = _limit(columns[key], _holds(rule.when, columns, len(table)), rule)
        if key in columns and rule.guard in columns and not (is_true := _is_true(columns[rule.guard])).all():
            columns[key] = _limit(columns[key], is_true, rule)
    for key, rule in rules.items():
        if rule.fills and key in columns:
            columns[rule.fills] = _fill(rule.fills, columns.get(rule.fills), columns[key])
    return replace(table, columns=(*columns.values(), *(column for column in table.columns if not column.key)))


def _holds(when: Mapping[str, tuple[object, ...]], columns: Mapping[str, OnuColumn], rows: int) -> NDArray[np.bool_]:
    holds = np.ones(rows, np.bool_)
    for key, values in when.items():
        holds &= _has(columns[key], values) if key in columns else False
    return holds


def _is_true(column: OnuColumn) -> NDArray[np.bool_]:
    """Tell the rows in which a column has a value, or came without any: a closed view shows nothing."""
    is_absent = np.isin(column.raw.tags, [NO_VALUE, *NO_VALUE_TAGS])
    return is_absent | [value is not None for value in column.values_of(np.arange(len(column.raw)))]


def _has(column: OnuColumn, values: Sequence[object]) -> NDArray[np.bool_]:
    if column.codes is not None:
        return np.isin(column.codes, [code for code, word in enumerate(column.words) if word in values])
    return np.array([value in values for value in column.values_of(np.arange(len(column.raw)))], np.bool_)


def _limit(column: OnuColumn, counts: NDArray[np.bool_], rule: RowRule) -> OnuColumn:
    return replace(
        column,
        rule=_joined(column.rule, repr(rule)),
        numbers=None if column.numbers is None else np.where(counts, column.numbers, np.nan),
        codes=None if column.codes is None else np.where(counts, column.codes, np.int16(-1)),
        counts=counts if column.counts is None else counts & column.counts,
    )


def _fill(key: str, column: OnuColumn | None, other: OnuColumn) -> OnuColumn:
    if column is None:
        return replace(other, key=key)
    numbers, codes, words = column.numbers, column.codes, tuple(column.words)
    if numbers is not None and other.numbers is not None:
        numbers = np.where(np.isnan(numbers), other.numbers, numbers)
    if codes is not None and other.codes is not None:
        words = tuple(dict.fromkeys((*words, *other.words)))
        # The last entry is for code -1.
        renamed = np.array([*(words.index(word) for word in other.words), -1], np.int16)
        codes = np.where(codes < 0, renamed[other.codes], codes)
    return replace(
        column,
        rule=_joined(column.rule, other.rule),
        numbers=numbers,
        codes=codes,
        words=words,
        stand_ins=(*column.stand_ins, other),
    )


def _joined(*rules: str) -> str:
    return blake2b(" ".join(rules).encode(), digest_size=8).hexdigest()


Decode = Callable[[int, Value], Decoded]
Encode = Callable[[Typed | None], tuple[Tag, Value]]
# Reads a value whose type is right.
Read = Callable[[Any], Decoded]

# Values of one column that are remembered with what they mean, such as models and versions. Those that differ by ONU
# fill it in the first hour, so it is small: each family has several such columns.
_REMEMBERED = 512
# Raise it when a decoder reads the same octets in another way: stored values are then read again.
_RULES_VERSION = 2
# Integers up to here are floats without loss.
_EXACT = 1 << 53
# What arithmetic decoders add at most before scaling.
_ADDED = 1 << 16
# So many times beyond the range a value is of another scale; nearer to it, it is a reading that cannot be true.
_BEYOND = 5


@dataclass(frozen=True, slots=True)
class ValueRule:
    """How a column's values are decoded, as its definition states it."""

    tag: Tag
    decoder: Decoder
    # As they are on the wire: numbers, octets or OIDs, whatever the type carries.
    sentinels: tuple[Value, ...] = ()
    scale: Fraction = Fraction(1)
    offset: Fraction = Fraction(0)
    # Of values that are far too large by `scale`: firmware of one family differs in it.
    second_scale: Fraction | None = None
    low: float = -math.inf
    high: float = math.inf
    # By the number on the wire, or by the text in lower case.
    words: Mapping[int | str, StrEnum] = field(default_factory=dict)
    # The part of a text that is the value, in parentheses; a text without it has none.
    pattern: str = ""
    # Measured quantities are floats on every brand, even where one of them counts in whole units.
    is_measured: bool = False


class DecodedValues(NamedTuple):
    """The values of a column: numbers, or codes of words, or neither; and how many could not be true, by reason."""

    numbers: NDArray[np.float64] | None
    codes: NDArray[np.int16] | None
    rejects: Counter[str]


@dataclass(frozen=True, slots=True)
class Column:
    """A readable column. `decode` and `decode_all` never raise for device data; `encode` is the inverse."""

    key: str
    oid: Oid
    index: Index
    cost: Cost
    confidence: Confidence
    rule: ValueRule
    decode: Decode = field(repr=False, compare=False)
    decode_all: Callable[[RawValues], DecodedValues] = field(repr=False, compare=False)
    encode: Encode = field(repr=False, compare=False)
    # Changes whenever the same raw value may mean another one.
    fingerprint: str
    unit: Unit | None = None
    note: str = ""
    # Key of the column with the same OID that is read in this one's stead.
    shares: str | None = None
    # The MIB object, or the capture, that shows the column; empty if it rests on drivers alone.
    proof: str = ""
    row_rule: RowRule = NO_RULE

    def instance(self, place: Place) -> Oid:
        return self.oid + self.index.encode(place)

    def value_of(self, tag: int, raw: int | bytes | None) -> Typed | None:
        """Return the typed value of one entry of RawValues; None if it has none or cannot be true."""
        return self.decode(tag, _wire_value(tag, raw)).value

    def of_onus(self, raw: RawValues) -> tuple[OnuColumn, Counter[str]]:
        """Return this column of a table of ONUs, and how many of its values could not be true, by reason."""
        numbers, codes, rejects = self.decode_all(raw)
        words = _words(self.rule)
        oid = format_oid(self.oid)
        return OnuColumn(self.key, oid, self.fingerprint, raw, self, numbers, codes, words), rejects


def instances(columns: Sequence[Column], places: Sequence[Place]) -> list[tuple[Oid, ...]]:
    """Return by place the OIDs of its values; a place is encoded once for all columns of an index.

    ValueError if a place does not fit.
    """
    suffixes: dict[int, list[Oid]] = {}
    for column in columns:
        if id(column.index) not in suffixes:
            suffixes[id(column.index)] = [column.index.encode(place) for place in places]
    of_columns = [[column.oid + suffix for suffix in suffixes[id(column.index)]] for column in columns]
    return list(zip(*of_columns, strict=True))


class _Scale(NamedTuple):
    """What follows after a number is decoded; one division rounds correctly: 7315 x 0.01 - 100 is -26.85."""

    multiplier: int
    offset: int
    divisor: int
    is_divided: bool
    low: float
    high: float

    @classmethod
    def of(cls, rule: ValueRule) -> "_Scale":
        multiplier, offset, divisor = _ratio(rule)
        return cls(multiplier, offset, divisor, rule.is_measured or divisor != 1, rule.low, rule.high)

    @classmethod
    def second_of(cls, rule: ValueRule) -> "_Scale | None":
        return None if rule.second_scale is None else cls.of(replace(rule, scale=rule.second_scale, second_scale=None))

    def apply(self, number: Any) -> Any:
        scaled = number * self.multiplier + self.offset
        return scaled / self.divisor if self.is_divided else scaled

    def is_possible(self, value: Any) -> Any:
        return (value >= self.low) & (value <= self.high)

    def is_beyond(self, value: Any) -> Any:
        return (value < self.low * _BEYOND) | (value > self.high * _BEYOND)


def build_decode(rule: ValueRule) -> tuple[Decode, Callable[[RawValues], DecodedValues]]:
    """Compile the decoder of single values and that of whole columns."""
    tags, python_type, read = rule.decoder.tags, rule.decoder.python_type, _build_read(rule)
    if python_type is not int or not rule.decoder.is_arithmetic:
        read = lru_cache(_REMEMBERED)(read)

    def decode(tag: int, raw: Value) -> Decoded:
        if type(raw) is not python_type or tag not in tags:
            return MISSING if tag in NO_VALUE_TAGS or tag == NO_VALUE else WRONG_TYPE
        return read(raw)

    return decode, _build_decode_all(rule, read)


def _build_read(rule: ValueRule) -> Read:
    if rule.words:
        return _read_numbered_words(rule) if rule.decoder.is_numeric else _read_written_words(rule)
    return _read_numbers(rule) if rule.decoder.is_numeric else _read_others(rule)


def _read_written_words(rule: ValueRule) -> Read:
    read = rule.decoder.decode
    known = {text: Decoded(word) for text, word in rule.words.items()}
    known |= dict.fromkeys(("", *(str(read(raw)).lower() for raw in rule.sentinels)), SENTINEL)
    return lambda raw: known.get(str(read(raw)).lower(), UNKNOWN_ENUM)


def _read_numbered_words(rule: ValueRule) -> Read:
    known: dict[Any, Decoded] = {raw: Decoded(word) for raw, word in rule.words.items()}
    known |= dict.fromkeys(rule.sentinels, SENTINEL)
    return lambda raw: known.get(raw, UNKNOWN_ENUM)


def _read_numbers(rule: ValueRule) -> Read:
    read, scale, second = _read_others(rule), _Scale.of(rule), _Scale.second_of(rule)

    def read_number(raw: Any) -> Decoded:
        value, reason = read(raw)
        if reason is not None:
            return Decoded(None, reason)
        scaled = scale.apply(value)
        if second is not None and scale.is_beyond(scaled):
            scaled = second.apply(value)
        return Decoded(scaled) if scale.is_possible(scaled) else OUT_OF_RANGE

    return read_number


def _read_others(rule: ValueRule) -> Read:
    sentinels, read = frozenset(map(_bare, rule.sentinels)), rule.decoder.decode
    pattern = re.compile(rule.pattern) if rule.pattern else None

    def read_value(raw: Any) -> Decoded:
        if sentinels and _bare(raw) in sentinels:
            return SENTINEL
        value = read(raw)
        if pattern is not None:
            match = pattern.search(str(value))
            return Decoded(match[1]) if match else SENTINEL
        return Decoded(None, value) if isinstance(value, Reject) else Decoded(value)

    return read_value


def _bare(raw: Value) -> Value:
    # Agents pad texts with blanks, line ends and NULs.
    return raw.strip(b"\0 \t\r\n") if isinstance(raw, bytes) else raw


def _wire_value(tag: int, raw: int | bytes | None) -> Value:
    return decode_oid(raw) if tag == Tag.OBJECT_IDENTIFIER and isinstance(raw, bytes) else raw


class _Found(NamedTuple):
    """What rows mean while they are decoded: numbers or codes, and positions in _REASONS, of which 0 counts nothing."""

    values: Any
    reasons: NDArray[np.uint8]


# A device without a value is not a device that lies: that is not counted.
_REASONS = (Reject.MISSING, *(reason for reason in Reject if reason not in HONEST))
_REASON_CODES = {reason: _REASONS.index(reason) if reason in _REASONS else 0 for reason in (None, *Reject)}
_Rows = NDArray[np.intp]
# Fills in the rows that it can read all at once, and returns the others.
_Fill = Callable[[RawValues, _Rows, _Found], _Rows]


def _build_decode_all(rule: ValueRule, read: Read) -> Callable[[RawValues], DecodedValues]:
    is_wanted, is_missing = _tags(rule.decoder.tags), _tags(NO_VALUE_TAGS | {NO_VALUE})
    are_oids = rule.decoder.python_type is tuple
    are_integers, has_numbers = rule.decoder.python_type is int, rule.decoder.is_numeric and not rule.words
    code_of: dict[Any, int] = {word: code for code, word in enumerate(_words(rule))}
    fill = _build_fill(rule)

    def decode_all(raw: RawValues) -> DecodedValues:
        is_read = is_wanted[raw.tags] & ((raw.sizes == IS_INTEGER) == are_integers)
        is_wrong = ~is_read & ~is_missing[raw.tags]
        values: Any = np.full(len(raw), -1, np.int16) if code_of else np.full(len(raw), np.nan)
        found = _Found(values, is_wrong.astype(np.uint8) * _REASON_CODES[Reject.WRONG_TYPE])
        left = fill(raw, np.flatnonzero(is_read), found)
        if len(left):
            singles = raw.some(left)
            decoded = list(map(read, map(decode_oid, singles) if are_oids else singles))  # type: ignore[arg-type]
            found.reasons[left] = [_REASON_CODES[reason] for _, reason in decoded]
            if code_of:
                values[left] = [code_of.get(value, -1) for value, _ in decoded]
            elif has_numbers:
                values[left] = [np.nan if value is None else value for value, _ in decoded]
        return DecodedValues(values if has_numbers else None, values if code_of else None, _count(found.reasons))

    return decode_all


def _count(reasons: NDArray[np.uint8]) -> Counter[str]:
    if not reasons.any():
        return Counter()
    return Counter(_REASONS[code].value for code in reasons[reasons > 0].tolist())


def _build_fill(rule: ValueRule) -> _Fill:
    if rule.decoder.is_arithmetic:
        return _fill_words(rule) if rule.words else _fill_numbers(rule)
    # Values that cannot be invalid are decoded only when needed.
    is_right = rule.decoder.reads_all and not rule.words and not rule.pattern
    return lambda raw, rows, found: rows[:0] if is_right else rows


def _fill_numbers(rule: ValueRule) -> _Fill:
    scale, second, read = _Scale.of(rule), _Scale.second_of(rule), rule.decoder.decode
    limits = [(_EXACT - abs(each.offset)) // each.multiplier - _ADDED for each in (scale, second) if each]
    limit = max(0, min(limits))
    sentinels = [raw for raw in rule.sentinels if isinstance(raw, int) and abs(raw) < _EXACT]

    def fill(raw: RawValues, rows: _Rows, found: _Found) -> _Rows:
        numbers = raw.numbers[rows]
        is_exact = _is_exact(raw.tags[rows], numbers, limit)
        exact, numbers = rows[is_exact], numbers[is_exact]
        values = scale.apply(read(numbers))
        if second is not None:
            values = np.where(scale.is_beyond(values), second.apply(read(numbers)), values)
        is_possible = scale.is_possible(values)
        is_reading = np.ones(len(exact), np.bool_)
        for sentinel in sentinels:
            is_reading &= numbers != sentinel
        found.values[exact] = np.where(is_possible & is_reading, values, np.nan)
        found.reasons[exact[~is_possible & is_reading]] = _REASON_CODES[Reject.OUT_OF_RANGE]
        return rows[~is_exact]

    return fill


def _fill_words(rule: ValueRule) -> _Fill:
    code_of = {word: code for code, word in enumerate(_words(rule))}
    meanings = {raw: code_of[word] for raw, word in rule.words.items()} | dict.fromkeys(rule.sentinels, -1)
    in_order = sorted((raw, code) for raw, code in meanings.items() if isinstance(raw, int) and abs(raw) < _EXACT)
    known = np.array([raw for raw, _ in in_order], np.int64)
    codes = np.array([code for _, code in in_order], np.int16)

    def fill(raw: RawValues, rows: _Rows, found: _Found) -> _Rows:
        numbers = raw.numbers[rows]
        is_exact = _is_exact(raw.tags[rows], numbers, _EXACT - 1)
        exact, numbers = rows[is_exact], numbers[is_exact]
        at = np.minimum(np.searchsorted(known, numbers), len(known) - 1)
        is_known = known[at] == numbers
        found.values[exact] = np.where(is_known, codes[at], -1)
        found.reasons[exact[~is_known]] = _REASON_CODES[Reject.UNKNOWN_ENUM]
        return rows[~is_exact]

    return fill


def _is_exact(tags: NDArray[np.uint8], numbers: NDArray[np.int64], limit: int) -> NDArray[np.bool_]:
    """Tell the numbers whose arithmetic is exact in 64 bits and in floats; a large Counter64 looks negative."""
    lowest = np.where(tags == Tag.COUNTER64, 0, -limit)
    return np.logical_and(numbers <= limit, numbers >= lowest)


def _tags(tags: Iterable[int]) -> NDArray[np.bool_]:
    known = np.zeros(256, np.bool_)
    known[list(tags)] = True
    return known


def _words(rule: ValueRule) -> tuple[StrEnum, ...]:
    return tuple(dict.fromkeys(rule.words.values()))


def _fingerprint(rule: ValueRule) -> str:
    """Return a short text that changes with everything that decides what a raw value means."""
    words = sorted(f"{raw!r}={word}" for raw, word in rule.words.items())
    limits = (rule.low, rule.high, rule.is_measured)
    parts = (
        _RULES_VERSION,
        rule.decoder.name,
        sorted(map(repr, rule.sentinels)),
        rule.scale,
        rule.offset,
        limits,
        words,
        # Left out where there is none: columns without it keep their stored values.
        *((rule.second_scale,) if rule.second_scale is not None else ()),
        *((rule.pattern,) if rule.pattern else ()),
    )
    return blake2b(repr(parts).encode(), digest_size=8).hexdigest()


def build_encode(rule: ValueRule) -> Encode:
    """Compile the encoder; it raises ValueError for a value the column cannot carry."""
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


def _ratio(rule: ValueRule) -> tuple[int, int, int]:
    """Return integers m, o, d with value = (raw * m + o) / d."""
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


# Wire types by their MIB names, each with the decoder that reads it unless the column names another.
_WIRE_TYPES: Mapping[str, tuple[Tag, str]] = {
    "Integer32": (Tag.INTEGER, "integer"),
    "Counter32": (Tag.COUNTER32, "integer"),
    "Counter64": (Tag.COUNTER64, "integer"),
    "Gauge32": (Tag.GAUGE32, "integer"),
    "TimeTicks": (Tag.TIMETICKS, "integer"),
    "OctetString": (Tag.OCTET_STRING, "text"),
    "ObjectIdentifier": (Tag.OBJECT_IDENTIFIER, "object_id"),
}
_MEASURED = frozenset((Unit.DBM, Unit.VOLT, Unit.MILLIAMPERE, Unit.CELSIUS))
_UNLIMITED = (float("-inf"), float("inf"))


@dataclass(frozen=True, slots=True)
class ColumnReader:
    """Reads columns that share a table's OID and index, with its default cost and confidence."""

    table_oid: Oid
    index: Index
    cost: Cost
    confidence: Confidence

    def read(self, key: str, section: Section) -> Column:
        oid = (*self.table_oid, section.integer("id", low=1))
        unit = section.word("unit", Unit) if section.has("unit") else None
        rule = _read_rule(section, unit)
        decode, decode_all = build_decode(rule)
        column = Column(
            key=key,
            oid=oid,
            index=self.index,
            cost=section.word("cost", Cost, self.cost),
            confidence=section.word("confidence", Confidence, self.confidence),
            rule=rule,
            decode=decode,
            decode_all=decode_all,
            encode=build_encode(rule),
            fingerprint=_fingerprint(rule),
            unit=unit,
            note=section.text("note", ""),
            shares=section.text("shares", "") or None,
            proof=section.text("proof", ""),
            row_rule=read_row_rule(section),
        )
        section.close()
        return column


def _read_rule(section: Section, unit: Unit | None) -> ValueRule:
    tag, decoder = _read_type(section)
    low, high = _read_range(section, unit)
    words = _read_words(section, decoder)
    rule = ValueRule(
        tag=tag,
        decoder=decoder,
        sentinels=_read_sentinels(section, decoder),
        scale=section.fraction("scale", 1),
        offset=section.fraction("offset", 0),
        second_scale=section.fraction("second_scale", 1) if section.has("second_scale") else None,
        low=low,
        high=high,
        words=words,
        pattern=_read_pattern(section, decoder, words),
        is_measured=unit in _MEASURED,
    )
    if rule.words and (rule.decoder.name not in ("integer", "text") or rule.scale != 1 or rule.offset != 0):
        raise section.error("values", "words are read from plain integers or texts")
    if not rule.decoder.is_numeric and (rule.scale != 1 or rule.offset != 0):
        raise section.error("decoder", f"{rule.decoder.name!r} gives no number: a scale means nothing")
    if rule.scale <= 0:
        raise section.error("scale", "must be above 0")
    if rule.second_scale is not None and (rule.second_scale <= 0 or not rule.decoder.is_numeric or rule.words):
        raise section.error("second_scale", "must be above 0, of a number")
    if rule.second_scale is not None and not math.isfinite(rule.low - rule.high):
        raise section.error("second_scale", "needs a range that decides when it is meant")
    if {raw if isinstance(raw, int) else str(decoder.decode(raw)).lower() for raw in rule.sentinels} & set(rule.words):
        raise section.error("sentinels", "a value is a word or a sentinel, not both")
    return rule


def _read_pattern(section: Section, decoder: Decoder, words: Mapping[int | str, StrEnum]) -> str:
    written = section.text("pattern", "")
    try:
        groups = re.compile(written).groups
    except re.error as error:
        raise section.error("pattern", f"is not a regular expression: {error}") from None
    if written and (groups != 1 or decoder.name != "text" or words):
        raise section.error("pattern", "must have the value in parentheses, of a text without words")
    return written


def _read_type(section: Section) -> tuple[Tag, Decoder]:
    name = section.text("type")
    if name not in _WIRE_TYPES:
        raise section.error("type", f"{name!r} is not one of {', '.join(_WIRE_TYPES)}")
    tag, default = _WIRE_TYPES[name]
    wanted = section.text("decoder", default)
    decoder = DECODERS.get(wanted)
    if decoder is None:
        raise section.error("decoder", f"{wanted!r} is not one of {', '.join(DECODERS)}")
    if tag not in decoder.tags:
        raise section.error("decoder", f"{decoder.name!r} cannot read {name}")
    return tag, decoder


def _read_sentinels(section: Section, decoder: Decoder) -> tuple[Value, ...]:
    """Read numbers where the wire carries numbers, else texts; octets that are no text are `!!binary`."""
    if decoder.python_type is int:
        return section.items("sentinels", int, required=False)
    found: list[Value] = []
    for at, sentinel in enumerate(section.items("sentinels", object, required=False)):
        if decoder.python_type is tuple:
            found.append(section.to_oid(f"sentinels[{at}]", sentinel))
        elif isinstance(sentinel, str | bytes):
            found.append(sentinel.encode() if isinstance(sentinel, str) else sentinel)
        else:
            raise section.error(f"sentinels[{at}]", f"must be text in quotes, not {sentinel!r}")
    return tuple(found)


def _read_range(section: Section, unit: Unit | None) -> tuple[float, float]:
    if not section.has("range"):
        return PLAUSIBLE.get(unit, _UNLIMITED) if unit else _UNLIMITED
    limits = section.items("range", int)
    if len(limits) != 2 or limits[0] >= limits[1]:
        raise section.error("range", "must be a lower and an upper limit")
    return limits[0], limits[1]


def _read_words(section: Section, decoder: Decoder) -> Mapping[int | str, StrEnum]:
    if not section.has("vocabulary"):
        if section.has("values"):
            raise section.error("values", "need a vocabulary")
        return MappingProxyType({})
    name = section.text("vocabulary")
    vocabulary = VOCABULARIES.get(name)
    if vocabulary is None:
        raise section.error("vocabulary", f"{name!r} is not one of {', '.join(VOCABULARIES)}")
    words: dict[int | str, StrEnum] = {}
    for raw, word in section.section("values").pairs().items():
        if decoder.is_numeric and type(raw) is not int:
            raise section.error(f"values.{raw}", "the value on the wire must be a whole number")
        if not decoder.is_numeric and (type(raw) is not str or raw != raw.lower()):
            raise section.error(f"values.{raw}", "the text on the wire must be written in lower case")
        words[raw] = section.to_word(f"values.{raw}", word, vocabulary)
    if not words:
        raise section.error("values", "must not be empty")
    return MappingProxyType(words)
