"""Admin page of executions with their attempts; only the engine writes them."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from facho.executions.models import Execution, ExecutionAttempt
from facho.executions.waiting import cancel
from facho.hosts.admin_pages import OltFilter, ReadOnlyAdmin, pretty_json, without_secrets


class AttemptInline(admin.TabularInline):  # type: ignore[type-arg]  # generic in its stubs only
    """The tries of an execution."""

    model = ExecutionAttempt
    fields = ["number", "status", "started_at", "finished_at", "failure_kind", "error"]
    extra = 0
    can_delete = False

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nobody adds."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nobody changes."""
        return False


@admin.register(Execution)
class ExecutionAdmin(ReadOnlyAdmin):
    """Each run of a node: by which poller, under which master, how it ended."""

    list_display = [
        "id",
        "olt",
        "task_type",
        "status",
        "origin",
        "poller_id",
        "chain",
        "created_at",
        "duration_ms",
        "failure_kind",
    ]
    list_filter = ["status", "origin", "failure_kind", OltFilter]
    search_fields = ["olt__name", "task_type"]
    inlines = [AttemptInline]
    actions = ["cancel"]
    exclude = ["lease_counter", "cursor", "result"]
    readonly_fields = ["summary"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Execution]:
        """Load what the page of one execution names along."""
        rows: QuerySet[Execution] = super().get_queryset(request)
        others = ("node__workflow__olt", "master_execution__olt")
        return rows.select_related("node__job", *others).defer(
            *(name for path in others for name in without_secrets(path))
        )

    @admin.display(description=_("chain"), ordering="master_execution_id")
    def chain(self, execution: Execution) -> str:
        """Name the master of a chain member, and its position after it."""
        return f"#{execution.master_execution_id} + {execution.chain_position}" if execution.master_execution_id else ""

    @admin.display(description=Execution._meta.get_field("result").verbose_name)
    def summary(self, execution: Execution) -> str:
        """Lay the result out."""
        return pretty_json(execution.result)

    @admin.action(description=_("Cancel"))
    def cancel(self, request: HttpRequest, queryset: QuerySet[Execution]) -> None:
        """Let the runs that were chosen end before their next packet; those that are over stay as they are."""
        now = timezone.now()
        asked = sum(cancel(execution.id, now=now) for execution in queryset)
        told = ngettext("%(n)s execution ends.", "%(n)s executions end.", asked) % {"n": asked}
        self.message_user(request, told)
