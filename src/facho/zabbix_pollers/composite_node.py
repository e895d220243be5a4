"""A master with its chain as one unit: one place in the queue, one poller, one task counted."""

from dataclasses import dataclass
from datetime import datetime

from facho.executions.runner import Executor
from facho.executions.store import Active
from facho.polling.domain.execution_state import ExecutionState
from facho.polling.domain.planning import DueNode, WaitReason


@dataclass(frozen=True, slots=True)
class Step:
    """One member of a composite: `status` is None while its turn has not come."""

    node_id: int | None
    name: str
    execution_id: int | None = None
    status: ExecutionState | None = None


@dataclass(frozen=True, slots=True)
class CompositeNode:
    """A composite whose time has come, as seen at `seen_at`; `reason` is None when nothing keeps it waiting.

    What people read of it is filled in for them alone: a tick starts it by its master, and the runner opens the chain
    from its rows, member by member.
    """

    due: DueNode
    seen_at: datetime
    reason: WaitReason | None = None
    name: str = ""
    olt: str = ""
    enabled: bool = True
    nextcheck: datetime | None = None
    lastcheck: datetime | None = None
    # Seconds of the last run, from the master to the end of the chain; None before the first.
    execution_time: float | None = None
    chain_nodes: tuple[Step, ...] = ()

    def execute(self, executor: Executor, claimed: Active) -> None:
        """Hand the claimed run of master and chain to the executor; returns at once."""
        executor.start(claimed.execution_id, claimed.token)

    @property
    def id(self) -> int:
        """The master's node."""
        return self.due.node_id

    @property
    def olt_id(self) -> int:
        return self.due.olt_id

    @property
    def due_at(self) -> datetime:
        """Since when it waits: its slot, a person's request, or the time of its retry."""
        return self.due.due_at

    @property
    def interval_seconds(self) -> int:
        return self.due.interval_seconds

    @property
    def priority(self) -> int:
        return self.due.priority

    @property
    def run_now(self) -> bool:
        return self.due.is_run_now

    @property
    def execution_id(self) -> int | None:
        """The execution that continues after a failed try or after it gave way; None for a new run."""
        return self.due.execution_id

    @property
    def delayed(self) -> bool:
        return self.due.is_delayed(self.seen_at)

    @property
    def delay_time(self) -> float:
        return round(self.due.delay(self.seen_at).total_seconds(), 1)

    @property
    def chain_nodes_count(self) -> int:
        return len(self.chain_nodes)
