"""One ONU read by itself between two polls: what becomes of it, and what its neighbours do not notice."""

from datetime import timedelta

import pytest

from facho.onus.models import OltMemory, OnuEvent
from facho.polling.domain.onu_state import RunState
from factories import NOW, make_olt
from history_world import FIVE_MINUTES, compact_all, make_onus, make_ports, poll, read
from onus.onu_world import HERE, after, reading, walk
from onus.onu_world import poll as poll_onus

pytestmark = pytest.mark.django_db


def test_the_neighbours_of_a_read_onu_get_no_gap() -> None:
    asked, other = make_onus(make_ports(1)[0], 2, now=NOW)
    for number in range(30):
        poll(NOW + number * FIVE_MINUTES, {asked: -20.0, other: -21.0})
    poll(NOW + 10.4 * FIVE_MINUTES, {asked: -25.0})

    before = read(other), read(asked)
    compact_all(NOW + timedelta(days=2))
    after = read(other), read(asked)

    for beside, own in (before, after):
        assert beside.average.tolist() == [-21.0] * 30
        assert own.average.tolist().count(-25.0) == 1


def test_a_poll_that_found_nothing_is_still_a_gap() -> None:
    asked, other = make_onus(make_ports(1)[0], 2, now=NOW)
    for number in range(30):
        poll(NOW + number * FIVE_MINUTES, {asked: -20.0} if number == 10 else {asked: -20.0, other: -21.0})
    poll(NOW + 10.1 * FIVE_MINUTES, {asked: -25.0})

    series = read(other)

    assert sum(value != value for value in series.average.tolist()) == 1


def test_a_single_read_tells_events_and_is_no_cycle_of_polls() -> None:
    olt = make_olt()
    walk(olt, {HERE: "HWTC1"})
    poll_onus(olt, reading(HERE, run_state=RunState.ONLINE), now=after(0))

    poll_onus(olt, reading(HERE, run_state=RunState.OFFLINE), now=after(1), is_poll=False)

    assert OnuEvent.objects.get(kind="down").at == after(1)
    assert OltMemory.objects.get().states_at == after(0)
