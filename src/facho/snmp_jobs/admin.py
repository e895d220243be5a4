"""Admin pages of jobs with their OIDs, of workflows and of nodes."""

from collections.abc import Collection
from typing import Any

from django.contrib import admin, messages
from django.db.models import Count, QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from facho.hosts.admin_pages import OltFilter, ReadOnlyAdmin, without_secrets
from facho.snmp_jobs.advice import advise
from facho.snmp_jobs.job_form import JobForm, OidForm, OidFormSet
from facho.snmp_jobs.models import SnmpJob, SnmpJobOid, Workflow, WorkflowNode
from facho.snmp_jobs.node_form import NodeForm
from facho.snmp_jobs.ready_made import schedule_first_run
from facho.snmp_jobs.store import put_job_on_grid, request_run, return_to_schedule


class OidInline(admin.TabularInline):  # type: ignore[type-arg]  # generic in its stubs only
    """What a job reads."""

    model = SnmpJobOid
    form = OidForm
    formset = OidFormSet
    fields = ["position", "column_key", "oid", "name", "unit", "keeps_history"]
    extra = 1


@admin.register(SnmpJob)
class SnmpJobAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """Jobs: what to read, how often it is suggested, and in which hours it may run."""

    form = JobForm
    list_display = ["name", "slug", "vendor", "query_type", "interval_seconds", "priority", "master_job"]
    list_filter = ["vendor", "query_type"]
    list_select_related = ["master_job"]
    search_fields = ["name", "slug"]
    inlines = [OidInline]

    def save_model(self, request: HttpRequest, obj: SnmpJob, form: Any, change: bool) -> None:
        """Write the job, and let its nodes go on at a slot within its new hours."""
        super().save_model(request, obj, form, change)
        if change and {"hours_from", "hours_to", "cadence"} & set(form.changed_data):
            put_job_on_grid(obj, timezone.now())

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        """Write what the job reads, and warn where it is more than an OLT has time for."""
        super().save_related(request, form, formsets, change)
        nodes = WorkflowNode.objects.filter(job=form.instance, enabled=True)
        _warn(request, set(nodes.order_by().values_list("workflow__olt_id", flat=True)))


@admin.register(Workflow)
class WorkflowAdmin(ReadOnlyAdmin):
    """Workflows: all the nodes of one OLT."""

    list_display = ["olt", "node_count", "created_at"]
    search_fields = ["olt__name"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Workflow]:
        """Count the nodes along."""
        rows: QuerySet[Workflow] = super().get_queryset(request)
        return rows.annotate(nodes_counted=Count("nodes"))

    @admin.display(description=gettext_lazy("nodes"), ordering="nodes_counted")
    def node_count(self, workflow: Workflow) -> int:
        """Tell how many nodes it holds."""
        return int(getattr(workflow, "nodes_counted", 0))


class NodeOltFilter(OltFilter):
    """Narrows nodes to those of one OLT."""

    path = "workflow__olt_id"


@admin.register(WorkflowNode)
class WorkflowNodeAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """Nodes: one job on one OLT, and when it runs."""

    form = NodeForm
    list_display = [
        "olt",
        "job",
        "enabled",
        "interval_seconds",
        "priority",
        "master",
        "next_run_at",
        "last_run_at",
        "suspended_at",
    ]
    list_display_links = ["job"]
    list_filter = ["enabled", "is_chain_node", ("suspended_at", admin.EmptyFieldListFilter), NodeOltFilter]
    search_fields = ["job__name", "job__slug", "workflow__olt__name"]
    list_per_page = 50
    show_full_result_count = False
    actions = ["run_now", "resume"]
    readonly_fields = [
        "master_node",
        "next_run_at",
        "last_run_at",
        "run_requested_at",
        "slots_skipped",
        "consecutive_failures",
        "suspended_at",
        "suspend_reason",
    ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[WorkflowNode]:
        """Load job, master and OLT along, the OLT without its secrets."""
        rows = super().get_queryset(request).select_related("job", "workflow__olt", "master_node__job")
        return rows.defer(*without_secrets("workflow__olt"))

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        """Let OLT and job be chosen once: another pair is another node."""
        return ["workflow", "job", *self.readonly_fields] if obj else self.readonly_fields

    @admin.display(description=gettext_lazy("OLT"), ordering="workflow__olt__name")
    def olt(self, node: WorkflowNode) -> str:
        """Name the OLT."""
        return node.workflow.olt.name

    @admin.display(description=gettext_lazy("runs after"), ordering="master_node")
    def master(self, node: WorkflowNode) -> str:
        """Name the node after which a chain member runs."""
        return node.master_node.job.name if node.master_node else ""

    def save_model(self, request: HttpRequest, obj: WorkflowNode, form: Any, change: bool) -> None:
        """Write what the form decides, and put a master whose rhythm changed on its grid."""
        obj.save(update_fields=["enabled", "interval_seconds", "priority", "updated_at"] if change else None)
        rhythm = {"enabled", "interval_seconds"} & set(form.changed_data)
        if obj.enabled and not obj.is_chain_node and (rhythm or not change):
            schedule_first_run(obj, timezone.now())
        if obj.enabled:
            _warn(request, {obj.workflow.olt_id})

    @admin.action(description=gettext_lazy("Run now"))
    def run_now(self, request: HttpRequest, queryset: QuerySet[WorkflowNode]) -> None:
        """Ask for a run of each master that was chosen; a chain member runs with its master."""
        masters = [node.id for node in queryset if not node.is_chain_node]
        for node_id in masters:
            request_run(node_id, now=timezone.now())
        asked = ngettext("%(n)s node will run now.", "%(n)s nodes will run now.", len(masters)) % {"n": len(masters)}
        self.message_user(request, asked)
        if len(masters) < len(queryset):
            self.message_user(request, _("Nodes of a chain run with their master."), messages.WARNING)

    @admin.action(description=gettext_lazy("Return to the schedule"))
    def resume(self, request: HttpRequest, queryset: QuerySet[WorkflowNode]) -> None:
        """End the suspension of the nodes that were chosen."""
        chosen = WorkflowNode.objects.filter(id__in=[node.id for node in queryset])
        resumed = return_to_schedule(chosen, now=timezone.now())
        told = ngettext("%(n)s node was resumed.", "%(n)s nodes were resumed.", resumed) % {"n": resumed}
        self.message_user(request, told)


def _warn(request: HttpRequest, olt_ids: Collection[int]) -> None:
    """Tell what follows for OLTs whose work has changed."""
    for warning in advise(olt_ids):
        messages.warning(request, warning)
