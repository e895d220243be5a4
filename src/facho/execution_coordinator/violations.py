"""Raises a violation for each OLT whose hour fell short, with a report of every slot that was due, and reads reports.

A report may be older than this version, so what it lacks is left out.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Q
from django.utils.functional import Promise
from django.utils.translation import pgettext_lazy

from facho.execution_coordinator.logger import coordinator_logger
from facho.execution_coordinator.models import QuotaTracker, QuotaViolation
from facho.execution_coordinator.quotas import VIOLATED, hour_of_tracker, load_busy_masters, tally_of
from facho.execution_coordinator.state import OltRow
from facho.executions.models import Execution
from facho.executions.run import FAILURES
from facho.hosts.store import polling_pauses
from facho.polling.domain.execution_state import ExecutionState, QueryType
from facho.polling.domain.quota import LossSeverity, SkipReason, Tally, open_slots, severity_of
from facho.polling.domain.schedule import Span, task_type
from facho.snmp_jobs.models import SkipReasons
from facho.snmp_jobs.store import load_job_names, owed_slots

_OUTCOMES = {
    ExecutionState.SUCCESS: "completed",
    ExecutionState.FAILED: "failed",
    ExecutionState.INTERRUPTED: "failed",
    ExecutionState.SKIPPED: "skipped",
}
_RANK = {severity: rank for rank, severity in enumerate(LossSeverity)}
_FIGURES = ("required", "completed", "failed", "skipped", "pending")

OUTCOMES: dict[str, Promise] = {
    "completed": pgettext_lazy("slot", "completed"),
    "failed": pgettext_lazy("slot", "failed"),
    "skipped": pgettext_lazy("slot", "skipped"),
    "pending": pgettext_lazy("slot", "pending"),
}
_SKIPPED: dict[str, str | Promise] = dict(SkipReasons.choices)

# A task type, and what the report holds about one of its slots.
ReportedSlot = tuple[str, dict[str, Any]]


def raise_violations(trackers: Iterable[QuotaTracker], olts: Mapping[int, OltRow], now: datetime) -> None:
    """Record the hours that are over and fell short; each is logged once, and its report kept up to date."""
    short: dict[tuple[int, Span], list[QuotaTracker]] = defaultdict(list)
    for tracker in trackers:
        if tracker.status in VIOLATED and tracker.period_end <= now:
            short[tracker.olt_id, hour_of_tracker(tracker)].append(tracker)
    if not short:
        return
    stored = QuotaViolation.objects.filter(
        olt_id__in={olt_id for olt_id, _hour in short}, period_start__in={hour.start for _olt_id, hour in short}
    )
    known, names = {(row.olt_id, row.period_start): row for row in stored}, load_job_names()
    for (olt_id, hour), found in short.items():
        for tracker in _record(olt_id, hour, found, known.get((olt_id, hour.start)), olts.get(olt_id), now):
            coordinator_logger.log_quota_violation(
                tracker.olt_id,
                tracker.task_type,
                severity_of(tally_of(tracker)).value,
                task=names.get(tracker.task_type, tracker.task_type),
                completed=tracker.quota_completed,
                required=tracker.quota_required,
                hour=tracker.period_start.isoformat(),
            )


def _record(
    olt_id: int,
    hour: Span,
    trackers: Sequence[QuotaTracker],
    known: QuotaViolation | None,
    olt: OltRow | None,
    now: datetime,
) -> list[QuotaTracker]:
    """Store a violation, and return the quotas that its report did not have yet."""
    reported = {task["task_type"]: [task[name] for name in _FIGURES] for task in known.report["tasks"]} if known else {}
    counted = {tracker.task_type: [_summary(tracker)[name] for name in _FIGURES] for tracker in trackers}
    if known is not None and reported == counted:
        return []
    report = build_report(olt_id, hour, trackers, olt, now)
    severity = max((severity_of(tally_of(tracker)) for tracker in trackers), key=_RANK.__getitem__)
    values = {"period_end": hour.end, "report": report, "severity": severity}
    QuotaViolation.objects.update_or_create(
        olt_id=olt_id, period_start=hour.start, defaults=values, create_defaults={**values, "created_at": now}
    )
    return [tracker for tracker in trackers if tracker.task_type not in reported]


def build_report(
    olt_id: int, hour: Span, trackers: Sequence[QuotaTracker], olt: OltRow | None, now: datetime
) -> dict[str, Any]:
    """List every slot of the hour that was due, its outcome and why; as codes and values, for any language."""
    types = {tracker.task_type for tracker in trackers}
    rows = polling_pauses().filter(
        Q(olt__isnull=True) | Q(olt_id=olt_id), starts_at__lt=hour.end, ends_at__gt=hour.start
    )
    pauses = [Span(starts_at, ends_at) for starts_at, ends_at in rows.values_list("starts_at", "ends_at")]
    written = [*_served(olt_id, hour, types, pauses), *_skipped(olt_id, hour, types, pauses)]
    slots = [*written, *_without_row(hour, olt, types, pauses, now)]
    by_type: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for kind, slot in sorted(slots, key=lambda pair: (pair[1]["slot_at"], pair[1]["node_id"] or 0)):
        by_type[kind].append(slot)
    return {
        "hour": hour.start.isoformat(),
        "tasks": [{**_summary(tracker), "slots": by_type[tracker.task_type]} for tracker in trackers],
        "paused": [
            {"from": max(span.start, hour.start).isoformat(), "to": min(span.end, hour.end).isoformat()}
            for span in pauses
        ],
    }


def _summary(tracker: QuotaTracker) -> dict[str, Any]:
    figures = {name: getattr(tracker, f"quota_{name}") for name in _FIGURES}
    return {"task_type": tracker.task_type, "severity": severity_of(tally_of(tracker)).value, **figures}


def _slot(slot_at: datetime, node_id: int | None, outcome: str, reason: str = "", **more: Any) -> dict[str, Any]:
    nothing = {"execution_id": None, "started_at": None, "finished_at": None, "busy_with": ""}
    known = {"slot_at": slot_at.isoformat(), "node_id": node_id, "outcome": outcome, "reason": reason}
    return {**known, **nothing, **more}


def _is_in(spans: Iterable[Span], moment: datetime) -> bool:
    return any(span.contains(moment) for span in spans)


def _served(olt_id: int, hour: Span, types: Collection[str], pauses: Collection[Span]) -> Iterable[ReportedSlot]:
    rows = Execution.objects.filter(
        olt_id=olt_id, slot_at__gte=hour.start, slot_at__lt=hour.end, task_type__in=types
    ).values_list("task_type", "slot_at", "node_id", "status", "failure_kind", "id", "started_at", "finished_at")
    for kind, slot_at, node_id, status, failure_kind, execution_id, started_at, finished_at in rows.order_by():
        outcome = _OUTCOMES.get(ExecutionState(status), "pending")
        times = {
            "started_at": started_at.isoformat() if started_at else None,
            "finished_at": finished_at.isoformat() if finished_at else None,
        }
        if slot_at is not None and not _is_in(pauses, slot_at):
            yield kind, _slot(slot_at, node_id, outcome, failure_kind, execution_id=execution_id, **times)


def _skipped(olt_id: int, hour: Span, types: Collection[str], pauses: Collection[Span]) -> Iterable[ReportedSlot]:
    runs = Execution.objects.filter(olt_id=olt_id, started_at__lt=hour.end, finished_at__gt=hour.start).order_by()
    held = [
        (Span(started_at, finished_at), kind)
        for started_at, finished_at, kind in runs.values_list("started_at", "finished_at", "task_type")
        if started_at and finished_at
    ]
    rows = owed_slots(hour).filter(node__workflow__olt_id=olt_id)
    columns = rows.values_list("node__job__query_type", "node__job__slug", "slot_at", "node_id", "reason")
    for query_type, slug, slot_at, node_id, reason in columns:
        kind = task_type(QueryType(query_type), slug)
        if kind in types and not _is_in(pauses, slot_at):
            holder = next((holder for span, holder in held if span.contains(slot_at)), "")
            busy_with = holder if reason == SkipReason.OLT_BUSY else ""
            yield kind, _slot(slot_at, node_id, "skipped", reason, busy_with=busy_with)


def _without_row(
    hour: Span, olt: OltRow | None, types: Collection[str], pauses: Collection[Span], now: datetime
) -> Iterable[ReportedSlot]:
    """List slots that still wait, and those before them that cannot get a run any more."""
    if olt is None or not olt.enabled:
        return
    masters = {task.node_id: task for task in olt.tasks if task.master_id is None}
    busy = load_busy_masters(olt.olt_id)
    for task in olt.tasks:
        master = masters.get(task.master_id or task.node_id)
        promise = master.promise(is_under_way=master.node_id in busy) if master else None
        if task.task_type not in types or master is None or promise is None or not task.owes_slots:
            continue
        slots = open_slots(promise, hour, now, paused=pauses)
        reason = SkipReason.OLT_UNREACHABLE if olt.is_silent else SkipReason.OLT_BUSY
        if master.first_discovery is not None:
            reason = SkipReason.NO_DISCOVERY
        elif master.node_id in busy:
            reason = SkipReason.OWN_RUN
        for slot_at in slots.lost:
            yield task.task_type, _slot(slot_at, task.node_id, "skipped", reason)
        for slot_at in slots.pending:
            yield task.task_type, _slot(slot_at, task.node_id, "pending")


@dataclass(frozen=True, slots=True)
class Slot:
    """A slot that was due; without an execution nothing ran in it."""

    at: datetime | None
    node_id: int | None
    outcome: str
    why: str
    execution_id: int | None
    started_at: datetime | None
    finished_at: datetime | None

    @property
    def outcome_words(self) -> str:
        return str(OUTCOMES.get(self.outcome, self.outcome))


@dataclass(frozen=True, slots=True)
class TaskReport:
    task_type: str
    severity: str
    required: int
    tally: Tally
    slots: tuple[Slot, ...]

    @property
    def reasons(self) -> list[tuple[str, int]]:
        return Counter(slot.why for slot in self.slots if slot.why).most_common()


@dataclass(frozen=True, slots=True)
class ReportedPause:
    """A part of the hour in which nothing was due."""

    starts_at: datetime | None
    ends_at: datetime | None


@dataclass(frozen=True, slots=True)
class Report:
    tasks: tuple[TaskReport, ...]
    pauses: tuple[ReportedPause, ...]

    @property
    def in_short(self) -> str:
        """The task types that fell short, each with its completed and required runs."""
        return ", ".join(f"{task.task_type} {task.tally.completed}/{task.required}" for task in self.tasks)


def read_report(report: object) -> Report:
    values = report if isinstance(report, Mapping) else {}
    return Report(
        tuple(
            TaskReport(
                task_type=_text(task.get("task_type")),
                severity=_text(task.get("severity")),
                required=_number(task.get("required")) or 0,
                tally=Tally(**{name: _number(task.get(name)) or 0 for name in _FIGURES if name != "required"}),
                slots=tuple(_read_slot(slot) for slot in _mappings(task.get("slots"))),
            )
            for task in _mappings(values.get("tasks"))
        ),
        tuple(
            ReportedPause(read_time(pause.get("from")), read_time(pause.get("to")))
            for pause in _mappings(values.get("paused"))
        ),
    )


def read_time(value: object) -> datetime | None:
    """Read a stored time; one that is missing, has no offset or cannot be read is none."""
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    return moment if moment and moment.tzinfo else None


def _read_slot(slot: Mapping[str, object]) -> Slot:
    reason, busy_with = _text(slot.get("reason")), _text(slot.get("busy_with"))
    words = str(_SKIPPED.get(reason) or FAILURES.get(reason) or reason)
    return Slot(
        at=read_time(slot.get("slot_at")),
        node_id=_number(slot.get("node_id")),
        outcome=_text(slot.get("outcome")),
        why=f"{words}: {busy_with}" if busy_with else words,
        execution_id=_number(slot.get("execution_id")),
        started_at=read_time(slot.get("started_at")),
        finished_at=read_time(slot.get("finished_at")),
    )


def _mappings(value: object) -> list[Mapping[str, object]]:
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []


def _number(value: object) -> int | None:
    return value if isinstance(value, int) else None


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
