"""Admin pages of quotas, violations, plans and the coordinator's log; only the engine writes them."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.formats import number_format
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.timezone import localtime
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from facho.execution_coordinator.logger import describe
from facho.execution_coordinator.models import (
    CoordinatorLog,
    ExecutionPlan,
    Level,
    PlanStatus,
    QuotaStatus,
    QuotaTracker,
    QuotaViolation,
    ViolationSeverity,
)
from facho.execution_coordinator.quotas import tally_of
from facho.execution_coordinator.violations import read_report, read_time
from facho.executions.models import Execution, ExecutionStates
from facho.hosts.admin import OltFilter
from facho.infrastructure import admin_pages as infrastructure_admin_pages
from facho.infrastructure.admin_pages import ReadOnlyAdmin, RecentFilter, in_two, pretty_json, short_time
from facho.polling.domain.quota import Tally
from facho.polling.domain.schedule import hour_of
from facho.snmp_jobs.models import SkippedSlot, SkipReasons

_DAY = timedelta(hours=24)
# A node and one of its slots.
Key = tuple[object, datetime]


# The look of each state: a shape and a colour of the style sheet; what is not here is quiet.
_LOOKS: dict[str, str] = {
    QuotaStatus.COMPLETED: "good",
    QuotaStatus.PARTIAL: "good",
    QuotaStatus.AT_RISK: "warn",
    QuotaStatus.QUOTA_NOT_MET: "bad",
    QuotaStatus.FAILED: "bad",
    ViolationSeverity.MEDIUM: "warn",
    ViolationSeverity.HIGH: "bad",
    ViolationSeverity.CRITICAL: "worst",
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


def badge(code: str, words: object) -> SafeString:
    return infrastructure_admin_pages.badge(_LOOKS.get(code, "quiet"), words)


def progress(tally: Tally, required: int) -> SafeString:
    """Draw completed, failed and skipped runs as parts of those required, with the figures as text next to them."""
    parts, start = [], 0
    for kind, length in (("completed", tally.completed), ("failed", tally.failed), ("skipped", tally.skipped)):
        if length:
            parts.append({"kind": kind, "start": start, "length": length})
        start += length
    others = [
        (tally.failed, ngettext("%(n)s failed", "%(n)s failed", tally.failed)),
        (tally.skipped, ngettext("%(n)s skipped", "%(n)s skipped", tally.skipped)),
        (tally.pending, ngettext("%(n)s pending", "%(n)s pending", tally.pending)),
    ]
    context = {
        "parts": parts,
        "total": max(required, tally.required, 1),
        "completed": tally.completed,
        "required": required,
        "others": [words % {"n": number} for number, words in others if number],
    }
    return render_to_string("execution_coordinator/_progress.html", context)


def plan_table(plan: ExecutionPlan, now: datetime) -> SafeString:
    """Lay out the runs of a plan with their outcomes: how an execution stands, or why a slot got none; two queries."""
    in_hour = {"slot_at__gte": plan.period_start, "slot_at__lt": plan.period_end}
    skipped = SkippedSlot.objects.filter(node__workflow__olt_id=plan.olt_id, **in_hour).order_by()
    fates: dict[Key, tuple[SafeString, int | None]] = {
        (node_id, slot_at): (badge(ExecutionStates.SKIPPED, SkipReasons(reason).label), None)
        for node_id, slot_at, reason in skipped.values_list("node_id", "slot_at", "reason")
    }
    executions = Execution.objects.filter(olt_id=plan.olt_id, **in_hour).order_by()
    for node_id, slot_at, status, execution_id in executions.values_list("node_id", "slot_at", "status", "id"):
        if slot_at:
            fates[node_id, slot_at] = badge(status, ExecutionStates(status).label), execution_id
    runs = plan.plan_data if isinstance(plan.plan_data, list) else []
    rows = [_planned(run, fates, plan, now) for run in runs if isinstance(run, Mapping)]
    return render_to_string("execution_coordinator/_plan.html", {"runs": rows})


def _planned(
    run: Mapping[str, object], fates: Mapping[Key, tuple[SafeString, int | None]], plan: ExecutionPlan, now: datetime
) -> dict[str, object]:
    slot_at, seconds, members = read_time(run.get("slot_at")), run.get("seconds"), run.get("members")
    fate: SafeString | str = ""
    execution_id = None
    if slot_at and (run.get("node_id"), slot_at) in fates:
        fate, execution_id = fates[run.get("node_id"), slot_at]
    elif slot_at and plan.status == PlanStatus.ACTIVE:
        fate = badge("", _("to come") if slot_at > now else _("waits"))
    listed = members if isinstance(members, list) else []
    return {
        "slot_at": slot_at,
        "starts_at": read_time(run.get("starts_at")),
        "task_type": run.get("task_type", ""),
        "members": [member.get("task_type", "") for member in listed if isinstance(member, Mapping)],
        "seconds": seconds if isinstance(seconds, int | float) else None,
        "fate": fate,
        "execution_id": execution_id,
    }


class PeriodFilter(admin.SimpleListFilter):
    """Narrows a list to the hour of now, or to the hours that began in the last 24."""

    title = gettext_lazy("period")
    parameter_name = "period"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Iterable[tuple[str, Any]]:
        return [("hour", gettext_lazy("this hour")), ("day", gettext_lazy("last 24 hours"))]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        now = timezone.now()
        if self.value() == "hour":
            return queryset.filter(period_start=hour_of(now).start)
        return queryset.filter(period_start__gt=now - _DAY) if self.value() == "day" else queryset


class RecentEntryFilter(RecentFilter):
    time_field = "timestamp"


class ForecastFilter(admin.SimpleListFilter):
    title = gettext_lazy("risk")
    parameter_name = "will_miss"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Iterable[tuple[str, Any]]:
        return [("1", gettext_lazy("forecast to miss"))]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(will_miss_at__isnull=False) if self.value() == "1" else queryset


class CoordinatorAdmin(ReadOnlyAdmin):
    empty_value_display = ""

    class Media:
        css = {"all": ["execution_coordinator/admin.css"]}

    @admin.display(description=gettext_lazy("period"), ordering="period_start")
    def period(self, row: QuotaTracker | QuotaViolation | ExecutionPlan) -> SafeString:
        starts_at, ends_at = localtime(row.period_start), localtime(row.period_end)
        return in_two(f"{starts_at:%Y-%m-%d}", f"{starts_at:%H:%M}-{ends_at:%H:%M}")

    @admin.display(description=gettext_lazy("created"), ordering="created_at")
    def created(self, row: QuotaTracker | QuotaViolation | ExecutionPlan) -> SafeString | str:
        return short_time(row.created_at)

    @admin.display(description=gettext_lazy("updated"), ordering="updated_at")
    def updated(self, row: QuotaTracker | ExecutionPlan) -> SafeString | str:
        return short_time(row.updated_at)


@admin.register(QuotaTracker)
class QuotaTrackerAdmin(CoordinatorAdmin):
    """How many runs an hour owed, and their outcome; the present hour first."""

    list_display = ["olt", "task_type", "period", "standing", "progress", "average_length"]
    list_filter = ["status", PeriodFilter, ForecastFilter, OltFilter]
    search_fields = ["olt__name", "task_type"]
    # Those of an hour are made when it begins, and no index has the hour alone.
    ordering = ["-id"]
    fields = [
        "olt",
        "task_type",
        "period",
        "standing",
        "progress",
        "quota_required",
        "quota_completed",
        "quota_failed",
        "quota_skipped",
        "quota_pending",
        "avg_duration_ms",
        "total_duration_ms",
        "created",
        "updated",
    ]

    @admin.display(description=gettext_lazy("progress"))
    def progress(self, tracker: QuotaTracker) -> SafeString:
        return progress(tally_of(tracker), tracker.quota_required)

    @admin.display(description=gettext_lazy("status"), ordering="status")
    def standing(self, tracker: QuotaTracker) -> SafeString:
        """Draw where it stands, and below it since when it is foreseen that it will be missed."""
        status = badge(tracker.status, tracker.get_status_display())
        if tracker.will_miss_at is None:
            return status
        when = {"time": f"{localtime(tracker.will_miss_at):%H:%M}"}
        is_open = timezone.now() < tracker.period_end
        text = _("will miss, since %(time)s") if is_open else _("forecast at %(time)s")
        return format_html("{}<br>{}", status, badge(ViolationSeverity.CRITICAL if is_open else "", text % when))

    @admin.display(description=gettext_lazy("average length"), ordering="avg_duration_ms")
    def average_length(self, tracker: QuotaTracker) -> str:
        seconds = round(tracker.avg_duration_ms / 1000, 1)
        return f"{number_format(seconds, 1)} s" if tracker.avg_duration_ms else ""


@admin.register(QuotaViolation)
class QuotaViolationAdmin(CoordinatorAdmin):
    list_display = ["olt", "severity_badge", "period", "in_short", "notified", "created"]
    list_filter = ["severity", RecentFilter, "notified", OltFilter]
    search_fields = ["olt__name"]
    fieldsets = [
        (None, {"fields": ["olt", "severity_badge", "period", "created", "notified", "notified_at", "report_tables"]}),
        (gettext_lazy("report as JSON"), {"classes": ["collapse"], "fields": ["report_laid_out"]}),
    ]

    @admin.display(description=gettext_lazy("severity"), ordering="severity")
    def severity_badge(self, violation: QuotaViolation) -> SafeString:
        return badge(violation.severity, violation.get_severity_display())

    @admin.display(description=gettext_lazy("completed"))
    def in_short(self, violation: QuotaViolation) -> str:
        return read_report(violation.report).in_short

    @admin.display(description=gettext_lazy("report"))
    def report_tables(self, violation: QuotaViolation) -> SafeString:
        report, severities = read_report(violation.report), dict[str, Any](ViolationSeverity.choices)
        tasks = [
            {
                "report": task,
                "severity": badge(task.severity, severities.get(task.severity, task.severity)),
                "progress": progress(task.tally, task.required),
                "slots": [
                    (slot, badge(_OUTCOME_LOOKS.get(slot.outcome, ""), slot.outcome_words)) for slot in task.slots
                ],
            }
            for task in report.tasks
        ]
        return render_to_string("execution_coordinator/_report.html", {"tasks": tasks, "pauses": report.pauses})

    @admin.display(description=gettext_lazy("report"))
    def report_laid_out(self, violation: QuotaViolation) -> SafeString:
        return pretty_json(violation.report)


@admin.register(CoordinatorLog)
class CoordinatorLogAdmin(CoordinatorAdmin):
    """What the coordinator decided, and why; the latest first."""

    list_display = ["time", "level_badge", "place", "sentence", "event_type"]
    list_filter = ["level", RecentEntryFilter, "event_type", OltFilter]
    search_fields = ["message", "olt__name", "event_type"]
    # Entries are only ever added, and no index has the time alone.
    ordering = ["-id"]
    fields = ["time", "level_badge", "place", "sentence", "event_type", "details_laid_out"]

    @admin.display(description=gettext_lazy("time"), ordering="timestamp")
    def time(self, entry: CoordinatorLog) -> SafeString | str:
        return short_time(entry.timestamp)

    @admin.display(description=gettext_lazy("level"), ordering="level")
    def level_badge(self, entry: CoordinatorLog) -> SafeString:
        return badge(entry.level, entry.get_level_display())

    @admin.display(description=gettext_lazy("OLT"), ordering="olt__name")
    def place(self, entry: CoordinatorLog) -> str:
        """Name the OLT; without one it concerns everything."""
        return entry.olt.name if entry.olt else "GLOBAL"

    @admin.display(description=gettext_lazy("message"))
    def sentence(self, entry: CoordinatorLog) -> str:
        return describe(entry.event_type, entry.details)

    @admin.display(description=gettext_lazy("details"))
    def details_laid_out(self, entry: CoordinatorLog) -> SafeString:
        return pretty_json(entry.details)


@admin.register(ExecutionPlan)
class ExecutionPlanAdmin(CoordinatorAdmin):
    list_display = ["olt", "period", "status_badge", "progress", "created"]
    list_filter = ["status", PeriodFilter, OltFilter]
    search_fields = ["olt__name"]
    ordering = ["-period_start", "-id"]
    fields = ["olt", "period", "status_badge", "progress", "created", "updated", "runs"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[ExecutionPlan]:
        """Leave the runs in the database until one plan is opened."""
        rows: QuerySet[ExecutionPlan] = super().get_queryset(request)
        return rows.defer("plan_data")

    @admin.display(description=gettext_lazy("status"), ordering="status")
    def status_badge(self, plan: ExecutionPlan) -> SafeString:
        return badge(plan.status, plan.get_status_display())

    @admin.display(description=gettext_lazy("progress"))
    def progress(self, plan: ExecutionPlan) -> SafeString:
        is_over = plan.status != PlanStatus.ACTIVE
        pending = 0 if is_over else max(plan.total_tasks - plan.completed_tasks - plan.failed_tasks, 0)
        return progress(Tally(plan.completed_tasks, plan.failed_tasks, pending=pending), plan.total_tasks)

    @admin.display(description=gettext_lazy("plan"))
    def runs(self, plan: ExecutionPlan) -> SafeString:
        return plan_table(plan, timezone.now())
