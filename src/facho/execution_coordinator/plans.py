"""Keeps one ACTIVE plan per OLT and hour: the runs that the schedule will bring, for this hour and the next.

Nothing is remembered between two passes: what is missing, over or due for a count is seen in the database.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Count, QuerySet

from facho.execution_coordinator.durations import Length, load_lengths
from facho.execution_coordinator.hour_facts import load_pauses
from facho.execution_coordinator.logger import coordinator_logger
from facho.execution_coordinator.models import EventType, ExecutionPlan, Level, PlanStatus
from facho.execution_coordinator.packing import collides, repack_olts
from facho.execution_coordinator.plan_progress import close_plans, count_lately_ended
from facho.execution_coordinator.state import OltRow, load_olts
from facho.execution_coordinator.workload import composites_of, load_going, masters_of
from facho.polling.domain.prediction import PredictedRun, predict_runs
from facho.polling.domain.quota import Span, hour_of

# What one pass makes at most: at the turn of an hour all OLTs need a plan, and nothing else must wait for them.
OLTS_PER_PASS = 20
# Who looks at a plan can wait a minute for its counts: only passes of these seconds of each minute bring them.
COUNTING_SECONDS = range(30, 40)


@dataclass(frozen=True, slots=True)
class _Draft:
    """The predicted runs of an OLT whose slots lie in an hour, and how many of its grids moved for it."""

    olt: OltRow
    hour: Span
    runs: tuple[PredictedRun, ...]
    moved: int = 0


def keep_plans(olts: Mapping[int, OltRow], now: datetime) -> None:
    """Have a plan for this hour and the next of every enabled OLT with tasks, so that 60 minutes are always covered.

    Plans of hours gone by are closed. One statement when there is nothing to do.
    """
    hours = _hours(now)
    active = ExecutionPlan.objects.filter(status=PlanStatus.ACTIVE, olt__enabled=True).order_by()
    found = dict(active.values_list("period_start").annotate(Count("id")))
    wanted = [olt_id for olt_id, olt in olts.items() if olt.enabled and olt.tasks]
    if any(start < hours[0].start for start in found):
        close_plans(now)
    if any(found.get(hour.start, 0) < len(wanted) for hour in hours):
        _make_missing(wanted, hours, now)
    if now.second in COUNTING_SECONDS:
        count_lately_ended(now)


@transaction.atomic
def rebuild_plans(olt_ids: Iterable[int], now: datetime) -> None:
    """Replace the plans of OLTs that changed; one without work gets none. Who had none gets one in the next pass."""
    olts = load_olts(list(olt_ids))
    had = set(_active(olts, now).values_list("olt_id", flat=True))
    if not had:
        return
    enabled = [olt_id for olt_id in had if olts[olt_id].enabled]
    _active(enabled, now).update(status=PlanStatus.SUPERSEDED)
    _active(had, now).update(status=PlanStatus.ABORTED)
    for draft in _make(enabled, _hours(now), now):
        if draft.hour.contains(now):
            _log(EventType.PLAN_ADJUSTED, Level.INFO, draft)


def _hours(now: datetime) -> tuple[Span, Span]:
    hour = hour_of(now)
    return hour, hour_of(hour.end)


def _active(olt_ids: Iterable[int], now: datetime) -> QuerySet[ExecutionPlan]:
    """Select the plans of these OLTs that are not over."""
    return ExecutionPlan.objects.filter(olt_id__in=list(olt_ids), status=PlanStatus.ACTIVE, period_end__gt=now)


def _make_missing(wanted: Collection[int], hours: tuple[Span, Span], now: datetime) -> None:
    starts = {hour.start for hour in hours}
    plans = ExecutionPlan.objects.filter(status=PlanStatus.ACTIVE, period_start__in=starts).order_by()
    known = set(plans.values_list("olt_id", "period_start"))
    missing = [olt_id for olt_id in wanted if any((olt_id, start) not in known for start in starts)]
    for draft in _make(missing[:OLTS_PER_PASS], hours, now, known):
        _log(EventType.PLAN_CREATED, Level.DEBUG, draft)
        if draft.moved and draft.hour.contains(now):
            _log(EventType.PLAN_ADJUSTED, Level.INFO, draft)


def _make(
    olt_ids: Collection[int], hours: tuple[Span, Span], now: datetime, known: Collection[tuple[int, datetime]] = ()
) -> list[_Draft]:
    """Predict and write what is not known yet; where runs would wait for each other, their grids move apart first."""
    lengths = load_lengths(olt_ids)
    olts = {olt_id: olt for olt_id, olt in load_olts(list(olt_ids)).items() if olt.tasks}
    colliding = [olt_id for olt_id, olt in olts.items() if collides(olt, lengths)]
    moved = _move_apart(colliding, now) if colliding else {}
    olts |= load_olts(list(moved))
    drafts = [
        replace(draft, moved=moved.get(draft.olt.olt_id, 0))
        for draft in _predict(list(olts.values()), lengths, hours, now)
        if draft.olt.olt_id in moved or (draft.olt.olt_id, draft.hour.start) not in known
    ]
    ExecutionPlan.objects.bulk_create([_plan(draft) for draft in drafts], ignore_conflicts=True, batch_size=500)
    return drafts


@transaction.atomic
def _move_apart(olt_ids: Collection[int], now: datetime) -> dict[int, int]:
    """Move grids, and drop the plans that have the slots where they were; returns how many moved, by OLT."""
    moved = repack_olts(olt_ids, now)
    _active(moved, now).update(status=PlanStatus.SUPERSEDED)
    return moved


def _predict(
    olts: Collection[OltRow], lengths: Mapping[int, Length], hours: tuple[Span, Span], now: datetime
) -> Iterable[_Draft]:
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
        for hour in hours:
            yield _Draft(olt, hour, tuple(run for run in runs if hour.contains(run.slot_at)))


def _plan(draft: _Draft) -> ExecutionPlan:
    task_types = {task.node_id: task.task_type for task in draft.olt.tasks}
    return ExecutionPlan(
        olt_id=draft.olt.olt_id,
        period_start=draft.hour.start,
        period_end=draft.hour.end,
        plan_data=[_entry(run, task_types) for run in draft.runs],
        total_tasks=len(draft.runs),
    )


def _entry(run: PredictedRun, task_types: Mapping[int, str]) -> dict[str, Any]:
    """Write a run down: its length is that of master and chain, and null while the master's is not known."""
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


def _log(event_type: EventType, level: Level, draft: _Draft) -> None:
    coordinator_logger.log_event(
        event_type,
        olt_id=draft.olt.olt_id,
        level=level,
        runs=len(draft.runs),
        hour=draft.hour.start.isoformat(),
        moved=draft.moved,
    )
