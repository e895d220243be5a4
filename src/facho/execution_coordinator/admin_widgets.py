"""What the coordinator's admin pages draw: badges, progress bars, tables. A shape and a word come before a colour."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.template.loader import render_to_string
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.timezone import localtime
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from facho.execution_coordinator.models import ExecutionPlan, Level, PlanStatus, QuotaStatus, QuotaTracker, Severity
from facho.execution_coordinator.plan_view import PlannedRun
from facho.execution_coordinator.report_words import Report
from facho.executions.models import ExecutionStates
from facho.hosts import admin_pages
from facho.polling.domain.quota import Tally

# The look of each state: a shape and a colour of the style sheet; what is not here is quiet.
_LOOKS: dict[str, str] = {
    QuotaStatus.COMPLETED: "good",
    QuotaStatus.PARTIAL: "good",
    QuotaStatus.AT_RISK: "warn",
    QuotaStatus.QUOTA_NOT_MET: "bad",
    QuotaStatus.FAILED: "bad",
    Severity.MEDIUM: "warn",
    Severity.HIGH: "bad",
    Severity.CRITICAL: "worst",
    Level.WARNING: "warn",
    Level.ERROR: "bad",
    PlanStatus.ACTIVE: "good",
    PlanStatus.ABORTED: "warn",
    ExecutionStates.SUCCESS: "good",
    ExecutionStates.INTERRUPTED: "warn",
    ExecutionStates.SKIPPED: "warn",
}
_OUTCOME_LOOKS: dict[str, str] = {
    "completed": ExecutionStates.SUCCESS,
    "failed": ExecutionStates.FAILED,
    "skipped": ExecutionStates.SKIPPED,
}


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of a progress bar."""

    kind: str
    start: int
    length: int


def badge(code: str, words: object) -> SafeString:
    """Draw a state: its words behind the shape of its look."""
    return admin_pages.badge(_LOOKS.get(code, "quiet"), words)


def progress(tally: Tally, required: int) -> SafeString:
    """Draw completed, failed and skipped runs as parts of those required, with the figures in words beside them."""
    context = {
        "parts": _parts(tally),
        "total": max(required, tally.required, 1),
        "completed": tally.completed,
        "required": required,
        "others": _others(tally),
    }
    return render_to_string("execution_coordinator/_progress.html", context)


def quota_progress(tracker: QuotaTracker) -> SafeString:
    """Draw how far a quota is served."""
    counts = (tracker.quota_completed, tracker.quota_failed, tracker.quota_skipped, tracker.quota_pending)
    return progress(Tally(*counts), tracker.quota_required)


def plan_progress(plan: ExecutionPlan) -> SafeString:
    """Draw how many runs of a plan are over."""
    open_runs = max(plan.total_tasks - plan.completed_tasks - plan.failed_tasks, 0)
    is_over = plan.status != PlanStatus.ACTIVE
    tally = Tally(plan.completed_tasks, plan.failed_tasks, pending=0 if is_over else open_runs)
    return progress(tally, plan.total_tasks)


def standing(tracker: QuotaTracker, now: datetime) -> SafeString:
    """Draw where a quota stands, and below it since when it is foreseen that it will be missed."""
    status = badge(tracker.status, tracker.get_status_display())
    if tracker.will_miss_at is None:
        return status
    when = {"time": f"{localtime(tracker.will_miss_at):%H:%M}"}
    if now < tracker.period_end:
        return format_html("{}<br>{}", status, badge(Severity.CRITICAL, _("will miss, since %(time)s") % when))
    return format_html("{}<br>{}", status, badge("", _("foreseen at %(time)s") % when))


def period(starts_at: datetime, ends_at: datetime) -> SafeString:
    """Write an hour in local time."""
    local = localtime(starts_at)
    return admin_pages.in_two(f"{local:%Y-%m-%d}", f"{local:%H:%M}-{localtime(ends_at):%H:%M}")


def report_tables(report: Report) -> SafeString:
    """Lay a violation's report out: a table of slots for each task type."""
    tasks = [
        {
            "report": task,
            "severity": badge(task.severity, _label(task.severity)),
            "progress": progress(task.tally, task.required),
            "slots": [(slot, badge(_OUTCOME_LOOKS.get(slot.outcome, ""), slot.outcome_words)) for slot in task.slots],
        }
        for task in report.tasks
    ]
    return render_to_string("execution_coordinator/_report.html", {"tasks": tasks, "pauses": report.pauses})


def plan_table(runs: Sequence[PlannedRun]) -> SafeString:
    """Lay a plan out: its runs in order, and what became of each."""
    rows = [(run, badge(run.fate.state, run.fate.words) if run.fate.words else "") for run in runs]
    return render_to_string("execution_coordinator/_plan.html", {"runs": rows})


def _parts(tally: Tally) -> list[Part]:
    parts, start = [], 0
    for kind, length in (("completed", tally.completed), ("failed", tally.failed), ("skipped", tally.skipped)):
        if length:
            parts.append(Part(kind, start, length))
        start += length
    return parts


def _others(tally: Tally) -> list[str]:
    """Say what is not completed; what there is none of is not said."""
    said = [
        (tally.failed, ngettext("%(n)s failed", "%(n)s failed", tally.failed)),
        (tally.skipped, ngettext("%(n)s skipped", "%(n)s skipped", tally.skipped)),
        (tally.pending, ngettext("%(n)s pending", "%(n)s pending", tally.pending)),
    ]
    return [words % {"n": number} for number, words in said if number]


def _label(severity: str) -> str:
    return str(Severity(severity).label) if severity in Severity.values else severity
