"""Joining, summing up and showing gaps, checked against what plain Python makes of the same samples."""

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from facho.onus.history_codec import HistoryGrid, Poll, grids_of_polls, join, summarise, with_gaps
from facho.onus.history_models import MISSING, STATE_CODES, Metric, from_steps

MINUTE, HOUR, DAY = 60, 3_600, 86_400

# (ONU, second) -> value
Cells = dict[tuple[int, int], int]
cells = st.dictionaries(
    st.tuples(st.integers(1, 4), st.integers(0, 4 * DAY)), st.integers(-3_000, 1_000), min_size=1, max_size=40
)


def grid_of(values: Cells) -> HistoryGrid:
    ids, at = (np.array(sorted({key[axis] for key in values}), dtype=np.int64) for axis in range(2))
    layer = [[values.get((onu_id, second), MISSING) for second in at.tolist()] for onu_id in ids.tolist()]
    return HistoryGrid(ids, at, np.array([layer], dtype=np.int64))


def cells_of(grid: HistoryGrid, layer: int = 0) -> Cells:
    return {
        (onu_id, second): value
        for onu_id, row in zip(grid.onu_ids.tolist(), grid.layers[layer].tolist(), strict=True)
        for second, value in zip(grid.at.tolist(), row, strict=True)
        if value != MISSING
    }


@given(st.lists(cells, min_size=1, max_size=4))
def test_joined_grids_hold_every_sample_once_and_the_later_of_two(parts: list[Cells]) -> None:
    joined = join([grid_of(part) for part in parts])

    assert cells_of(joined) == {key: value for part in parts for key, value in part.items()}


@given(st.lists(cells, min_size=1, max_size=4))
def test_polls_are_sorted_by_port_and_day(polls: list[Cells]) -> None:
    """An ONU with an odd id hangs at port 1, the others at port 2."""
    expected: dict[tuple[int, Metric, int], Cells] = defaultdict(dict)
    taken = []
    for cell in (item for poll in polls for item in poll.items()):
        (onu_id, second), value = cell
        expected[2 - onu_id % 2, Metric.RX_POWER, second // DAY][onu_id, second] = value
        ids = np.array([onu_id], dtype=np.int64)
        taken.append(Poll(second, ids, 2 - ids % 2, {Metric.RX_POWER: np.array([value], dtype=np.int64)}))

    assert {key: cells_of(grid) for key, grid in grids_of_polls(taken).items()} == expected


@given(cells, st.sampled_from([HOUR, DAY]))
def test_a_summary_is_what_the_samples_of_its_stretch_make(values: Cells, seconds: int) -> None:
    stretches: dict[tuple[int, int], list[int]] = defaultdict(list)
    for (onu_id, second), value in values.items():
        stretches[onu_id, second // seconds * seconds].append(value)

    average, lowest, highest, count = (
        cells_of(summarise(grid_of(values), Metric.RX_POWER, seconds), layer) for layer in range(4)
    )

    assert lowest == {key: min(found) for key, found in stretches.items()}
    assert highest == {key: max(found) for key, found in stretches.items()}
    assert count == {key: len(found) for key, found in stretches.items()}
    assert average == {key: pytest.approx(sum(found) / len(found), abs=0.5) for key, found in stretches.items()}


@given(cells, cells)
def test_summaries_in_any_order_and_by_any_way_tell_the_same(first: Cells, second: Cells) -> None:
    """Samples, or hours of them, or what came late and was added: days differ by no more than rounding."""
    second = {key: value for key, value in second.items() if key not in first}
    at_once = summarise(grid_of(first | second), Metric.RX_POWER, DAY)
    by_hours = [summarise(grid_of(part), Metric.RX_POWER, HOUR) for part in (first, second) if part]
    later = join([summarise(hours, Metric.RX_POWER, DAY) for hours in by_hours])

    for layer in (1, 2, 3):
        assert cells_of(later, layer) == cells_of(at_once, layer)
    assert cells_of(later) == pytest.approx(cells_of(at_once), abs=2)


def test_states_are_summed_up_as_the_share_of_time_online() -> None:
    online, offline, unknown = (STATE_CODES[word] for word in ("online", "offline", "unknown"))
    states = [online, online, online, offline, unknown]

    hour = summarise(grid_of({(1, n * MINUTE): code for n, code in enumerate(states)}), Metric.STATE, HOUR)

    assert from_steps(Metric.STATE, hour.layers[0], is_summary=True).tolist() == [[75.0]]


def spaced(*minutes: float) -> HistoryGrid:
    return grid_of({(1, int(minute * MINUTE)): -2_000 for minute in minutes})


def missing_minutes(grid: HistoryGrid) -> list[float]:
    return [
        at / MINUTE for at, value in zip(grid.at.tolist(), grid.layers[0, 0].tolist(), strict=True) if value == MISSING
    ]


def test_a_poll_that_never_came_is_a_gap_and_a_late_one_is_none() -> None:
    polls = [*range(0, 60, 5), 62, *range(65, 90, 5), *range(95, 150, 5), *range(240, 300, 5)]

    assert missing_minutes(with_gaps(spaced(*polls), None)) == [90, 150]


def test_another_interval_is_no_gap() -> None:
    polls = [*range(0, 300, 5), *range(300, 3_000, 30)]

    assert missing_minutes(with_gaps(spaced(*polls), None)) == []


def test_an_hour_without_a_sample_is_a_gap_among_hours() -> None:
    hours = summarise(spaced(0, 30, 60, 200), Metric.RX_POWER, HOUR)

    assert missing_minutes(with_gaps(hours, HOUR)) == [120]


@pytest.mark.parametrize("minutes", [(), (5,), (5, 500)])
def test_too_few_samples_tell_no_gaps(minutes: tuple[int, ...]) -> None:
    grid = spaced(*minutes) if minutes else spaced(0).between(1, 2)

    assert missing_minutes(with_gaps(grid, None)) == []
