"""A virtual network whose hours are judged: it writes down what our tables hold, and is looked at once a minute.

What the rules of quotas say stands in `books`; `journal` and `suspensions` hold what really happened.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial

from virtual_network import PROBE_AGAIN_SECONDS, VirtualNetwork
from virtual_rows import Run, VirtualNode, VirtualOlt
from virtual_workload import START, Workload

from facho.polling.domain.execution_state import TERMINAL, ExecutionState, FailureKind
from facho.polling.domain.planning import DueNode
from facho.polling.domain.quota import (
    OpenSlots,
    Promise,
    QuotaState,
    Record,
    SkipReason,
    Tally,
    count_hopeless,
    foresees_miss,
    judge,
    open_slots,
)
from facho.polling.domain.retry import SILENCE
from facho.polling.domain.schedule import HOUR, Move, Span, hour_of

MET_SHARE = 0.8
LOOK_SECONDS = 60
# Not on the minute, where hours begin.
FIRST_LOOK_SECONDS = 37
VIOLATED = frozenset({QuotaState.QUOTA_NOT_MET, QuotaState.FAILED})
UNJUDGED = frozenset({QuotaState.IN_PROGRESS, QuotaState.AT_RISK})
STRUGGLES = frozenset({SkipReason.OLT_BUSY, SkipReason.NO_POLLER, SkipReason.OWN_RUN})
_INSTANT = timedelta(microseconds=1)

# A node's id and the start of an hour.
Key = tuple[int, datetime]


@dataclass(slots=True)
class Book:
    """What the rules say about one node's hour."""

    node: VirtualNode
    hour: Span
    tally: Tally = field(default_factory=Tally)
    state: QuotaState = QuotaState.IN_PROGRESS
    # When a violation was raised, and since when the forecast says that there will be one.
    raised_at: datetime | None = None
    announced_at: datetime | None = None
    was_announced: bool = False
    required: set[int] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Ended:
    """A run that is over, as the journal has it; `began` is its last slice."""

    slot_at: datetime
    began: datetime
    ended: datetime
    state: ExecutionState


class QuotaNetwork(VirtualNetwork):
    """A network that keeps executions and skipped slots by their hours, knows pauses, and judges its hours."""

    def __init__(self, workload: Workload, pauses: dict[int, list[Span]]) -> None:
        self.pauses = pauses
        self.runs: dict[Key, list[Run]] = defaultdict(list)
        self.skipped: dict[Key, dict[datetime, SkipReason]] = defaultdict(dict)
        self.nonsense: set[tuple[int, datetime]] = set()
        self.journal: dict[int, list[Ended]] = defaultdict(list)
        self.suspensions: dict[int, list[Span]] = defaultdict(list)
        self.suspended_at: dict[int, datetime] = {}
        self.books: dict[Key, Book] = {}
        self._troubled: set[Key] = set()
        self._waited: dict[int, SkipReason] = {}
        self._is_starting = False
        super().__init__(workload, keeps_trace=False)
        self._after(FIRST_LOOK_SECONDS, self._look)
        for span in [span for spans in self.pauses.values() for span in spans]:
            self._after((span.end - START).total_seconds(), lambda: None)

    # Pauses

    def is_paused(self, olt: VirtualOlt, moment: datetime) -> bool:
        return any(span.contains(moment) for span in self.pauses.get(olt.olt_id, ()))

    def _load(self) -> tuple[list[DueNode], list[DueNode]]:
        due, waiting = super()._load()
        held = {olt_id for olt_id in self.pauses if self.is_paused(self.olts[olt_id], self.now)}
        if held:
            due = [node for node in due if node.olt_id not in held]
            waiting = [run for run in waiting if run.olt_id not in held]
        return due, waiting

    def _is_another_due(self, node: VirtualNode) -> bool:
        return not self.is_paused(node.olt, self.now) and super()._is_another_due(node)

    def _probe(self, olt: VirtualOlt) -> None:
        if self.is_paused(olt, self.now):
            self._after(PROBE_AGAIN_SECONDS, partial(self._probe, olt))
            return
        super()._probe(olt)

    # What is written down

    def _plan(self) -> None:
        self._waited = {node.node_id: SkipReason(reason) for node, reason in self.queue}
        super()._plan()

    def _open(self, node: VirtualNode) -> bool:
        due_at, self._is_starting = node.next_run_at, True
        is_run = super()._open(node)
        self._is_starting = False
        slot = node.run.slot_at if is_run and node.run else None
        if slot and node.run:
            self.runs[node.node_id, hour_of(slot).start].append(node.run)
        if due_at <= self.now:
            reason = self._waited.get(node.node_id, SkipReason.NOT_POLLING) if slot else SkipReason.OUT_OF_HOURS
            self._pass(node, due_at, slot or self.now + _INSTANT, reason)
        return is_run

    def _move(self, node: VirtualNode, move: Move, *, passing_until: datetime | None = None) -> None:
        due_at = node.next_run_at
        super()._move(node, move, passing_until=passing_until)
        if move.slots_skipped and not self._is_starting:
            is_suspended = node.node_id in self.suspended_at
            reason = SkipReason.SUSPENDED if is_suspended else SkipReason.OWN_RUN
            self._pass(node, due_at, self.now + _INSTANT, reason)

    def _pass(self, node: VirtualNode, due_at: datetime, until: datetime, reason: SkipReason) -> None:
        for slot in node.grid.slots(due_at, due_at, until):
            if not self.is_paused(node.olt, slot):
                key = (node.node_id, hour_of(slot).start)
                self.skipped[key][slot] = reason
                self._troubled.add(key)

    def _finish(
        self,
        run: Run,
        *,
        failure: FailureKind | None,
        was_heard: bool,
        last: ExecutionState = ExecutionState.FAILED,
    ) -> None:
        if failure and failure not in SILENCE and run.slot_at:
            self.nonsense.add((run.node.node_id, run.slot_at))
        super()._finish(run, failure=failure, was_heard=was_heard, last=last)

    def _close(self, run: Run, state: ExecutionState, *, failures: int) -> None:
        super()._close(run, state, failures=failures)
        self._note_end(run)

    def _end_waiting(self, node: VirtualNode, state: ExecutionState) -> None:
        run = node.run
        super()._end_waiting(node, state)
        if run and node.run is None:
            self._note_end(run)

    def _note_end(self, run: Run) -> None:
        assert run.slice is not None
        if run.slot_at:
            self.journal[run.node.node_id].append(Ended(run.slot_at, run.slice.began, self.now, run.state))
            if run.state is not ExecutionState.SUCCESS:
                self._troubled.add((run.node.node_id, hour_of(run.slot_at).start))

    def _suspend(self, node: VirtualNode, reason: FailureKind, *, is_silence: bool) -> None:
        super()._suspend(node, reason, is_silence=is_silence)
        for other in node.olt.nodes:
            if other.suspended:
                self.suspended_at.setdefault(other.node_id, self.now)

    def _probed(self, olt: VirtualOlt) -> None:
        super()._probed(olt)
        for node in olt.nodes:
            if not node.suspended and node.node_id in self.suspended_at:
                self.suspensions[node.node_id].append(Span(self.suspended_at.pop(node.node_id), self.now))

    # A look

    def _look(self) -> None:
        self._after(LOOK_SECONDS, self._look)
        this = hour_of(self.now)
        is_first = (self.nodes[0].node_id, this.start) not in self.books
        for node in self.nodes:
            before = self.books.get((node.node_id, this.start - HOUR))
            if before and before.state in UNJUDGED:
                self._judge(before)
            book = self.books.setdefault((node.node_id, this.start), Book(node, this))
            if is_first or book.announced_at or self._may_miss(node, this):
                self._forecast(book, self._judge(book))

    def _may_miss(self, node: VirtualNode, hour: Span) -> bool:
        """Tell whether anything went wrong that a forecast could build on; to look at all would take minutes."""
        if node.suspended or node.next_run_at <= self.now:
            return True
        return not self._troubled.isdisjoint(((node.node_id, hour.start), (node.node_id, hour.start - HOUR)))

    def _judge(self, book: Book) -> OpenSlots:
        slots = self.open_slots(book.node, book.hour)
        book.tally = self.tally(book.node, book.hour, slots)
        book.required.add(book.tally.required)
        if book.raised_at is None:
            book.state = judge(book.tally, book.hour, self.now, met_share=MET_SHARE, patience=book.node.grid.interval)
            book.raised_at = self.now if book.state in VIOLATED else None
        return slots

    def open_slots(self, node: VirtualNode, hour: Span) -> OpenSlots:
        promise = Promise(
            node.grid,
            node.next_run_at,
            is_suspended=node.suspended is not None,
            is_under_way=node.run is not None and node.run.failure is None,
        )
        return open_slots(promise, hour, self.now, paused=self.pauses.get(node.olt.olt_id, ()))

    def tally(self, node: VirtualNode, hour: Span, slots: OpenSlots) -> Tally:
        """Count as the product does: executions, skipped slots, and what is open."""
        runs = [run for run in self.runs[node.node_id, hour.start] if not self._is_paused_run(run)]
        completed = sum(run.state is ExecutionState.SUCCESS for run in runs)
        failed = sum(run.state in TERMINAL for run in runs) - completed
        skipped = len(self.skipped[node.node_id, hour.start]) + len(slots.lost)
        return Tally(completed, failed, skipped, len(runs) - completed - failed + len(slots.pending))

    def _is_paused_run(self, run: Run) -> bool:
        return run.slot_at is not None and self.is_paused(run.node.olt, run.slot_at)

    def _forecast(self, book: Book, slots: OpenSlots) -> None:
        node, hopeless = book.node, 0
        if node.node_id in self.suspended_at:
            hopeless = count_hopeless(
                slots.pending,
                suspended_at=self.suspended_at[node.node_id],
                next_probe_at=node.olt.next_probe_at or self.now,
                now=self.now,
            )
        if not foresees_miss(book.tally, self._record(book), hopeless=hopeless, met_share=MET_SHARE):
            book.announced_at = None
        elif book.announced_at is None:
            book.announced_at, book.was_announced = self.now, True

    def _record(self, book: Book) -> Record:
        now, before = (self._tried(book.node, hour) for hour in (book.hour.start, book.hour.start - HOUR))
        watched = self.now - book.hour.start + (HOUR if sum(before) else timedelta(0))
        return Record(now[0] + before[0], now[1] + before[1], watched)

    def _tried(self, node: VirtualNode, hour: datetime) -> tuple[int, int]:
        """Count what was completed, and what an answering OLT had no time or no good answer for."""
        ended = [run for run in self.runs[node.node_id, hour] if run.state in TERMINAL]
        completed = sum(run.state is ExecutionState.SUCCESS for run in ended)
        failed = sum(
            (node.node_id, run.slot_at) in self.nonsense for run in ended if run.state is not ExecutionState.SUCCESS
        )
        return completed, failed + sum(reason in STRUGGLES for reason in self.skipped[node.node_id, hour].values())
