"""Predicts the runs of one OLT: which slot each serves, when it starts, and how long it holds the OLT.

The rules of the scheduler are played forward. That a poller is free and that runs end well is taken for granted.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
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
