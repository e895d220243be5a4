"""Frees what nobody carries on. Every decision was made on a row seen a moment ago, and holds only for that row."""

from collections.abc import Sequence
from datetime import datetime

from django.db import transaction

from facho.executions import store as executions
from facho.executions.chain import open_next, skip_chain
from facho.executions.models import Execution
from facho.executions.outcome import Ending, judge_death
from facho.executions.run import run_of
from facho.executions.runner import Finished
from facho.executions.store import Active
from facho.polling.domain.collection import Failure
from facho.polling.domain.execution_state import ExecutionState
from facho.polling.domain.failure import FailureKind
from facho.zabbix_pollers.store import release_orphans, release_poller, save_node_ended


@transaction.atomic
def end_dead_tries(runs: Sequence[Active], *, reason: str, now: datetime) -> int:
    """End running tries whose owner died, each as a failed try like any other; returns how many were still so.

    Without the check of what was seen, an owner that renews at the last moment would go on beside its successor.
    """
    dead = list(executions.still_as_seen(runs))
    for execution in dead:
        _end_dead(execution, reason, now)
    return len(dead)


@transaction.atomic
def hand_back(runs: Sequence[Active], *, now: datetime) -> int:
    """Let masters that a planned stop broke off wait for their turn, as a long read that gave way does.

    A chain member does not wait alone: it ends, and runs again with its master.
    """
    seen = list(executions.still_as_seen(runs))
    for execution in seen:
        if execution.master_execution_id is None:
            run = run_of(execution)
            ending = Ending(ExecutionState.WAITING, resume_at=now, cursor=run.request.cursor)
            executions.close(run, ending, summary={}, now=now)
            release_poller(Finished(run, ending, was_heard=False, following=None), now)
        else:
            _end_dead(execution, "the engine was stopped", now)
    return len(seen)


@transaction.atomic
def release_as_seen(runs: Sequence[Active], *, reason: str, now: datetime) -> int:
    """Interrupt executions that nobody has taken or renewed since they were seen; their chains are skipped."""
    seen = list(executions.still_as_seen(runs))
    released = release_orphans([execution.id for execution in seen], reason=reason, now=now)
    interrupted = Ending(ExecutionState.INTERRUPTED, Failure(FailureKind.INTERNAL, reason))
    for execution in seen:
        skip_chain(run_of(execution), interrupted, now)
    return released


def _end_dead(execution: Execution, reason: str, now: datetime) -> None:
    run = run_of(execution)
    ending = judge_death(run, reason, now)
    if not executions.close(run, ending, summary={}, now=now):
        return
    open_next(run, ending, owner="", now=now)
    finished = Finished(run, ending, was_heard=False, following=None)
    save_node_ended(finished, now)
    release_poller(finished, now)
