"""Scheduler, pollers and OLTs in virtual time: the domain decides, plain values stand for what rows hold.

It goes from event to event. What happens at one moment happens before the plan of that moment, as in a tick.
"""

from bisect import insort
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from functools import partial
from heapq import heappop, heappush
from itertools import count
from random import Random

from virtual_rows import Run, Slice, VirtualNode, VirtualOlt
from virtual_workload import START, NodeSpec, Workload

from facho.polling.domain.execution_state import TERMINAL, ExecutionState, FailureKind
from facho.polling.domain.planning import (
    Assignment,
    DueNode,
    WaitReason,
    choose_candidates,
    plan_tick,
    ready_at,
)
from facho.polling.domain.retry import (
    PROBE_PAUSES_SECONDS,
    SILENCE,
    RetryPolicy,
    decide_after_failure,
    next_probe_at,
    should_yield,
)
from facho.polling.domain.schedule import Move, is_outside_hours, plan_end, plan_rejoin, plan_start

# How long a run takes to find out that nobody answers, how long a probe holds its OLT, and how soon it tries again.
SILENCE_SECONDS = 15.0
PROBE_SECONDS = 1.0
PROBE_AGAIN_SECONDS = 5.0
CLOCK_JUMP_SECONDS = 5.0
INSTANT = timedelta(microseconds=1)
POLICY = RetryPolicy(max_attempts=3, delay_seconds=120)


class VirtualNetwork:
    """One engine with its pollers, on the wall clock `now` and the true time `real`."""

    def __init__(self, workload: Workload, *, keeps_trace: bool = True) -> None:
        self.workload = workload
        self.real = START
        self.shift = timedelta(0)
        self.is_up = True
        # Whether anyone plans: between two leaders what runs goes on, and nothing starts.
        self.is_led = True
        self.busy: dict[int, Run | None] = {}
        self.free_pollers = list(range(workload.pollers))
        self.queue: tuple[tuple[DueNode, WaitReason], ...] = ()
        self.trace: list[Slice] | None = [] if keeps_trace else None
        self.luck = Random(workload.seed)  # noqa: S311 luck, not a secret
        self._agenda: list[tuple[datetime, int, Callable[[], None]]] = []
        self._numbers = count()
        self._awake: dict[int, VirtualNode] = {}
        self.olts = [VirtualOlt(number, spec) for number, spec in enumerate(workload.olts)]
        self.nodes = [self._make_node(olt, spec) for olt in self.olts for spec in olt.spec.nodes]
        self._by_id = {node.node_id: node for node in self.nodes}
        self._write_agenda()

    @property
    def now(self) -> datetime:
        """What the wall clock shows."""
        return self.real + self.shift

    @property
    def seconds(self) -> float:
        """True seconds since the start."""
        return (self.real - START).total_seconds()

    def play(self) -> "VirtualNetwork":
        """Live through the whole workload."""
        for _ in self.steps():
            pass
        return self

    def steps(self) -> Iterator[datetime]:
        """Live through the workload moment by moment, each after its plan."""
        end = START + timedelta(hours=self.workload.hours)
        agenda = self._agenda
        while agenda and agenda[0][0] <= end:
            self.real = agenda[0][0]
            while agenda and agenda[0][0] == self.real:
                heappop(agenda)[2]()
            self._plan()
            yield self.real
        self.real = end

    def _make_node(self, olt: VirtualOlt, spec: NodeSpec) -> VirtualNode:
        first = spec.grid.next_after(START)
        node = VirtualNode(next(self._numbers), olt, spec, spec.grid, first, first)
        olt.nodes.append(node)
        self._wake_at(node, first)
        return node

    def _write_agenda(self) -> None:
        for begin, end in self.workload.downtimes:
            self._after(begin, self._crash)
            self._after(end, self._restart)
        for second, number in self.workload.wishes:
            self._after(second, partial(self._wish, self.nodes[number % len(self.nodes)]))
        for second, jump in self.workload.jumps:
            self._after(second, partial(self._jump, jump))

    def _after(self, seconds: float, action: Callable[[], None]) -> None:
        heappush(self._agenda, (self.real + timedelta(seconds=seconds), next(self._numbers), action))

    def _move(self, node: VirtualNode, move: Move, *, passing_until: datetime | None = None) -> None:
        """Move a node on; what it passes was due up to now, or before the slot that it serves."""
        if node.is_off:
            return
        self._note_passed(node, passing_until or self.now + INSTANT)
        node.slots_skipped += move.slots_skipped
        if node.next_run_at != move.next_run_at:
            node.next_run_at = move.next_run_at
            self._wake_at(node, move.next_run_at)

    def _note_passed(self, node: VirtualNode, until: datetime) -> None:
        """Take note, before a node moves, that its slots up to a moment get no run; a count is enough here."""

    def _wake_at(self, node: VirtualNode, wall: datetime) -> None:
        at = max(wall - self.shift, self.real)
        heappush(self._agenda, (at, next(self._numbers), partial(self._awake.__setitem__, node.node_id, node)))

    # What happens to the network

    def _crash(self) -> None:
        self.is_up = False

    def _restart(self) -> None:
        """Begin as an engine does: end what the dead one ran as failed tries, and look at every row."""
        self.is_up = True
        for run in [run for run in self.busy.values() if run]:
            run.ports_done = run.ports_before
            self._finish(run, failure=FailureKind.INTERNAL, was_heard=False, last=ExecutionState.INTERRUPTED)
        self.busy.clear()
        self._begin_to_lead()
        for olt in self.olts:
            if olt.next_probe_at:
                self._after(0, partial(self._probe, olt))

    def _begin_to_lead(self) -> None:
        """Look at every row as a leader does at first: the clock may have been set back while nobody led."""
        self.is_led = True
        for node in self.nodes:
            if node.next_run_at > self.now + node.grid.interval:
                self._move(node, plan_rejoin(node.grid, node.next_run_at, now=self.now))
            self._awake[node.node_id] = node
            self._wake_at(node, node.next_run_at)

    def _wish(self, node: VirtualNode) -> None:
        node.run_requested_at = self.now
        self._awake[node.node_id] = node

    def _jump(self, seconds: int) -> None:
        self.shift += timedelta(seconds=seconds)
        if not (self.is_up and self.is_led):
            return
        for node in self.nodes:
            if abs(seconds) > CLOCK_JUMP_SECONDS:
                self._move(node, plan_rejoin(node.grid, node.next_run_at, now=self.now))
            self._wake_at(node, node.next_run_at)
            if node.run:
                self._wake_at(node, self.ready_at(node.run))
        for olt in self.olts:
            if olt.next_probe_at:
                self._after(0, partial(self._probe, olt))

    # A tick

    def _plan(self) -> None:
        self.queue = ()
        while self.is_up and self.is_led and self._awake:
            due, waiting = self._load()
            candidates = choose_candidates(due, waiting, self.now)
            for gone in candidates.superseded:
                self._end_waiting(self._by_id[gone.node_id], ExecutionState.FAILED)
            plan = plan_tick(candidates.ready, free_pollers=self.free_pollers, busy_olts=self.busy, now=self.now)
            self.queue = plan.waiting
            # Each is claimed, whatever became of the one before.
            claimed = [self._claim(assignment) for assignment in plan.start]
            if all(claimed):
                break

    def _load(self) -> tuple[list[DueNode], list[DueNode]]:
        now = self.now
        for node in [n for n in self._awake.values() if n.suspended or not (n.is_due(now) or n.run)]:
            del self._awake[node.node_id]
        awake = [node for node in self._awake.values() if node.olt.olt_id not in self.busy or not self._runs(node)]
        due = [self._due_node(node) for node in awake if node.is_due(now)]
        waiting = [self._waiting(node, node.run) for node in awake if node.run]
        silent = [self.olts[olt_id] for olt_id in {node.olt_id for node in (*due, *waiting) if node.is_olt_silent}]
        due += [self._due_node(node) for olt in silent for node in olt.nodes if self._is_failing(node)]
        return due, waiting

    def _runs(self, node: VirtualNode) -> bool:
        return node.run is not None and node.run.state is not ExecutionState.WAITING

    def _is_failing(self, node: VirtualNode) -> bool:
        return node.failures > 0 and not node.suspended and not node.is_due(self.now)

    def _due_node(self, node: VirtualNode) -> DueNode:
        return DueNode(
            node_id=node.node_id,
            olt_id=node.olt.olt_id,
            due_at=node.run_requested_at or node.next_run_at,
            interval_seconds=node.grid.interval_seconds,
            priority=node.spec.priority,
            rank=node.spec.rank,
            is_run_now=node.run_requested_at is not None,
            failures=node.failures,
            is_olt_silent=node.olt.is_down,
        )

    def _waiting(self, node: VirtualNode, run: Run) -> DueNode:
        is_run_now = node.run_requested_at is not None
        return DueNode(
            node_id=node.node_id,
            olt_id=node.olt.olt_id,
            due_at=node.run_requested_at or self.ready_at(run),
            interval_seconds=node.grid.interval_seconds,
            priority=node.spec.priority,
            rank=node.spec.rank if run.failure else 0,
            is_run_now=node.run_requested_at is not None,
            execution_id=node.node_id + 1,
            is_retry=run.failure is not None,
            next_run_at=node.next_run_at,
            is_out_of_hours=not is_run_now and is_outside_hours(node.spec.window, node.next_run_at, self.now),
            failures=node.failures,
            is_olt_silent=node.olt.is_down,
        )

    def ready_at(self, run: Run) -> datetime:
        """Return when a run that waits may go on."""
        pause = POLICY.delay_seconds if run.failure else 0
        return ready_at(run.resume_at, longest_pause_seconds=pause, now=self.now)

    # A run

    def _claim(self, assignment: Assignment) -> bool:
        """Start or go on; False when the node's hours are over and it only moved on."""
        node = self._by_id[assignment.node.node_id]
        is_fresh = assignment.node.execution_id is None
        if is_fresh and not self._open(node):
            return False
        assert node.run is not None
        assert node.olt.olt_id not in self.busy
        self.free_pollers.remove(assignment.poller_id)
        self.busy[node.olt.olt_id] = node.run
        node.run_requested_at = None
        self._awake.pop(node.node_id, None)
        self._collect(node.run, assignment.poller_id, is_fresh=is_fresh)
        return True

    def _open(self, node: VirtualNode) -> bool:
        start = plan_start(node.grid, node.next_run_at, is_asked_for=node.run_requested_at is not None, now=self.now)
        assert start is not None
        assert start.next_run_at is not None
        is_due = node.next_run_at <= self.now
        self._move(node, Move(start.next_run_at, start.slots_skipped), passing_until=start.slot_at if is_due else None)
        if not start.is_run:
            return False
        slot_at = None if start.slot_at in node.served else start.slot_at
        if slot_at:
            node.slot_runs += 1
            if self.workload.jumps:
                node.served.add(slot_at)
        assert node.run is None or node.run.state is ExecutionState.FAILED
        node.run = Run(node, slot_at)
        return True

    def _collect(self, run: Run, poller_id: int, *, is_fresh: bool) -> None:
        node, spec = run.node, run.node.spec
        if not is_fresh:
            run.go_to(ExecutionState.PENDING)
        run.go_to(ExecutionState.RUNNING)
        is_silent = node.olt.spec.is_silent(self.seconds)
        run.slice = Slice(node, poller_id, self.real, self.now, run.slot_at, is_fresh, is_silent)
        if self.trace is not None:
            self.trace.append(run.slice)
            node.slices.append(run.slice)
        run.slices += 1
        run.ports_before, run.failure = run.ports_done, None
        seconds = spec.seconds * (1 - spec.varies * self.luck.random() if spec.varies else 1) / spec.ports
        if is_silent:
            failure: FailureKind | None = FailureKind.TIMEOUT
            seconds = SILENCE_SECONDS
        else:
            failure = spec.failure if spec.failing and self.luck.random() < spec.failing else None
        after = partial(self._finish, failure=failure, was_heard=not is_silent)
        if failure is None and spec.ports > 1:
            after = partial(self._look_up, seconds=seconds)
        self._after(seconds, partial(self._if_held, run, run.slices, after))

    def _if_held(self, run: Run, slices: int, action: Callable[[Run], None]) -> None:
        if self.is_up and run.state is ExecutionState.RUNNING and run.slices == slices:
            action(run)

    def _look_up(self, run: Run, *, seconds: float) -> None:
        """Stand at a port's border: go on, give way, or be done."""
        run.ports_done += 1
        if run.ports_done >= run.node.spec.ports:
            self._finish(run, failure=None, was_heard=True)
            return
        assert run.slice is not None
        running = (self.real - run.slice.began).total_seconds()
        if should_yield(running_seconds=running, another_is_due=self._is_another_due(run.node)):
            self._wait(run, self.now, failures=run.node.failures)
            run.node.olt.is_down = False
            return
        self._after(seconds, partial(self._if_held, run, run.slices, partial(self._look_up, seconds=seconds)))

    def _is_another_due(self, node: VirtualNode) -> bool:
        """Tell whether another node of the OLT is due, or its run could go on."""
        others = [other for other in node.olt.nodes if other is not node]
        return any(other.is_due(self.now) or (other.run and other.run.resume_at <= self.now) for other in others)

    def _finish(
        self,
        run: Run,
        *,
        failure: FailureKind | None,
        was_heard: bool,
        last: ExecutionState = ExecutionState.FAILED,
    ) -> None:
        node = run.node
        if was_heard:
            node.olt.is_down = False
            node.olt.probes_done = 0 if failure is None else node.olt.probes_done
        elif failure in SILENCE:
            node.olt.is_down = True
        if failure is None:
            self._close(run, ExecutionState.SUCCESS, failures=0)
            return
        move = plan_end(node.grid, node.next_run_at, now=self.now)
        after = decide_after_failure(
            failure, failures_before=node.failures, policy=POLICY, next_slot_at=move.next_run_at, now=self.now
        )
        if after.resume_at:
            run.failure = failure
            self._move(node, move)
            self._wait(run, after.resume_at, failures=after.failures_in_a_row)
            return
        self._close(run, last, failures=after.failures_in_a_row)
        if after.suspends:
            self._suspend(node, failure, is_silence=failure in SILENCE and not was_heard)

    def _wait(self, run: Run, resume_at: datetime, *, failures: int) -> None:
        run.go_to(ExecutionState.WAITING)
        run.resume_at = resume_at
        run.node.failures = failures
        self._let_go(run)
        self._awake[run.node.node_id] = run.node
        self._wake_at(run.node, resume_at)

    def _close(self, run: Run, state: ExecutionState, *, failures: int) -> None:
        run.go_to(state)
        node = run.node
        node.run, node.failures = None, failures
        self._move(node, plan_end(node.grid, node.next_run_at, now=self.now))
        self._let_go(run)

    def _let_go(self, run: Run) -> None:
        assert run.slice is not None
        run.slice.ended, run.slice.is_last = self.real, run.state in TERMINAL
        insort(self.free_pollers, run.slice.poller_id)
        self.busy.pop(run.node.olt.olt_id)
        if run.node.run_requested_at:
            self._awake[run.node.node_id] = run.node

    def _end_waiting(self, node: VirtualNode, state: ExecutionState) -> None:
        if node.run and node.run.state is ExecutionState.WAITING:
            node.run.go_to(state)
            node.run = None

    # Suspension

    def _suspend(self, node: VirtualNode, reason: FailureKind, *, is_silence: bool) -> None:
        for other in node.olt.nodes if is_silence else [node]:
            if other.suspended is None:
                other.suspended = reason
                self._end_waiting(other, ExecutionState.INTERRUPTED)
        self._schedule_probe(node.olt)

    def _schedule_probe(self, olt: VirtualOlt) -> None:
        olt.next_probe_at = next_probe_at(olt.probes_done, now=self.now)
        olt.probes_done += 1
        self._after((olt.next_probe_at - self.now).total_seconds(), partial(self._probe, olt))

    def _probe(self, olt: VirtualOlt) -> None:
        if not self.is_up or olt.next_probe_at is None:
            return
        due_at = ready_at(olt.next_probe_at, longest_pause_seconds=max(PROBE_PAUSES_SECONDS), now=self.now)
        if due_at > self.now:
            self._after((due_at - self.now).total_seconds(), partial(self._probe, olt))
            return
        if olt.olt_id in self.busy:
            self._after(PROBE_AGAIN_SECONDS, partial(self._probe, olt))
            return
        self.busy[olt.olt_id] = None
        olt.next_probe_at = None
        self._after(PROBE_SECONDS, partial(self._probed, olt))

    def _probed(self, olt: VirtualOlt) -> None:
        if self.busy.get(olt.olt_id, olt) is not None:
            return
        del self.busy[olt.olt_id]
        answered = not olt.spec.is_silent(self.seconds)
        olt.is_down = not answered
        suspended = [node for node in olt.nodes if node.suspended]
        if not answered and suspended:
            self._schedule_probe(olt)
            return
        olt.probes_done = 0
        for node in suspended:
            node.failures = 0 if node.suspended in SILENCE else POLICY.max_attempts - 1
            node.suspended = None
            self._awake[node.node_id] = node
            self._move(node, plan_rejoin(node.grid, node.next_run_at, now=self.now))
