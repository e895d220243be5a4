"""Re-packing moves few grids, only back, never for the worse, and far enough that runs no longer meet."""

from dataclasses import replace
from math import lcm

from hypothesis import given, settings
from hypothesis import strategies as st

from facho.polling.domain.feasibility import Load, overlap_seconds_per_hour, repack

BASE_SECONDS = 300

loads_of_an_olt = st.lists(
    st.builds(
        Load,
        node_id=st.just(0),
        interval_seconds=st.sampled_from((60, 300, 301, 420, 900, 1_800, 3_600, 86_400)),
        offset_seconds=st.integers(0, 59),
        seconds=st.floats(0, 400),
        is_movable=st.booleans(),
    ),
    min_size=1,
    max_size=5,
).map(lambda loads: [replace(load, node_id=number) for number, load in enumerate(loads)])


@st.composite
def harmonic_loads(draw: st.DrawFn) -> list[Load]:
    """Loads whose runs fit one after another into half of the shortest interval, of which all are multiples."""
    lengths = draw(st.lists(st.integers(1, BASE_SECONDS // 2), min_size=2, max_size=6))
    while sum(lengths) > BASE_SECONDS // 2:
        lengths = [length - 1 for length in lengths if length > 1]
    loads = []
    for number, length in enumerate(lengths):
        interval = BASE_SECONDS * (1 if number == 0 else draw(st.sampled_from((1, 2, 4, 12))))
        loads.append(Load(number, interval, draw(st.integers(0, interval - 1)), float(length)))
    return loads


def apply(loads: list[Load], offsets: dict[int, int]) -> list[Load]:
    return [replace(load, offset_seconds=offsets.get(load.node_id, load.offset_seconds)) for load in loads]


@given(loads_of_an_olt)
def test_packing_never_makes_it_worse_nor_moves_what_stands_well(loads: list[Load]) -> None:
    offsets = repack(loads)

    before, after = overlap_seconds_per_hour(loads), overlap_seconds_per_hour(apply(loads, offsets))
    assert after < before if offsets else after == before
    assert offsets.keys() <= {load.node_id for load in loads if load.is_movable and load.seconds > 0}


@given(loads_of_an_olt)
def test_two_slots_are_never_closer_than_half_an_interval(loads: list[Load]) -> None:
    """D12: after the next slot, which is the last on the old grid, the first one on the new grid follows."""
    offsets = repack(loads)

    for load in loads:
        if load.node_id in offsets:
            gap = (offsets[load.node_id] - load.offset_seconds) % load.interval_seconds
            assert gap >= load.interval_seconds / 2
            assert 0 <= offsets[load.node_id] < load.interval_seconds


@settings(max_examples=200)
@given(harmonic_loads())
def test_runs_that_fit_one_after_another_no_longer_meet(loads: list[Load]) -> None:
    assert overlap_seconds_per_hour(apply(loads, repack(loads))) == 0


@given(loads_of_an_olt)
def test_the_same_loads_are_always_packed_alike(loads: list[Load]) -> None:
    assert repack(loads) == repack(list(loads))


pairs = st.lists(
    st.builds(
        Load,
        node_id=st.just(0),
        interval_seconds=st.sampled_from((6, 10, 15, 20)),
        offset_seconds=st.integers(0, 5),
        seconds=st.integers(0, 25).map(float),
    ),
    min_size=2,
    max_size=2,
)


@given(pairs)
def test_the_overlap_of_two_is_what_counting_finds(loads: list[Load]) -> None:
    one, other = loads
    repeats = lcm(one.interval_seconds, other.interval_seconds)

    # From when on the first runs are over, and everything repeats.
    steady = range(100, 100 + repeats)
    both = sum(at_once(one, second) * at_once(other, second) for second in steady)

    assert abs(overlap_seconds_per_hour(loads) - both * 3_600 / repeats) < 1e-6


def at_once(load: Load, second: int) -> int:
    """Count the runs of a load that want the OLT in this second."""
    starts = range(load.offset_seconds, second + 1, load.interval_seconds)
    return sum(start <= second < start + load.seconds for start in starts)


def test_of_two_that_begin_together_one_moves_right_before_the_other() -> None:
    loads = [Load(1, 300, 0, 40.0), Load(2, 300, 0, 25.0)]

    assert repack(loads) == {2: 275}


def test_what_may_not_move_is_gone_around() -> None:
    loads = [Load(1, 300, 0, 40.0, is_movable=False), Load(2, 300, 290, 25.0)]

    assert repack(loads) == {2: 275}


def test_a_load_of_unknown_length_stays() -> None:
    assert repack([Load(1, 300, 0, 0.0), Load(2, 300, 0, 25.0)]) == {}
