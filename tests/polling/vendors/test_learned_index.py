"""Learned indexes and written words as data: what a definition may say of them, and what it may not."""

from importlib.resources import files

import pytest

from facho.polling.domain.onu_state import DownCause
from facho.polling.domain.onu_table import NOWHERE, pack_place
from facho.polling.snmp.ber import Tag
from facho.polling.vendors.index import Place, onu_number, read_form, serial_of, spell_serial
from facho.polling.vendors.loader import load_definitions, read_definition
from facho.polling.vendors.schema import DefinitionError
from facho.polling.vendors.vocabulary import Reject
from onu_tables import column_rows

FOLDER = files("facho.polling.vendors") / "definitions"


@pytest.mark.parametrize(
    ("family", "old", "new", "path", "problem"),
    [
        ("bdcom_gpon", "learned_from: onu.id", "learned_from: onu.mood", "indexes.onu.learned_from", "no column"),
        ("bdcom_gpon", "GPON{slot}/{port}:{onu}", "GPON{street}", "indexes.onu.names", "must name some of"),
        ("bdcom_gpon", "GPON{slot}/{port}:{onu}", "GPON", "indexes.onu.names", "must name some of"),
        ("bdcom_gpon", "GPON{slot}/{port}:{onu}", "GPON{port}:{port}", "indexes.onu.names", "each once"),
        ("ubiquiti_ufiber", "length: 13", "length: 0", "indexes.onu.length", "between 1 and 64"),
        ("huawei_smartax_epon", "ports_named_by: if.name", "ports_named_by: if.mood", "ports_named_by", "no column"),
        ("huawei_smartax_epon", "EPON {frame}/{slot}/{port}", "EPON {onu}", "indexes.onu.names", "must tell ports"),
        ("cdata_gpon", "losi: los", "LOSi: los", "onu.last_down_cause.values.LOSi", "lower case"),
        ("cdata_gpon", "losi: los", "7: los", "onu.last_down_cause.values.7", "lower case"),
        ("nokia_isam", "add: -1", "add: -17", "indexes.onu.components[0]", "between -16 and 16"),
    ],
)
def test_mistake_is_named_with_its_key(family: str, old: str, new: str, path: str, problem: str) -> None:
    text = (FOLDER / f"{family}.yaml").read_text("utf-8")
    assert old in text

    with pytest.raises(DefinitionError) as caught:
        read_definition(text.replace(old, new, 1), f"{family}.yaml")

    assert path in caught.value.path
    assert problem in caught.value.problem


@pytest.mark.parametrize(
    ("name", "place"),
    [("GPON0/2:12", Place(0, 0, 2, 12)), ("GPON0/2", None), ("GPON0/2:12 ", None), ("gpon0/2:12", None)],
)
def test_name_means_a_place_or_nothing(name: str, place: Place | None) -> None:
    form = read_form("GPON{slot}/{port}:{onu}")

    assert form.read(name) == place
    assert place is None or form.write(place) == name


def test_known_serial_is_spelt_and_read_both_ways() -> None:
    suffix = (12, 85, 66, 78, 84, 50, 48, 55, 51, 49, 102, 48, 57)

    assert serial_of(suffix) == "UBNT20731f09"
    assert spell_serial("UBNT20731f09") == suffix
    assert onu_number("UBNT20731f09") == onu_number("UBNT20731F09") == 0x731F09


@pytest.mark.parametrize(
    ("raw", "value", "reason"),
    [
        (b"dying-gasp", DownCause.DYING_GASP, None),
        (b"LOS", DownCause.LOS, None),
        (b" losi\x00", DownCause.LOS, None),
        (b"", None, Reject.SENTINEL),
        (b"moon", None, Reject.UNKNOWN_ENUM),
    ],
)
def test_written_word_is_read_whatever_its_case(raw: bytes, value: DownCause | None, reason: Reject | None) -> None:
    column = load_definitions()["cdata_gpon"].column("onu.last_down_cause")

    assert column.decode(Tag.OCTET_STRING, raw) == (value, reason)
    assert column.decode(Tag.INTEGER, 1).reason is Reject.WRONG_TYPE
    assert column.decode(*column.encode(DownCause.DYING_GASP)).value is DownCause.DYING_GASP


HUAWEI_EPON = load_definitions()["huawei_smartax_epon"]
# The port in the bits of one driver, and in those of another.
SHIFTED_BY_6, SHIFTED_BY_8 = 4227866688, 4227866880


def test_name_of_a_port_decides_where_its_bits_are_disputed() -> None:
    family = HUAWEI_EPON.learn({"if.name": {(SHIFTED_BY_8,): "EPON 0/1/1", (234938368,): "ethernet0/7/0"}})

    assert HUAWEI_EPON.decode_index((SHIFTED_BY_8, 5)) == Place(0, 1, 4, 5)
    assert family.decode_index((SHIFTED_BY_8, 5)) == Place(0, 1, 1, 5)
    assert family.column("onu.mac").instance(Place(0, 1, 1, 5))[-2:] == (SHIFTED_BY_8, 5)
    assert family.indexes["pon"].decode((SHIFTED_BY_8,)) == Place(0, 1, 1)
    # Another port than those that have a name is not guessed.
    assert family.decode_index((SHIFTED_BY_6, 5)) is None
    assert family.indexes["onu"].encode(Place(0, 1, 2, 5)) == (0, 5)


def test_port_is_reported_by_its_bits_where_the_device_names_none() -> None:
    family = HUAWEI_EPON.learn({"if.name": {(234938368,): "ethernet0/7/0", (SHIFTED_BY_6,): "EPON 9/9"}})

    assert family.decode_index((SHIFTED_BY_6, 5)) == Place(0, 1, 1, 5)
    assert family.indexes["onu"].encode(Place(0, 1, 1, 5)) == (SHIFTED_BY_6, 5)


def test_names_of_ports_hold_for_whole_columns() -> None:
    index = HUAWEI_EPON.learn({"if.name": {(SHIFTED_BY_8,): "EPON 0/1/1"}}).indexes["onu"]
    suffixes = [(SHIFTED_BY_6, 5), (SHIFTED_BY_8, 5), (SHIFTED_BY_8, 200), (7,)]

    places = index.decode_all(column_rows([(suffix, Tag.INTEGER, 0) for suffix in suffixes]))

    assert sorted(places.tolist()) == sorted([NOWHERE] * 3 + [pack_place(0, 1, 1, 5)])
