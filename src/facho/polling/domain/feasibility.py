"""Decides whether an OLT's work fits into the hour, and which intervals to relax when it does not."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

MINUTES_PER_HOUR = 60.0
# What people would choose: 5, 10, 15 and 30 minutes, then 1, 2, 6 and 24 hours.
NICE_INTERVALS_SECONDS = (300, 600, 900, 1_800, 3_600, 7_200, 21_600, 86_400)


@dataclass(frozen=True, slots=True)
class Need:
    """Time a master with its chain needs; it blocks the others for `holds_seconds` at most."""

    node_id: int
    interval_seconds: int
    seconds: float
    holds_seconds: float

    @property
    def minutes_per_hour(self) -> float:
        return self.seconds * MINUTES_PER_HOUR / self.interval_seconds


@dataclass(frozen=True, slots=True)
class Blocked:
    """Loses slots because another master runs longer than its interval."""

    node_id: int
    by_node_id: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Relaxation:
    node_id: int
    interval_before_seconds: int
    interval_seconds: int
    saves_minutes_per_hour: float


@dataclass(frozen=True, slots=True)
class Feasibility:
    """The load of an OLT. Any single relaxation is enough, unless they are needed together."""

    minutes_per_hour: float
    blocked: tuple[Blocked, ...] = ()
    relaxations: tuple[Relaxation, ...] = ()
    are_needed_together: bool = False

    @property
    def share(self) -> float:
        return self.minutes_per_hour / MINUTES_PER_HOUR

    @property
    def fits(self) -> bool:
        return self.share <= 1.0 and not self.blocked


def judge_feasibility(needs: Sequence[Need]) -> Feasibility:
    """Add up the needs of an OLT's masters, and find the cheapest relaxations if it is too much."""
    minutes, blocked = _minutes(needs), tuple(_blocked(needs))
    if _fits(needs):
        return Feasibility(minutes, blocked)
    if alone := sorted(_relax_one(needs), key=_price):
        return Feasibility(minutes, blocked, tuple(alone))
    return Feasibility(minutes, blocked, tuple(_relax_several(needs)), are_needed_together=True)


def _minutes(needs: Iterable[Need]) -> float:
    return sum(need.minutes_per_hour for need in needs)


def _blocked(needs: Sequence[Need]) -> Iterator[Blocked]:
    for need in needs:
        longest = max(
            (other for other in needs if other is not need), key=lambda other: other.holds_seconds, default=None
        )
        if longest and longest.holds_seconds > need.interval_seconds:
            yield Blocked(need.node_id, longest.node_id, longest.holds_seconds)


def _fits(needs: Sequence[Need]) -> bool:
    return _minutes(needs) <= MINUTES_PER_HOUR and not any(_blocked(needs))


def _relax_one(needs: Sequence[Need]) -> Iterator[Relaxation]:
    """Find for each master the shortest interval that alone makes everything fit."""
    for need in needs:
        relaxed = (_slower(need, seconds) for seconds in NICE_INTERVALS_SECONDS if seconds > need.interval_seconds)
        enough = next((slower for slower in relaxed if _fits(_with(needs, slower))), None)
        if enough:
            yield _relaxation(need, enough)


def _relax_several(needs: Sequence[Need]) -> Iterator[Relaxation]:
    """Relax what saves most, step by step, until everything fits or nothing is left."""
    now = list(needs)
    while not _fits(now):
        steps = []
        for need in now:
            if longer := [seconds for seconds in NICE_INTERVALS_SECONDS if seconds > need.interval_seconds]:
                steps.append(_slower(need, longer[0]))
        best = min(steps, key=lambda slower: _excess(_with(now, slower)), default=None)
        if best is None:
            break
        now = _with(now, best)
    for before, after in zip(needs, now, strict=True):
        if before != after:
            yield _relaxation(before, after)


def _excess(needs: Sequence[Need]) -> tuple[float, float]:
    """Order by how far from fitting: excess minutes first, then time lost to longer runs."""
    lost = sum(blocked.seconds for blocked in _blocked(needs))
    return max(_minutes(needs) - MINUTES_PER_HOUR, 0.0), lost


def _slower(need: Need, interval_seconds: int) -> Need:
    return replace(need, interval_seconds=interval_seconds)


def _with(needs: Sequence[Need], changed: Need) -> list[Need]:
    return [changed if need.node_id == changed.node_id else need for need in needs]


def _relaxation(before: Need, after: Need) -> Relaxation:
    saved = before.minutes_per_hour - after.minutes_per_hour
    return Relaxation(before.node_id, before.interval_seconds, after.interval_seconds, saved)


def _price(relaxation: Relaxation) -> tuple[float, float, int]:
    slowed = relaxation.interval_seconds / relaxation.interval_before_seconds
    return slowed, -relaxation.saves_minutes_per_hour, relaxation.node_id
