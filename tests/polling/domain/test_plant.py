"""Where a fibre broke, by boxes or by distance; and what is said when the evidence is thin."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facho.polling.domain.plant import (
    BoxLook,
    BreakEvidence,
    BrokenSegment,
    FibreBreak,
    GroupBox,
    PlacedOnu,
    find_break,
    find_loops,
    judge_box,
    match_group,
)

# A splitter with two boxes, behind one of which is a third.
SPLITTER, NEAR, FAR, LAST = 1, 2, 3, 4
TREE = {SPLITTER: None, NEAR: SPLITTER, FAR: SPLITTER, LAST: FAR}


def onus(box: int | None, *, dark: int = 0, lit: int = 0, unknown: int = 0, at: int | None = None) -> list[PlacedOnu]:
    numbers = {True: dark, False: lit, None: unknown}
    return [PlacedOnu(box, at, state) for state, number in numbers.items() for _ in range(number)]


def test_a_dark_box_is_broken_off_from_the_last_healthy_one() -> None:
    found = find_break([*onus(NEAR, lit=4), *onus(FAR, lit=3), *onus(LAST, dark=5)], TREE)

    assert found == FibreBreak(BreakEvidence.BOXES, (BrokenSegment(FAR, (LAST,), 5),))


def test_of_dark_boxes_in_a_row_the_first_one_counts() -> None:
    found = find_break([*onus(NEAR, lit=4), *onus(FAR, dark=3), *onus(LAST, dark=5)], TREE)

    assert found.segments == (BrokenSegment(SPLITTER, (FAR,), 8),)


def test_a_box_right_behind_the_olt_is_broken_off_from_the_olt() -> None:
    found = find_break([*onus(NEAR, dark=4), *onus(None, lit=9)], {NEAR: None})

    assert found.segments == (BrokenSegment(None, (NEAR,), 4),)


def test_boxes_that_are_dark_beside_healthy_ones_of_one_splitter_point_at_it() -> None:
    tree = {SPLITTER: None, NEAR: SPLITTER, FAR: SPLITTER, LAST: SPLITTER}

    found = find_break([*onus(NEAR, dark=4), *onus(FAR, dark=4), *onus(LAST, lit=4)], tree)

    assert found.segments == (BrokenSegment(SPLITTER, (NEAR, FAR), 8),)


def test_some_dark_onus_of_a_box_point_at_its_outputs() -> None:
    found = find_break([*onus(NEAR, dark=3, lit=5), *onus(FAR, lit=2)], TREE)

    assert found.segments == (BrokenSegment(NEAR, (), 3),)


def test_a_port_that_is_all_dark_does_not_tell_the_feeder_from_the_port() -> None:
    found = find_break([*onus(NEAR, dark=4, at=3_000), *onus(FAR, dark=4, at=4_000)], TREE)

    assert found == FibreBreak(BreakEvidence.WHOLE_PORT, far_m=3_000)


def test_onus_of_unknown_state_are_no_evidence() -> None:
    assert find_break([*onus(NEAR, dark=4), *onus(FAR, unknown=9)], TREE).evidence is BreakEvidence.WHOLE_PORT


def test_without_boxes_the_break_is_between_two_distances() -> None:
    found = find_break([*onus(None, lit=5, at=3_200), *onus(None, dark=3, at=4_100), *onus(None, dark=1)], {})

    assert found == FibreBreak(BreakEvidence.DISTANCE, near_m=3_200, far_m=4_100)


def test_where_most_dark_onus_have_no_box_distance_decides() -> None:
    found = find_break([*onus(NEAR, dark=2, at=4_000), *onus(None, dark=5, at=4_100), *onus(FAR, lit=3, at=900)], TREE)

    assert found == FibreBreak(BreakEvidence.DISTANCE, near_m=900, far_m=4_000)


@pytest.mark.parametrize(
    ("known", "farthest"),
    [
        ([*onus(None, dark=1), *onus(None, lit=9)], None),
        ([*onus(None, dark=2, at=400), *onus(None, lit=9, at=100)], None),
        ([*onus(None, dark=3), *onus(None, lit=9)], None),
        # Others farther away have light: where the branch begins is not known.
        ([*onus(None, dark=4, at=900), *onus(None, lit=9, at=2_000)], 900),
    ],
    ids=["one is dark", "two distances", "no distances", "mixed distances"],
)
def test_thin_evidence_is_called_so(known: list[PlacedOnu], farthest: int | None) -> None:
    assert find_break(known, {}) == FibreBreak(BreakEvidence.THIN, far_m=farthest)


@given(
    st.lists(st.builds(PlacedOnu, st.integers(1, 6), st.integers(0, 9_000), st.booleans()), max_size=40),
    st.dictionaries(st.integers(1, 6), st.none() | st.integers(1, 6), max_size=6),
)
def test_nothing_lit_is_behind_a_dark_box_whatever_the_tree(
    placed: list[PlacedOnu], parents: dict[int, int | None]
) -> None:
    found = find_break(placed, parents)

    dark = {box for segment in found.segments for box in segment.dark_box_ids}
    assert not [onu for onu in placed if onu.box_id in dark and onu.is_dark is False]
    assert sum(segment.dark for segment in found.segments) <= sum(onu.is_dark is True for onu in placed)


@pytest.mark.parametrize(
    ("parents", "loops"),
    [
        ({}, set()),
        ({1: None, 2: 1, 3: 2}, set()),
        ({1: 1}, {1}),
        ({1: 2, 2: 3, 3: 2, 4: 1}, {2, 3}),
        ({1: 9}, set()),
    ],
)
def test_loops_are_found_and_what_only_leads_to_one_is_none(parents: dict[int, int | None], loops: set[int]) -> None:
    assert find_loops(parents) == loops


@pytest.mark.parametrize(
    ("online", "offline", "weak", "look"),
    [
        (0, 3, 0, BoxLook.DARK),
        (5, 1, 2, BoxLook.SOME_OFFLINE),
        (5, 0, 1, BoxLook.WEAK),
        (5, 0, 0, BoxLook.WELL),
        (0, 0, 0, BoxLook.UNKNOWN),
    ],
)
def test_a_box_looks_as_the_worst_of_its_onus(online: int, offline: int, weak: int, look: BoxLook) -> None:
    assert judge_box(online=online, offline=offline, weak=weak) is look


def test_a_group_is_the_box_that_people_put_most_of_it_on() -> None:
    assert match_group([1, 2, 3, 4], {1: 7, 2: 7, 3: 8}, {4: 9}) == GroupBox(7, (4,))


def test_a_group_that_was_a_box_before_stays_it() -> None:
    assert match_group([1, 2, 3], {}, {1: 7, 2: 7}) == GroupBox(7, (3,))


def test_a_group_of_no_box_is_a_new_one() -> None:
    assert match_group([1, 2], {}, {1: 7}, taken={7}) == GroupBox(None, (1, 2))
