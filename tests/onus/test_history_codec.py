"""Blocks give back what was put into them, whatever a device sent and whatever happened to them on the way."""

import math

import numpy as np
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from facho.onus.history_codec import (
    GRID,
    HistoryGrid,
    Poll,
    UnreadableBlock,
    decode_bundle,
    decode_grid,
    decode_poll,
    encode_bundle,
    encode_grid,
    encode_poll,
)
from facho.onus.history_models import MISSING, SCALES, Metric, from_steps, to_steps

ids = st.lists(st.integers(1, 2**53), unique=True, max_size=8).map(sorted)
times = st.lists(st.integers(0, 2**40), unique=True, max_size=8).map(sorted)
steps = st.one_of(st.just(MISSING), st.integers(-(2**31), 2**31))
# What may reach us although no decoder should let it through.
hostile = st.one_of(st.none(), st.floats(), st.integers(-(10**300), 10**300), st.booleans())


def numbers(values: list[int]) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    return np.array(values, dtype=np.int64)


@st.composite
def samples(draw: st.DrawFn) -> HistoryGrid:
    onu_ids, at = draw(ids), draw(times)
    size = len(onu_ids) * len(at)
    values = draw(st.lists(steps, min_size=size, max_size=size))
    return HistoryGrid(numbers(onu_ids), numbers(at), numbers(values).reshape(1, len(onu_ids), len(at)))


@st.composite
def summaries(draw: st.DrawFn) -> HistoryGrid:
    grid = draw(samples())
    average, below, above = (grid.layers[0], *(draw(st.integers(0, 2**31)) for _ in range(2)))
    layers = np.stack([average, average - below, average + above, np.full_like(average, 12)])
    layers[:, average == MISSING] = MISSING
    return HistoryGrid(grid.onu_ids, grid.at, layers)


def assert_same(found: HistoryGrid, expected: HistoryGrid) -> None:
    for name in ("onu_ids", "at", "layers"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))


@given(st.one_of(samples(), summaries()))
def test_a_grid_comes_back_as_it_was(grid: HistoryGrid) -> None:
    assert_same(decode_grid(encode_grid(grid)), grid)


@given(st.one_of(samples(), summaries()), st.integers(1, 2**53))
def test_one_row_of_a_block_is_what_the_whole_has_there(grid: HistoryGrid, stranger: int) -> None:
    block = encode_grid(grid)

    for onu_id in [*grid.onu_ids.tolist(), stranger]:
        assert_same(decode_grid(block, onu_id), grid.of_onu(onu_id))


@given(st.integers(0, 2**40), st.dictionaries(st.integers(1, 2**53), st.integers(1, 2**53), max_size=8), st.data())
def test_a_poll_comes_back_sorted_with_the_metrics_that_are_wanted(
    at: int, places: dict[int, int], data: st.DataObject
) -> None:
    column = st.lists(steps, min_size=len(places), max_size=len(places)).map(numbers)
    values = data.draw(st.dictionaries(st.sampled_from(Metric), column))
    poll = Poll(at, numbers(list(places)), numbers(list(places.values())), values)

    for wanted in (set(Metric), {Metric.RX_POWER}):
        found = decode_poll(encode_poll(poll), wanted)

        assert found.at == at
        assert found.values.keys() == values.keys() & wanted
        assert dict(zip(found.onu_ids.tolist(), found.pon_port_ids.tolist(), strict=True)) == places
        for metric in found.values:
            expected = dict(zip(places, values[metric].tolist(), strict=True))
            assert dict(zip(found.onu_ids.tolist(), found.values[metric].tolist(), strict=True)) == expected


@given(st.lists(st.tuples(st.integers(1, 4), st.sampled_from(Metric), samples()), max_size=6))
def test_a_bundle_gives_back_the_ports_and_metrics_that_are_wanted(
    grids: list[tuple[int, int, HistoryGrid]],
) -> None:
    block = encode_bundle(grids)

    for ports, metrics in ((None, None), ({2, 3}, {Metric.RX_POWER, Metric.STATE}), (set(), None)):
        wanted = [
            each for each in grids if (ports is None or each[0] in ports) and (metrics is None or each[1] in metrics)
        ]
        found = list(decode_bundle(block, ports, metrics))

        assert [each[:2] for each in found] == [each[:2] for each in wanted]
        for (_, _, grid), (_, _, expected) in zip(found, wanted, strict=True):
            assert_same(grid, expected)


@given(samples(), st.data())
def test_a_bundle_with_a_damaged_index_is_unreadable(grid: HistoryGrid, data: st.DataObject) -> None:
    block = bytearray(encode_bundle([(7, Metric.RX_POWER, grid), (8, Metric.RX_POWER, grid)]))
    block[data.draw(st.integers(1, 34))] ^= data.draw(st.integers(1, 255))

    with pytest.raises(UnreadableBlock):
        list(decode_bundle(bytes(block)))


@given(st.sampled_from(Metric), st.lists(hostile))
def test_no_value_breaks_a_column_and_what_its_scale_holds_comes_back(
    metric: Metric, values: list[float | None]
) -> None:
    """To 0.01 dB, 0.1 °C and 1 m; everything else is missing."""
    scale = SCALES[metric]

    found = from_steps(metric, to_steps(metric, np.array(values, dtype=np.float64)), is_summary=False)

    for value, back in zip(values, found.tolist(), strict=True):
        if value is not None and scale.lowest <= value * scale.steps_per_unit <= scale.highest:
            assert abs(back - value) <= 0.5 / scale.steps_per_unit + 1e-9
        elif not math.isnan(back):
            assert value is not None
            assert math.isclose(back, value, abs_tol=1 / scale.steps_per_unit)


def test_a_head_that_claims_more_memory_than_there_is_asks_for_none() -> None:
    frame = zstandard.ZstdCompressor(write_checksum=True).compress(bytes(300))
    # Magic number, then: eight bytes of size follow, a single segment, a checksum.
    claiming = frame[:4] + bytes([0b1110_0100]) + (2**62).to_bytes(8, "little") + frame[7:]

    with pytest.raises(UnreadableBlock, match="larger than any block"):
        decode_grid(bytes([GRID]) + claiming)


@given(samples(), st.data())
def test_a_damaged_block_is_told_from_one_with_odd_values(grid: HistoryGrid, data: st.DataObject) -> None:
    block = bytearray(encode_grid(grid))
    position = data.draw(st.integers(0, len(block) - 1))
    block[position] ^= data.draw(st.integers(1, 255))

    try:
        found = decode_grid(bytes(block))
    except UnreadableBlock:
        return
    # Some bits of a frame's head mean nothing.
    assert_same(found, grid)


@pytest.mark.parametrize(
    "block",
    [
        b"",
        b"\x01",
        b"\x02",
        b"\x03rest",
        encode_grid(HistoryGrid(*map(numbers, ([], [])), np.zeros((1, 0, 0), int)))[:-1],
    ],
)
def test_what_is_no_block_is_unreadable(block: bytes) -> None:
    for decode in (decode_poll, decode_grid, lambda block: list(decode_bundle(block))):
        with pytest.raises(UnreadableBlock):
            decode(block)
