"""Puts the report of a violation into words: every slot that was due, what became of it and why.

A report outlives the version that wrote it, so whatever it lacks is left out.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from django.utils.functional import Promise
from django.utils.translation import pgettext_lazy

from facho.executions.failure_words import FAILURES
from facho.polling.domain.quota import Tally
from facho.snmp_jobs.models import SkipReasons

OUTCOMES: dict[str, Promise] = {
    "completed": pgettext_lazy("slot", "completed"),
    "failed": pgettext_lazy("slot", "failed"),
    "skipped": pgettext_lazy("slot", "skipped"),
    "pending": pgettext_lazy("slot", "pending"),
}

_SKIPPED: dict[str, str | Promise] = dict(SkipReasons.choices)


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
        """What became of it."""
        return str(OUTCOMES.get(self.outcome, self.outcome))


@dataclass(frozen=True, slots=True)
class TaskReport:
    """One task type that fell short."""

    task_type: str
    severity: str
    required: int
    tally: Tally
    slots: tuple[Slot, ...]

    @property
    def reasons(self) -> list[tuple[str, int]]:
        """Why slots were lost, and how many for each reason, the most first."""
        return Counter(slot.why for slot in self.slots if slot.why).most_common()


@dataclass(frozen=True, slots=True)
class Pause:
    """A time of the hour in which nothing was owed."""

    starts_at: datetime | None
    ends_at: datetime | None


@dataclass(frozen=True, slots=True)
class Report:
    """What an OLT failed to get in an hour."""

    tasks: tuple[TaskReport, ...]
    pauses: tuple[Pause, ...]

    @property
    def in_short(self) -> str:
        """The task types that fell short, each with its completed and required runs."""
        return ", ".join(f"{task.task_type} {task.tally.completed}/{task.required}" for task in self.tasks)


def read_report(report: object) -> Report:
    """Read what is stored with a violation."""
    values = report if isinstance(report, Mapping) else {}
    return Report(
        tuple(_task(task) for task in _mappings(values.get("tasks"))),
        tuple(
            Pause(read_time(pause.get("from")), read_time(pause.get("to"))) for pause in _mappings(values.get("paused"))
        ),
    )


def read_time(value: object) -> datetime | None:
    """Read a stored time; one that is missing, has no offset or cannot be read is none."""
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    return moment if moment and moment.tzinfo else None


def _task(task: Mapping[str, object]) -> TaskReport:
    figures = {name: _number(task.get(name)) or 0 for name in ("completed", "failed", "skipped", "pending")}
    return TaskReport(
        task_type=_text(task.get("task_type")),
        severity=_text(task.get("severity")),
        required=_number(task.get("required")) or 0,
        tally=Tally(**figures),
        slots=tuple(_slot(slot) for slot in _mappings(task.get("slots"))),
    )


def _slot(slot: Mapping[str, object]) -> Slot:
    return Slot(
        at=read_time(slot.get("slot_at")),
        node_id=_number(slot.get("node_id")),
        outcome=_text(slot.get("outcome")),
        why=_why(_text(slot.get("reason")), _text(slot.get("busy_with"))),
        execution_id=_number(slot.get("execution_id")),
        started_at=read_time(slot.get("started_at")),
        finished_at=read_time(slot.get("finished_at")),
    )


def _why(reason: str, busy_with: str) -> str:
    words = str(_SKIPPED.get(reason) or FAILURES.get(reason) or reason)
    return f"{words}: {busy_with}" if busy_with else words


def _mappings(value: object) -> list[Mapping[str, object]]:
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []


def _number(value: object) -> int | None:
    return value if isinstance(value, int) else None


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
