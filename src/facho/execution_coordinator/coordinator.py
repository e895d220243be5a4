"""Watches every OLT: finds what changed since the last pass, acts on it, and keeps quotas counted and plans made.

It starts no run; the scheduler does. Its memory is in the database, so a pass that dies is repeated.

One plan per OLT and hour is ACTIVE: the runs that the schedule will bring, for this hour and the next.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from operator import attrgetter, itemgetter
from typing import Any, TypeVar

from django.conf import settings
from django.db import transaction
from django.db.models import Count, DateTimeField, Q, QuerySet

from facho.execution_coordinator import quotas, violations
from facho.execution_coordinator.feasibility import Length, composites_of, load_going, load_lengths, masters_of
from facho.execution_coordinator.logger import coordinator_logger, log_executions
from facho.execution_coordinator.models import EventType, ExecutionPlan, Level, OltState, PlanStatus
from facho.execution_coordinator.quotas import load_pauses
from facho.execution_coordinator.state import OltRow, OltRows, load_olts
from facho.executions import store as executions
from facho.executions.models import Execution
from facho.executions.store import end_abandoned
from facho.infrastructure.statements import Given, Select
from facho.polling.domain.changes import (
    Change,
    ChangeType,
    OltView,
    detect_changes,
    from_json,
    state_hash,
    to_json,
)
from facho.polling.domain.execution_state import TERMINAL, ExecutionState
from facho.polling.domain.feasibility import Load, PredictedRun, overlap_seconds_per_hour, predict_runs, repack
from facho.polling.domain.schedule import Span, hour_of
from facho.snmp_jobs import store as snmp_jobs
from facho.snmp_jobs.models import WorkflowNode
from facho.zabbix_pollers.store import release_as_seen

ONCE_IN = timedelta(hours=1)
# Less is noise: lengths vary from run to run, and now and then two runs may well meet.
WORTH_SECONDS_PER_HOUR = 60.0
# Room between runs, so that one that takes a little longer needs no new packing.
ROOM_SHARE, ROOM_SECONDS = 1.2, 2.0
# Counts are a minute apart and overlap, so that a late pass misses nothing.
ENDED_LATELY = timedelta(seconds=130)
PLANS_PER_PASS = 200
# Each takes nearly a kB as JSON and as objects, and a process keeps the memory of its largest part.
RUNS_AT_ONCE = 2_000
# At the turn of an hour all OLTs need a plan; a pass makes so many, so that nothing else waits for them.
OLTS_PER_PASS = 20
# Counts of plans may be a minute old: only passes in the seconds after half a minute count.
COUNTING_FROM, COUNTING_SECONDS = 30, 10

T = TypeVar("T")


def repack_olts(olt_ids: Collection[int], now: datetime) -> dict[int, int]:
    """Move the grids of these OLTs' masters apart where that helps; returns how many moved, by OLT.

    Only the offset is written, and the next run stays where it is (decision D12). An OLT that the coordinator has
    not remembered yet waits. The caller's transaction holds the moves together with when they were made.
    """
    states = OltState.objects.filter(olt_id__in=olt_ids).exclude(packed_at__gt=now - ONCE_IN).order_by("olt_id")
    # Held until the transaction ends, so that no other process moves them meanwhile.
    wanted = list(states.select_for_update().values_list("olt_id", flat=True))
    if not wanted:
        return {}
    lengths = load_lengths(wanted)
    moved: dict[int, int] = {}
    for olt_id, olt in load_olts(wanted).items():
        loads = _loads(olt, lengths)
        roomy = [
            replace(load, seconds=load.seconds * ROOM_SHARE + ROOM_SECONDS) if load.seconds else load for load in loads
        ]
        offsets = repack(roomy)
        packed = [replace(load, offset_seconds=offsets.get(load.node_id, load.offset_seconds)) for load in loads]
        if overlap_seconds_per_hour(loads) - overlap_seconds_per_hour(packed) >= WORTH_SECONDS_PER_HOUR:
            count = sum(_save_offset(load, offsets[load.node_id], now) for load in loads if load.node_id in offsets)
            moved |= {olt_id: count} if count else {}
    OltState.objects.filter(olt_id__in=moved).update(packed_at=now)
    return moved


def _loads(olt: OltRow, lengths: Mapping[int, Length]) -> list[Load]:
    """Return what is on a grid; a job that follows the end of its runs is not."""
    composites = composites_of(olt, lengths)
    return [composite.as_load for composite in composites if not composite.task.grid.is_fixed_delay]


def _save_offset(load: Load, offset_seconds: int, now: datetime) -> int:
    """Write the offset unless the node's schedule was changed meanwhile."""
    as_seen = WorkflowNode.objects.filter(
        id=load.node_id, interval_seconds=load.interval_seconds, offset_seconds=load.offset_seconds
    )
    return snmp_jobs.change_nodes(as_seen, snmp_jobs.NodeChange(offset_seconds=offset_seconds), now=now)


def close_plans(now: datetime) -> None:
    """Complete plans whose hour is over, a limited number per pass; a run that ends later still counts."""
    over = ExecutionPlan.objects.filter(status=PlanStatus.ACTIVE, period_end__lte=now).order_by("period_start", "id")
    for plans in _load_in_parts(over.values_list("id", "total_tasks")[:PLANS_PER_PASS]):
        for plan in plans:
            plan.status = PlanStatus.COMPLETED
        _count(plans)
        ExecutionPlan.objects.bulk_update(plans, ["status", "completed_tasks", "failed_tasks"])


def count_lately_ended(now: datetime) -> None:
    """Count the plans of the runs that ended in the last minutes; one query when none did."""
    ended = Execution.objects.filter(
        finished_at__gte=now - ENDED_LATELY, slot_at__isnull=False, master_execution__isnull=True
    ).order_by()
    touched = {
        (olt_id, hour_of(slot_at).start) for olt_id, slot_at in ended.values_list("olt_id", "slot_at") if slot_at
    }
    if not touched:
        return
    rows = ExecutionPlan.objects.filter(
        olt_id__in={olt_id for olt_id, _ in touched},
        period_start__in={start for _, start in touched},
        status__in=[PlanStatus.ACTIVE, PlanStatus.COMPLETED],
    ).values_list("id", "total_tasks", "olt_id", "period_start")
    for plans in _load_in_parts((plan_id, runs) for plan_id, runs, *which in rows if tuple(which) in touched):
        ExecutionPlan.objects.bulk_update(_count(plans), ["completed_tasks", "failed_tasks"])


def in_parts(items: Iterable[T], runs_of: Callable[[T], int]) -> Iterator[list[T]]:
    """Split plans, or what stands for them, into parts whose runs fit into memory."""
    part: list[T] = []
    room = RUNS_AT_ONCE
    for item in items:
        if part and runs_of(item) > room:
            yield part
            part, room = [], RUNS_AT_ONCE
        part.append(item)
        room -= runs_of(item)
    if part:
        yield part


def _load_in_parts(sizes: Iterable[tuple[int, int]]) -> Iterator[list[ExecutionPlan]]:
    for part in in_parts(sizes, itemgetter(1)):
        yield list(ExecutionPlan.objects.filter(id__in=[plan_id for plan_id, _runs in part]))


def _count(plans: Collection[ExecutionPlan]) -> list[ExecutionPlan]:
    """Set, without saving, the counts of these plans; returns those whose counts changed."""
    outcomes, changed = _load_outcomes(plans), []
    for plan in plans:
        before = plan.completed_tasks, plan.failed_tasks
        found = [outcomes.get((run["node_id"], run["slot_at"])) for run in plan.plan_data]
        states = [state for state in found if state is not None]
        plan.completed_tasks = states.count(ExecutionState.SUCCESS)
        # A run that had nothing to ask did not fail.
        plan.failed_tasks = len(states) - plan.completed_tasks - states.count(ExecutionState.SKIPPED)
        if before != (plan.completed_tasks, plan.failed_tasks):
            changed.append(plan)
    return changed


def _load_outcomes(plans: Collection[ExecutionPlan]) -> Mapping[tuple[int, str], ExecutionState]:
    if not plans:
        return {}
    rows = Execution.objects.filter(
        olt_id__in={plan.olt_id for plan in plans},
        slot_at__gte=min(plan.period_start for plan in plans),
        slot_at__lt=max(plan.period_end for plan in plans),
        master_execution__isnull=True,
        status__in=sorted(TERMINAL),
        node__isnull=False,
    ).order_by()
    return {
        (node_id or 0, slot_at.isoformat()): ExecutionState(status)
        for node_id, slot_at, status in rows.values_list("node_id", "slot_at", "status")
        if slot_at
    }


_ACTIVE = Select(
    lambda: (
        ExecutionPlan.objects.filter(status=PlanStatus.ACTIVE, olt__enabled=True)
        .order_by()
        .values_list("period_start")
        .annotate(Count("id"))
    )
)


def keep_plans(olts: Mapping[int, OltRow], now: datetime) -> None:
    """Have a plan for this hour and the next of every enabled OLT with tasks, and close those of hours gone by."""
    hours = _hours(now)
    found: dict[datetime, int] = dict(_ACTIVE.rows())
    wanted = [olt_id for olt_id, olt in olts.items() if olt.enabled and olt.tasks]
    if any(start < hours[0].start for start in found):
        close_plans(now)
    if any(found.get(hour.start, 0) < len(wanted) for hour in hours):
        starts = {hour.start for hour in hours}
        plans = ExecutionPlan.objects.filter(status=PlanStatus.ACTIVE, period_start__in=starts).order_by()
        known = set(plans.values_list("olt_id", "period_start"))
        missing = [olt_id for olt_id in wanted if any((olt_id, start) not in known for start in starts)]
        for plan, moved in _make(missing[:OLTS_PER_PASS], hours, now, known):
            _log(EventType.PLAN_CREATED, Level.DEBUG, plan, moved)
            if moved and plan.period_start <= now:
                _log(EventType.PLAN_ADJUSTED, Level.INFO, plan, moved)
    # Of passes that are further apart one must fall into that time.
    if (now.second - COUNTING_FROM) % 60 < max(COUNTING_SECONDS, settings.FACHO_COORDINATOR_SECONDS):
        count_lately_ended(now)


@transaction.atomic
def rebuild_plans(olt_ids: Iterable[int], now: datetime) -> None:
    """Replace the plans of OLTs that changed; one without work gets none, without a plan it waits for the next pass."""
    olts = load_olts(list(olt_ids))
    had = set(_active(olts, now).values_list("olt_id", flat=True))
    if not had:
        return
    enabled = [olt_id for olt_id in had if olts[olt_id].enabled]
    _active(enabled, now).update(status=PlanStatus.SUPERSEDED)
    _active(had, now).update(status=PlanStatus.ABORTED)
    for plan, moved in _make(enabled, _hours(now), now):
        if plan.period_start <= now:
            _log(EventType.PLAN_ADJUSTED, Level.INFO, plan, moved)


def _hours(now: datetime) -> tuple[Span, Span]:
    hour = hour_of(now)
    return hour, hour_of(hour.end)


def _active(olt_ids: Iterable[int], now: datetime) -> QuerySet[ExecutionPlan]:
    return ExecutionPlan.objects.filter(olt_id__in=list(olt_ids), status=PlanStatus.ACTIVE, period_end__gt=now)


def _make(
    olt_ids: Collection[int], hours: tuple[Span, Span], now: datetime, known: Collection[tuple[int, datetime]] = ()
) -> Iterator[tuple[ExecutionPlan, int]]:
    """Predict and write what is not known yet, and yield it with the number of grids that moved for it.

    Where runs would wait for each other long enough, their grids move apart first.
    """
    lengths = load_lengths(olt_ids)
    olts = {olt_id: olt for olt_id, olt in load_olts(list(olt_ids)).items() if olt.tasks}
    overlaps = {olt_id: overlap_seconds_per_hour(_loads(olt, lengths)) for olt_id, olt in olts.items()}
    colliding = [olt_id for olt_id, seconds in overlaps.items() if seconds >= WORTH_SECONDS_PER_HOUR]
    moved: dict[int, int] = {}
    if colliding:
        with transaction.atomic():
            moved = repack_olts(colliding, now)
            # Their plans have the slots where they were.
            _active(moved, now).update(status=PlanStatus.SUPERSEDED)
    olts |= load_olts(list(moved))
    valid = {(olt_id, start) for olt_id, start in known if olt_id not in moved}
    drafts = _predict(list(olts.values()), lengths, hours, now, valid)
    for plans in in_parts(drafts, attrgetter("total_tasks")):
        ExecutionPlan.objects.bulk_create(plans, ignore_conflicts=True)
        for plan in plans:
            yield plan, moved.get(plan.olt_id, 0)


def _predict(
    olts: Collection[OltRow],
    lengths: Mapping[int, Length],
    hours: tuple[Span, Span],
    now: datetime,
    known: Collection[tuple[int, datetime]],
) -> Iterable[ExecutionPlan]:
    """Draft what is not known: of an OLT, the predicted runs whose slots lie in an hour."""
    masters = {olt.olt_id: masters_of(composites_of(olt, lengths)) for olt in olts}
    by_node = {master.node_id: master for of_olt in masters.values() for master in of_olt}
    going = load_going([olt.olt_id for olt in olts], by_node)
    pauses = load_pauses(Span(now, hours[-1].end))
    for olt in olts:
        runs = predict_runs(
            masters[olt.olt_id],
            now=now,
            until=hours[-1].end,
            going=going.get(olt.olt_id, ()),
            paused=[*pauses.get(None, ()), *pauses.get(olt.olt_id, ())],
            yield_after_seconds=settings.FACHO_YIELD_SECONDS,
        )
        task_types = {task.node_id: task.task_type for task in olt.tasks}
        for hour in hours:
            if (olt.olt_id, hour.start) not in known:
                data = [_entry(run, task_types) for run in runs if hour.contains(run.slot_at)]
                yield ExecutionPlan(
                    olt_id=olt.olt_id,
                    period_start=hour.start,
                    period_end=hour.end,
                    plan_data=data,
                    total_tasks=len(data),
                )


def _entry(run: PredictedRun, task_types: Mapping[int, str]) -> dict[str, Any]:
    """Return a run as JSON: its length is that of master and chain, and null while the master's is not known."""
    master = run.master
    return {
        "node_id": master.node_id,
        "task_type": task_types[master.node_id],
        "slot_at": run.slot_at.isoformat(),
        "starts_at": run.starts_at.isoformat(),
        "seconds": None if master.seconds is None else round(master.composite_seconds, 1),
        "members": [
            {
                "node_id": member.node_id,
                "task_type": task_types[member.node_id],
                "seconds": None if member.seconds is None else round(member.seconds, 1),
            }
            for member in master.members
        ],
    }


def _log(event_type: EventType, level: Level, plan: ExecutionPlan, moved: int) -> None:
    hour = plan.period_start.isoformat()
    coordinator_logger.log_event(
        event_type, olt_id=plan.olt_id, level=level, runs=plan.total_tasks, hour=hour, moved=moved
    )


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
        snmp_jobs.take_off_grid(WorkflowNode.objects.filter(id=task.node_id, enabled=False), now)
        return aborted
    if change.type is ChangeType.OLT_DISABLED:
        which = Q(olt_id=olt_id)
        aborted = _load_aborted(which, Q(), now)
        _abort(which, "its OLT was disabled", now)
        for execution_id in Execution.objects.filter(which, status=ExecutionState.RUNNING).values_list("id", flat=True):
            executions.request_cancel(execution_id, now=now)
        snmp_jobs.take_off_grid(WorkflowNode.objects.filter(workflow__olt_id=olt_id), now)
        return aborted
    return []


def start_timeless(olts: Iterable[OltRow], now: datetime) -> int:
    """Put masters without a time on their grid, however they or their OLT were enabled; returns how many."""
    tasks = [task for olt in olts if olt.enabled for task in olt.tasks]
    timeless = [task.node_id for task in tasks if task.next_run_at is None and task.master_id is None]
    nodes = WorkflowNode.objects.filter(id__in=timeless, next_run_at__isnull=True)
    return snmp_jobs.give_first_slots(nodes, now) if timeless else 0


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


def log_change(olt_id: int, change: Change, aborted: Sequence[AbortedRun] = ()) -> None:
    """Log a change of an OLT with the runs that it ended; one that went silent makes its plan worthless."""
    values: dict[str, Any] = {}
    if task := change.task:
        # A task is called by its job; where the node is gone, by the job that has its type, else by its code.
        names = WorkflowNode.objects.filter(id=task.node_id).values_list("job__name", flat=True)
        name = names.first() or snmp_jobs.load_job_names().get(task.task_type, task.task_type)
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


_KNOWN = Select(lambda: OltState.objects.order_by().values_list("olt_id", "state_hash"))
_ENDED = Select(
    lambda: (
        Execution.objects.filter(finished_at__gte=Given("since", DateTimeField()), slot_at__isnull=False)
        .order_by()
        .values_list("olt_id")
        .distinct()
    )
)


class ExecutionCoordinator:
    """One pass every few seconds over all OLTs."""

    def __init__(self) -> None:
        self._looked_at: datetime | None = None
        self._counted_at: datetime | None = None
        self._closed_before: datetime | None = None
        # Of each OLT what was seen last, with its hash.
        self._hashes: dict[int, tuple[OltRow, OltView, str]] = {}
        self._rows = OltRows()

    def run_pass(self, now: datetime) -> None:
        """Look at everything once: changes, quotas, violations, plans, and executions that started or ended."""
        snmp_jobs.pass_suspended(now)
        olts = self.get_system_state()
        stuck = [task.node_id for olt in olts.values() for task in olt.tasks if task.is_stuck(now)]
        if stuck:
            snmp_jobs.pass_undiscovered(stuck, now)
        if start_timeless(olts.values(), now) or stuck:
            olts = self.get_system_state()
        # Handle each OLT that changed; an error in one does not stop the others.
        hashes: dict[int, str] = dict(_KNOWN.rows())
        changed = [olt_id for olt_id, state in olts.items() if hashes.get(olt_id) != self.calculate_state_hash(state)]
        for olt_id in changed:
            try:
                before = OltState.objects.filter(olt_id=olt_id).first()
                view = from_json(before.state) if before else None
                self.handle_changes(olts[olt_id], self.detect_changes(view, olts[olt_id]), now)
            except Exception:  # a loop guard: one OLT that cannot be handled must not stop the others
                logger.exception("coordinator.olt_failed olt=%s", olt_id)
        self._count(self.get_system_state() if changed else olts, changed, now)
        keep_plans(olts, now)
        log_executions(self._looked_at, now)
        self._looked_at = now

    def get_system_state(self) -> dict[int, OltRow]:
        return self._rows.load()

    def calculate_state_hash(self, state: OltRow) -> str:
        """Return the SHA-256 of what matters about an OLT: equal as long as nothing changes."""
        known = self._hashes.get(state.olt_id)
        if known is None or known[0] is not state:
            view = state.view
            known = state, view, known[2] if known and known[1] == view else state_hash(view)
            self._hashes[state.olt_id] = known
        return known[2]

    def detect_changes(self, before: OltView | None, state: OltRow) -> list[Change]:
        return detect_changes(before, state.view)

    @transaction.atomic
    def handle_changes(self, state: OltRow, changes: Sequence[Change], now: datetime) -> None:
        """Act on the changes of one OLT, log them, plan again, and store what was seen; all or nothing."""
        if changes:
            kinds = ", ".join(change.type for change in changes)
            coordinator_logger.log_event(EventType.CHANGES_DETECTED, olt_id=state.olt_id, olt=state.name, changes=kinds)
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
        moving = {*changed, *(olt_id for (olt_id,) in _ENDED.rows(since=self._looked_at))}
        moved = {olt_id: olts[olt_id] for olt_id in moving if olt_id in olts}
        if moved:
            self._warn(quotas.refresh_quotas(moved, now, is_all=False))

    def _warn(self, refreshed: quotas.Refreshed) -> None:
        names = snmp_jobs.load_job_names() if refreshed.warned else {}
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
