"""The states of an execution, their groups, and which may follow which."""

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

_FOLLOWERS: dict[ExecutionState, frozenset[ExecutionState]] = {
    ExecutionState.PENDING: frozenset(
        {ExecutionState.RUNNING, ExecutionState.WAITING, ExecutionState.INTERRUPTED, ExecutionState.SKIPPED}
    ),
    ExecutionState.RUNNING: TERMINAL | {ExecutionState.WAITING},
    ExecutionState.WAITING: TERMINAL | {ExecutionState.PENDING},
}


def may_follow(current: ExecutionState, following: ExecutionState) -> bool:
    """Tell whether an execution in `current` may go to `following`; a final state has no followers."""
    return following in _FOLLOWERS.get(current, frozenset())
