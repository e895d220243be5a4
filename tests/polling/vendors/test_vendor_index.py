"""Index formulas: known numbers, every valid place both ways, and hostile suffixes."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from facho.polling.vendors.decoders import parse_oid
from facho.polling.vendors.definition import Definition
from facho.polling.vendors.index import BitField, Index, LearnedIndex, Place, build_index
from facho.polling.vendors.loader import load_definitions, read_index
from facho.polling.vendors.schema import Section
from facho.polling.vendors.vocabulary import Scope

DATA = Path(__file__).parent / "data"
NUMBERS = yaml.safe_load((DATA / "index_vectors.yaml").read_text())
OTHER_LAYOUTS = yaml.safe_load((DATA / "other_layouts.yaml").read_text())
INDEXES = [
    pytest.param(index, id=f"{found.key}-{index.name}")
    for found in load_definitions().values()
    for index in found.indexes.values()
    if not isinstance(index, LearnedIndex)
]
any_sub_id = st.integers(0, 0xFFFF_FFFF)


def suffix_of(text: str) -> tuple[int, ...]:
    return parse_oid(f"1.{text}")[1:]


def layout(name: str) -> Index:
    data = {"scope": "onu", "components": OTHER_LAYOUTS[name]["components"]}
    return read_index(name, Section.of(data, "other_layouts.yaml", name))


def places(index: Index) -> st.SearchStrategy[Place]:
    fields = {name: st.integers(bits.values[0], bits.values[-1]) for name, bits in index.fields.items()}
    return st.fixed_dictionaries(fields).map(lambda drawn: Place(**drawn))


@pytest.mark.parametrize("vector", NUMBERS["vectors"], ids=lambda vector: f"{vector['definition']}-{vector['suffix']}")
def test_known_number_means_its_place_both_ways(vector: dict[str, Any]) -> None:
    index = load_definitions()[vector["definition"]].indexes[vector["index"]]
    suffix, place = suffix_of(vector["suffix"]), Place(*vector["place"])

    assert index.decode(suffix) == place
    assert index.encode(place) == suffix


def test_end_of_an_index_that_differs_by_model_is_not_compared() -> None:
    index = load_definitions()["cdata_gpon"].indexes["onu_optics"]

    assert index.decode((16780548, 0, 1310721)) == index.decode((16780548, 0, 0)) == Place(1, 0, 13, 4)
    assert index.encode(Place(1, 0, 13, 4)) == (16780548, 0, 0)


def test_light_of_the_olts_own_transceiver_is_no_onts() -> None:
    family = load_definitions()["hsgq_gpon"]

    assert family.decode_index((16777472, 65535, 65535)) is None
    assert family.decode_index((16777472, 0, 0)) == family.decode_index((16777472,)) == Place(port=1)


@pytest.mark.parametrize("number", [94380032, 94445568])
def test_pon_port_of_an_isam_is_none_of_its_onts(number: int) -> None:
    assert load_definitions()["nokia_isam"].decode_index((number,)) is None


def test_last_row_of_a_port_is_known_in_the_numbers_of_either_firmware() -> None:
    index = load_definitions()["cdata_gpon"].indexes["onu"]

    assert index.encode_end(Place(1, 0, 13)) == (16780543 + 256,)
    assert index.encode_end(Place(0, 0, 1)) == (0x480FFF,)
    with pytest.raises(ValueError, match="does not fit"):
        index.encode_end(Place(0, 3, 200))


@pytest.mark.parametrize("vector", NUMBERS["refused"], ids=lambda vector: f"{vector['definition']}-{vector['suffix']}")
def test_number_of_another_interface_is_refused(vector: dict[str, Any]) -> None:
    family = load_definitions()[vector["definition"]]
    suffix = suffix_of(vector["suffix"])

    assert family.decode_index(suffix) is None
    assert family.decode_index((*suffix, 1)) is None
    assert all(index.decode(suffix) is None for index in family.indexes.values() if index.scope is Scope.PON)


@pytest.mark.parametrize("name", OTHER_LAYOUTS)
def test_layout_of_a_family_to_come_is_only_data(name: str) -> None:
    index = layout(name)

    for vector in OTHER_LAYOUTS[name]["vectors"]:
        place = Place(*vector["place"])
        suffix = suffix_of(vector["suffix"])
        padded = suffix if len(suffix) == index.length else (*suffix, 0)
        assert index.decode(padded) == place
        assert index.encode(place) == padded


@pytest.mark.parametrize("index", INDEXES)
@given(data=st.data())
def test_every_valid_place_survives_the_way_there_and_back(index: Index, data: st.DataObject) -> None:
    place = data.draw(places(index))

    assert index.decode(index.encode(place)) == place


@pytest.mark.parametrize("index", INDEXES)
@given(data=st.data())
def test_what_decodes_encodes_to_the_same_suffix(index: Index, data: st.DataObject) -> None:
    suffix = data.draw(st.lists(any_sub_id, max_size=5).map(tuple) | places(index).map(index.encode))

    place = index.decode(suffix)

    # Of several suffixes of one place the plainest is sent.
    assert place is None or not index.is_exact or index.encode(place) == suffix


@pytest.mark.parametrize("key", ["huawei_smartax", "zte_c300_c320", "zte_c600_titan", "vsol_gpon_v1600g"])
def test_every_frame_slot_port_and_onu_is_told_apart(key: str) -> None:
    index = load_definitions()[key].indexes["onu"]
    fields = [index.fields[name].values if name in index.fields else range(1) for name in Place._fields]
    # Each field in full, the others at their ends: the fields are independent bits.
    ends = [sorted({values[0], values[-1]}) for values in fields]
    wanted = {
        Place(*[value if at == varied else ends[at][side] for at in range(4)])
        for varied in range(4)
        for value in fields[varied]
        for side in (0, -1)
    }

    suffixes = {index.encode(place) for place in wanted}

    assert len(suffixes) == len(wanted)
    assert {index.decode(suffix) for suffix in suffixes} == wanted


@pytest.mark.parametrize("found", load_definitions().values(), ids=load_definitions().keys())
@given(suffix=st.lists(any_sub_id, max_size=6).map(tuple))
def test_hostile_suffix_is_a_valid_place_or_nothing(found: Definition, suffix: tuple[int, ...]) -> None:
    place = found.decode_index(suffix)

    index = found.onu_indexes.get(len(suffix))
    assert place is None or index is None or not index.is_exact or index.encode(place) == suffix


@pytest.mark.parametrize("index", INDEXES)
@given(data=st.data())
def test_no_onu_of_a_port_comes_after_the_ports_end(index: Index, data: st.DataObject) -> None:
    """What a walk has passed it has shown, in whatever order a family counts."""
    place = data.draw(places(index))

    assert index.encode(place) <= index.encode_end(place.pon)
    end = index.decode(index.encode_end(place.pon))
    assert end is not None
    assert end.pon == place.pon


def test_sub_identifier_over_32_bits_is_refused() -> None:
    index = load_definitions()["vsol_gpon_v1600g"].indexes["onu"]

    assert index.decode((1, (1 << 32) + 3)) is None


def test_place_that_does_not_fit_cannot_be_encoded() -> None:
    index = load_definitions()["huawei_smartax"].indexes["onu"]

    with pytest.raises(ValueError, match="onu 128 does not fit index onu"):
        index.encode(Place(0, 1, 1, 128))


def test_place_knows_its_pon_port() -> None:
    assert Place(0, 4, 6, 12).pon == Place(0, 4, 6)


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ([BitField("slot", 0, 8), BitField("port", 4, 8)], "bits 4..11 are used twice"),
        ([BitField("slot", 0, 8), BitField("slot", 8, 8)], "field slot appears twice"),
        ([BitField("slot", 28, 8)], "field slot does not fit"),
        ([BitField(None, 0, 4, const=16)], "field 16 does not fit"),
    ],
)
def test_contradicting_fields_make_no_index(fields: list[BitField], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        build_index("odd", Scope.ONU, [fields])
