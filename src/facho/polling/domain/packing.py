"""Moves the grids of an OLT's masters apart, so that their runs do not wait for each other and spare time is used.

A new offset takes effect after the next slot. A grid therefore only moves back, by half its interval at most: from the
last slot of the old grid to the first of the new one passes at least half an interval.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import ceil, floor, gcd

SECONDS_PER_HOUR = 3_600
# Nothing is gained by moving the grid of a daily job by hours.
FURTHEST_SECONDS = 3_600


@dataclass(frozen=True, slots=True)
class Load:
    """A master with its chain on its grid; a fixed one still blocks the others."""

    node_id: int
    interval_seconds: int
    offset_seconds: int
    seconds: float
    is_movable: bool = True

    def moved_back(self, seconds: int) -> "Load":
        return replace(self, offset_seconds=(self.offset_seconds - seconds) % self.interval_seconds)


def overlap_seconds_per_hour(loads: Iterable[Load]) -> float:
    """Average seconds per hour in which two of the loads want the OLT at once."""
    return sum(_overlap(one, other) for one, other in combinations(loads, 2))


def repack(loads: Sequence[Load]) -> dict[int, int]:
    """Return new offsets, empty if nothing improves: as few as possible move; if overlap remains, all may shift."""
    tried = [loads, _move_one_by_one(loads), _push_back(loads)]
    best = min(tried, key=lambda packed: (round(overlap_seconds_per_hour(packed), 6), len(_moves(loads, packed))))
    return _moves(loads, best)


def _moves(before: Sequence[Load], after: Sequence[Load]) -> dict[int, int]:
    return {
        new.node_id: new.offset_seconds
        for old, new in zip(before, after, strict=True)
        if old.offset_seconds != new.offset_seconds
    }


def _overlap(one: Load, other: Load) -> float:
    """Return the overlap of two loads in seconds per hour.

    Over the period in which both grids repeat, the distances between their starts are all those with the same remainder
    modulo the greatest common divisor of the intervals.
    """
    step = gcd(one.interval_seconds, other.interval_seconds)
    repeats_seconds = one.interval_seconds * other.interval_seconds // step
    distance = (other.offset_seconds - one.offset_seconds) % step
    first = distance + step * ceil((-other.seconds - distance) / step)
    count = max(floor((one.seconds - first) / step) + 1, 0)
    distances = (first + step * number for number in range(count))
    both = sum(max(min(one.seconds, d + other.seconds) - max(0.0, d), 0.0) for d in distances)
    return both * SECONDS_PER_HOUR / repeats_seconds


def _move_one_by_one(loads: Sequence[Load]) -> list[Load]:
    """Move the load that gains most, each at most once, until nothing improves."""
    packed, unmoved = list(loads), {load.node_id for load in loads if load.is_movable and load.seconds > 0}
    while True:
        candidates = [
            (round(_gain(packed, number, load), 6), -load.interval_seconds, number, load)
            for number, old in enumerate(packed)
            if old.node_id in unmoved
            for load in _places(old, packed)
        ]
        best = max(candidates, key=lambda candidate: candidate[:3], default=None)
        if best is None or best[0] <= 0:
            return packed
        packed[best[2]] = best[3]
        unmoved.remove(best[3].node_id)


def _gain(packed: Sequence[Load], number: int, moved: Load) -> float:
    others = [*packed[:number], *packed[number + 1 :]]
    return sum(_overlap(packed[number], other) - _overlap(moved, other) for other in others)


def _places(load: Load, others: Iterable[Load]) -> list[Load]:
    """Return the load at positions worth trying: right before or after another, not too far back."""
    back: set[int] = set()
    furthest = min(load.interval_seconds // 2, FURTHEST_SECONDS)
    for other in others:
        step = gcd(load.interval_seconds, other.interval_seconds)
        if step < load.seconds + other.seconds:
            continue  # these two meet wherever they stand
        for start in (other.offset_seconds - ceil(load.seconds), other.offset_seconds + ceil(other.seconds)):
            first = (load.offset_seconds - start) % step
            back.update(range(first, furthest + 1, step))
    return [load.moved_back(seconds) for seconds in sorted(back) if seconds]


def _push_back(loads: Sequence[Load]) -> list[Load]:
    """Let each load end before the next begins, from the latest on; fixed ones stay, and a full circle ends it."""
    circle = gcd(*(load.interval_seconds for load in loads)) if loads else 0
    if not circle or sum(ceil(load.seconds) for load in loads) > circle:
        return list(loads)
    placed: dict[int, Load] = {load.node_id: load for load in loads if not load.is_movable}
    movable = [load for load in loads if load.is_movable]
    for load in sorted(movable, key=lambda load: (load.offset_seconds % circle, load.node_id), reverse=True):
        taken = list(placed.values())
        places = [load, *_places(load, taken)]
        free = next((place for place in places if not any(_overlap(place, other) > 0 for other in taken)), None)
        if free is None:
            return list(loads)
        placed[load.node_id] = free
    return [placed[load.node_id] for load in loads]
