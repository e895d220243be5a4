"""Judges how a try ended: the state of its execution, whether it is tried again, whether its node is suspended."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from facho.executions.run import Run
from facho.polling.domain.collection import Collected, Failure
from facho.polling.domain.execution_state import ExecutionState
from facho.polling.domain.failure import FailureKind
from facho.polling.domain.retry import SILENCE, AfterFailure, RetryPolicy, decide_after_failure
from facho.snmp_jobs.models import WorkflowNode
from facho.snmp_jobs.store import next_slot_after_try

# After these the OLT would not answer the rest of the chain either, or may not be asked.
STOPS_THE_CHAIN = frozenset({FailureKind.AUTH, FailureKind.CANCELLED})


@dataclass(frozen=True, slots=True)
class Ending:
    """What becomes of an execution and its node after one try or one slice."""

    state: ExecutionState
    failure: Failure | None = None
    resume_at: datetime | None = None
    cursor: Mapping[str, int] | None = None
    failures_in_a_row: int = 0
    suspends: bool = False
    # The OLT did not answer a single packet; an error that it sent is an answer.
    is_silence: bool = False

    @property
    def is_final(self) -> bool:
        """Tell whether the execution is over; otherwise it waits to go on."""
        return self.state is not ExecutionState.WAITING

    @property
    def allows_chain(self) -> bool:
        """Tell whether the next member of the chain may be asked."""
        if not self.is_final or self.state is ExecutionState.INTERRUPTED or self.is_silence:
            return False
        return self.failure is None or self.failure.kind not in STOPS_THE_CHAIN


def judge(run: Run, collected: Collected, now: datetime) -> Ending:
    """Decide how the try ended; a yielded slice waits for its turn with the same attempt."""
    if collected.failure is None and collected.cursor is not None:
        return Ending(ExecutionState.WAITING, resume_at=now, cursor=collected.cursor)
    if collected.failure is None:
        return Ending(ExecutionState.SUCCESS)
    after = _after_failure(run, collected.failure, now)
    if collected.failure.kind is FailureKind.CANCELLED:
        state = ExecutionState.INTERRUPTED
    else:
        state = ExecutionState.WAITING if after.resume_at else ExecutionState.FAILED
    return Ending(
        state,
        collected.failure,
        resume_at=after.resume_at,
        cursor=collected.cursor,
        failures_in_a_row=after.failures_in_a_row,
        suspends=after.suspends,
        is_silence=collected.failure.kind in SILENCE and not collected.was_heard,
    )


def judge_death(run: Run, reason: str, now: datetime) -> Ending:
    """Decide what follows when the process of a try died: a failed try like any other, but the last ends interrupted.

    A slice of a long read goes on where that slice began.
    """
    died = Collected(failure=Failure(FailureKind.INTERNAL, reason), cursor=run.request.cursor)
    ending = judge(run, died, now)
    return replace(ending, state=ExecutionState.INTERRUPTED) if ending.is_final else ending


def _after_failure(run: Run, failure: Failure, now: datetime) -> AfterFailure:
    node = WorkflowNode.objects.select_related("job").filter(id=run.node_id).first() if run.node_id else None
    if node is None:
        return AfterFailure(failures_in_a_row=0)
    if node.is_chain_node:
        # Not tried again alone: its next chance is the next run of its master.
        after = _decide(node, failure, next_slot_at=now, now=now)
        return AfterFailure(after.failures_in_a_row, suspends=after.suspends)
    return _decide(node, failure, next_slot_at=next_slot_after_try(node, now), now=now)


def _decide(node: WorkflowNode, failure: Failure, *, next_slot_at: datetime | None, now: datetime) -> AfterFailure:
    return decide_after_failure(
        failure.kind,
        failures_before=node.consecutive_failures,
        policy=RetryPolicy(node.job.max_attempts, node.job.retry_delay_seconds),
        next_slot_at=next_slot_at,
        now=now,
    )
