"""What can be done to a world, and that its journal tells the truth about it."""

import pytest
from world_factory import SHAPE, make_world

from facho.polling.domain.onu_state import DownCause
from facho.simulator.world import MAX_ONUS_PER_PORT, JournalKind, OltWorld, SimulatedOnu, SimulatedPort


def first_used_port(world: OltWorld) -> SimulatedPort:
    return next(port for port in world.ports.values() if port.onus)


class Recorder:
    """Listens and writes down what it hears."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, object]] = []

    def onu_changed(self, onu: SimulatedOnu) -> None:
        self.heard.append(("changed", onu.serial))

    def onu_added(self, onu: SimulatedOnu) -> None:
        self.heard.append(("added", onu.serial))

    def onu_removed(self, onu: SimulatedOnu) -> None:
        self.heard.append(("removed", onu.serial))

    def port_changed(self, port: SimulatedPort) -> None:
        self.heard.append(("port", port.place))


def test_an_onu_goes_down_with_its_cause_and_comes_back() -> None:
    world = make_world()
    onu = next(world.onus)

    world.advance(100)
    world.take_down(onu, DownCause.DYING_GASP)
    world.advance(160)
    world.bring_up(onu)

    assert (onu.is_online, onu.last_down_cause, onu.last_down_at, onu.last_up_at) == (
        True,
        DownCause.DYING_GASP,
        100,
        160,
    )
    assert [(entry.at, entry.kind, entry.serial, entry.cause) for entry in world.journal] == [
        (100, JournalKind.ONU_DOWN, onu.serial, DownCause.DYING_GASP),
        (160, JournalKind.ONU_UP, onu.serial, None),
    ]


def test_what_is_down_already_does_not_go_down_again() -> None:
    world = make_world()
    onu = next(world.onus)

    world.take_down(onu, DownCause.DYING_GASP)
    world.take_down(onu, DownCause.LOS)

    assert onu.last_down_cause is DownCause.DYING_GASP
    assert len(world.journal) == 1


def test_a_cut_takes_down_every_onu_of_its_port_and_no_other() -> None:
    world = make_world()
    port = first_used_port(world)

    lost = world.cut(port.place)

    assert set(map(id, lost)) == set(map(id, port.onus.values()))
    assert all(onu.is_online == (onu.place.pon != port.place) for onu in world.onus)
    assert [entry.kind for entry in world.journal] == [JournalKind.PON_CUT] + [JournalKind.ONU_DOWN] * len(lost)


def test_a_repair_brings_back_what_the_cut_took_and_leaves_others_down() -> None:
    world = make_world()
    port = first_used_port(world)
    dead, *rest = port.onus.values()
    world.take_down(dead, DownCause.LOS)

    world.cut(port.place)
    world.restore(port.place)

    assert not dead.is_online
    assert all(onu.is_online for onu in rest)


def test_an_onu_whose_power_returns_during_a_cut_waits_for_the_repair() -> None:
    world = make_world()
    port = first_used_port(world)
    onu = next(iter(port.onus.values()))
    world.take_down(onu, DownCause.DYING_GASP)
    world.cut(port.place)

    world.bring_up(onu)
    assert not onu.is_online
    world.restore(port.place)
    assert onu.is_online


def test_cutting_twice_and_mending_what_is_whole_changes_nothing() -> None:
    world = make_world()
    place = first_used_port(world).place

    world.restore(place)
    world.cut(place)
    entries = len(world.journal)

    assert world.cut(place) == []
    assert len(world.journal) == entries


def test_a_moved_onu_keeps_its_serial_and_leaves_its_old_port() -> None:
    world = make_world()
    onu = next(world.onus)
    source = onu.place
    target = next(port for port in world.ports.values() if not port.onus)

    world.move(onu, target.place)

    assert world.ports[source.pon].onus.get(source.onu) is None
    assert target.onus == {SHAPE.first_onu: onu}
    assert world.find(onu.serial) is onu
    (entry,) = world.journal
    assert (entry.kind, entry.place, entry.moved_from) == (JournalKind.ONU_MOVED, onu.place, source)


def test_new_customers_have_new_serials_and_free_ids() -> None:
    world = make_world()
    port = first_used_port(world)
    before = {onu.serial for onu in world.onus}

    onu = world.add(port.place)

    assert onu.serial not in before
    assert port.onus[onu.place.onu] is onu
    assert onu.is_online


def test_a_customer_who_arrives_during_a_cut_is_dark_until_the_repair() -> None:
    world = make_world()
    place = first_used_port(world).place
    world.cut(place)

    onu = world.add(place)
    assert not onu.is_online
    world.restore(place)
    assert onu.is_online


def test_a_full_port_takes_nobody() -> None:
    world = make_world(onus=0)
    place = next(iter(world.ports))
    for _ in range(MAX_ONUS_PER_PORT):
        world.add(place)

    with pytest.raises(ValueError, match="full"):
        world.add(place)


def test_an_onu_that_cannot_move_stays_where_it_is() -> None:
    world = make_world()
    onu = next(world.onus)
    full = next(port for port in world.ports.values() if not port.onus)
    for _ in range(MAX_ONUS_PER_PORT):
        world.add(full.place)

    with pytest.raises(ValueError, match="full"):
        world.move(onu, full.place)

    assert world.port_of(onu).onus[onu.place.onu] is onu


def test_a_removed_onu_does_not_come_back_up() -> None:
    world = make_world()
    onu = next(world.onus)
    world.take_down(onu, DownCause.LOS)
    world.remove(onu)

    world.bring_up(onu)

    assert not onu.is_online
    with pytest.raises(KeyError):
        world.find(onu.serial)


def test_scheduled_actions_happen_in_order_at_their_own_time() -> None:
    world = make_world()
    onu = next(world.onus)
    world.schedule(20, lambda: world.bring_up(onu))
    world.schedule(10, lambda: world.take_down(onu, DownCause.LOS))

    world.advance(1_000)

    assert [entry.at for entry in world.journal] == [10, 20]
    assert world.now == 1_000


def test_time_does_not_go_back() -> None:
    world = make_world()

    world.advance(50)
    world.advance(10)

    assert world.now == 50


def test_listeners_hear_of_each_change_and_of_its_port() -> None:
    world = make_world()
    recorder = Recorder()
    world.listeners.append(recorder)
    onu = next(world.onus)

    world.take_down(onu, DownCause.LOS)
    world.remove(onu)

    port = ("port", onu.place.pon)
    assert recorder.heard == [("changed", onu.serial), port, ("removed", onu.serial), port]
