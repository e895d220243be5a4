"""Admin pages of quotas, violations, plans and the coordinator's log; only the engine writes them."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.formats import number_format
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from facho.execution_coordinator import admin_widgets as widgets
from facho.execution_coordinator.log_words import describe
from facho.execution_coordinator.models import CoordinatorLog, ExecutionPlan, QuotaTracker, QuotaViolation
from facho.execution_coordinator.plan_view import load_planned_runs
from facho.execution_coordinator.report_words import read_report
from facho.hosts.admin_pages import OltFilter, ReadOnlyAdmin, RecentFilter, pretty_json, short_time
from facho.polling.domain.quota import hour_of

_DAY = timedelta(hours=24)


class PeriodFilter(admin.SimpleListFilter):
    """Narrows a list to the hour of now, or to the hours that began in the last 24."""

    title = _("period")
    parameter_name = "period"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Iterable[tuple[str, Any]]:
        """Offer both."""
        return [("hour", _("this hour")), ("day", _("last 24 hours"))]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Narrow to the chosen one."""
        now = timezone.now()
        if self.value() == "hour":
            return queryset.filter(period_start=hour_of(now).start)
        return queryset.filter(period_start__gt=now - _DAY) if self.value() == "day" else queryset


class RecentEntryFilter(RecentFilter):
    """Narrows the log."""

    time_field = "timestamp"


class ForecastFilter(admin.SimpleListFilter):
    """Narrows quotas to those of which it was foreseen that they will be missed."""

    title = _("risk")
    parameter_name = "will_miss"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Iterable[tuple[str, Any]]:
        """Offer it."""
        return [("1", _("miss foreseen"))]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Narrow if it was chosen."""
        return queryset.filter(will_miss_at__isnull=False) if self.value() == "1" else queryset


class CoordinatorAdmin(ReadOnlyAdmin):
    """What these pages share: their style sheet, and times short enough for a table."""

    empty_value_display = ""

    class Media:
        css = {"all": ["execution_coordinator/admin.css"]}

    @admin.display(description=_("period"), ordering="period_start")
    def period(self, row: QuotaTracker | QuotaViolation | ExecutionPlan) -> SafeString:
        """Write the hour in local time."""
        return widgets.period(row.period_start, row.period_end)

    @admin.display(description=_("created"), ordering="created_at")
    def created(self, row: QuotaTracker | QuotaViolation | ExecutionPlan) -> SafeString | str:
        """Write when it was made."""
        return short_time(row.created_at)

    @admin.display(description=_("updated"), ordering="updated_at")
    def updated(self, row: QuotaTracker | ExecutionPlan) -> SafeString | str:
        """Write when it was last counted."""
        return short_time(row.updated_at)


@admin.register(QuotaTracker)
class QuotaTrackerAdmin(CoordinatorAdmin):
    """How many runs an hour owed, and what became of them; the present hour first."""

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

    @admin.display(description=_("progress"))
    def progress(self, tracker: QuotaTracker) -> SafeString:
        """Draw how far it is served."""
        return widgets.quota_progress(tracker)

    @admin.display(description=_("status"), ordering="status")
    def standing(self, tracker: QuotaTracker) -> SafeString:
        """Draw where it stands, and whether it will be missed."""
        return widgets.standing(tracker, timezone.now())

    @admin.display(description=_("average length"), ordering="avg_duration_ms")
    def average_length(self, tracker: QuotaTracker) -> str:
        """Write how long its runs take."""
        seconds = round(tracker.avg_duration_ms / 1000, 1)
        return f"{number_format(seconds, 1)} s" if tracker.avg_duration_ms else ""


@admin.register(QuotaViolation)
class QuotaViolationAdmin(CoordinatorAdmin):
    """Quotas that were not met."""

    list_display = ["olt", "severity_badge", "period", "in_short", "notified", "created"]
    list_filter = ["severity", RecentFilter, "notified", OltFilter]
    search_fields = ["olt__name"]
    fieldsets = [
        (None, {"fields": ["olt", "severity_badge", "period", "created", "notified", "notified_at", "report_tables"]}),
        (_("report as JSON"), {"classes": ["collapse"], "fields": ["report_laid_out"]}),
    ]

    @admin.display(description=_("severity"), ordering="severity")
    def severity_badge(self, violation: QuotaViolation) -> SafeString:
        """Draw how much was lost."""
        return widgets.badge(violation.severity, violation.get_severity_display())

    @admin.display(description=_("completed"))
    def in_short(self, violation: QuotaViolation) -> str:
        """Name what fell short."""
        return read_report(violation.report).in_short

    @admin.display(description=_("report"))
    def report_tables(self, violation: QuotaViolation) -> SafeString:
        """Lay the report out for people."""
        return widgets.report_tables(read_report(violation.report))

    @admin.display(description=_("report"))
    def report_laid_out(self, violation: QuotaViolation) -> SafeString:
        """Lay the report out for programs."""
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

    @admin.display(description=_("time"), ordering="timestamp")
    def time(self, entry: CoordinatorLog) -> SafeString | str:
        """Write when it happened."""
        return short_time(entry.timestamp)

    @admin.display(description=_("level"), ordering="level")
    def level_badge(self, entry: CoordinatorLog) -> SafeString:
        """Draw the level."""
        return widgets.badge(entry.level, entry.get_level_display())

    @admin.display(description=_("OLT"), ordering="olt__name")
    def place(self, entry: CoordinatorLog) -> str:
        """Name the OLT; without one it concerns everything."""
        return entry.olt.name if entry.olt else "GLOBAL"

    @admin.display(description=_("message"))
    def sentence(self, entry: CoordinatorLog) -> str:
        """Say what happened, in the reader's language."""
        return describe(entry.event_type, entry.details)

    @admin.display(description=_("details"))
    def details_laid_out(self, entry: CoordinatorLog) -> SafeString:
        """Lay the details out."""
        return pretty_json(entry.details)


@admin.register(ExecutionPlan)
class ExecutionPlanAdmin(CoordinatorAdmin):
    """The runs that an hour should see."""

    list_display = ["olt", "period", "status_badge", "progress", "created"]
    list_filter = ["status", PeriodFilter, OltFilter]
    search_fields = ["olt__name"]
    ordering = ["-period_start", "-id"]
    fields = ["olt", "period", "status_badge", "progress", "created", "updated", "runs"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[ExecutionPlan]:
        """Leave the runs in the database until one plan is looked at."""
        rows: QuerySet[ExecutionPlan] = super().get_queryset(request)
        return rows.defer("plan_data")

    @admin.display(description=_("status"), ordering="status")
    def status_badge(self, plan: ExecutionPlan) -> SafeString:
        """Draw where it stands."""
        return widgets.badge(plan.status, plan.get_status_display())

    @admin.display(description=_("progress"))
    def progress(self, plan: ExecutionPlan) -> SafeString:
        """Draw how much of it is over."""
        return widgets.plan_progress(plan)

    @admin.display(description=_("plan"))
    def runs(self, plan: ExecutionPlan) -> SafeString:
        """Lay the runs out, with what became of each."""
        return widgets.plan_table(load_planned_runs(plan, timezone.now()))
