"""Weeks of a network to which everything happens, in virtual time, and the audit of every slot and every hold.

Engines die and leaders change, messages get lost, clocks jump, OLTs fall silent, people ask, disable, enable and change
intervals. The domain decides; what a row would say of each slot is kept, and judged by whom no rule of it binds.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from itertools import pairwise
from random import Random

from virtual_network import INSTANT, VirtualNetwork
from virtual_rows import Run, Slice, VirtualNode
from virtual_workload import NodeSpec, OltSpec, Workload

from facho.polling.domain.execution_state import ExecutionState, QueryType
from facho.polling.domain.schedule import first_offset, plan_change
from slot_audit import Step, passed_slots

HOURS = 24
OLTS = 40
POLLERS = 14
NODES = (
    NodeSpec(120, 8, query_type=QueryType.GET, varies=0.9, failing=0.03),
    NodeSpec(300, 20, query_type=QueryType.DISCOVERY, varies=0.5, failing=0.02),
    NodeSpec(420, 15, query_type=QueryType.WALK, varies=0.5),
    NodeSpec(3_600, 400, query_type=QueryType.BULK, ports=16, varies=0.3),
)
INTERVALS = (60, 120, 180, 300, 420, 900)
JUMPS = (7, 90, 700, 3_600, -7, -90, -700)
# After how long a claim is given up that no worker took, and how often a message gets lost for good.
GIVE_UP_SECONDS = 90.0
UNTAKEN = 0.002


@dataclass(frozen=True)
class Acts:
    """What happens beside the workload, at seconds since its start: nobody leads; a node is switched or changed."""

    leaderless: tuple[tuple[int, int], ...] = ()
    switches: tuple[tuple[int, int], ...] = ()
    rhythms: tuple[tuple[int, int, int], ...] = ()


@dataclass(slots=True)
class Books:
    """What is known of one node's slots: each step of its schedule, each start, each slot reported as skipped."""

    steps: list[Step] = field(default_factory=list)
    starts: list[datetime] = field(default_factory=list)
    skipped: set[datetime] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Findings:
    """What a storm came to."""

    executions: int
    owed: int
    served: int
    skipped: int
    interrupted: int
    overlaps: int
    doubled: int
    unaccounted: int

    def __add__(self, other: "Findings") -> "Findings":
        return Findings(*(getattr(self, name) + getattr(other, name) for name in self.__slots__))


class StormyNetwork(VirtualNetwork):
    """A network that keeps books of every slot."""

    def __init__(self, workload: Workload, acts: Acts) -> None:
        self.books: dict[int, Books] = defaultdict(Books)
        self.interrupted = 0
        super().__init__(workload)
        for node in self.nodes:
            self._note(node)
        for begin, end in acts.leaderless:
            self._after(begin, self._lose_leader)
            self._after(end, self._find_leader)
        for second, number in acts.switches:
            self._after(second, partial(self._switch, self.nodes[number % len(self.nodes)]))
        for second, number, interval in acts.rhythms:
            self._after(second, partial(self._change_interval, self.nodes[number % len(self.nodes)], interval))

    def find(self) -> Findings:
        """Audit everything that has happened."""
        owed = served = skipped = doubled = unaccounted = 0
        for books in self.books.values():
            starts = Counter(books.starts)
            for slot in set(passed_slots(books.steps)):
                owed += 1
                served += slot in starts
                skipped += slot in books.skipped and slot not in starts
                unaccounted += slot not in starts and slot not in books.skipped
            doubled += sum(count - 1 for count in starts.values())
        return Findings(
            executions=sum(s.is_fresh for s in self.trace or ()),
            owed=owed,
            served=served,
            skipped=skipped,
            interrupted=self.interrupted,
            overlaps=sum(1 for _ in self._overlaps()),
            doubled=doubled,
            unaccounted=unaccounted,
        )

    def _overlaps(self) -> Iterator[tuple[Slice, Slice]]:
        by_olt: dict[int, list[Slice]] = defaultdict(list)
        for held in self.trace or ():
            by_olt[held.node.olt.olt_id].append(held)
        for slices in by_olt.values():
            ordered = sorted(slices, key=lambda s: s.began)
            yield from ((a, b) for a, b in pairwise(ordered) if (a.ended or self.real) > b.began)

    # What the rows say

    def _note_passed(self, node: VirtualNode, until: datetime) -> None:
        if node.next_run_at <= self.now and not node.grid.is_fixed_delay:
            self.books[node.node_id].skipped.update(node.grid.slots(node.next_run_at, node.next_run_at, until))

    def _note(self, node: VirtualNode) -> None:
        next_run_at = None if node.is_off else node.next_run_at
        step = Step(self.now, next_run_at, node.grid.interval_seconds, node.grid.offset_seconds)
        self.books[node.node_id].steps.append(step)

    def _wake_at(self, node: VirtualNode, wall: datetime) -> None:
        super()._wake_at(node, wall)
        steps = self.books[node.node_id].steps
        if steps and steps[-1].next_run_at != node.next_run_at:
            self._note(node)

    def _collect(self, run: Run, poller_id: int, *, is_fresh: bool) -> None:
        if is_fresh and run.slot_at:
            self.books[run.node.node_id].starts.append(run.slot_at)
        if is_fresh and self.luck.random() < UNTAKEN:
            run.slice = Slice(run.node, poller_id, self.real, self.now, run.slot_at, is_fresh, was_silent=False)
            assert self.trace is not None
            self.trace.append(run.slice)
            self._after(GIVE_UP_SECONDS, partial(self._give_up, run))
            return
        super()._collect(run, poller_id, is_fresh=is_fresh)

    # What happens

    def _give_up(self, run: Run) -> None:
        """End a claim that nobody took; the node's schedule has gone on already."""
        if run.state is not ExecutionState.PENDING:
            return
        if not (self.is_up and self.is_led):
            self._after(GIVE_UP_SECONDS, partial(self._give_up, run))
            return
        run.go_to(ExecutionState.INTERRUPTED)
        self.interrupted += 1
        run.node.run = None
        self._let_go(run)
        self._awake[run.node.node_id] = run.node

    def _restart(self) -> None:
        """Begin as an engine does; what was claimed and not begun is taken now."""
        claimed = [run for run in self.busy.values() if run and run.state is ExecutionState.PENDING]
        for run in claimed:
            run.go_to(ExecutionState.RUNNING)
        super()._restart()

    def _close(self, run: Run, state: ExecutionState, *, failures: int) -> None:
        self.interrupted += state is ExecutionState.INTERRUPTED
        super()._close(run, state, failures=failures)

    def _wait(self, run: Run, resume_at: datetime, *, failures: int) -> None:
        super()._wait(run, resume_at, failures=failures)
        if run.node.is_off:
            self._end_waiting(run.node, ExecutionState.INTERRUPTED)

    def _lose_leader(self) -> None:
        self.is_led = False

    def _find_leader(self) -> None:
        if self.is_up:
            self._begin_to_lead()

    def _switch(self, node: VirtualNode) -> None:
        """Disable a node, with what came of it passed, or enable it on a grid that begins anew."""
        if not node.is_off:
            self._pass_what_came(node)
            node.is_off = True
            self._note(node)
            self._end_waiting(node, ExecutionState.INTERRUPTED)
            return
        node.is_off = False
        self._begin_anew(node)

    def _change_interval(self, node: VirtualNode, interval: int) -> None:
        """Change a rhythm as the one door does, and note what is passed."""
        grid = replace(node.grid, interval_seconds=interval)
        if node.is_off:
            node.grid = grid
            return
        grid, next_run_at = plan_change(node.grid, grid, node.next_run_at, now=self.now)
        self._note_passed(node, min(next_run_at, self.now + INSTANT))
        node.grid, node.next_run_at = grid, next_run_at
        self._note(node)
        self._awake[node.node_id] = node
        self._wake_at(node, next_run_at)

    def _begin_anew(self, node: VirtualNode) -> None:
        offset = first_offset(node.node_id, interval_seconds=node.grid.interval_seconds, now=self.now)
        node.grid = replace(node.grid, offset_seconds=offset)
        node.next_run_at = node.grid.next_after(self.now)
        self._note(node)
        self._awake[node.node_id] = node
        self._wake_at(node, node.next_run_at)

    def _pass_what_came(self, node: VirtualNode) -> None:
        if node.next_run_at <= self.now:
            self._note_passed(node, self.now + INSTANT)


def make_storm(seed: int, *, olts: int = OLTS, hours: int = HOURS) -> StormyNetwork:
    """Return a network with its fate for some hours; about nine hundred executions an hour with forty OLTs."""
    luck = Random(seed)  # noqa: S311 luck, not a secret
    seconds = hours * 3_600
    fleet = tuple(
        OltSpec(
            tuple(replace(spec, offset_seconds=luck.randrange(spec.interval_seconds)) for spec in NODES),
            silent=tuple(_spans(luck, seconds, pause=30_000, longest=6_000)) if luck.random() < 0.5 else (),
        )
        for _ in range(olts)
    )
    nodes = olts * len(NODES)
    workload = Workload(
        fleet,
        pollers=max(POLLERS * olts // OLTS, 1),
        hours=hours,
        seed=seed,
        downtimes=tuple(_spans(luck, seconds, pause=4_000, longest=300)),
        wishes=tuple((luck.randrange(seconds), luck.randrange(nodes)) for _ in range(hours * 4)),
        jumps=tuple((luck.randrange(seconds), luck.choice(JUMPS)) for _ in range(hours // 6)),
    )
    acts = Acts(
        leaderless=tuple(_spans(luck, seconds, pause=2_000, longest=120)),
        switches=tuple((luck.randrange(seconds), luck.randrange(nodes)) for _ in range(hours * 6)),
        rhythms=tuple(
            (luck.randrange(seconds), luck.randrange(nodes), luck.choice(INTERVALS)) for _ in range(hours * 3)
        ),
    )
    return StormyNetwork(workload, acts)


def _spans(luck: Random, seconds: int, *, pause: int, longest: int) -> Iterator[tuple[int, int]]:
    begin = luck.randrange(1, pause)
    while begin < seconds:
        end = begin + luck.randrange(1, longest)
        yield begin, end
        begin = end + luck.randrange(1, 2 * pause)


def play_storm(seed: int, *, olts: int = OLTS, hours: int = HOURS) -> Findings:
    """Play one and audit it."""
    network = make_storm(seed, olts=olts, hours=hours)
    network.play()
    return network.find()
