"""Counts the quotas of polled hours from executions and from what a bystander noted, and holds the trackers to it.

It uses none of the coordinator's counting: slots are numbers of seconds, and what no execution served was skipped.
"""

from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta

from bench.polled_hours import START, PolledHours
from facho.execution_coordinator.models import QuotaTracker, QuotaViolation
from facho.executions.models import Execution
from facho.polling.domain.execution_state import ExecutionState
from facho.polling.domain.schedule import Span
from facho.snmp_jobs.models import WorkflowNode

HOUR = timedelta(hours=1)
MET_SHARE = 0.8

Key = tuple[int, str, datetime]


@dataclass(frozen=True, slots=True)
class Figures:
    """What a tracker says, or should say."""

    required: int
    completed: int
    failed: int
    skipped: int
    pending: int
    total_duration_ms: int

    @property
    def is_short(self) -> bool:
        """Whether the hour fell below its quota."""
        return self.required > 0 and self.completed / self.required < MET_SHARE


@dataclass(frozen=True, slots=True)
class Comparison:
    """The trackers of some hours, and an independent count."""

    trackers: int
    slots: int
    wrong: list[tuple[Key, Figures | None, Figures | None]]
    violations: int
    # Hours of OLTs that fell short without a violation, or have one without reason.
    unraised: set[tuple[int, datetime]]
    groundless: set[tuple[int, datetime]]
    # How long after the hour, or after the loss that decided it, a violation was raised at the latest.
    worst_seconds: float


def compare(world: PolledHours) -> Comparison:
    """Hold trackers and violations of all hours against the truth."""
    truth, told = count_truth(world), _load_trackers(world)
    wrong = [
        (key, truth.get(key), told.get(key))
        for key in sorted(truth.keys() | told.keys())
        if truth.get(key) != told.get(key)
    ]
    short = {(olt_id, hour) for (olt_id, _, hour), figures in truth.items() if figures.is_short}
    raised = {
        (violation.olt_id, violation.period_start): (violation.created_at - _certain_at(violation)).total_seconds()
        for violation in QuotaViolation.objects.filter(period_start__in=_hours(world))
    }
    return Comparison(
        trackers=len(told),
        slots=sum(figures.required for figures in truth.values()),
        wrong=wrong,
        violations=len(raised),
        unraised=short - raised.keys(),
        groundless=raised.keys() - short,
        worst_seconds=max(raised.values(), default=0.0),
    )


def _certain_at(violation: QuotaViolation) -> datetime:
    """Return when an hour could no longer be saved: at its end, unless it hung on runs that failed after it."""
    late = Execution.objects.filter(
        olt_id=violation.olt_id,
        slot_at__gte=violation.period_start,
        slot_at__lt=violation.period_end,
        finished_at__gt=violation.period_end,
    ).exclude(status=ExecutionState.SUCCESS)
    hung_on = [run.finished_at for run in late if run.finished_at and _would_have_met(violation, run.task_type)]
    return min(hung_on, default=violation.period_end)


def _would_have_met(violation: QuotaViolation, task_type: str) -> bool:
    """Tell whether a task type was short by no more than what ended after the hour."""
    tracker = QuotaTracker.objects.get(
        olt_id=violation.olt_id, task_type=task_type, period_start=violation.period_start
    )
    return (tracker.quota_completed + 1) / tracker.quota_required >= MET_SHARE


def count_truth(world: PolledHours) -> dict[Key, Figures]:
    """Count what every quota should say; one of an hour in which its OLT was disabled is frozen, and left out."""
    runs = {
        (run.node_id, run.slot_at): run
        for run in Execution.objects.filter(slot_at__isnull=False).only("node_id", "slot_at", "status", "duration_ms")
    }
    fates: dict[Key, Counter[str]] = {}
    for node in WorkflowNode.objects.select_related("workflow", "job"):
        for hour in _hours(world):
            key = (node.workflow.olt_id, node.job.task_type, hour)
            slots = _owed(world, node, Span(hour, hour + HOUR))
            for slot in slots:
                _add_fate(fates.setdefault(key, Counter()), runs.get((node.id, slot)))
    return {
        key: _figures(found, is_adjusted=key in world.adjusted)
        for key, found in fates.items()
        if (key[0], key[2]) not in world.interrupted
    }


def _owed(world: PolledHours, node: WorkflowNode, hour: Span) -> list[datetime]:
    stints = world.stints[world.members.get(node.id, node.id)]
    pauses = [span for olt_id, span in world.pauses if olt_id in (None, node.workflow.olt_id)]
    slots = [slot for stint in stints for slot in stint.slots(hour)]
    return [slot for slot in slots if not any(span.contains(slot) for span in pauses)]


def _add_fate(fates: Counter[str], run: Execution | None) -> None:
    status = run.status if run else ExecutionState.SKIPPED.value
    fates["failed" if status == ExecutionState.INTERRUPTED else status.lower()] += 1
    if run and status in (ExecutionState.SUCCESS, ExecutionState.FAILED, ExecutionState.INTERRUPTED):
        fates["duration_ms"] += run.duration_ms


def _figures(fates: Counter[str], *, is_adjusted: bool) -> Figures:
    """Put a count as a tracker does; who takes work away lets a quota owe no more than was done."""
    completed, failed, skipped = fates["success"], fates["failed"], fates["skipped"]
    pending = fates["pending"] + fates["running"] + fates["waiting"]
    required = completed if is_adjusted else completed + failed + skipped + pending
    return Figures(required, completed, failed, skipped, 0 if is_adjusted else pending, fates["duration_ms"])


def _load_trackers(world: PolledHours) -> dict[Key, Figures]:
    return {
        (row.olt_id, row.task_type, row.period_start): Figures(
            row.quota_required,
            row.quota_completed,
            row.quota_failed,
            row.quota_skipped,
            row.quota_pending,
            row.total_duration_ms,
        )
        # A pause may leave nothing to owe of what was owed before.
        for row in QuotaTracker.objects.filter(period_start__in=_hours(world), quota_required__gt=0)
        if (row.olt_id, row.period_start) not in world.interrupted
    }


def _hours(world: PolledHours) -> list[datetime]:
    return [START + number * HOUR for number in range(world.hours)]
