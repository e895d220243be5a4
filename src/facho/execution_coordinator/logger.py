"""The coordinator's log: what it decided and why, as codes and values in a table and as lines in a file."""

import json
import logging
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.conf import settings
from django.db import connection, transaction
from django.db.models import BigIntegerField, DateTimeField, Exists, F, OuterRef, Q, QuerySet
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast
from django.db.transaction import TransactionManagementError
from django.utils import translation
from django.utils.functional import Promise
from django.utils.text import capfirst
from django.utils.timezone import localtime
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from facho.execution_coordinator.log_handlers import Entry, Value, one_line
from facho.execution_coordinator.models import CoordinatorLog, EventType, Level
from facho.executions.models import Execution, Origin
from facho.executions.run import FAILURES_IN_SHORT, explain_failure
from facho.hosts.models import Olt
from facho.infrastructure.bulk import insert_values
from facho.infrastructure.statements import Given, Select
from facho.polling.domain.changes import ChangeType
from facho.polling.domain.execution_state import ExecutionState, FailureKind
from facho.polling.domain.onu_presence import Sign
from facho.zabbix_pollers.models import LeaderLease

logger = logging.getLogger(__name__)

# Another process writes an end: its clock may differ, and the row is seen when its transaction is over.
SEEN_WITHIN = timedelta(minutes=2)
# A log without executions begins with those of the last hour.
FIRST_LOOK = timedelta(hours=1)
# What one transaction writes at most: on SQLite all others wait for it.
BATCH = 500

_ENDS = {
    ExecutionState.SUCCESS: (EventType.EXECUTION_COMPLETED, Level.DEBUG),
    ExecutionState.FAILED: (EventType.EXECUTION_FAILED, Level.ERROR),
    ExecutionState.INTERRUPTED: (EventType.EXECUTION_ABORTED, Level.WARNING),
}


class _Logged(NamedTuple):
    id: int
    olt_id: int
    olt__name: str
    node_id: int | None
    task_type: str
    node__job__name: str | None
    status: str
    slot_at: datetime | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    duration_ms: int
    failure_kind: str
    error: str
    result: dict[str, Any] | None
    is_start_logged: bool


class _LogEntry(NamedTuple):
    """A row of the log, by the columns that it is written with."""

    olt: int
    event_type: EventType
    level: Level
    message: str
    details: Any
    timestamp: datetime


# Of each event the sentences that say most come first; the first whose values are all there is taken.
_SENTENCES: dict[str, tuple[Promise, ...]] = {
    EventType.TASK_ADDED: (
        _("Task '%(task_type)s' added to the plan, every %(interval_seconds)s s"),
        _("Task '%(task_type)s' added to the plan"),
    ),
    EventType.TASK_REMOVED: (_("Task '%(task_type)s' removed from the plan"),),
    EventType.CHANGES_DETECTED: (_("Changes detected in %(olt)s"),),
    EventType.TASK_MODIFIED: (
        _("Task '%(task_type)s' runs every %(interval_seconds)s s, before every %(interval_before_seconds)s s"),
        _("Task '%(task_type)s' runs every %(interval_seconds)s s, before in a chain"),
        _("Task '%(task_type)s' runs in a chain, before every %(interval_before_seconds)s s"),
        _("Task '%(task_type)s' modified"),
    ),
    EventType.PLAN_CREATED: (_("Plan from %(hour)s created, runs: %(runs)s"),),
    EventType.PLAN_ADJUSTED: (_("Plan from %(hour)s adjusted, runs: %(runs)s"),),
    EventType.EXECUTION_STARTED: (_("Execution of '%(task_type)s' started"),),
    EventType.EXECUTION_COMPLETED: (_("Execution of '%(task_type)s' completed"),),
    EventType.EXECUTION_FAILED: (
        _("Execution of '%(task_type)s' failed: %(reason)s"),
        _("Execution of '%(task_type)s' failed"),
    ),
    EventType.EXECUTION_ABORTED: (
        _("Execution of '%(task_type)s' aborted, its slot of %(slot)s is lost: %(reason)s"),
        _("Execution of '%(task_type)s' aborted: %(reason)s"),
        _("Execution of '%(task_type)s' aborted"),
    ),
    EventType.QUOTA_WARNING: (
        _("The quota of '%(task_type)s' will be missed: %(completed)s of %(required)s so far, hour from %(hour)s"),
        _("The quota of '%(task_type)s' will be missed"),
    ),
    EventType.QUOTA_VIOLATION: (
        _("Quota violation [%(severity)s]: %(task_type)s, %(completed)s of %(required)s, hour from %(hour)s"),
        _("Quota violation [%(severity)s]: %(task_type)s"),
    ),
    EventType.OLT_ENABLED: (_("The OLT was enabled"),),
    EventType.OLT_DISABLED: (
        _("The OLT was disabled, runs aborted: %(aborted)s"),
        _("The OLT was disabled: its runs were aborted"),
    ),
    EventType.OLT_UNREACHABLE: (_("The OLT does not answer"),),
    EventType.OLT_BACK: (_("The OLT answers again"),),
    EventType.EMERGENCY_REPLAN: (_("Emergency replan: %(reason)s"),),
}

# Values that are times, and how they are written.
_TIMES = {"hour": "%Y-%m-%d %H:%M", "slot": "%Y-%m-%d %H:%M:%S"}

# Reasons that are codes; any other is free text.
_REASONS: dict[str, Promise] = {
    ChangeType.OLT_UNREACHABLE: _("the OLT does not answer"),
    # What is stored with an execution that is broken off.
    "cancelled": _("cancelled"),
    "its OLT was disabled": _("its OLT was disabled"),
    "its node or its OLT no longer runs": _("its node or its OLT no longer runs"),
    "its owner is gone": _("the process that ran it is gone"),
    "its task was disabled": _("its task was disabled"),
    "no worker took it": _("no worker took it"),
    "the engine was stopped": _("the engine was stopped"),
}


def describe(event_type: str, details: object) -> str:
    """Describe on one line what happened. Plain text, whatever the values hold: a page has to escape it."""
    words: dict[str, str] = {}
    if isinstance(details, Mapping):
        words = {str(name): _text(value) for name, value in details.items() if value is not None}
    if "task" in words:
        # A task is called by the name that people gave its job; older entries have its code alone.
        words["task_type"] = words["task"]
    for name in _TIMES.keys() & words.keys():
        with suppress(ValueError, OverflowError):
            words[name] = f"{localtime(datetime.fromisoformat(words[name])):{_TIMES[name]}}"
    if "reason" in words:
        in_short = FAILURES_IN_SHORT.get(words.get("failure_kind", ""), words["reason"])
        words["reason"] = str(_REASONS.get(words["reason"], in_short))
        if words.get("failure_kind") == FailureKind.HIDDEN_ONUS and isinstance(details, Mapping):
            words["reason"] = explain_failure(FailureKind.HIDDEN_ONUS, details)
    for sentence in _SENTENCES.get(event_type, ()):
        with suppress(KeyError):
            return str(sentence) % words
    labels: dict[str, str | Promise] = dict(EventType.choices)
    return capfirst(str(labels.get(event_type, one_line(event_type))))


def _text(value: object) -> str:
    """Write a value; a list of runs as their names."""
    if not isinstance(value, list):
        return one_line(value)
    names = [str(run.get("task", "")) for run in value if isinstance(run, Mapping)]
    return one_line(", ".join(names)) if names else str(pgettext_lazy("runs", "none"))


class CoordinatorLogger:
    """Takes events; the handlers of the `coordinator` logger carry them on. See LOGGING in the settings."""

    def log_event(
        self,
        event_type: EventType,
        *,
        olt_id: int | None = None,
        level: Level = Level.INFO,
        name: str = "coordinator_loop",
        **values: Value,
    ) -> None:
        """Log an event with its values, about one OLT or about everything; a failing log does not fail the caller."""
        details = {key: one_line(value) if isinstance(value, str) else value for key, value in values.items()}
        with translation.override(settings.LANGUAGE_CODE):
            sentence = describe(event_type, details)
        was_lost = connection.needs_rollback
        entry = Entry(event_type, sentence, details, olt_id)
        logging.getLogger(f"coordinator.{name}").log(logging.getLevelNamesMapping()[level], entry)
        if connection.needs_rollback and not was_lost:
            # Its connection went away. Left alone, the caller's transaction would end without error and without rows.
            raise TransactionManagementError("the transaction was lost while an event was logged")

    def log_task_added(self, task_name: str, olt: Olt | int | None = None, **values: Any) -> None:
        """Log that a task runs from now on; `olt` is the OLT or its id."""
        values = {"task_type": task_name, "task": task_name} | values
        self.log_event(EventType.TASK_ADDED, olt_id=_id_of(olt), **values)

    def log_quota_violation(self, olt: Olt | int | None, task_type: str, severity: str, **values: Any) -> None:
        values |= {"task_type": task_type, "severity": severity}
        self.log_event(EventType.QUOTA_VIOLATION, olt_id=_id_of(olt), level=Level.CRITICAL, **values)

    def log_emergency_replan(self, olt: Olt | int | None, reason: str) -> None:
        self.log_event(EventType.EMERGENCY_REPLAN, olt_id=_id_of(olt), level=Level.WARNING, reason=reason)


def _id_of(olt: Olt | int | None) -> int | None:
    return olt.pk if isinstance(olt, Olt) else olt


coordinator_logger = CoordinatorLogger()


def log_executions(looked_at: datetime | None, now: datetime) -> None:
    """Log every start and end since the last look that is not in the log yet.

    What is logged is found in the log itself, so a pass that dies logs nothing twice and forgets nothing. Without a
    last look, after a start or when another process led, it continues where the log ends. Decision 43 says why this is
    not done where runs start and end.
    """
    if looked_at is None:
        # One look into the index for each: the highest of both at once would be searched among all their entries.
        # Aborted runs do not count: they are logged when they are found.
        ends = (EventType.EXECUTION_COMPLETED, EventType.EXECUTION_FAILED)
        newest = [CoordinatorLog.objects.filter(event_type=event).order_by("-timestamp") for event in ends]
        logged = [at for log in newest for at in log.values_list("timestamp", flat=True)[:1]]
        looked_at = max(logged, default=now - FIRST_LOOK)
    since = min(looked_at, now)
    is_more = True
    # A look without a transaction first: many passes have nothing to write.
    while is_more and _UNLOGGED.rows(since=since - SEEN_WITHIN):
        with transaction.atomic(), translation.override(settings.LANGUAGE_CODE):
            # A leader that was frozen and its successor write one after the other; SQLite has one writer anyway.
            list(LeaderLease.objects.select_for_update().order_by("name").values_list("pk")[:1])
            found = map(_Logged._make, _UNLOGGED.rows(since=since - SEEN_WITHIN))
            rows = [(row, list(_entries(row))) for row in found]
            new = [entry for _row, entries in rows for entry in entries]
            insert_values(
                CoordinatorLog,
                _LogEntry._fields,
                [entry._replace(details=json.dumps(entry.details)) for entry in new],
            )
        for row, entries in rows:
            for entry in entries:
                _write_to_file(row, entry)
        is_more = len(rows) == BATCH
        since = max([since, *(row.finished_at for row, _entries in rows if row.finished_at)])


def _select_unlogged() -> QuerySet[Execution, Any]:
    """Select executions whose start or end is not in the log, in the order of their ends."""
    since = Given("since", DateTimeField())
    number = Cast(KeyTextTransform("execution", "details"), BigIntegerField())
    logged = CoordinatorLog.objects.alias(number=number).filter(olt_id=OuterRef("olt_id"), number=OuterRef("id"))
    start = logged.filter(timestamp__gte=OuterRef("created_at"), event_type=EventType.EXECUTION_STARTED)
    end = logged.filter(timestamp=OuterRef("finished_at"), event_type__in=[event for event, _level in _ENDS.values()])
    # An end in the log has its start there too: both are written together at the latest.
    is_new = Q(finished_at__isnull=True, started_at__isnull=False, is_start_logged=False) | Q(
        finished_at__gte=since, status__in=list(_ENDS), is_end_logged=False
    )
    # A probe is no task: its result is logged as an OLT that does not answer, or answers again.
    executions = Execution.objects.exclude(origin=Origin.PROBE).alias(is_end_logged=Exists(end.order_by()))
    new = executions.annotate(is_start_logged=Exists(start.order_by())).filter(is_new)
    return new.order_by(F("finished_at").asc(nulls_last=True), "id").values_list(*_Logged._fields)[:BATCH]


_UNLOGGED = Select(_select_unlogged)


def _entries(row: Any) -> Iterator[_LogEntry]:
    if row.started_at and not row.is_start_logged:
        # Never before the claim, whose time is from another clock: the start is searched from there on.
        yield _entry(row, EventType.EXECUTION_STARTED, Level.DEBUG, max(row.started_at, row.created_at))
    if row.status in _ENDS:
        values: dict[str, str | int] = {"duration_ms": row.duration_ms}
        if row.status != ExecutionState.SUCCESS:
            values = {"reason": one_line(row.error)}
            if row.failure_kind:
                values["failure_kind"] = row.failure_kind
            if row.failure_kind == FailureKind.HIDDEN_ONUS:
                values |= {sign: row.result[sign] for sign in Sign if sign in (row.result or {})}
            if row.status == ExecutionState.INTERRUPTED and row.slot_at:
                values["slot"] = row.slot_at.isoformat()
        event_type, level = _ENDS[row.status]
        yield _entry(row, event_type, level, row.finished_at, **values)


def _entry(row: Any, event_type: EventType, level: Level, at: datetime, **values: str | int) -> _LogEntry:
    details = {
        "task_type": row.task_type,
        "task": one_line(row.node__job__name or row.task_type),
        "node_id": row.node_id or 0,
        "execution": row.id,
        **values,
    }
    return _LogEntry(row.olt_id, event_type, level, describe(event_type, details), details, at)


def _write_to_file(row: Any, entry: _LogEntry) -> None:
    """Add failures to the file; all ends would push everything else out of it within the hour."""
    if entry.event_type == EventType.EXECUTION_ABORTED and row.slot_at:
        values = row.olt_id, row.node_id, row.slot_at.isoformat(), row.id, row.error
        logger.warning("slot.lost olt=%s node=%s slot=%s execution=%s: %s", *values)
    if entry.level != Level.DEBUG:
        line = Entry(entry.event_type, entry.message, entry.details, row.olt_id, row.olt__name, is_stored=True)
        logging.getLogger("coordinator.coordinator_loop").log(logging.getLevelNamesMapping()[entry.level], line)
