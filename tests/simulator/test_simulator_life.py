"""Worlds live by themselves, repeatably, and the journal is consistent with their state."""

from collections import Counter

import pytest
from world_factory import make_world

from facho.simulator.story import play_story
from facho.simulator.world import JOURNAL_ENTRIES, NATURAL, STILL, JournalKind, Life, LifeDriver

DAY = 86_400.0
BUSY = Life(failures=60, cuts=4, moves=4, arrivals=2)


def test_a_still_world_has_an_empty_journal() -> None:
    world = make_world()
    LifeDriver(world, STILL, seed=1).start()

    world.advance(7 * DAY)

    assert world.journal == []


def test_a_natural_day_has_failures_cuts_moves_and_arrivals() -> None:
    world = make_world(onus=100)
    LifeDriver(world, NATURAL, seed=1).start()

    world.advance(3 * DAY)

    kinds = Counter(entry.kind for entry in world.journal)
    assert kinds[JournalKind.ONU_DOWN] > 300
    assert kinds[JournalKind.PON_CUT] > 5
    assert kinds[JournalKind.ONU_MOVED] > 2
    assert kinds[JournalKind.ONU_APPEARED] > 10


def test_weeks_of_a_busy_world_keep_the_newest_of_its_journal() -> None:
    world = make_world(onus=60)
    LifeDriver(world, BUSY, seed=1).start()

    world.advance(7 * DAY)

    assert JOURNAL_ENTRIES <= len(world.journal) <= 2 * JOURNAL_ENTRIES
    assert world.journal[-1].at > 7 * DAY - 3_600


@pytest.mark.parametrize("onus", [0, 1, 2, 4, 8, 12, 64])
def test_the_story_of_the_demo_fits_any_number_of_onus(onus: int) -> None:
    world = make_world(onus=onus)

    play_story(world, 1)
    world.advance(DAY)

    assert len(list(world.onus)) == onus


def test_the_same_seed_lives_the_same_life_however_time_passes() -> None:
    in_one_leap, in_steps = make_world(), make_world()
    for world in (in_one_leap, in_steps):
        LifeDriver(world, BUSY, seed=3).start()

    in_one_leap.advance(DAY)
    for hour in range(1, 25):
        in_steps.advance(hour * 3_600)

    assert in_one_leap.journal == in_steps.journal


def test_replaying_the_journal_gives_the_state_of_the_world() -> None:
    world = make_world(onus=60)
    LifeDriver(world, BUSY, seed=9).start()
    online = {onu.serial: onu.is_online for onu in world.onus}
    place = {onu.serial: onu.place for onu in world.onus}

    world.advance(DAY)

    for entry in world.journal:
        if entry.kind in (JournalKind.ONU_DOWN, JournalKind.ONU_UP):
            online[entry.serial] = entry.kind is JournalKind.ONU_UP
        elif entry.kind in (JournalKind.ONU_MOVED, JournalKind.ONU_APPEARED):
            place[entry.serial] = entry.place
            online.setdefault(entry.serial, True)
    assert online == {onu.serial: onu.is_online for onu in world.onus}
    assert place == {onu.serial: onu.place for onu in world.onus}


def test_failures_end() -> None:
    world = make_world(onus=60)
    LifeDriver(world, BUSY, seed=9).start()

    world.advance(3 * DAY)

    assert sum(not onu.is_online for onu in world.onus) < 30


def test_an_empty_world_lives_without_trouble() -> None:
    world = make_world(onus=0)
    LifeDriver(world, BUSY, seed=9).start()

    world.advance(DAY)

    assert world.journal == []
