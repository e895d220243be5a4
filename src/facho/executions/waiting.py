"""Executions that let go of their OLT to go on later: after a failed try, or because a long read gave way."""

from dataclasses import dataclass
from datetime import datetime

from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet

from facho.executions.chain import skip_chain
from facho.executions.models import ERROR_LENGTH, Execution, ExecutionAttempt, Origin
from facho.executions.outcome import Ending
from facho.executions.run import Run, run_of, runs
from facho.executions.store import Active, Claimed, ClaimRequest, active_of, request_cancel
from facho.hosts.models import Reachability
from facho.hosts.pauses import is_paused
from facho.hosts.store import load_devices
from facho.polling.domain.candidates import Waiting, ready_at
from facho.polling.domain.collection import Failure
from facho.polling.domain.execution_state import ACTIVE, ExecutionState
from facho.polling.domain.failure import FailureKind
from facho.polling.domain.planning import DueNode
from facho.polling.domain.task_type import RANK, QueryType
from facho.polling.domain.window import is_outside_hours
from facho.snmp_jobs.store import window_of

# A tick looks at these every second; a row of an execution, its node and its OLT has eighty columns.
_LOOKED_AT = (
    "status",
    "olt_id",
    "node_id",
    "poller_id",
    "token",
    "lease_counter",
    "cancel_requested_at",
    "resume_at",
    "failure_kind",
    "olt__enabled",
    "olt__reachability",
    "olt__poller_group",
    "node__enabled",
    "node__interval_seconds",
    "node__priority",
    "node__next_run_at",
    "node__run_requested_at",
    "node__suspended_at",
    "node__consecutive_failures",
    "node__job_id",
    "node__job__query_type",
    "node__job__retry_delay_seconds",
    "node__job__hours_from",
    "node__job__hours_to",
)


@dataclass(frozen=True, slots=True)
class Unfinished:
    """Every execution that is not over: what holds an OLT, and what waits to go on where that is allowed."""

    active: tuple[Active, ...]
    waiting: tuple[Waiting, ...]

    @property
    def busy_olts(self) -> set[int]:
        """The OLTs that are held."""
        return {run.olt_id for run in self.active}

    @property
    def busy_pollers(self) -> set[int]:
        """The pollers that are held."""
        return {run.poller_id for run in self.active if run.poller_id is not None}


def load_unfinished(now: datetime) -> Unfinished:
    """Load what a tick has to know of executions, in one query."""
    rows = (
        Execution.objects.filter(finished_at__isnull=True)
        .annotate(is_paused=is_paused("olt_id", now))
        .select_related("olt", "node__job")
        .only(*_LOOKED_AT)
        .order_by()
    )
    active, waiting = [], []
    for row in rows:
        if row.status in ACTIVE:
            active.append(active_of(row))
        elif not row.is_paused and (run := _waiting(row, now)):
            waiting.append(run)
    return Unfinished(tuple(active), tuple(waiting))


def resume(
    execution_id: int, poller_id: int, poller_group: str = "", *, token: int, owner: str, now: datetime
) -> Claimed | None:
    """Claim the OLT again for an execution that waited; None when it is over, or the OLT or the poller is taken.

    A failed try goes on as the next attempt; a slice that gave way goes on as the same one.
    """
    execution = (
        Execution.objects.filter(~is_paused("olt_id", now), id=execution_id, status=ExecutionState.WAITING)
        .filter(olt__enabled=True, node__enabled=True, node__suspended_at__isnull=True)
        .first()
    )
    if execution is None:
        return None
    device = load_devices([execution.olt_id]).get(execution.olt_id)
    try:
        with transaction.atomic():
            claimed = device and Execution.objects.filter(id=execution_id, status=ExecutionState.WAITING).update(
                status=ExecutionState.PENDING,
                attempt=execution.attempt + (1 if execution.failure_kind else 0),
                address=device.address,
                port=device.port,
                token=token,
                owner=owner,
                poller_id=poller_id,
                poller_group=poller_group,
                resume_at=None,
                failure_kind="",
                error="",
            )
    except IntegrityError:
        return None
    request = ClaimRequest(
        execution.olt_id, execution.task_type, Origin(execution.origin), execution.node_id, poller_id
    )
    return Claimed(request, execution_id, token) if claimed else None


@transaction.atomic
def end_waiting(executions: QuerySet[Execution], ending: Ending, *, now: datetime) -> int:
    """End executions that wait to go on and no longer should: with their attempts, and with their chains skipped."""
    rows = runs(executions.filter(status=ExecutionState.WAITING))
    return sum(_end(run_of(row), ending, now) for row in rows)


def _end(run: Run, ending: Ending, now: datetime) -> int:
    error = ending.failure.message[:ERROR_LENGTH] if ending.failure else ""
    waiting = Execution.objects.filter(id=run.execution_id, status=ExecutionState.WAITING)
    changes = {"status": ending.state, "finished_at": now, "error": error}
    if ending.failure and ending.state is ExecutionState.INTERRUPTED:
        changes["failure_kind"] = ending.failure.kind
    ended = waiting.update(**changes, resume_at=None)
    if ended:
        attempts = ExecutionAttempt.objects.filter(execution_id=run.execution_id, finished_at__isnull=True)
        attempts.update(**changes)
        skip_chain(run, ending, now)
    return ended


def end_forsaken(which: Q | None = None, *, now: datetime) -> int:
    """Interrupt runs, or which of them, that wait although their node or OLT was disabled, suspended or deleted."""
    forsaken = Execution.objects.filter(which or Q(), finished_at__isnull=True).filter(
        Q(node__isnull=True) | Q(node__enabled=False) | Q(node__suspended_at__isnull=False) | Q(olt__enabled=False)
    )
    failure = Failure(FailureKind.CANCELLED, "its node or its OLT no longer runs")
    return end_waiting(forsaken, Ending(ExecutionState.INTERRUPTED, failure), now=now)


def cancel(execution_id: int, *, now: datetime) -> bool:
    """Ask an execution to end: at once if it waits, before its next packet if it runs; False if it is over."""
    waiting = Execution.objects.filter(id=execution_id)
    cancelled = Ending(ExecutionState.INTERRUPTED, Failure(FailureKind.CANCELLED, "cancelled"))
    if end_waiting(waiting, cancelled, now=now) or request_cancel(execution_id, now=now):
        return True
    # It may have gone from running to waiting between the two.
    return bool(end_waiting(waiting, cancelled, now=now))


def is_another_waiting(olt_id: int, *, except_node_id: int | None, now: datetime) -> bool:
    """Tell whether a run of another node of the OLT could go on right now."""
    waiting = Execution.objects.filter(olt_id=olt_id, status=ExecutionState.WAITING, resume_at__lte=now)
    return (waiting.exclude(node_id=except_node_id) if except_node_id else waiting).exists()


def _waiting(execution: Execution, now: datetime) -> Waiting | None:
    node, resume_at = execution.node, execution.resume_at
    if node is None or resume_at is None or not (node.enabled and execution.olt.enabled) or node.suspended_at:
        return None
    due = DueNode(
        node_id=node.id,
        olt_id=execution.olt_id,
        due_at=node.run_requested_at
        or ready_at(resume_at, longest_pause_seconds=node.job.retry_delay_seconds, now=now),
        interval_seconds=node.interval_seconds,
        priority=node.priority,
        # A slice that gave way lets everyone else go first; a retry is as urgent as its node.
        rank=RANK[QueryType(node.job.query_type)] if execution.failure_kind else 0,
        is_run_now=node.run_requested_at is not None,
        execution_id=execution.id,
        failures=node.consecutive_failures,
        is_olt_silent=execution.olt.reachability == Reachability.DOWN,
        group=execution.olt.poller_group,
    )
    is_held = not due.is_run_now and is_outside_hours(window_of(node.job), node.next_run_at, now)
    return Waiting(due, bool(execution.failure_kind), node.next_run_at, is_held)
