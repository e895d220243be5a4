"""Raises a violation for each OLT whose hour fell short, with a report of every slot that was due and its fate."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Q

from facho.execution_coordinator.hour_facts import load_busy_masters
from facho.execution_coordinator.logger import coordinator_logger
from facho.execution_coordinator.models import EventType, Level, QuotaTracker, QuotaViolation
from facho.execution_coordinator.quotas import VIOLATED, tally_of
from facho.execution_coordinator.state import OltRow
from facho.executions.models import Execution
from facho.hosts.models import Pause
from facho.polling.domain.execution_state import ExecutionState
from facho.polling.domain.quota import Severity, SkipReason, Span, open_slots, severity_of
from facho.polling.domain.task_type import QueryType, task_type
from facho.snmp_jobs.models import SkippedSlot

_OUTCOMES = {
    ExecutionState.SUCCESS: "completed",
    ExecutionState.FAILED: "failed",
    ExecutionState.INTERRUPTED: "failed",
    ExecutionState.SKIPPED: "skipped",
}
_RANK = {severity: rank for rank, severity in enumerate(Severity)}


@dataclass(frozen=True, slots=True)
class _Hour:
    """The trackers of one OLT that fell short in one hour."""

    olt_id: int
    span: Span
    trackers: tuple[QuotaTracker, ...]

    @property
    def severity(self) -> Severity:
        return max((severity_of(tally_of(tracker)) for tracker in self.trackers), key=_RANK.__getitem__)


def raise_violations(trackers: Iterable[QuotaTracker], olts: Mapping[int, OltRow], now: datetime) -> int:
    """Record the hours that are over and fell short; one that is known is told once, and its report kept up to date."""
    short = _group(trackers, now)
    known = (
        {
            (row.olt_id, row.period_start): row
            for row in QuotaViolation.objects.filter(
                olt_id__in={hour.olt_id for hour in short}, period_start__in={hour.span.start for hour in short}
            )
        }
        if short
        else {}
    )
    for hour in short:
        _record(hour, known.get((hour.olt_id, hour.span.start)), olts.get(hour.olt_id), now)
    return len(short)


def _group(trackers: Iterable[QuotaTracker], now: datetime) -> list[_Hour]:
    by_hour: dict[tuple[int, datetime, datetime], list[QuotaTracker]] = defaultdict(list)
    for tracker in trackers:
        if tracker.status in VIOLATED and tracker.period_end <= now:
            by_hour[tracker.olt_id, tracker.period_start, tracker.period_end].append(tracker)
    return [_Hour(olt_id, Span(start, end), tuple(found)) for (olt_id, start, end), found in by_hour.items()]


def _record(hour: _Hour, known: QuotaViolation | None, olt: OltRow | None, now: datetime) -> None:
    told = {task["task_type"] for task in known.report["tasks"]} if known else set()
    if known is not None and _is_settled(known, hour):
        return
    report = build_report(hour.olt_id, hour.span, hour.trackers, olt, now)
    values = {"period_end": hour.span.end, "report": report, "severity": hour.severity}
    QuotaViolation.objects.update_or_create(
        olt_id=hour.olt_id, period_start=hour.span.start, defaults=values, create_defaults={**values, "created_at": now}
    )
    for tracker in hour.trackers:
        if tracker.task_type not in told:
            _tell(tracker)


def _is_settled(known: QuotaViolation, hour: _Hour) -> bool:
    """Tell whether the stored report already says what the trackers say."""
    told = {task["task_type"]: _figures(task) for task in known.report["tasks"]}
    return told == {tracker.task_type: _figures(_summary(tracker)) for tracker in hour.trackers}


def _figures(task: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(task[name] for name in ("required", "completed", "failed", "skipped", "pending"))


def _tell(tracker: QuotaTracker) -> None:
    coordinator_logger.log_event(
        EventType.QUOTA_VIOLATION,
        olt_id=tracker.olt_id,
        level=Level.CRITICAL,
        task_type=tracker.task_type,
        severity=severity_of(tally_of(tracker)).value,
        completed=tracker.quota_completed,
        required=tracker.quota_required,
        hour=tracker.period_start.isoformat(),
    )


def build_report(
    olt_id: int, hour: Span, trackers: Sequence[QuotaTracker], olt: OltRow | None, now: datetime
) -> dict[str, Any]:
    """List every slot of the hour that was due, what became of it and why; as codes and values, for any language."""
    types, pauses = {tracker.task_type for tracker in trackers}, _pauses(olt_id, hour)
    written = [*_served(olt_id, hour, types, pauses), *_skipped(olt_id, hour, types, pauses)]
    slots = [*written, *_open(hour, olt, types, pauses, now)]
    by_type: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for kind, slot in sorted(slots, key=lambda pair: (pair[1]["slot_at"], pair[1]["node_id"] or 0)):
        by_type[kind].append(slot)
    return {
        "hour": hour.start.isoformat(),
        "tasks": [{**_summary(tracker), "slots": by_type[tracker.task_type]} for tracker in trackers],
        "paused": _paused(hour, pauses),
    }


def _summary(tracker: QuotaTracker) -> dict[str, Any]:
    return {
        "task_type": tracker.task_type,
        "severity": severity_of(tally_of(tracker)).value,
        "required": tracker.quota_required,
        "completed": tracker.quota_completed,
        "failed": tracker.quota_failed,
        "skipped": tracker.quota_skipped,
        "pending": tracker.quota_pending,
    }


def _slot(slot_at: datetime, node_id: int | None, outcome: str, reason: str = "", **more: Any) -> dict[str, Any]:
    nothing = {"execution_id": None, "started_at": None, "finished_at": None, "busy_with": ""}
    known = {"slot_at": slot_at.isoformat(), "node_id": node_id, "outcome": outcome, "reason": reason}
    return {**known, **nothing, **more}


def _served(
    olt_id: int, hour: Span, types: Collection[str], pauses: Collection[Span]
) -> Iterable[tuple[str, dict[str, Any]]]:
    rows = Execution.objects.filter(
        olt_id=olt_id, slot_at__gte=hour.start, slot_at__lt=hour.end, task_type__in=types
    ).values_list("task_type", "slot_at", "node_id", "status", "failure_kind", "id", "started_at", "finished_at")
    for kind, slot_at, node_id, status, failure_kind, execution_id, started_at, finished_at in rows.order_by():
        outcome = _OUTCOMES.get(ExecutionState(status), "pending")
        times = {"started_at": _iso(started_at), "finished_at": _iso(finished_at)}
        if slot_at is not None and not _is_in(pauses, slot_at):
            yield kind, _slot(slot_at, node_id, outcome, failure_kind, execution_id=execution_id, **times)


def _skipped(
    olt_id: int, hour: Span, types: Collection[str], pauses: Collection[Span]
) -> Iterable[tuple[str, dict[str, Any]]]:
    rows = SkippedSlot.objects.filter(node__workflow__olt_id=olt_id, slot_at__gte=hour.start, slot_at__lt=hour.end)
    runs = _runs_over(olt_id, hour)
    columns = rows.values_list("node__job__query_type", "node__job__slug", "slot_at", "node_id", "reason")
    for query_type, slug, slot_at, node_id, reason in columns.order_by():
        kind = task_type(QueryType(query_type), slug)
        if kind in types and not _is_in(pauses, slot_at):
            busy_with = _holder(runs, slot_at) if reason == SkipReason.OLT_BUSY else ""
            yield kind, _slot(slot_at, node_id, "skipped", reason, busy_with=busy_with)


def _open(
    hour: Span, olt: OltRow | None, types: Collection[str], pauses: Collection[Span], now: datetime
) -> Iterable[tuple[str, dict[str, Any]]]:
    """List what has no row yet: slots that wait to this moment, and those before them that can get no run any more."""
    if olt is None or not olt.enabled:
        return
    masters = {task.node_id: task for task in olt.tasks if task.master_id is None}
    busy = load_busy_masters(olt.olt_id)
    for task in olt.tasks:
        master = masters.get(task.master_id or task.node_id)
        promise = master.promise(is_under_way=master.node_id in busy) if master else None
        if task.task_type not in types or master is None or promise is None:
            continue
        slots = open_slots(promise, hour, now, paused=pauses)
        reason = _reason(olt, is_busy=master.node_id in busy)
        for slot_at in slots.lost:
            yield task.task_type, _slot(slot_at, task.node_id, "skipped", reason)
        for slot_at in slots.pending:
            yield task.task_type, _slot(slot_at, task.node_id, "pending")


def _reason(olt: OltRow, *, is_busy: bool) -> SkipReason:
    if is_busy:
        return SkipReason.OWN_RUN
    return SkipReason.OLT_UNREACHABLE if olt.is_silent else SkipReason.OLT_BUSY


def _runs_over(olt_id: int, hour: Span) -> list[tuple[Span, str]]:
    """Load what held the OLT during the hour, to name it."""
    rows = Execution.objects.filter(olt_id=olt_id, started_at__lt=hour.end, finished_at__gt=hour.start).order_by()
    return [
        (Span(started_at, finished_at), kind)
        for started_at, finished_at, kind in rows.values_list("started_at", "finished_at", "task_type")
        if started_at and finished_at
    ]


def _holder(runs: Iterable[tuple[Span, str]], moment: datetime) -> str:
    return next((kind for span, kind in runs if span.contains(moment)), "")


def _pauses(olt_id: int, hour: Span) -> list[Span]:
    rows = Pause.objects.filter(Q(olt__isnull=True) | Q(olt_id=olt_id), starts_at__lt=hour.end, ends_at__gt=hour.start)
    return [Span(starts_at, ends_at) for starts_at, ends_at in rows.values_list("starts_at", "ends_at")]


def _is_in(spans: Iterable[Span], moment: datetime) -> bool:
    return any(span.contains(moment) for span in spans)


def _paused(hour: Span, pauses: Iterable[Span]) -> list[dict[str, str]]:
    return [
        {"from": max(span.start, hour.start).isoformat(), "to": min(span.end, hour.end).isoformat()} for span in pauses
    ]


def _iso(moment: datetime | None) -> str | None:
    return moment.isoformat() if moment else None
