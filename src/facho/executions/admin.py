"""Admin page of executions with their attempts; only the engine writes them."""

from typing import Any

from django.contrib import admin
from django.contrib.admin.models import CHANGE
from django.db import transaction
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.formats import number_format
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from facho.executions.models import Execution, ExecutionAttempt, ExecutionStates
from facho.executions.run import FAILURES_IN_SHORT
from facho.executions.store import cancel
from facho.hosts.admin import OltFilter
from facho.hosts.models import Olt
from facho.infrastructure import admin_pages
from facho.polling.domain.execution_state import TERMINAL, FailureKind
from facho.snmp_jobs.models import WorkflowNode

_LOOKS: dict[str, str] = {
    ExecutionStates.SUCCESS: "good",
    ExecutionStates.FAILED: "bad",
    ExecutionStates.INTERRUPTED: "warn",
    ExecutionStates.SKIPPED: "warn",
}
# More digits than any row id.
MAX_DIGITS = 19


def _failure_words(kind: str) -> str:
    return str(FAILURES_IN_SHORT.get(kind, kind))


class AttemptInline(admin.TabularInline):  # type: ignore[type-arg]  # generic in its stubs only
    model = ExecutionAttempt
    fields = ["number", "status", "started_at", "finished_at", "failure", "error"]
    readonly_fields = ["failure"]
    extra = 0
    can_delete = False

    @admin.display(description=_("failure"))
    def failure(self, attempt: ExecutionAttempt) -> str:
        return _failure_words(attempt.failure_kind)

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class StatusFilter(admin.SimpleListFilter):
    """Narrows to runs of one status; those that are not over are found by the index of the end."""

    title = _("status")
    parameter_name = "status"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return list(ExecutionStates.choices)

    def queryset(self, request: HttpRequest, queryset: QuerySet[Execution]) -> QuerySet[Execution]:
        chosen = self.value()
        if chosen not in ExecutionStates.values:
            return queryset
        rows = queryset.filter(status=chosen)
        return rows if chosen in TERMINAL else rows.filter(finished_at__isnull=True)


class FailureFilter(admin.SimpleListFilter):
    """Narrows to runs that failed in one way; all kinds are offered, since finding those in use reads every run."""

    title = _("failure")
    parameter_name = "failure"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(kind.value, _failure_words(kind.value)) for kind in FailureKind]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Execution]) -> QuerySet[Execution]:
        return queryset.filter(failure_kind=self.value()) if self.value() else queryset


@admin.register(Execution)
class ExecutionAdmin(admin_pages.ReadOnlyAdmin):
    """Each run of a node: by which poller, under which master, how it ended."""

    empty_value_display = ""
    list_display = ["id", "olt", "task_type", "outcome", "poller_id", "chain", "claimed", "length"]
    list_filter = [StatusFilter, admin_pages.RecentFilter, FailureFilter, "origin", OltFilter]
    search_fields = ["olt__name"]
    search_help_text = _("Number of an execution, or a part of the name of an OLT or of a job.")
    sortable_by = ["id", "claimed"]
    inlines = [AttemptInline]
    actions = ["cancel"]
    exclude = ["lease_counter", "cursor", "result", "failure_kind"]
    readonly_fields = ["failure", "summary"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Execution]:
        """Load what the page of one execution names along."""
        rows: QuerySet[Execution] = super().get_queryset(request)
        others = ("node__workflow__olt", "master_execution__olt")
        return rows.select_related("node__job", *others).defer(
            *(name for path in others for name in admin_pages.without_secrets(Execution, path))
        )

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Execution], search_term: str
    ) -> tuple[QuerySet[Execution], bool]:
        """Find runs by the index of their OLT or node: these are few and found by name, the runs are a million."""
        words = search_term.strip()
        if not words:
            return queryset, False
        if words.isascii() and words.isdecimal() and len(words) < MAX_DIGITS:
            return queryset.filter(pk=int(words)), False
        olts = list(Olt.objects.filter(name__icontains=words).values_list("pk", flat=True))
        is_job = Q(job__name__icontains=words) | Q(job__slug__icontains=words)
        nodes = list(WorkflowNode.objects.filter(is_job).order_by().values_list("pk", flat=True))
        return queryset.filter(Q(olt__in=olts) | Q(node__in=nodes)), False

    @admin.display(description=_("status"))
    def outcome(self, execution: Execution) -> SafeString:
        words = " · ".join(filter(None, [str(execution.get_status_display()), self.failure(execution)]))
        return admin_pages.badge(_LOOKS.get(execution.status, "quiet"), words)

    @admin.display(description=_("failure"))
    def failure(self, execution: Execution) -> str:
        return _failure_words(execution.failure_kind)

    @admin.display(description=_("claimed"), ordering="created_at")
    def claimed(self, execution: Execution) -> SafeString | str:
        return admin_pages.short_time(execution.created_at)

    @admin.display(description=_("duration"))
    def length(self, execution: Execution) -> str:
        return f"{number_format(execution.duration_ms / 1000, 1)} s" if execution.finished_at else ""

    @admin.display(description=_("chain"), ordering="master_execution_id")
    def chain(self, execution: Execution) -> str:
        return f"#{execution.master_execution_id} + {execution.chain_position}" if execution.master_execution_id else ""

    @admin.display(description=Execution._meta.get_field("result").verbose_name)
    def summary(self, execution: Execution) -> str:
        return admin_pages.pretty_json(execution.result)

    @admin.action(description=_("Cancel"))
    @transaction.atomic
    def cancel(self, request: HttpRequest, queryset: QuerySet[Execution]) -> None:
        """Let the runs that were chosen end before their next packet; those that are over stay as they are."""
        now = timezone.now()
        asked = [execution for execution in queryset if cancel(execution.id, now=now)]
        admin_pages.write_down(request, asked, CHANGE, _("Cancelled."))
        text = ngettext("%(n)s execution ends.", "%(n)s executions end.", len(asked)) % {"n": len(asked)}
        self.message_user(request, text)
