"""What the rows of the virtual network hold."""

from dataclasses import dataclass, field
from datetime import datetime

from virtual_workload import START, NodeSpec, OltSpec

from facho.polling.domain.execution_state import TERMINAL, ExecutionState, FailureKind
from facho.polling.domain.schedule import Grid

_FOLLOWERS: dict[ExecutionState, frozenset[ExecutionState]] = {
    ExecutionState.PENDING: frozenset(
        {ExecutionState.RUNNING, ExecutionState.WAITING, ExecutionState.INTERRUPTED, ExecutionState.SKIPPED}
    ),
    ExecutionState.RUNNING: TERMINAL | {ExecutionState.WAITING},
    ExecutionState.WAITING: TERMINAL | {ExecutionState.PENDING},
    **dict.fromkeys(TERMINAL, frozenset()),
}


@dataclass(slots=True, eq=False)
class Slice:
    """A stretch of time in which a run held its OLT and a poller."""

    node: "VirtualNode"
    poller_id: int
    began: datetime
    wall: datetime
    slot_at: datetime | None
    is_fresh: bool
    was_silent: bool
    ended: datetime | None = None
    is_last: bool = False


@dataclass(slots=True, eq=False)
class Run:
    """An execution."""

    node: "VirtualNode"
    slot_at: datetime | None
    state: ExecutionState = ExecutionState.PENDING
    ports_done: int = 0
    # Where the present slice began: a dead one is repeated from there.
    ports_before: int = 0
    slices: int = 0
    resume_at: datetime = START
    failure: FailureKind | None = None
    slice: Slice | None = None

    def go_to(self, state: ExecutionState) -> None:
        assert state in _FOLLOWERS[self.state], (self.state, state)
        self.state = state


@dataclass(slots=True, eq=False)
class VirtualNode:
    """What the row of a node holds."""

    node_id: int
    olt: "VirtualOlt"
    spec: NodeSpec
    grid: Grid
    next_run_at: datetime
    first_run_at: datetime
    run_requested_at: datetime | None = None
    slots_skipped: int = 0
    slot_runs: int = 0
    failures: int = 0
    suspended: FailureKind | None = None
    # Disabled: it has no next run, whatever stands there.
    is_off: bool = False
    # The execution that is not over, running or waiting.
    run: Run | None = None
    served: set[datetime] = field(default_factory=set)
    slices: list[Slice] = field(default_factory=list)

    def is_due(self, now: datetime) -> bool:
        is_able = self.suspended is None and not self.is_off
        return is_able and (self.next_run_at <= now or self.run_requested_at is not None)


@dataclass(slots=True, eq=False)
class VirtualOlt:
    """What the row of an OLT holds, and who holds the OLT."""

    olt_id: int
    spec: OltSpec
    nodes: list[VirtualNode] = field(default_factory=list)
    is_down: bool = False
    probes_done: int = 0
    next_probe_at: datetime | None = None
