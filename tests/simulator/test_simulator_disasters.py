"""What happens to many ONUs at once, to their light and to their words, and that the journal tells of it."""

from collections import Counter

import pytest
from world_factory import make_world

from facho.polling.domain.onu_state import DownCause
from facho.polling.vendors.index import Place
from facho.simulator.readings import read_optics
from facho.simulator.world import STILL, JournalKind, Life, LifeDriver, OltWorld, SimulatedPort


def used_port(world: OltWorld) -> SimulatedPort:
    return max(world.ports.values(), key=lambda port: len(port.onus))


def kinds(world: OltWorld) -> list[JournalKind]:
    return [entry.kind for entry in world.journal]


def test_a_street_without_power_gasps_and_its_neighbours_do_not() -> None:
    world = make_world(onus=80)
    port = used_port(world)

    lost = world.power_off(port.place, 1)

    assert lost
    assert {onu.last_down_cause for onu in lost} == {DownCause.DYING_GASP}
    assert all(onu.is_online != (onu in lost) for onu in world.onus)
    assert all(onu.street == 1 and onu.place.pon == port.place for onu in lost)


def test_a_street_comes_back_with_its_power_and_a_dead_onu_does_not() -> None:
    world = make_world(onus=80)
    port = used_port(world)
    dead = next(onu for onu in port.onus.values() if onu.street == 1)
    world.take_down(dead, DownCause.LOS)

    world.power_off(port.place, 1)
    world.power_on(port.place, 1)

    assert [onu for onu in world.onus if not onu.is_online] == [dead]
    assert (kinds(world)[1], world.journal[1].street) == (JournalKind.POWER_LOST, 1)
    assert kinds(world).count(JournalKind.POWER_BACK) == 1


@pytest.mark.parametrize("power_first", [True, False])
def test_an_onu_needs_fibre_and_power(power_first: bool) -> None:
    world = make_world(onus=80)
    place = used_port(world).place
    world.power_off(place, 0)
    world.cut(place)
    repairs = [lambda: world.power_on(place, 0), lambda: world.restore(place)]

    first, second = repairs if power_first else reversed(repairs)
    first()
    assert not any(onu.is_online for onu in world.ports[place].onus.values() if onu.street == 0)
    second()

    assert all(onu.is_online for onu in world.onus)


def test_who_comes_into_the_dark_is_dark_until_it_ends() -> None:
    world = make_world(onus=20)
    empty = next(place for place, port in world.ports.items() if not port.onus)
    moving = next(world.onus)
    world.power_off(empty, 0)

    new = world.add(empty)
    world.move(moving, empty)
    assert not new.is_online
    assert not moving.is_online
    world.power_on(empty, 0)

    assert new.is_online
    assert moving.is_online


def test_a_card_takes_all_its_ports_and_brings_them_back() -> None:
    world = make_world(onus=60)
    board = used_port(world).place._replace(port=0)

    lost = world.fail_card(board)
    assert {onu.place.slot for onu in lost} == {board.slot}
    assert not any(onu.is_online for onu in world.onus if onu.place.slot == board.slot)
    world.restore_card(board)

    assert all(onu.is_online for onu in world.onus)
    assert (kinds(world)[0], world.journal[0].place) == (JournalKind.CARD_FAILED, board)
    assert JournalKind.CARD_RESTORED in kinds(world)


def test_a_bent_fibre_takes_light_until_it_is_straight() -> None:
    world = make_world()
    onu = next(world.onus)
    before = read_optics(onu, at=0.0).rx_dbm

    world.dim(onu, 5.0)
    assert read_optics(onu, at=0.0).rx_dbm == pytest.approx(before - 5.0, abs=0.011)
    world.dim(onu, 0.0)

    assert read_optics(onu, at=0.0).rx_dbm == before
    assert [entry.loss_db for entry in world.journal] == [5.0, 0.0]


def test_a_double_has_the_serial_of_another_onu() -> None:
    world = make_world()
    onu = next(world.onus)
    empty = next(place for place, port in world.ports.items() if not port.onus)

    double = world.add_double(onu, empty)

    assert Counter(one.serial for one in world.onus)[onu.serial] == 2
    assert double.place.pon == empty
    assert (kinds(world), world.journal[0].serial) == ([JournalKind.ONU_APPEARED], onu.serial)


def test_a_removed_onu_can_be_registered_again_elsewhere() -> None:
    world = make_world()
    onu = next(world.onus)
    empty = next(place for place, port in world.ports.items() if not port.onus)
    world.remove(onu)

    world.bring_back(onu, empty)

    assert world.find(onu.serial) is onu
    assert onu.place.pon == empty
    assert kinds(world) == [JournalKind.ONU_REMOVED, JournalKind.ONU_APPEARED]


def test_a_device_that_replaces_another_has_its_place_and_a_serial_of_its_own() -> None:
    world = make_world()
    onu = next(world.onus)

    other = world.replace(onu)

    assert (other.place, other.serial != onu.serial) == (onu.place, True)
    assert kinds(world) == [JournalKind.ONU_REMOVED, JournalKind.ONU_APPEARED]


def test_words_and_silence_are_written_down_once() -> None:
    world = make_world()
    onu = next(world.onus)

    for _ in range(2):
        world.garble(onu)
        world.fall_silent()
    for _ in range(2):
        world.clear(onu)
        world.speak()
    world.describe(onu, "CLI-NEW")

    assert kinds(world) == [
        JournalKind.ONU_GARBLED,
        JournalKind.OLT_SILENT,
        JournalKind.ONU_CLEAR,
        JournalKind.OLT_HEARD,
        JournalKind.ONU_DESCRIBED,
    ]
    assert world.journal[1].place == Place()
    assert (onu.description, world.journal[-1].description) == ("CLI-NEW", "CLI-NEW")


def test_power_cuts_and_bends_happen_by_themselves_and_end() -> None:
    world = make_world(onus=100)
    LifeDriver(world, Life(failures=0, cuts=0, moves=0, arrivals=0, power_cuts=1, bends=1), seed=3).start()

    world.advance(2 * 86_400)

    counted = Counter(kinds(world))
    assert counted[JournalKind.POWER_LOST] > 20
    assert 0 <= counted[JournalKind.POWER_LOST] - counted[JournalKind.POWER_BACK] <= 3
    assert counted[JournalKind.ONU_DIMMED] > 40
    assert STILL.power_cuts == STILL.bends == 0.0
