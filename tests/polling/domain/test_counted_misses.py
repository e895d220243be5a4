"""Walks that follow each other closely, such as a retry and the next slot, miss an ONU once."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facho.polling.domain.onu_events import EventKind
from facho.polling.domain.onu_presence import (
    EMPTY_BELIEVED_AFTER,
    MISSES_APART,
    KnownOnu,
    OnuIdentity,
    PresencePlan,
    Walk,
    plan_presence,
)

NOW = datetime(2030, 1, 1, tzinfo=UTC)
SOON = timedelta(seconds=20)
HERE, THERE = (0, 1, 0, 1), (0, 1, 0, 2)
EMPTY = Walk({}, is_complete=True)
STRANGER = Walk({HERE: OnuIdentity("B")}, is_complete=True)
# A walk finds the ONU, or reaches the end of its port without it, or breaks off before.
WALKS = {
    "found": Walk({HERE: OnuIdentity("A")}, is_complete=True),
    "missed": EMPTY,
    "missed on its port": Walk({}, is_complete=False, complete_ports=frozenset({HERE[:3]})),
    "broken": Walk({}, is_complete=False),
}


def an_onu(number: int = 1) -> KnownOnu:
    return KnownOnu(number, (0, 1, 0, number), "A" * number)


def walked(rows: Sequence[KnownOnu], walk: Walk, *, now: datetime) -> tuple[list[KnownOnu], PresencePlan]:
    """Apply a walk to the rows as a store does."""
    plan = plan_presence(rows, walk, now=now)
    return list({row.onu_id: row for row in [*rows, *plan.updated]}.values()), plan


def test_a_retry_and_a_slot_seconds_later_are_one_miss() -> None:
    rows, _ = walked([an_onu()], EMPTY, now=NOW)

    again, soon = walked(rows, EMPTY, now=NOW + SOON)

    assert soon == PresencePlan()
    assert again == [an_onu()._replace(misses=1, missed_at=NOW)]
    assert [event.kind for event in walked(again, EMPTY, now=NOW + MISSES_APART)[1].events] == [EventKind.GONE]


def test_who_is_replaced_is_gone_however_soon() -> None:
    rows, _ = walked([an_onu()], EMPTY, now=NOW)

    _, plan = walked(rows, STRANGER, now=NOW + SOON)

    assert [event.kind for event in plan.events] == [EventKind.NEW, EventKind.GONE]


def test_a_walk_seconds_after_a_held_one_confirms_nothing() -> None:
    """Who else answered at the address may do so twice in a row."""
    rows, held = walked([an_onu(number) for number in range(1, 21)], STRANGER, now=NOW)

    rows, soon = walked(rows, STRANGER, now=NOW + SOON)
    _, confirmed = walked(rows, STRANGER, now=NOW + MISSES_APART)

    assert (held.is_held, soon) == (True, PresencePlan(is_held=True))
    assert not confirmed.is_held
    assert len([event for event in confirmed.events if event.kind is EventKind.GONE]) == 20


def test_a_miss_that_a_clock_set_back_left_in_the_future_counts() -> None:
    rows, _ = walked([an_onu()], EMPTY, now=NOW)

    _, plan = walked(rows, EMPTY, now=NOW - timedelta(hours=1))

    assert [event.kind for event in plan.events] == [EventKind.GONE]


@pytest.mark.parametrize("missed_at", [None, NOW - MISSES_APART])
def test_an_older_miss_counts_as_before(missed_at: datetime | None) -> None:
    _, plan = walked([an_onu()._replace(misses=1, missed_at=missed_at)], EMPTY, now=NOW)

    assert [event.kind for event in plan.events] == [EventKind.GONE]


def test_tables_without_anybody_make_nobody_absent_until_they_stay_so_for_a_day() -> None:
    """An agent that starts has empty tables, and then half of them: what it did not show is no miss."""
    known = [an_onu(number) for number in range(1, 5)]
    half = Walk({row.place: OnuIdentity(row.serial) for row in known[:2]}, is_complete=True)

    assert plan_presence(known, EMPTY, now=NOW) == PresencePlan(is_held=True)
    assert plan_presence(known, EMPTY, now=NOW + MISSES_APART, held_since=NOW) == PresencePlan(is_held=True)
    assert not plan_presence(known, half, now=NOW + MISSES_APART, held_since=NOW).events
    believed = plan_presence(known, EMPTY, now=NOW + EMPTY_BELIEVED_AFTER, held_since=NOW)
    assert [row.misses for row in believed.updated] == [1] * 4


@given(st.lists(st.tuples(st.sampled_from(sorted(WALKS)), st.integers(0, 600)), max_size=12))
def test_an_onu_is_gone_exactly_after_misses_that_are_apart(story: list[tuple[str, int]]) -> None:
    """Gone when two walks missed it that are apart by so much, and none between them or since found it."""
    rows, now, missed_since = [an_onu()], NOW, None
    for name, seconds in story:
        now += timedelta(seconds=seconds)
        before = rows[0]
        rows, _ = walked(rows, WALKS[name], now=now)
        if name == "found":
            missed_since = None
        elif name.startswith("missed") and before.is_present:
            missed_since = missed_since or now
            assert rows[0].is_present is (now - missed_since < MISSES_APART)
        else:
            assert rows[0].is_present is before.is_present
        if rows[0].is_present:
            assert rows[0].can_be_read is (missed_since is None)
