"""ONUs of one box are found by what hits them together and by how far away they are."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from facho.polling.domain.light import SharedEvent, infer_branches

NOWHERE = float("nan")


def event(hit: list[int], onus: int, unread: tuple[int, ...] = ()) -> SharedEvent:
    mask = np.isin(np.arange(onus), hit)
    return SharedEvent(mask, ~mask & ~np.isin(np.arange(onus), unread))


def groups_of(box: NDArray[np.int64]) -> list[list[int]]:
    return [np.flatnonzero(box == number).tolist() for number in range(int(box.max()) + 1)]


def test_boxes_far_from_each_other_are_reported_by_distance_alone() -> None:
    distance = np.array([1000, 1040, 1020, 1900, 1930, 1915], dtype=float)

    assert groups_of(infer_branches(distance, []).box) == [[0, 1, 2], [3, 4, 5]]


def test_boxes_that_are_equally_far_are_reported_by_an_event() -> None:
    distance = np.array([1000, 1040, 1020, 1010, 1030, 1025, 1900, 1930], dtype=float)
    together = infer_branches(distance, []).box

    apart = infer_branches(distance, [event([0, 1, 2], 8)]).box

    assert together[0] == together[3]
    assert groups_of(apart) == [[0, 1, 2], [3, 4, 5], [6, 7]]


def test_an_onu_that_was_not_read_stays_with_its_neighbours() -> None:
    distance = np.array([1000, 1040, 1020, 1010, 1700, 1725, 1710, 1730], dtype=float)

    box = infer_branches(distance, [event([0, 1, 2], 8, unread=(3,))]).box

    assert box[3] == box[0]


def test_a_whole_port_that_was_hit_says_nothing() -> None:
    distance = np.array([1000, 1040, 1900, 1930], dtype=float)
    alone = infer_branches(distance, []).box

    assert infer_branches(distance, [event([0, 1, 2, 3], 4)]).box.tolist() == alone.tolist()


def test_repeated_evidence_makes_surer() -> None:
    distance = np.array([1000, 1060, 1020, 1010, 1030, 1080], dtype=float)
    once, thrice = (infer_branches(distance, [event([0, 1, 2], 6)] * times) for times in (1, 3))

    assert thrice.confidence[0] > once.confidence[0]


@given(
    st.lists(st.one_of(st.floats(0, 20_000), st.just(NOWHERE)), min_size=1, max_size=20),
    st.lists(st.lists(st.integers(0, 19), max_size=8), max_size=4),
)
def test_any_evidence_gives_every_onu_a_box(distances: list[float], hits: list[list[int]]) -> None:
    branches = infer_branches(np.array(distances), [event(hit, len(distances)) for hit in hits])

    assert set(branches.box.tolist()) == set(range(int(branches.box.max()) + 1))
    assert ((branches.confidence >= 0) & (branches.confidence <= 1)).all()
