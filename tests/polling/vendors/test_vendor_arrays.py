"""Whole columns: the arrays say what a plain reading of each value says, for every definition and all types."""

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from fractions import Fraction
from importlib.resources import files

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from facho.polling.domain.onu_table import NOWHERE, pack_place, unpack_place
from facho.polling.snmp.ber import Oid, Tag, Value
from facho.polling.snmp.walk import ColumnRows
from facho.polling.vendors.column import Column, ValueRule, build_decode
from facho.polling.vendors.decoders import DECODERS, Decoder, clean_text
from facho.polling.vendors.definition import Definition
from facho.polling.vendors.index import (
    BasedIndex,
    BitField,
    EitherIndex,
    Index,
    LearnedIndex,
    Place,
    SteppedIndex,
    build_either,
    build_index,
)
from facho.polling.vendors.loader import load_definitions, read_definition
from facho.polling.vendors.vocabulary import Reject, Scope
from facho.snmp_get.reading import pack_values
from onu_tables import column_rows

FILES = files("facho.polling.vendors") / "definitions"
FAMILIES = [pytest.param(found, id=key) for key, found in load_definitions().items()]
NUMBERS = (Tag.INTEGER, Tag.GAUGE32, Tag.COUNTER32, Tag.TIMETICKS)
MISSING = (Tag.NULL, Tag.NO_SUCH_OBJECT, Tag.NO_SUCH_INSTANCE, Tag.END_OF_MIB_VIEW)
TEXTS = [b"", b"--", b" -- ", b"0.00", b"-21.55", b"-21.55(dBm)", b"online", b"LOS", b"HWTC\x01\x02\x03\x04", bytes(8)]
octets = st.sampled_from(TEXTS) | st.binary(max_size=20) | st.text("0123456789.-+ dBm()", max_size=12).map(str.encode)
oids = st.lists(st.integers(0, 2**32 - 1), max_size=6).map(lambda rest: (1, 3, *rest))
Sent = tuple[int, Value]


COLUMNS = [column for found in load_definitions().values() for column in found.columns.values()]
# Numbers that mean something to one of the columns, and what is next to a limit.
KNOWN = {raw for column in COLUMNS for raw in (*column.rule.words, *column.rule.sentinels) if isinstance(raw, int)}
near = st.sampled_from(sorted({-1, 0, 1, 7315, 0x7FFF, 0x8000, 2**31 - 1} | KNOWN))
small = near | st.integers(-12_000, 12_000) | st.integers(-(2**31), 2**31 - 1)
sent_values = st.lists(
    st.tuples(st.sampled_from(NUMBERS), small)
    | st.tuples(st.just(Tag.INTEGER), st.integers(-(2**63), 2**63 - 1))
    | st.tuples(st.just(Tag.COUNTER64), small.map(abs) | st.integers(0, 2**64 - 1))
    | st.tuples(st.just(Tag.OCTET_STRING), octets)
    | st.tuples(st.just(Tag.OBJECT_IDENTIFIER), oids)
    | st.tuples(st.just(Tag.IP_ADDRESS), st.binary(min_size=4, max_size=4))
    | st.tuples(st.sampled_from(MISSING), st.none()),
    max_size=12,
)


def plain(rule: ValueRule, tag: int, raw: Value) -> object:
    """Return the value, or the reason why there is none, in the slowest and plainest way."""
    kinds = dict.fromkeys((*NUMBERS, Tag.COUNTER64), int) | {Tag.OCTET_STRING: bytes, Tag.OBJECT_IDENTIFIER: tuple}
    if kinds.get(Tag(tag)) is not rule.decoder.python_type:
        return Reject.MISSING if tag in MISSING else Reject.WRONG_TYPE
    if rule.words and isinstance(raw, bytes):
        text = clean_text(raw).lower()
        silent = ["", *(clean_text(each).lower() for each in rule.sentinels if isinstance(each, bytes))]
        return Reject.SENTINEL if text in silent else rule.words.get(text, Reject.UNKNOWN_ENUM)
    if any(bare(raw) == bare(sentinel) for sentinel in rule.sentinels):
        return Reject.SENTINEL
    if rule.words:
        assert isinstance(raw, int)
        return rule.words.get(raw, Reject.UNKNOWN_ENUM)
    value = plain_number(rule.decoder.name, raw) if isinstance(raw, int) else rule.decoder.decode(raw)
    if rule.pattern:
        match = re.search(rule.pattern, str(value))
        return match[1] if match else Reject.SENTINEL
    return plain_scaled(rule, value) if isinstance(value, int | float) else value


def plain_scaled(rule: ValueRule, value: float) -> object:
    scaled = float(Fraction(str(value)) * rule.scale + rule.offset)
    if rule.second_scale is not None and not rule.low * 5 <= scaled <= rule.high * 5:
        scaled = float(Fraction(str(value)) * rule.second_scale + rule.offset)
    if not rule.low <= scaled <= rule.high:
        return Reject.OUT_OF_RANGE
    # Of integers the scale is exact.
    return scaled if isinstance(value, int) else pytest.approx(scaled, rel=1e-12)


def bare(raw: Value) -> Value:
    return raw.strip(b"\0 \t\r\n") if isinstance(raw, bytes) else raw


def plain_number(decoder: str, raw: int) -> object:
    if decoder == "signed16":
        return raw - 65_536 if raw >= 32_768 else raw
    if decoder == "negative_magnitude":
        return -raw if raw > 0 else raw
    if decoder == "milliwatt_10000":
        return Reject.SENTINEL if raw <= 0 else round(10 * math.log10(raw / 10_000), 2)
    return raw


def check(column: Column, sent: Sequence[Sent]) -> None:
    expected = [plain(column.rule, tag, raw) for tag, raw in sent]
    raw = pack_values(sent)

    decoded, rejects = column.of_onus(raw)

    values = decoded.values_of(np.arange(len(sent)))
    honest = (Reject.SENTINEL, Reject.MISSING)
    assert rejects == Counter(e.value for e in expected if isinstance(e, Reject) and e not in honest)
    for row, (wanted, (tag, value)) in enumerate(zip(expected, sent, strict=True)):
        single = column.decode(tag, value)
        reported = float(single.value) if isinstance(single.value, int) else single.value
        assert (single.reason if reported is None else reported) == wanted, (tag, value)
        assert values[row] == single.value
        if decoded.numbers is not None:
            got = decoded.numbers[row]
            assert math.isnan(got) if isinstance(wanted, Reject) else got == wanted, (tag, value)
    assert (decoded.codes is not None) == bool(column.rule.words)
    assert (decoded.numbers is not None) == (column.rule.decoder.is_numeric and not column.rule.words)


@pytest.mark.parametrize("family", FAMILIES)
@given(sent=sent_values)
@settings(max_examples=30)
def test_column_means_what_each_of_its_values_means(family: Definition, sent: list[Sent]) -> None:
    for column in family.columns.values():
        check(column, sent)


def ruled(family: str, key: str, **changes: object) -> Column:
    """Return a column under another rule."""
    column = load_definitions()[family].column(key)
    rule = replace(column.rule, **changes)  # type: ignore[arg-type]
    decode, decode_all = build_decode(rule)
    return replace(column, rule=rule, decode=decode, decode_all=decode_all)


@pytest.mark.parametrize(("scale", "offset"), [("1", "0"), ("0.01", "-100"), ("0.002", "-30"), ("2", "0")])
@pytest.mark.parametrize(
    "decoder", [each for each in DECODERS.values() if each.python_type is int], ids=lambda d: d.name
)
@given(sent=sent_values)
@settings(max_examples=30)
def test_every_decoder_of_numbers_reads_arrays_like_numbers(
    decoder: Decoder, scale: str, offset: str, sent: list[Sent]
) -> None:
    column = ruled(
        "huawei_smartax",
        "onu.rx_power",
        decoder=decoder,
        scale=Fraction(scale),
        offset=Fraction(offset),
        sentinels=(7,),
    )

    check(column, sent)


def test_scaled_number_is_rounded_once() -> None:
    column = ruled("huawei_smartax", "onu.olt_rx_power", scale=Fraction("0.01"), offset=Fraction(-100), sentinels=())

    numbers = column.decode_all(pack_values([(Tag.INTEGER, 7315)])).numbers

    assert numbers is not None
    assert numbers.tolist() == [-26.85]


def test_large_counter_keeps_its_digits_where_it_is_read_alone() -> None:
    column = load_definitions()["huawei_smartax"].column("onu.up_bytes")

    decoded, _ = column.of_onus(pack_values([(Tag.COUNTER64, 2**64 - 1)]))

    assert decoded.values_of(np.array([0])) == [2**64 - 1]
    assert decoded.numbers is not None
    assert decoded.numbers[0] == float(2**64 - 1)


def test_text_sentinel_is_compared_before_scaling() -> None:
    column = ruled("vsol_epon_v1600d", "onu.rx_power", sentinels=(b"0.00", b"--"))

    numbers, _, rejects = column.decode_all(pack_values([(Tag.OCTET_STRING, b"0.00 "), (Tag.OCTET_STRING, b"--")]))

    assert numbers is not None
    assert np.isnan(numbers).all()
    assert not rejects


def test_fingerprint_changes_with_what_a_value_means() -> None:
    text = (FILES / "huawei_smartax.yaml").read_text("utf-8")
    before = read_definition(text, "a.yaml").columns

    after = read_definition(text.replace("scale: 0.01", "scale: 0.02"), "a.yaml").columns

    assert {key: c.fingerprint for key, c in before.items()} == {
        key: c.fingerprint for key, c in load_definitions()["huawei_smartax"].columns.items()
    }
    changed = {key for key in before if before[key].fingerprint != after[key].fingerprint}
    assert changed == {key for key, column in before.items() if column.rule.scale == Fraction("0.01")}


def rows_of(suffixes: Sequence[Oid]) -> ColumnRows:
    return column_rows([(suffix, Tag.INTEGER, 0) for suffix in suffixes])


def plain_place(index: Index, suffix: Oid) -> int:
    """Cut the suffix as one long number, field by field, and put it together again."""
    if len(suffix) != index.length:
        return NOWHERE
    if isinstance(index, SteppedIndex):
        high, low = divmod(suffix[0], index.step)
        suffix = (high << 20 | low, *suffix[1:])
        if high >= 1 << 12:
            return NOWHERE
    number = int.from_bytes(b"".join(sub_id.to_bytes(4, "big") for sub_id in suffix))
    number -= index.base if isinstance(index, BasedIndex) else 0
    if number < 0:
        return NOWHERE
    place, rest = dict.fromkeys(("frame", "slot", "port", "onu"), 0), number
    for name, bits in index.fields.items():
        value = (number >> bits.shift) % (1 << bits.bits)
        rest -= value << bits.shift
        place[name] = value + bits.add
        if place[name] not in bits.values:
            return NOWHERE
    return pack_place(**place) if rest == index.fixed else NOWHERE


INDEXES = [
    pytest.param(index, id=f"{found.key}-{index.name}")
    for found in load_definitions().values()
    for each in found.indexes.values()
    for index in (each.formulas if isinstance(each, EitherIndex) else (each,))
    if index.is_exact and not isinstance(index, LearnedIndex)
]


@pytest.mark.parametrize("index", INDEXES)
@given(data=st.data())
@settings(max_examples=25)
def test_index_of_a_column_means_what_each_suffix_means(index: Index, data: st.DataObject) -> None:
    fields = {name: st.integers(bits.values[0], bits.values[-1]) for name, bits in index.fields.items()}
    true = st.fixed_dictionaries(fields).map(lambda drawn: index.encode(Place(**drawn)))
    any_suffix = st.lists(st.integers(0, 0xFFFF_FFFF) | st.integers(0, 300), min_size=1, max_size=5).map(tuple)
    suffixes = data.draw(st.lists(true | any_suffix, max_size=6))

    places = index.decode_all(rows_of(suffixes))

    assert places.tolist() == [plain_place(index, suffix) for suffix in sorted(suffixes)]


def test_fixed_bits_and_limits_hold_for_every_row() -> None:
    fields = [BitField(None, 24, 8, const=3), BitField("port", 8, 16, low=1, high=9), BitField(None, 0, 8)]
    index = build_index("odd", Scope.ONU, [fields, [BitField("onu", bits=31)]])
    good, fixed, port = (3 << 24 | 9 << 8, 5), (2 << 24 | 9 << 8, 5), (3 << 24 | 10 << 8, 5)

    places = index.decode_all(rows_of([good, (7,), fixed, port, (*good, 1)]))

    assert [unpack_place(place) for place in places.tolist() if place != NOWHERE] == [(0, 0, 9, 5)]


def test_bits_that_are_not_compared_may_be_anything() -> None:
    fields = [BitField("port", 8, 8), BitField(None, 0, 8, const=1, is_any=True), BitField(None, 16, 16, const=2)]
    index = build_index("odd", Scope.ONU, [fields])

    places = index.decode_all(rows_of([(2 << 16 | 5 << 8 | 1,), (2 << 16 | 6 << 8 | 77,), (3 << 16 | 6 << 8,)]))

    assert places.tolist() == [pack_place(0, 0, 5, 0), pack_place(0, 0, 6, 0), NOWHERE]


def test_either_formula_gives_the_place() -> None:
    usual = build_index("usual", Scope.ONU, [[BitField("onu", 0, 8), BitField(None, 8, 24, const=1)]])
    other = build_index("other", Scope.ONU, [[BitField("onu", 0, 8), BitField(None, 8, 24, const=2)]])
    index = build_either("either", Scope.ONU, [usual, other])

    places = index.decode_all(rows_of([(0x105,), (0x206,), (0x307,)]))

    assert places.tolist() == [pack_place(0, 0, 0, 5), pack_place(0, 0, 0, 6), NOWHERE]
    assert [index.decode((number,)) for number in (0x105, 0x307)] == [Place(onu=5), None]


def test_learned_rows_are_found_among_all() -> None:
    index = load_definitions()["bdcom_gpon"].indexes["onu"]
    assert isinstance(index, LearnedIndex)
    learned = index.learn({(9,): "GPON0/2:12", (70_000,): "GPON0/1:3", (12, 1): "GPON0/1:4"}, {})

    places = learned.decode_all(rows_of([(1,), (9,), (9, 9), (12, 1), (70_000,), (80_000,)]))

    found = [None if place == NOWHERE else unpack_place(int(place)) for place in places]
    assert found == [None, (0, 0, 2, 12), None, None, (0, 0, 1, 3), None]
    assert index.decode_all(rows_of([(9,)])).tolist() == [NOWHERE]


def test_words_of_a_column_are_ours() -> None:
    column = load_definitions()["huawei_smartax"].column("onu.run_state")

    decoded, rejects = column.of_onus(pack_values([(Tag.INTEGER, 1), (Tag.INTEGER, 2), (Tag.INTEGER, 77)]))

    assert decoded.codes is not None
    assert [word.value for word in (decoded.words[code] for code in decoded.codes[:2])] == ["online", "offline"]
    assert decoded.codes[2] == -1
    assert rejects == {"unknown_enum": 1}
    assert all(isinstance(word, StrEnum) for word in decoded.words)
