"""Decides whether an OLT's work fits into the hour, and what to change when it does not.

Prediction plays the rules of the scheduler forward: which slot each run serves, when it starts, and how long it holds
the OLT. That a poller is free and that runs end well is taken for granted.

Repacking moves the grids of an OLT's masters apart, so that their runs do not wait for each other. A new offset takes
effect after the next slot, so a grid only moves back, by half its interval at most: from the last slot of the old grid
to the first of the new one passes at least half an interval.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import combinations
from math import ceil, floor, gcd
from statistics import median

from facho.polling.domain.planning import DueNode, order_within_olt
from facho.polling.domain.retry import YIELD_AFTER_SECONDS, should_yield
from facho.polling.domain.schedule import Grid, Span, is_outside_hours, plan_end, plan_start

# Enough for a steady middle, few enough to follow an OLT that changes.
RUNS_REMEMBERED = 20


@dataclass(frozen=True, slots=True)
class PastRun:
    """A successful run: how long it held its OLT, and how many ONUs it read."""

    seconds: float
    # None where it is not known.
    onus: int | None = None


def estimate_seconds(runs: Sequence[PastRun], *, onus: int | None) -> float | None:
    """Return the median duration, scaled to `onus` where counts are known; runs that read none are ignored."""
    telling = [run for run in runs if not (onus and run.onus == 0)]
    return median(run.seconds * (onus / run.onus if onus and run.onus else 1.0) for run in telling) if telling else None


# How long after the span a run of one of its slots may start: on an OLT that cannot keep up some never would.
MAX_DELAY = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Member:
    """A chain member in order; an unknown duration is predicted as 0."""

    node_id: int
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Master:
    """A master with its chain: when it is due, its priority, and how long it takes."""

    node_id: int
    grid: Grid
    next_run_at: datetime
    rank: int
    priority: int
    seconds: float | None = None
    members: tuple[Member, ...] = ()
    # The PON ports of a long read, between which it may give way; 1 for what runs through.
    ports: int = 1

    @property
    def composite_seconds(self) -> float:
        return (self.seconds or 0.0) + sum(member.seconds or 0.0 for member in self.members)


@dataclass(slots=True)
class Going:
    """An unfinished run: holds the OLT since `held_since`, or waits until `resume_at`; the rest is as of then."""

    node_id: int
    slot_at: datetime | None
    starts_at: datetime
    seconds_left: float
    resume_at: datetime
    held_since: datetime | None = None
    ports_done: int = 0
    is_retry: bool = False
    # When it holds the OLT, if that is predicted.
    slices: list[Span] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class PredictedRun:
    """An expected run, with each period in which it holds the OLT."""

    master: Master
    slot_at: datetime
    starts_at: datetime
    slices: tuple[Span, ...]

    @property
    def delay(self) -> timedelta:
        return self.starts_at - self.slot_at


def predict_runs(
    masters: Iterable[Master],
    *,
    now: datetime,
    until: datetime,
    going: Collection[Going] = (),
    paused: Collection[Span] = (),
    yield_after_seconds: float = YIELD_AFTER_SECONDS,
) -> list[PredictedRun]:
    """Predict the runs whose slot is before `until`, those in progress first; slots that are missing are skipped."""
    forward = _Forward(now, until, list(paused), yield_after_seconds)
    forward.nodes = {master.node_id: _PredictedNode(master, master.next_run_at) for master in masters}
    forward.take_over(going)
    while forward.step():
        pass
    return sorted(forward.predicted(), key=lambda run: (run.starts_at, run.master.node_id))


@dataclass(slots=True)
class _PredictedNode:
    master: Master
    next_run_at: datetime
    waiting: Going | None = None

    @property
    def due_at(self) -> datetime:
        """When it next wants the OLT: with its waiting run, unless a retry's next slot comes first."""
        if self.waiting is None or self._is_superseded:
            return self.next_run_at
        return self.waiting.resume_at

    @property
    def _is_superseded(self) -> bool:
        return self.waiting is not None and self.waiting.is_retry and self.next_run_at <= self.waiting.resume_at

    @property
    def as_due(self) -> DueNode:
        """Itself as the scheduler compares it; a paused long read goes after everyone else."""
        has_yielded = self.waiting is not None and not self.waiting.is_retry
        master = self.master
        return DueNode(
            node_id=master.node_id,
            olt_id=0,
            due_at=self.due_at,
            interval_seconds=master.grid.interval_seconds,
            priority=master.priority,
            rank=0 if has_yielded else master.rank,
        )


@dataclass(slots=True)
class _Forward:
    """Simulates one OLT over time; `now` is when it is free again."""

    now: datetime
    until: datetime
    paused: list[Span]
    yield_after_seconds: float
    nodes: dict[int, _PredictedNode] = field(default_factory=dict)
    runs: list[Going] = field(default_factory=list)

    def take_over(self, going: Iterable[Going]) -> None:
        """Start with the unfinished runs; one of them may hold the OLT."""
        for one in sorted(going, key=lambda one: one.held_since is not None):
            node = self.nodes.get(one.node_id)
            if node is None:
                # Let a run without a master, such as a probe, hold the OLT to its end.
                if one.held_since is not None:
                    self.now = max(self.now, one.held_since + timedelta(seconds=one.seconds_left))
                continue
            run = replace(one, slices=[])
            self.runs.append(run)
            if one.held_since is None:
                node.waiting = run
            else:
                self._hold(node, run, since=one.held_since)

    def step(self) -> bool:
        """Run the most urgent node once the OLT is free; False when nothing is left."""
        nodes = self.nodes.values()
        is_over = self.now >= self.until
        if not any(node.next_run_at < self.until or (node.waiting and not is_over) for node in nodes):
            return False
        self.now = max(self.now, min(node.due_at for node in nodes))
        if self.now >= self.until + MAX_DELAY:
            return False
        if pause := next((span for span in self.paused if span.contains(self.now)), None):
            self.now = pause.end
            return True
        ready = [node.as_due for node in nodes if node.due_at <= self.now]
        self._start(self.nodes[order_within_olt(ready, self.now)[0].node_id])
        return True

    def predicted(self) -> Iterable[PredictedRun]:
        for run in self.runs:
            if run.slot_at is not None and run.slot_at < self.until and run.slices:
                yield PredictedRun(self.nodes[run.node_id].master, run.slot_at, run.starts_at, tuple(run.slices))

    def _start(self, node: _PredictedNode) -> None:
        run, node.waiting = node.waiting, None
        if run is not None and not (run.is_retry and node.next_run_at <= self.now):
            self._hold(node, run, since=self.now)
            return
        start = plan_start(node.master.grid, node.next_run_at, is_asked_for=False, now=self.now)
        node.next_run_at = start.next_run_at if start and start.next_run_at else node.master.grid.next_after(self.now)
        if start and start.is_run:
            seconds = node.master.composite_seconds
            run = Going(node.master.node_id, start.slot_at, self.now, seconds, resume_at=self.now)
            self.runs.append(run)
            self._hold(node, run, since=self.now)

    def _hold(self, node: _PredictedNode, run: Going, *, since: datetime) -> None:
        """Let a run hold the OLT until it ends or pauses; `since` is in the past if it holds it already."""
        border = self._first_border(node, run, since)
        ends_at = max(since + timedelta(seconds=run.seconds_left), self.now)
        self.now = min(ends_at, border[0]) if border else ends_at
        run.slices.append(Span(since, self.now))
        if border and border[0] < ends_at:
            run.seconds_left -= (self.now - since).total_seconds()
            run.ports_done, run.is_retry = border[1], False
            window = node.master.grid.window
            is_outside = is_outside_hours(window, node.next_run_at, self.now)
            run.resume_at = window.next_opening(self.now) if window and is_outside else self.now
            node.waiting = run
        else:
            node.next_run_at = plan_end(node.master.grid, node.next_run_at, now=self.now).next_run_at

    def _first_border(self, node: _PredictedNode, run: Going, since: datetime) -> tuple[datetime, int] | None:
        """Return when a long read pauses, and how many ports it has read by then."""
        wanted_at = min((other.due_at for other in self.nodes.values() if other is not node), default=None)
        ports, seconds = node.master.ports, node.master.seconds or 0.0
        for number in range(run.ports_done + 1, ports if wanted_at and seconds else 0):
            running_seconds = (number - run.ports_done) * seconds / ports
            border = since + timedelta(seconds=running_seconds)
            is_wanted = wanted_at is not None and wanted_at <= border
            if border >= self.now and should_yield(
                running_seconds=running_seconds,
                another_is_due=is_wanted,
                yield_after_seconds=self.yield_after_seconds,
            ):
                return border, number
        return None


MINUTES_PER_HOUR = 60.0
# What people would choose: 5, 10, 15 and 30 minutes, then 1, 2, 6 and 24 hours.
NICE_INTERVALS_SECONDS = (300, 600, 900, 1_800, 3_600, 7_200, 21_600, 86_400)


@dataclass(frozen=True, slots=True)
class Need:
    """What a master with its chain needs; it blocks the others for `holds_seconds` at most."""

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
