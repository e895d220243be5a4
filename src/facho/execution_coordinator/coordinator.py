"""Watches every OLT: finds what changed since the last pass, acts on it, and keeps the quotas counted.

It starts no run; the scheduler does. Its memory is in the database, so a pass that dies is repeated.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Q

from facho.execution_coordinator import quotas, violations
from facho.execution_coordinator.logger import coordinator_logger, log_executions
from facho.execution_coordinator.models import EventType, Level, OltState
from facho.execution_coordinator.plans import keep_plans, rebuild_plans
from facho.execution_coordinator.state import OltRow, load_olts
from facho.executions import store as executions
from facho.executions.models import Execution
from facho.executions.store import end_abandoned
from facho.polling.domain.changes import (
    Change,
    ChangeType,
    OltView,
    detect_changes,
    from_json,
    state_hash,
    to_json,
)
from facho.polling.domain.execution_state import ExecutionState
from facho.polling.domain.schedule import hour_of
from facho.snmp_jobs.models import WorkflowNode
from facho.snmp_jobs.store import give_first_slots, load_job_names, pass_suspended, pass_undiscovered, take_off_grid
from facho.zabbix_pollers.store import release_as_seen

logger = logging.getLogger(__name__)

# Everything is counted so often; in between only OLTs whose runs ended or whose tasks changed.
COUNT_ALL = timedelta(seconds=60)
# May be ended before their first packet, or between two tries.
_NOT_ASKING = Q(status__in=[ExecutionState.PENDING, ExecutionState.WAITING])
_EVENTS = {
    ChangeType.TASK_REMOVED: (EventType.TASK_REMOVED, Level.WARNING),
    ChangeType.TASK_INTERVAL_CHANGED: (EventType.TASK_MODIFIED, Level.INFO),
    ChangeType.OLT_ENABLED: (EventType.OLT_ENABLED, Level.INFO),
    ChangeType.OLT_DISABLED: (EventType.OLT_DISABLED, Level.WARNING),
    ChangeType.OLT_UNREACHABLE: (EventType.OLT_UNREACHABLE, Level.ERROR),
    ChangeType.OLT_BACK: (EventType.OLT_BACK, Level.INFO),
}


# What the log keeps of a run that a change ended, with the status in which it was found.
AbortedRun = dict[str, str | int]


def act_on(olt_id: int, change: Change, now: datetime) -> list[AbortedRun]:
    """Do what a change calls for, and return the runs that it ended; one that talks to its OLT may finish."""
    if change.type is ChangeType.TASK_REMOVED and (task := change.task):
        which = Q(node_id=task.node_id)
        aborted = _load_aborted(which, _NOT_ASKING, now)
        _abort(which, "its task was disabled", now)
        take_off_grid(WorkflowNode.objects.filter(id=task.node_id, enabled=False), now)
        return aborted
    if change.type is ChangeType.OLT_DISABLED:
        which = Q(olt_id=olt_id)
        aborted = _load_aborted(which, Q(), now)
        _abort(which, "its OLT was disabled", now)
        for execution_id in Execution.objects.filter(which, status=ExecutionState.RUNNING).values_list("id", flat=True):
            executions.request_cancel(execution_id, now=now)
        take_off_grid(WorkflowNode.objects.filter(workflow__olt_id=olt_id), now)
        return aborted
    return []


def start_timeless(olts: Iterable[OltRow], now: datetime) -> int:
    """Put masters without a time on their grid, however they or their OLT were enabled; returns how many."""
    tasks = [task for olt in olts if olt.enabled for task in olt.tasks]
    timeless = [task.node_id for task in tasks if task.next_run_at is None and task.master_id is None]
    nodes = WorkflowNode.objects.filter(id__in=timeless, next_run_at__isnull=True)
    return give_first_slots(nodes, now) if timeless else 0


def _load_aborted(which: Q, unfinished: Q, now: datetime) -> list[AbortedRun]:
    """Load what is about to end, and what the scheduler ended for the same change since the last pass."""
    since = now - timedelta(seconds=2 * settings.FACHO_COORDINATOR_SECONDS)
    lately = Q(status=ExecutionState.INTERRUPTED, finished_at__gte=since)
    rows = Execution.objects.filter(which, Q(unfinished, finished_at__isnull=True) | lately).order_by("id")
    return [
        {"execution": execution_id, "task_type": task_type, "task": name or task_type, "status": status}
        for execution_id, task_type, name, status in rows.values_list("id", "task_type", "node__job__name", "status")
    ]


def _abort(which: Q, reason: str, now: datetime) -> None:
    claimed = [run for run in executions.load_active(which) if run.status is ExecutionState.PENDING]
    release_as_seen(claimed, reason=reason, now=now)
    end_abandoned(which, now=now)


def log_changes_detected(olt_id: int, olt_name: str, changes: Sequence[Change]) -> None:
    if changes:
        coordinator_logger.log_event(
            EventType.CHANGES_DETECTED,
            olt_id=olt_id,
            olt=olt_name,
            changes=", ".join(change.type for change in changes),
        )


def log_change(olt_id: int, change: Change, aborted: Sequence[AbortedRun] = ()) -> None:
    """Log a change of an OLT with the runs that it ended; one that went silent makes its plan worthless."""
    values: dict[str, Any] = {}
    if task := change.task:
        # A task is called by its job; where the node is gone, by the job that has its type, else by its code.
        names = WorkflowNode.objects.filter(id=task.node_id).values_list("job__name", flat=True)
        name = names.first() or load_job_names().get(task.task_type, task.task_type)
        values = {"task_type": task.task_type, "task": name, "node_id": task.node_id}
        # A chain member has no interval of its own.
        if task.interval_seconds:
            values["interval_seconds"] = task.interval_seconds
        if change.interval_before_seconds:
            values["interval_before_seconds"] = change.interval_before_seconds
    if change.type is ChangeType.TASK_ADDED:
        coordinator_logger.log_task_added(values.pop("task"), olt=olt_id, **values)
        return
    event_type, level = _EVENTS[change.type]
    if aborted or change.type is ChangeType.OLT_DISABLED:
        values["aborted"] = list(aborted)
    coordinator_logger.log_event(event_type, olt_id=olt_id, level=level, **values)
    if change.type is ChangeType.OLT_UNREACHABLE:
        coordinator_logger.log_emergency_replan(olt_id, change.type.value)


class ExecutionCoordinator:
    """One pass every few seconds over all OLTs."""

    def __init__(self) -> None:
        self._looked_at: datetime | None = None
        self._counted_at: datetime | None = None
        self._closed_before: datetime | None = None

    def run_pass(self, now: datetime) -> None:
        """Look at everything once: changes, quotas, violations, plans, and executions that started or ended."""
        pass_suspended(now)
        olts = self.get_system_state()
        stuck = [task.node_id for olt in olts.values() for task in olt.tasks if task.is_stuck(now)]
        if stuck:
            pass_undiscovered(stuck, now)
        if start_timeless(olts.values(), now) or stuck:
            olts = self.get_system_state()
        # Handle each OLT that changed; an error in one does not stop the others.
        known = dict(OltState.objects.values_list("olt_id", "state_hash"))
        changed = [olt_id for olt_id, state in olts.items() if known.get(olt_id) != self.calculate_state_hash(state)]
        for olt_id in changed:
            try:
                before = OltState.objects.filter(olt_id=olt_id).first()
                view = from_json(before.state) if before else None
                self.handle_changes(olts[olt_id], self.detect_changes(view, olts[olt_id]), now)
            except Exception:  # a loop guard: one OLT that cannot be handled must not stop the others
                logger.exception("coordinator.olt_failed olt=%s", olt_id)
        self._count(load_olts() if changed else olts, changed, now)
        keep_plans(olts, now)
        log_executions(self._looked_at, now)
        self._looked_at = now

    def get_system_state(self) -> dict[int, OltRow]:
        """Read every OLT with its tasks as they are now."""
        return load_olts()

    def calculate_state_hash(self, state: OltRow) -> str:
        """Return the SHA-256 of what matters about an OLT: equal as long as nothing changes."""
        return state_hash(state.view)

    def detect_changes(self, before: OltView | None, state: OltRow) -> list[Change]:
        """List the changes since the last check of the OLT."""
        return detect_changes(before, state.view)

    @transaction.atomic
    def handle_changes(self, state: OltRow, changes: Sequence[Change], now: datetime) -> None:
        """Act on the changes of one OLT, log them, plan again, and store what was seen; all or nothing."""
        log_changes_detected(state.olt_id, state.name, changes)
        for change in changes:
            log_change(state.olt_id, change, act_on(state.olt_id, change, now))
        rebuild_plans([state.olt_id], now)
        values = {"state": to_json(state.view), "state_hash": self.calculate_state_hash(state), "saved_at": now}
        OltState.objects.update_or_create(olt_id=state.olt_id, defaults=values)

    def _count(self, olts: Mapping[int, OltRow], changed: Sequence[int], now: datetime) -> None:
        """Count all quotas once a minute, at an hour's end or after a failed pass; else those that moved."""
        last = self._counted_at
        if (
            last is None
            or self._looked_at is None
            or not last <= now < last + COUNT_ALL
            or hour_of(last) != hour_of(now)
        ):
            refreshed = quotas.refresh_quotas(olts, now, is_all=True)
            self._warn(refreshed)
            violations.raise_violations(refreshed.trackers, olts, now)
            if self._closed_before != hour_of(now).start:
                # Once judged they are not found again, so judging and raising are one transaction.
                with transaction.atomic():
                    violations.raise_violations(quotas.close_stale(now), olts, now)
                self._closed_before = hour_of(now).start
            self._counted_at = now
            return
        ended = Execution.objects.filter(finished_at__gte=self._looked_at, slot_at__isnull=False).order_by()
        moving = {*changed, *ended.values_list("olt_id", flat=True).distinct()}
        moved = {olt_id: olts[olt_id] for olt_id in moving if olt_id in olts}
        if moved:
            self._warn(quotas.refresh_quotas(moved, now, is_all=False))

    def _warn(self, refreshed: quotas.Refreshed) -> None:
        names = load_job_names() if refreshed.warned else {}
        for tracker in refreshed.warned:
            coordinator_logger.log_event(
                EventType.QUOTA_WARNING,
                olt_id=tracker.olt_id,
                level=Level.WARNING,
                task_type=tracker.task_type,
                task=names.get(tracker.task_type, tracker.task_type),
                completed=tracker.quota_completed,
                required=tracker.quota_required,
                hour=tracker.period_start.isoformat(),
            )
