"""Samples of several ONUs at several times as one array, and what can be done with it: join, sum up, show gaps.

A grid has one layer of samples, or the four layers of a summary. Nothing here knows where grids are stored.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from facho.onus.history_metrics import MISSING, Floats, Ints, summable

HOUR_SECONDS, DAY_SECONDS = 3_600, 86_400
AVERAGE, LOWEST, HIGHEST, COUNT = range(4)
# How many spacings tell what is usual at one point of a series, and what share of it is too much.
_SPACINGS = 25
_GAP = 1.75


@dataclass(frozen=True, slots=True)
class Poll:
    """What one poll brought: entry i of every array is about one ONU. `at` is in seconds of the epoch."""

    at: int
    onu_ids: Ints
    pon_port_ids: Ints
    values: Mapping[int, Ints]


@dataclass(frozen=True, slots=True)
class Grid:
    """Values by layer, ONU and time; ids and times (seconds of the epoch) ascend."""

    onu_ids: Ints
    at: Ints
    layers: Ints

    @property
    def is_summary(self) -> bool:
        """Tell averages with their extremes and counts from samples."""
        return len(self.layers) > 1

    @property
    def has_values(self) -> bool:
        """Tell whether anything is not missing."""
        return bool((self.layers[0] != MISSING).any())

    def of_onu(self, onu_id: int) -> "Grid":
        """Keep one ONU, or nothing when it is not in here."""
        is_wanted = self.onu_ids == onu_id
        return Grid(self.onu_ids[is_wanted], self.at, self.layers[:, is_wanted])

    def between(self, start: int, end: int) -> "Grid":
        """Keep the times from `start` on and before `end`."""
        is_inside = (self.at >= start) & (self.at < end)
        return Grid(self.onu_ids, self.at[is_inside], self.layers[:, :, is_inside])

    def trimmed(self) -> "Grid":
        """Drop the times before the first value and after the last."""
        (used,) = (self.layers[0] != MISSING).any(axis=0).nonzero()
        return self.between(int(self.at[used[0]]), int(self.at[used[-1]]) + 1) if used.size else self.between(0, 0)


PortMetricDay = tuple[int, int, int]


def grids_of_polls(polls: Sequence[Poll]) -> dict[PortMetricDay, Grid]:
    """Sort polls into one grid for each PON port, metric and day (counted from the epoch)."""
    found: dict[PortMetricDay, Grid] = {}
    for metric in sorted({metric for poll in polls for metric in poll.values}):
        having = [poll for poll in polls if metric in poll.values]
        at = np.repeat([poll.at for poll in having], [len(poll.onu_ids) for poll in having])
        ports = np.concatenate([poll.pon_port_ids for poll in having])
        onu_ids = np.concatenate([poll.onu_ids for poll in having])
        values = np.concatenate([poll.values[metric] for poll in having])
        for entries in _groups(ports, at // DAY_SECONDS):
            port, day = int(ports[entries[0]]), int(at[entries[0]] // DAY_SECONDS)
            found[port, metric, day] = _grid(onu_ids[entries], at[entries], values[entries])
    return found


def _groups(first: Ints, second: Ints) -> Iterator[Ints]:
    """Yield the positions of each pair of values that occurs."""
    order = np.lexsort((second, first))
    is_new = (np.diff(first[order]) != 0) | (np.diff(second[order]) != 0)
    yield from (part for part in np.split(order, np.flatnonzero(is_new) + 1) if part.size)


def _grid(onu_ids: Ints, at: Ints, values: Ints) -> Grid:
    ids, rows = np.unique(onu_ids, return_inverse=True)
    times, columns = np.unique(at, return_inverse=True)
    layer = np.full((len(ids), len(times)), MISSING)
    is_value = values != MISSING
    layer[rows[is_value], columns[is_value]] = values[is_value]
    # Without a single value the port was not read: a long pass reads some ports now and the others later.
    was_read = (layer != MISSING).any(axis=0)
    return Grid(ids, times[was_read], layer[np.newaxis, :, was_read])


def join(grids: Sequence[Grid]) -> Grid:
    """Lay grids of one kind over each other.

    Of two samples of one ONU in the same second the later grid's stays; two summaries of one time become one.
    """
    if _follow_each_other(grids):
        at = np.concatenate([grid.at for grid in grids])
        return Grid(grids[0].onu_ids, at, np.concatenate([grid.layers for grid in grids], axis=-1))
    ids = np.unique(np.concatenate([grid.onu_ids for grid in grids]))
    at = np.unique(np.concatenate([grid.at for grid in grids]))
    layers = np.full((len(grids[0].layers), len(ids), len(at)), MISSING)
    for grid in grids:
        cells = np.ix_(np.arange(len(layers)), np.searchsorted(ids, grid.onu_ids), np.searchsorted(at, grid.at))
        laid = _add_up if grid.is_summary else _lay_over
        layers[cells] = laid(layers[cells], grid.layers)
    return Grid(ids, at, layers)


def _follow_each_other(grids: Sequence[Grid]) -> bool:
    """Tell the usual case: the same ONUs, one stretch of time after the other."""
    first = grids[0]
    return all(
        before.at.size
        and after.at.size
        and before.at[-1] < after.at[0]
        and np.array_equal(after.onu_ids, first.onu_ids)
        for before, after in pairwise(grids)
    )


def _lay_over(old: Ints, new: Ints) -> Ints:
    return np.where(new == MISSING, old, new)


def _add_up(old: Ints, new: Ints) -> Ints:
    both = np.stack([old, new], axis=-1)
    added = _summed(both, np.zeros(1, dtype=np.int64))
    return added[..., 0]


def summarise(grid: Grid, metric: int, seconds: int) -> Grid:
    """Return average, lowest, highest and count of each stretch of `seconds`; of samples or of shorter stretches."""
    layers = grid.layers if grid.is_summary else _as_summary(summable(metric, grid.layers[0]))
    if not grid.at.size:
        return replace(grid, layers=layers)
    stretches, firsts = np.unique(grid.at // seconds, return_index=True)
    return Grid(grid.onu_ids, stretches * seconds, _summed(layers, firsts))


def _as_summary(samples: Ints) -> Ints:
    count = np.where(samples == MISSING, MISSING, 1)
    return np.stack([samples, samples, samples, count])


def _summed(layers: Ints, firsts: Ints) -> Ints:
    """Sum up along the last axis, a stretch from each of `firsts` to the next."""
    is_missing = layers[AVERAGE] == MISSING
    count = np.where(is_missing, 0, layers[COUNT])
    counts = np.add.reduceat(count, firsts, axis=-1)
    totals = np.add.reduceat(np.where(is_missing, 0, layers[AVERAGE]) * count, firsts, axis=-1)
    average = np.rint(totals / np.maximum(counts, 1)).astype(np.int64)
    lowest = np.minimum.reduceat(np.where(is_missing, np.iinfo(np.int64).max, layers[LOWEST]), firsts, axis=-1)
    highest = np.maximum.reduceat(layers[HIGHEST], firsts, axis=-1)
    summary = np.stack([average, lowest, highest, counts])
    summary[:, counts == 0] = MISSING
    return summary


def with_gaps(grid: Grid, step_seconds: int | None) -> Grid:
    """Put a missing value where something should have come and did not.

    Without a fixed step, that is where much more time went by than is usual there: one poll less is enough.
    """
    if len(grid.at) < 2:
        return grid
    spacing = np.diff(grid.at)
    usual = _usual(spacing) if step_seconds is None else np.full(len(spacing), step_seconds)
    (before,) = (spacing > usual * (1 if step_seconds else _GAP)).nonzero()
    at = np.insert(grid.at, before + 1, grid.at[before] + usual[before].astype(np.int64))
    return Grid(grid.onu_ids, at, np.insert(grid.layers, before + 1, MISSING, axis=-1))


def without_strangers(grid: Grid) -> Grid:
    """Drop the times at which a single row has no value because somebody asked for another one between two polls."""
    if len(grid.at) < 3:
        return grid
    spacing = np.diff(grid.at)
    is_between = np.zeros(len(grid.at), dtype=bool)
    # Without it the polls around it are as close as usual: a poll that found nothing would leave a hole there.
    is_between[1:-1] = spacing[1:] + spacing[:-1] <= _usual(spacing)[1:] * _GAP
    is_kept = ~is_between | (grid.layers[0] != MISSING).any(axis=0)
    return Grid(grid.onu_ids, grid.at[is_kept], grid.layers[:, :, is_kept])


def _usual(spacing: Ints) -> Floats:
    """Return the median of the spacings around each: an operator may have changed the interval on the way."""
    beside = min(_SPACINGS, len(spacing)) // 2
    padded = np.pad(spacing, beside, mode="reflect") if beside else spacing
    windows = np.lib.stride_tricks.sliding_window_view(padded, 2 * beside + 1)
    return np.asarray(np.median(windows, axis=-1))
