"""Values of many ONUs as arrays: packed places, single values, and rows as readings."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from facho.polling.domain.onu_state import RunState
from facho.polling.domain.onu_table import (
    IS_INTEGER,
    NO_VALUE,
    NOWHERE,
    PLACE_BITS,
    OnuColumn,
    OnuTable,
    RawValues,
    Reading,
    pack_place,
    raw_text,
    unpack_place,
)
from facho.polling.snmp.ber_values import Tag, encode_oid
from onu_tables import Told, table_of

HERE, THERE = (0, 1, 0, 1), (0, 1, 0, 2)
places = st.tuples(*(st.integers(0, (1 << bits) - 1) for bits in PLACE_BITS))
sub_ids = st.lists(st.integers(0, 2**32 - 1), max_size=9)


@given(places, places)
def test_packed_places_come_back_and_sort_like_places(one: tuple[int, ...], other: tuple[int, ...]) -> None:
    packed = pack_place(*one), pack_place(*other)

    assert unpack_place(packed[0]) == one
    assert (packed[0] < packed[1]) == (one < other)
    assert 0 <= packed[0] < 2**63


def test_place_that_does_not_fit_is_nowhere() -> None:
    assert pack_place(0, 512, 1, 1) == pack_place(0, -1, 1, 1) == NOWHERE


def test_number_made_of_a_serial_fits() -> None:
    assert unpack_place(pack_place(0, 0, 3, 0xFFFFFF)) == (0, 0, 3, 0xFFFFFF)


def test_values_come_back_as_they_were() -> None:
    raw = RawValues(
        np.array([Tag.INTEGER, Tag.COUNTER64, Tag.OCTET_STRING, NO_VALUE, Tag.NULL], np.uint8),
        np.array([-7, -1, 1, 0, 0], np.int64),
        np.array([IS_INTEGER, IS_INTEGER, 2, IS_INTEGER, 0], np.int32),
        b"xok",
    )

    assert [raw.at(row) for row in range(5)] == [-7, 2**64 - 1, b"ok", None, None]


@given(st.sampled_from([(0, 0), (1, 3), (1, 39), (2, 0), (2, 999)]), sub_ids)
def test_object_identifier_is_written_with_dots(head: tuple[int, int], rest: list[int]) -> None:
    oid = (*head, *rest)

    assert raw_text(Tag.OBJECT_IDENTIFIER, encode_oid(oid)) == raw_text(Tag.OBJECT_IDENTIFIER, oid)


def test_rows_become_readings_of_what_came() -> None:
    first = Told(HERE, {"onu.run_state": RunState.ONLINE, "onu.rx_power": -20.5}, {"onu.rx_power": "-2050"})
    second = Told(THERE, {"onu.run_state": None}, {"1.3.6": "7"})

    table = table_of(second, first)

    assert table.readings() == [Reading(HERE, first.values), Reading(THERE, second.values)]
    assert table.readings(np.array([1])) == [Reading(THERE, second.values)]


def test_columns_of_one_oid_are_values_of_one_reading() -> None:
    raw = RawValues(np.array([2], np.uint8), np.array([3], np.int64), np.array([-1], np.int32), b"")
    columns = [OnuColumn(key, "1.3.6", "rule", raw) for key in ("onu.run_state", "onu.last_down_cause")]

    [reading] = OnuTable(np.array([pack_place(*HERE)]), tuple(columns)).readings()

    assert reading == Reading(HERE, {"onu.run_state": None, "onu.last_down_cause": None})
