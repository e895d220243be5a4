"""Admin pages of quotas, violations, plans and the coordinator's log; only the engine writes them."""

from django.contrib import admin
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from facho.execution_coordinator.models import CoordinatorLog, ExecutionPlan, QuotaTracker, QuotaViolation
from facho.hosts.admin_pages import OltFilter, ReadOnlyAdmin, pretty_json


@admin.register(QuotaTracker)
class QuotaTrackerAdmin(ReadOnlyAdmin):
    """How many runs an hour owed, and what became of them."""

    list_display = [
        "olt",
        "task_type",
        "period_start",
        "quota_completed",
        "quota_required",
        "quota_failed",
        "quota_skipped",
        "quota_pending",
        "avg_duration_ms",
        "status",
    ]
    list_filter = ["status", OltFilter]
    search_fields = ["olt__name", "task_type"]


@admin.register(QuotaViolation)
class QuotaViolationAdmin(ReadOnlyAdmin):
    """Quotas that were not met."""

    list_display = ["olt", "severity", "period_start", "period_end", "notified", "created_at"]
    list_filter = ["severity", "notified", OltFilter]
    search_fields = ["olt__name"]
    exclude = ["report"]
    readonly_fields = ["report_laid_out"]

    @admin.display(description=_("report"))
    def report_laid_out(self, violation: QuotaViolation) -> SafeString:
        """Lay the report out."""
        return pretty_json(violation.report)


@admin.register(CoordinatorLog)
class CoordinatorLogAdmin(ReadOnlyAdmin):
    """What the coordinator decided, and why."""

    list_display = ["timestamp", "level", "event_type", "olt", "message"]
    list_filter = ["level", "event_type", OltFilter]
    search_fields = ["message", "olt__name"]
    exclude = ["details"]
    readonly_fields = ["details_laid_out"]

    @admin.display(description=_("details"))
    def details_laid_out(self, entry: CoordinatorLog) -> SafeString:
        """Lay the details out."""
        return pretty_json(entry.details)


@admin.register(ExecutionPlan)
class ExecutionPlanAdmin(ReadOnlyAdmin):
    """The runs that an hour should see."""

    list_display = ["olt", "period_start", "period_end", "status", "total_tasks", "completed_tasks", "failed_tasks"]
    list_filter = ["status", OltFilter]
    search_fields = ["olt__name"]
    exclude = ["plan_data"]
    readonly_fields = ["plan_laid_out"]

    @admin.display(description=_("plan"))
    def plan_laid_out(self, plan: ExecutionPlan) -> SafeString:
        """Lay the plan out."""
        return pretty_json(plan.plan_data)
