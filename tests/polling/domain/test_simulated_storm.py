"""Everything happens at once, in virtual time; `python -m bench.slots` plays a million executions of it."""

from datetime import UTC, datetime, timedelta

import pytest
from virtual_storm import Findings, make_storm, play_storm

from slot_audit import Step, passed_slots

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_through_kills_failovers_jumps_and_changes_no_slot_is_doubled_or_vanishes(seed: int) -> None:
    """S4-13, D2: and no OLT is ever asked by two; about ten thousand executions each."""
    found = play_storm(seed, hours=6)

    assert (found.overlaps, found.doubled, found.unaccounted) == (0, 0, 0)
    assert found.owed == found.served + found.skipped
    assert found.executions > 5_000
    assert min(found.skipped, found.interrupted) > 10


@pytest.mark.slow
def test_the_audit_sees_what_a_rule_forgets() -> None:
    """An audit that never fails shows nothing."""
    network = make_storm(1, olts=4, hours=6)
    network.play()
    for books in network.books.values():
        books.skipped = set(sorted(books.skipped)[1:])

    assert network.find().unaccounted >= 1


def step(minute: float, due: float | None, interval: int = 300, offset: int = 0) -> Step:
    at = NOON + timedelta(minutes=minute)
    return Step(at, None if due is None else NOON + timedelta(minutes=due), interval, offset)


@pytest.mark.parametrize(
    ("steps", "minutes"),
    [
        ([step(0, 0), step(1, 5)], [0]),
        ([step(0, 0), step(11, 15)], [0, 5, 10]),
        ([step(0, 0), step(1, 0, interval=120), step(5, 6)], [0, 2, 4]),
        ([step(0, 3), step(11, 15)], [3, 5, 10]),
        ([step(0, 5), step(7, None)], [5]),
        ([step(0, 5), step(3, None), step(20, 25)], []),
        ([step(0, 60), step(1, 5)], []),
    ],
    ids=["served", "late", "new interval", "off the grid", "taken off", "off before it came", "pulled back"],
)
def test_a_schedule_leaves_behind_what_lies_between_two_next_runs(steps: list[Step], minutes: list[int]) -> None:
    assert [(slot - NOON) / timedelta(minutes=1) for slot in passed_slots(steps)] == minutes


def test_findings_of_several_storms_add_up() -> None:
    one = Findings(1, 2, 3, 4, 5, 6, 7, 8)

    assert one + one == Findings(2, 4, 6, 8, 10, 12, 14, 16)
