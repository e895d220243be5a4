"""How a simulated OLT is laid out, and that it fits the numbers of every family."""

import pytest
from world_factory import spread

from facho.polling.vendors.index import LearnedIndex
from facho.polling.vendors.loader import load_definitions
from facho.polling.vendors.vocabulary import Scope
from facho.simulator.server import ConfigError, numbering_of, shape_for
from facho.simulator.world import MAX_ONUS_PER_PORT, Chassis, plan_chassis, plan_single_card

FAMILIES = sorted(load_definitions())


@pytest.mark.parametrize("onus", [0, 1, 64, 817, 4_000])
def test_every_onu_gets_its_own_place(onus: int) -> None:
    shape = shape_for(load_definitions()["huawei_smartax"], onus)

    layout = spread(shape, onus)

    assert sum(len(set(ids)) for ids in layout.values()) == onus
    assert all(len(ids) <= MAX_ONUS_PER_PORT for ids in layout.values())


def test_a_full_chassis_has_no_id_left() -> None:
    shape = shape_for(load_definitions()["huawei_smartax"], 256, Chassis(1, 2, 2))

    layout = spread(shape, 256)

    assert [len(ids) for ids in layout.values()] == [MAX_ONUS_PER_PORT, MAX_ONUS_PER_PORT]


def test_a_given_chassis_keeps_its_ports() -> None:
    shape = shape_for(load_definitions()["huawei_smartax"], 817, Chassis(2, 16, 22))

    layout = spread(shape, 817)

    assert len(layout) == 32
    assert sum(bool(ids) for ids in layout.values()) == 22


def test_plans_leave_some_ports_empty() -> None:
    planned = plan_chassis(1_000)

    assert planned.used_ports < planned.cards * planned.ports_per_card


def test_a_device_without_slots_has_one_card() -> None:
    planned = plan_single_card(1_000)

    assert planned.cards == 1
    assert planned.holds(1_000)


@pytest.mark.parametrize("family", FAMILIES)
def test_all_places_of_a_family_fit_all_its_indexes(family: str) -> None:
    definition = load_definitions()[family]
    shape = shape_for(definition, 100)

    for place in shape.places:
        onu = place._replace(onu=shape.first_onu)
        for index in definition.indexes.values():
            if isinstance(index, LearnedIndex):
                continue
            if index.scope is Scope.ONU:
                assert index.decode(index.encode(onu)) == onu
            if index.scope is Scope.PON:
                assert index.decode(index.encode(place)) == place


def test_a_chassis_too_large_for_its_family_is_refused() -> None:
    definition = next(one for one in load_definitions().values() if len(numbering_of(one).slot) == 1)

    with pytest.raises(ConfigError, match="no room"):
        shape_for(definition, 10, Chassis(2, 8, 1))


def test_a_family_that_tells_no_ports_has_room_for_one() -> None:
    definition = load_definitions()["calix_axos"]

    assert len(shape_for(definition, 128).places) == 1
    with pytest.raises(ConfigError, match="no room"):
        shape_for(definition, 129)
