"""The states of an execution and their groups."""

from enum import StrEnum


class ExecutionState(StrEnum):
    """PENDING and RUNNING hold an OLT and a poller; WAITING holds neither; the last four are final."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    WAITING = "WAITING"
    SUCCESS = "SUCCESS"
    FAILED = "FAILED"
    INTERRUPTED = "INTERRUPTED"
    SKIPPED = "SKIPPED"


ACTIVE = frozenset({ExecutionState.PENDING, ExecutionState.RUNNING})
TERMINAL = frozenset(
    {ExecutionState.SUCCESS, ExecutionState.FAILED, ExecutionState.INTERRUPTED, ExecutionState.SKIPPED}
)
