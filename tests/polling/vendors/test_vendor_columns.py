"""Columns: a typed value or a reason, for every definition and whatever a device sends."""

import math
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facho.polling.domain.onu_state import DownCause, RunState
from facho.polling.snmp.ber import Tag, Value
from facho.polling.vendors.column import Column, ColumnReader, instances
from facho.polling.vendors.definition import Definition
from facho.polling.vendors.index import BitField, Index, Place, build_index
from facho.polling.vendors.loader import load_definitions
from facho.polling.vendors.schema import DefinitionError, parse
from facho.polling.vendors.vocabulary import Confidence, Cost, Decoded, Reject, Scope, Typed, Unit
from facho.snmp_get.reading import pack_values

COLUMNS = [
    pytest.param(column, id=f"{found.key}-{column.key}")
    for found in load_definitions().values()
    for column in found.columns.values()
]
INTEGER_TAGS = [Tag.INTEGER, Tag.GAUGE32, Tag.COUNTER32, Tag.COUNTER64, Tag.TIMETICKS]
varbind_values = (
    st.tuples(st.sampled_from(INTEGER_TAGS), st.integers(-(2**31), 2**64 - 1))
    | st.tuples(st.just(Tag.OCTET_STRING), st.binary(max_size=80))
    | st.tuples(st.just(Tag.OBJECT_IDENTIFIER), st.lists(st.integers(0, 2**32 - 1), min_size=2, max_size=9).map(tuple))
    | st.tuples(st.sampled_from([Tag.NULL, Tag.NO_SUCH_OBJECT, Tag.NO_SUCH_INSTANCE, Tag.END_OF_MIB_VIEW]), st.none())
    | st.tuples(st.integers(0, 255), st.binary(max_size=8))
)
SAMPLES: dict[str, list[Typed]] = {
    "text": ["", "Calle 12, casa 3"],
    "gpon_sn8": ["HWTC0A1B2C3D"],
    "gpon_sn_text": ["FHTT1231E796"],
    "gpon_sn_strict": ["FHTT1231E796"],
    "date_and_time": [
        datetime.fromisoformat("2025-03-04T05:06:07"),
        datetime.fromisoformat("2025-03-04T05:06:07+02:00"),
    ],
    "mac": ["00:1A:2B:3C:4D:5E"],
    "object_id": ["1.3.6.1.4.1.2011.2.248"],
}


def read_column(text: str) -> Column:
    """Read a column as a definition writes it."""
    index = build_index("scalar", Scope.SCALAR, [[BitField(None)]])
    return ColumnReader((1, 3, 6), index, Cost.STATE, Confidence.HIGH).read("onu.any", parse(text, "any.yaml"))


def column(key: str, family: str = "huawei_smartax") -> Column:
    return load_definitions()[family].column(key)


def samples(of: Column) -> list[Typed]:
    if of.rule.pattern:
        return []
    if of.rule.words:
        return list(of.rule.words.values())
    if not of.rule.decoder.is_numeric:
        return SAMPLES[of.rule.decoder.name]
    if of.unit is Unit.DBM:
        return [-27.5, -8.0] if of.rule.decoder.name == "negative_magnitude" else [-27.5, -8.0, 2.5]
    return [12, 17, 40] if of.unit is not Unit.VOLT else [3.3, 3.26]


@pytest.mark.parametrize("of", COLUMNS)
def test_value_survives_the_way_to_the_wire_and_back(of: Column) -> None:
    for value in samples(of):
        tag, raw = of.encode(value)

        assert tag is of.rule.tag
        assert of.decode(tag, raw) == Decoded(approx(of, value) if isinstance(value, float) else value)


def approx(of: Column, value: float) -> object:
    """Whole tenths of a microwatt tell weak light coarsely."""
    return pytest.approx(value, abs=0.25) if of.rule.decoder.name == "milliwatt_10000" else pytest.approx(value)


@pytest.mark.parametrize("found", load_definitions().values(), ids=load_definitions().keys())
@given(sent=varbind_values)
def test_whatever_arrives_is_a_value_or_a_reason(found: Definition, sent: tuple[int, Value]) -> None:
    for of in found.columns.values():
        decoded = of.decode(*sent)

        assert (decoded.value is None) != (decoded.reason is None), of.key


@pytest.mark.parametrize("of", [param for param in COLUMNS if param.values[0].rule.sentinels])
def test_no_value_survives_the_way_to_the_wire_and_back(of: Column) -> None:
    assert of.decode(*of.encode(None)).reason is Reject.SENTINEL
    assert all(of.decode(of.rule.tag, raw).reason is Reject.SENTINEL for raw in of.rule.sentinels)


@pytest.mark.parametrize("of", [param for param in COLUMNS if param.values[0].unit is Unit.DBM])
def test_impossible_power_is_rejected_and_named(of: Column) -> None:
    # Tenths of a microwatt have no number for so little light.
    darkest = -75.0 if of.rule.decoder.name != "milliwatt_10000" else 30.0
    brightest = 29.0 if of.rule.decoder.name != "negative_magnitude" else -75.0
    for impossible in (darkest, brightest):
        assert of.decode(*of.encode(impossible)).reason is Reject.OUT_OF_RANGE


@pytest.mark.parametrize(
    ("tag", "raw", "expected"),
    [
        (Tag.INTEGER, -2543, Decoded(-25.43)),
        (Tag.GAUGE32, 250, Decoded(2.5)),
        (Tag.INTEGER, 2147483647, Decoded(None, Reject.SENTINEL)),
        (Tag.INTEGER, -8000, Decoded(None, Reject.OUT_OF_RANGE)),
        (Tag.OCTET_STRING, b"-25.43", Decoded(None, Reject.WRONG_TYPE)),
        (Tag.NO_SUCH_INSTANCE, None, Decoded(None, Reject.MISSING)),
        (Tag.INTEGER, None, Decoded(None, Reject.WRONG_TYPE)),
    ],
)
def test_receive_power_is_typed_scaled_and_checked_on_arrival(tag: Tag, raw: Value, expected: Decoded) -> None:
    assert column("onu.rx_power").decode(tag, raw) == expected


def test_bogus_power_of_zte_is_no_reading() -> None:
    assert column("onu.olt_rx_power", "zte_c300_c320").decode(Tag.INTEGER, -80000).reason is Reject.SENTINEL


@pytest.mark.parametrize("key", ["onu.rx_power", "onu.tx_power"])
def test_power_of_an_absent_onu_of_ufiber_is_no_reading(key: str) -> None:
    assert column(key, "ubiquiti_ufiber").decode(Tag.INTEGER, 0).reason is Reject.SENTINEL


@pytest.mark.parametrize(
    ("written", "tag", "raw"),
    [
        ("{type: OctetString, decoder: text_number, unit: dBm, scale: 0.01, sentinels: ['0.00']}", 4, b"0.00"),
        ("{type: OctetString, decoder: text_number, unit: dBm, sentinels: ['0.00']}", 4, b" 0.00\r\n\0"),
        ("{type: OctetString, sentinels: ['--', N/A]}", 4, b"N/A"),
        ("{type: OctetString, decoder: gpon_sn8, sentinels: [!!binary //////////8=]}", 4, b"\xff" * 8),
        ("{type: OctetString, vocabulary: link_state, values: {up: up}, sentinels: ['--', None]}", 4, b"NONE "),
        ("{type: ObjectIdentifier, sentinels: ['0.0']}", 6, (0, 0)),
        ("{type: Integer32, decoder: signed16, unit: dBm, scale: 0.01, sentinels: [65535]}", 2, 65535),
    ],
)
def test_no_reading_can_be_any_value_of_the_type(written: str, tag: int, raw: Value) -> None:
    of = read_column(written.replace("{", "{id: 1, ", 1))

    assert of.decode(tag, raw).reason is Reject.SENTINEL
    assert of.decode(*of.encode(None)).reason is Reject.SENTINEL


def test_sentinel_is_compared_with_what_was_sent_not_with_the_scaled_value() -> None:
    of = read_column("{id: 1, type: OctetString, decoder: text_number, unit: dBm, offset: -40, sentinels: ['0.00']}")

    assert of.decode(Tag.OCTET_STRING, b"40.00") == Decoded(0)
    assert of.decode(Tag.OCTET_STRING, b"0.01").value == pytest.approx(-39.99)


@pytest.mark.parametrize(
    ("raw", "expected"), [(-215, -21.5), (-21450, -21.45), (2310, 2.31), (-750, None), (-900_000, None), (0, None)]
)
def test_value_far_beyond_any_light_is_read_by_the_second_scale(raw: int, expected: float | None) -> None:
    light = read_column("{id: 1, type: Integer32, unit: dBm, scale: 0.1, second_scale: 0.001, sentinels: [0]}")

    numbers, _, _ = light.decode_all(pack_values([(Tag.INTEGER, raw)]))

    assert light.decode(Tag.INTEGER, raw).value == expected
    assert numbers is not None
    assert numbers.tolist() == [pytest.approx(math.nan if expected is None else expected, nan_ok=True)]


@pytest.mark.parametrize(
    ("key", "descr", "expected"),
    [
        ("zte_c300_c320", "C320 Version V2.1.0 Software, Copyright (c)", "V2.1.0"),
        ("zte_c600_titan", "C600 Version V1.2.2 Software", "V1.2.2"),
        ("datacom_dmos", "DM4610 OLT 8GPON+8GX DmOS version 5.0.0", "5.0.0"),
        ("datacom_dmos", "a name", None),
    ],
)
def test_version_is_the_part_of_a_text_that_its_pattern_names(key: str, descr: str, expected: str | None) -> None:
    assert column("chassis.version", key).decode(Tag.OCTET_STRING, descr.encode()).value == expected


@pytest.mark.parametrize("pattern", ["no group", "(two) (groups)", "(open"])
def test_pattern_without_one_value_is_refused(pattern: str) -> None:
    with pytest.raises(DefinitionError, match="pattern"):
        read_column(f"{{id: 1, type: OctetString, pattern: '{pattern}'}}")


@pytest.mark.parametrize(
    "written",
    [
        "type: Integer32, second_scale: 0.1",
        "type: OctetString, second_scale: 1",
        "unit: dBm, type: Integer32, second_scale: 0",
    ],
)
def test_second_scale_without_a_limit_or_a_number_is_refused(written: str) -> None:
    with pytest.raises(DefinitionError, match="second_scale"):
        read_column(f"{{id: 1, {written}}}")


def test_measured_value_is_a_float_even_where_the_device_counts_whole_units() -> None:
    value = column("onu.temperature").decode(Tag.INTEGER, 45).value

    assert value == 45
    assert isinstance(value, float)


def test_counted_value_stays_an_integer() -> None:
    assert isinstance(column("onu.up_bytes").decode(Tag.COUNTER64, 2**63).value, int)


def test_state_is_reported_in_our_words() -> None:
    assert column("onu.run_state").decode(Tag.INTEGER, 1) == Decoded(RunState.ONLINE)
    assert column("onu.last_down_cause").decode(Tag.INTEGER, 13) == Decoded(DownCause.DYING_GASP)


def test_number_without_a_word_is_reported_as_such() -> None:
    assert column("onu.run_state").decode(Tag.INTEGER, 99) == Decoded(None, Reject.UNKNOWN_ENUM)


def test_phase_is_counted_from_another_number_on_each_zte_family() -> None:
    assert column("onu.run_state", "zte_c300_c320").decode(Tag.INTEGER, 3).value == RunState.ONLINE
    assert column("onu.run_state", "zte_c600_titan").decode(Tag.INTEGER, 3).value == RunState.OFFLINE
    assert column("onu.run_state", "zte_c600_titan").decode(Tag.INTEGER, 4).value == RunState.ONLINE


def test_word_with_several_numbers_is_sent_as_the_plainest() -> None:
    assert column("onu.run_state", "zte_c300_c320").encode(RunState.OFFLINE) == (Tag.INTEGER, 6)


def test_word_of_another_vocabulary_cannot_be_sent() -> None:
    with pytest.raises(ValueError, match="is not a word of this column"):
        column("onu.run_state").encode("dying_gasp")


def test_text_cannot_be_sent_as_a_number() -> None:
    with pytest.raises(ValueError, match="is not a number"):
        column("onu.rx_power").encode("bright")


def test_column_without_a_sign_for_nothing_cannot_send_nothing() -> None:
    with pytest.raises(ValueError, match="no way to say"):
        column("onu.up_bytes").encode(None)


def test_instance_of_a_column_ends_in_the_index_of_its_table() -> None:
    rx, state = (column(key, "zte_c300_c320") for key in ("onu.rx_power", "onu.run_state"))
    place = Place(1, 1, 8, 3)

    assert rx.instance(place) == (*rx.oid, 268503040, 3, 1)
    assert state.instance(place) == (*state.oid, 268503040, 3)


@pytest.mark.parametrize("vendor", ["huawei_smartax", "zte_c300_c320"])
def test_instances_of_many_are_those_of_each(vendor: str) -> None:
    columns = [column(key, vendor) for key in ("onu.rx_power", "onu.run_state", "onu.distance", "onu.tx_power")]
    places = [Place(1, 1, 8, 3), Place(1, 2, 1, 7)]

    assert instances(columns, places) == [tuple(each.instance(place) for each in columns) for place in places]


def test_place_is_encoded_once_for_all_columns_of_an_index(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = [column(key) for key in ("onu.rx_power", "onu.tx_power", "onu.temperature")]
    encoded: list[Place] = []
    encode = Index.encode
    monkeypatch.setattr(Index, "encode", lambda index, place: encoded.append(place) or encode(index, place))

    instances(columns, [Place(0, 1, 2, 3), Place(0, 1, 2, 4)])

    assert encoded == [Place(0, 1, 2, 3), Place(0, 1, 2, 4)]


def test_cause_is_read_from_the_state_where_a_family_tells_it_there() -> None:
    family = load_definitions()["fiberhome_an5516"]

    state, cause = family.readings("onu.run_state")

    assert (state.key, cause.key) == ("onu.run_state", "onu.last_down_cause")
    assert cause.oid == state.oid
    assert cause.decode(Tag.INTEGER, 2).value == DownCause.POWER_OFF
    assert cause.decode(Tag.INTEGER, 1).reason is Reject.SENTINEL
