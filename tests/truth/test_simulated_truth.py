"""Simulated OLTs over UDP, polled by the engine: what is reported equals their own journals sampled at the polls.

No more and no less: each scene ends with everything that was reported.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from facho.hosts.models import Olt, Reachability, WaitingOnu
from facho.onus.models import Outage
from facho.polling.domain.onu_events import EventKind
from facho.polling.domain.onu_state import DownCause
from facho.polling.vendors.definition import SERIAL
from facho.polling.vendors.index import Place
from facho.simulator.agent import NO_FAULTS, Faults
from facho.simulator.server import MIXED, SimulatorConfig
from facho.simulator.world import STILL, Chassis, OltWorld, SimulatedOnu
from truth.polled_fleet import EPOCH, INTERVAL, Fleet, polled
from truth.stored_truth import FleetTruth, assert_events_are_true, assert_rows_are_true, stored_facts, stored_outages

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]

CONFIG = SimulatorConfig(vendor="huawei_smartax", onus=48, offline_share=0.0, life=STILL, chassis=Chassis(2, 4, 5))
# Those that tell why an ONU is down come first in a mixed fleet; one of them knows ONUs by their hardware addresses.
FAMILIES = 8
# Which of the picked ONUs has a double.
DOUBLED = 5
SILENT = Faults(is_silent=True)


@contextmanager
def scene(config: SimulatorConfig = CONFIG, **changes: object) -> Iterator[tuple[Fleet, OltWorld]]:
    """Play a scene; what was reported in it must be true in the end."""
    with polled(replace(config, **changes)) as fleet:  # type: ignore[arg-type]
        truth = FleetTruth(fleet)
        yield fleet, fleet.olts[0].world
        truth.follow()
        assert_events_are_true(truth)
        assert_rows_are_true(fleet)


def poll_at(number: int) -> datetime:
    """Return when the poll took place, counted from 0; things happen before poll 1."""
    return EPOCH + number * INTERVAL


def busy_ports(world: OltWorld) -> list[Place]:
    """Return the ports with ONUs, the fullest one first."""
    return sorted((place for place, port in world.ports.items() if port.onus), key=lambda p: -len(world.ports[p].onus))


def some_onus(world: OltWorld, count: int) -> list[SimulatedOnu]:
    """Return ONUs of different ports, as far as there are."""
    places = busy_ports(world)
    return [list(world.ports[places[n % len(places)]].onus.values())[n // len(places)] for n in range(count)]


def first_of_its_port(world: OltWorld) -> SimulatedOnu:
    """Return an ONU that gets its own place when it is registered again."""
    return next(onu for onu in world.onus if onu.place.onu == world.shape.first_onu)


def kinds(olt: Olt) -> list[EventKind]:
    return [fact.kind for fact in stored_facts(olt)]


def test_a_cut_fibre_is_one_outage_from_the_first_poll_that_saw_it_to_the_last() -> None:
    with scene() as (fleet, world):
        port = busy_ports(world)[0]
        lost = len(world.cut(port))
        fleet.poll(2)
        world.restore(port)
        fleet.poll()

        name = f"{port.frame}/{port.slot}/{port.port}"
        assert stored_outages() == [("pon", fleet.rows[0], name, "fibre", lost, poll_at(1), poll_at(3))]
        assert kinds(fleet.rows[0]) == [EventKind.DOWN] * lost + [EventKind.UP] * lost


def test_a_street_without_power_is_reported_by_its_farewells() -> None:
    with scene() as (fleet, world):
        port = busy_ports(world)[0]
        lost = len(world.power_off(port, 0))
        fleet.poll()
        world.power_on(port, 0)
        fleet.poll()

        [(scope, _, _, *rest)] = stored_outages()
        assert (scope, rest) == ("pon", ["power", lost, poll_at(1), poll_at(2)])


def test_a_lost_card_is_one_outage_and_not_one_of_each_port() -> None:
    with scene() as (fleet, world):
        card = max(world.shape.boards, key=lambda board: sum(p[:2] == board[:2] for p in busy_ports(world)))
        lost = len(world.fail_card(card))
        fleet.poll()
        world.restore_card(card)
        fleet.poll()

        name = f"{card.frame}/{card.slot}"
        assert stored_outages() == [("card", fleet.rows[0], name, "card", lost, poll_at(1), poll_at(2))]


def test_what_happens_to_single_onus_is_reported_one_by_one_whatever_the_brand() -> None:
    with scene(vendor=MIXED, olts=FAMILIES, chassis=None) as (fleet, _):
        worlds = [simulated.world for simulated in fleet.olts]
        picked = [some_onus(world, 9) for world in worlds]
        for simulated, onus in zip(fleet.olts, picked, strict=True):
            happen_to_single_onus(simulated.world, *onus)
            simulated.world.add_double(onus[DOUBLED], busy_ports(simulated.world)[0])
        fleet.poll()
        for world, (down, _, _, _, _, _, bent, _, garbled) in zip(worlds, picked, strict=True):
            world.clear(garbled)
            world.bring_up(down)
            world.dim(bent, 0.0)
        fleet.poll()
        for world, (_, _, _, gone, *_) in zip(worlds, picked, strict=True):
            world.bring_back(gone, gone.place.pon)
        fleet.poll()

        every = {kind for kind in EventKind if kind not in (EventKind.CALM, EventKind.FLAPPING)}
        for simulated, row in zip(fleet.olts, fleet.rows, strict=True):
            has_serials = simulated.definition.has_column(SERIAL)
            silent = EventKind.DUPLICATE_MAC if has_serials else EventKind.DUPLICATE_SERIAL
            assert set(kinds(row)) == every - {silent}, simulated.vendor
        assert stored_outages() == []


def happen_to_single_onus(
    world: OltWorld,
    down: SimulatedOnu,
    gasping: SimulatedOnu,
    moved: SimulatedOnu,
    gone: SimulatedOnu,
    swapped: SimulatedOnu,
    _doubled: SimulatedOnu,
    bent: SimulatedOnu,
    renamed: SimulatedOnu,
    garbled: SimulatedOnu,
) -> None:
    world.take_down(down, DownCause.LOS)
    world.take_down(gasping, DownCause.DYING_GASP)
    world.move(moved, busy_ports(world)[-1])
    world.remove(gone)
    world.replace(swapped)
    world.add(busy_ports(world)[0])
    world.dim(bent, 6.0)
    world.describe(renamed, "CLI-77777 Calle Nueva")
    world.garble(garbled)


def test_what_comes_and_goes_between_two_polls_is_not_reported() -> None:
    with scene() as (fleet, world):
        port = busy_ports(world)[0]
        world.cut(port)
        world.restore(port)
        blinking = first_of_its_port(world)
        world.remove(blinking)
        world.bring_back(blinking, blinking.place.pon)
        fleet.poll()

        assert (kinds(fleet.rows[0]), stored_outages()) == ([], [])


def test_who_is_missed_once_is_not_gone_and_who_is_missed_twice_is() -> None:
    with scene() as (fleet, world):
        back = first_of_its_port(world)
        gone = next(onu for onu in world.onus if onu.place.pon != back.place.pon)
        world.remove(back)
        world.remove(gone)
        fleet.poll()
        assert kinds(fleet.rows[0]) == []
        world.bring_back(back, back.place.pon)
        fleet.poll(2)

        assert [(f.kind, f.serial, f.at) for f in stored_facts(fleet.rows[0])] == [
            (EventKind.GONE, gone.serial, poll_at(2))
        ]


def test_an_onu_that_flaps_is_reported_as_flapping_until_it_is_calm() -> None:
    with scene() as (fleet, world):
        [onu] = some_onus(world, 1)
        for _ in range(4):
            world.take_down(onu, DownCause.LOS)
            fleet.poll()
            world.bring_up(onu)
            fleet.poll()
        fleet.poll(6)

        reported = kinds(fleet.rows[0])
        assert reported == [EventKind.DOWN, EventKind.UP] * 2 + [EventKind.FLAPPING, EventKind.CALM]


def test_a_silent_olt_is_an_outage_of_its_own_and_its_onus_are_not_down() -> None:
    with scene(olts=3) as (fleet, world):
        fleet.olts[0].faults = SILENT
        world.cut(busy_ports(world)[0])
        fleet.poll(2)
        assert Olt.objects.get(id=fleet.rows[0].id).reachability == Reachability.DOWN
        assert kinds(fleet.rows[0]) == []
        world.restore(busy_ports(world)[0])
        fleet.olts[0].faults = NO_FAULTS
        fleet.poll(3)

        [(scope, olt, _, cause, affected, started_at, ended_at)] = stored_outages()
        assert (scope, olt, cause, affected) == ("olt", fleet.rows[0], "olt", CONFIG.onus)
        assert timedelta(0) < started_at - poll_at(1) < INTERVAL
        assert poll_at(2) < ended_at <= poll_at(4)


def test_most_olts_silent_at_once_are_the_network_of_the_poller() -> None:
    with scene(olts=3) as (fleet, _):
        for simulated in fleet.olts[:2]:
            simulated.faults = SILENT
        fleet.poll(2)
        for simulated in fleet.olts:
            simulated.faults = NO_FAULTS
        fleet.poll(3)

        [(scope, olt, _, cause, affected, started_at, ended_at)] = stored_outages()
        assert (scope, olt, cause, affected) == ("network", None, "network", 2 * CONFIG.onus)
        assert timedelta(0) < started_at - poll_at(1) < INTERVAL
        assert poll_at(2) < ended_at <= poll_at(4)
        assert Outage.objects.filter(part_of__scope="network", ended_at__isnull=False).count() == 2
        assert [kinds(row) for row in fleet.rows] == [[], [], []]


def test_a_walk_that_breaks_off_takes_nobody_away() -> None:
    with scene(olts=3, max_message_bytes=484) as (fleet, _):
        for simulated, answers in zip(fleet.olts, (2, 4, 7), strict=True):
            moved, gone = some_onus(simulated.world, 2)
            simulated.world.move(moved, busy_ports(simulated.world)[-1])
            simulated.world.remove(gone)
            simulated.faults = Faults(silent_after=answers, silent_seconds=100)
        fleet.poll(3)

        assert [sorted(kinds(row)) for row in fleet.rows] == [[EventKind.GONE, EventKind.MOVED]] * 3
        # That they were silent for a while is true.
        assert {scope for scope, *_ in stored_outages()} <= {"olt", "network"}


def test_tables_that_end_early_and_look_complete_take_nobody_away() -> None:
    with polled(replace(CONFIG, olts=2)) as fleet:
        truth = FleetTruth(fleet)
        truth.follow()
        for simulated, rows in zip(fleet.olts, (10, 30), strict=True):
            simulated.world.take_down(some_onus(simulated.world, 1)[0], DownCause.LOS)
            simulated.faults = Faults(max_rows=rows)
        fleet.poll()
        truth.follow()
        for simulated in fleet.olts:
            simulated.faults = NO_FAULTS
        fleet.poll(2)
        truth.follow()

        assert_events_are_true(truth)
        assert_rows_are_true(fleet)
        assert ([kinds(row) for row in fleet.rows], stored_outages()) == ([[EventKind.DOWN]] * 2, [])


def test_who_waits_for_authorisation_is_listed_until_it_is_served() -> None:
    with scene(waiting=2) as (fleet, _):
        first, second = fleet.olts[0].waiting
        assert set(WaitingOnu.objects.values_list("serial", flat=True)) == {first.serial, second.serial}
        fleet.olts[0].authorise(first.serial)
        fleet.poll()

        [waiting] = WaitingOnu.objects.all()
        assert (waiting.serial, waiting.first_seen_at, waiting.last_seen_at) == (second.serial, EPOCH, poll_at(1))
        assert [(f.kind, f.serial) for f in stored_facts(fleet.rows[0])] == [(EventKind.NEW, first.serial)]
