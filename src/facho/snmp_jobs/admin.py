"""Admin pages of jobs with their OIDs, of workflows and of nodes."""

from collections.abc import Collection
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.models import CHANGE
from django.db import transaction
from django.db.models import Count, OuterRef, QuerySet, Subquery
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from facho.hosts.admin_pages import (
    LongListAdmin,
    OltFilter,
    ReadOnlyAdmin,
    badge,
    short_time,
    without_secrets,
    write_down,
)
from facho.polling.domain.interval_text import format_interval
from facho.snmp_jobs.advice import advise
from facho.snmp_jobs.apply_admin import ApplyAdmin, apply_address
from facho.snmp_jobs.chain_form import ChainFormSet, ChainMemberForm
from facho.snmp_jobs.chains import carry_chain
from facho.snmp_jobs.job_choice import JobChoiceField, job_title
from facho.snmp_jobs.job_form import JobForm, OidForm, OidFormSet
from facho.snmp_jobs.models import SnmpJob, SnmpJobOid, Workflow, WorkflowNode
from facho.snmp_jobs.node_form import NodeForm
from facho.snmp_jobs.ready_made import schedule_first_run
from facho.snmp_jobs.store import put_job_on_grid, return_to_schedule
from facho.snmp_jobs.switches import request_runs, switch


class OidInline(admin.TabularInline):  # type: ignore[type-arg]  # generic in its stubs only
    """What a job reads."""

    model = SnmpJobOid
    form = OidForm
    formset = OidFormSet
    fields = ["position", "column_key", "oid", "name", "unit", "keeps_history"]
    extra = 1


class ChainInline(admin.TabularInline):  # type: ignore[type-arg]
    """The jobs that run after a master, in their order."""

    model = SnmpJob
    fk_name = "master_job"
    form = ChainMemberForm
    formset = ChainFormSet
    fields = ["member", "priority", "chain_condition", "leaves"]
    verbose_name = gettext_lazy("job of the chain")
    verbose_name_plural = gettext_lazy("chain: jobs that run after this one")
    extra = 1
    can_delete = False
    show_change_link = True

    def get_queryset(self, request: HttpRequest) -> QuerySet[SnmpJob]:
        """Show them as they run."""
        return super().get_queryset(request).order_by("priority", "id")


@admin.register(SnmpJob)
class SnmpJobAdmin(ApplyAdmin):
    """Jobs: what to read, how often it is suggested, in which hours it may run, and what runs after it."""

    form = JobForm
    list_display = ["name", "vendor", "query_type", "interval", "chain", "olts"]
    list_filter = ["vendor", "query_type"]
    search_fields = ["name", "slug"]
    ordering = ["vendor", "slug"]
    actions = ["apply_to_olts", "run_now", "enable", "disable"]
    fieldsets = [
        (None, {"fields": ["name", "slug", "vendor", "brand", "query_type"]}),
        (
            gettext_lazy("When"),
            {
                "fields": [
                    "interval_seconds",
                    "ignores_safe_interval",
                    "cadence",
                    ("hours_from", "hours_to"),
                    "priority",
                ]
            },
        ),
        (gettext_lazy("When it fails"), {"fields": ["max_attempts", "retry_delay_seconds"]}),
        (gettext_lazy("As part of a chain"), {"fields": ["master_job", "chain_condition"]}),
    ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[SnmpJob]:
        """Load the master along, and count chain and OLTs."""
        jobs: QuerySet[SnmpJob] = super().get_queryset(request)
        nodes = WorkflowNode.objects.filter(job=OuterRef("pk")).order_by().values("job")
        members = SnmpJob.objects.filter(master_job=OuterRef("pk")).order_by().values("master_job")
        return jobs.select_related("master_job").annotate(
            olts_on=Subquery(nodes.filter(enabled=True).annotate(n=Count("pk")).values("n")),
            olts_all=Subquery(nodes.annotate(n=Count("pk")).values("n")),
            chain_length=Subquery(members.annotate(n=Count("pk")).values("n")),
        )

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """Offer masters with the vendor they are for."""
        if db_field.name == "master_job":
            kwargs["form_class"] = JobChoiceField
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def get_inlines(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        """Show a chain below a job that can have one."""
        return [OidInline, ChainInline] if obj and obj.master_job_id is None else [OidInline]

    @admin.display(description=gettext_lazy("interval"), ordering="interval_seconds")
    def interval(self, job: SnmpJob) -> str:
        """Write how often it is suggested."""
        return format_interval(job.interval_seconds)

    @admin.display(description=gettext_lazy("chain"))
    def chain(self, job: SnmpJob) -> str:
        """Tell after whom it runs, or how many run after it."""
        if job.master_job:
            return _("after %(master)s") % {"master": job.master_job.name}
        number = getattr(job, "chain_length", 0) or 0
        return ngettext("%(n)s job after it", "%(n)s jobs after it", number) % {"n": number} if number else ""

    @admin.display(description=gettext_lazy("OLTs"), ordering="olts_all")
    def olts(self, job: SnmpJob) -> SafeString:
        """Tell on how many OLTs it runs, and lead to its nodes."""
        place = f"{reverse('admin:snmp_jobs_workflownode_changelist')}?job={job.pk}"
        on, everywhere = getattr(job, "olts_on", 0) or 0, getattr(job, "olts_all", 0) or 0
        return format_html('<a href="{}">{}</a>', place, on if on == everywhere else f"{on} / {everywhere}")

    def save_model(self, request: HttpRequest, obj: SnmpJob, form: Any, change: bool) -> None:
        """Write the job, and let its nodes go on at a slot within its new hours, or after their new master."""
        super().save_model(request, obj, form, change)
        if change and {"hours_from", "hours_to", "cadence"} & set(form.changed_data):
            put_job_on_grid(obj, timezone.now())
        if change and ("master_job" in form.changed_data or (obj.master_job_id and "priority" in form.changed_data)):
            self._carry(request, [obj])

    def response_add(self, request: HttpRequest, obj: SnmpJob, post_url_continue: str | None = None) -> HttpResponse:
        """Go on to the OLTs: a new job runs on none."""
        if {"_addanother", "_continue", "_popup"} & set(request.POST):
            return super().response_add(request, obj, post_url_continue)
        self.message_user(request, _("%(job)s was added. Choose the OLTs that it runs on.") % {"job": obj})
        return HttpResponseRedirect(apply_address([obj]))

    def save_formset(self, request: HttpRequest, form: Any, formset: Any, change: bool) -> None:
        """Write the rows below the job, and carry its chain to the nodes."""
        super().save_formset(request, form, formset, change)
        if formset.model is SnmpJob:
            self._carry(request, [*formset.new_objects, *(job for job, _fields in formset.changed_objects)])

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        """Write what the job reads, and warn where it is more than an OLT has time for."""
        super().save_related(request, form, formsets, change)
        nodes = WorkflowNode.objects.filter(job=form.instance, enabled=True)
        _warn(request, set(nodes.order_by().values_list("workflow__olt_id", flat=True)))

    @admin.action(description=gettext_lazy("Apply to OLTs"), permissions=["change"])
    def apply_to_olts(self, request: HttpRequest, queryset: QuerySet[SnmpJob]) -> HttpResponse:
        """Go on to the page that asks for the OLTs."""
        return HttpResponseRedirect(apply_address(list(queryset)))

    @admin.action(description=gettext_lazy("Run now on all their OLTs"), permissions=["change"])
    def run_now(self, request: HttpRequest, queryset: QuerySet[SnmpJob]) -> None:
        """Ask for a run of the masters among the nodes of the jobs that were chosen."""
        _run_now(request, queryset, _nodes_of(queryset))
        if queryset.filter(master_job__isnull=False).exists():
            self.message_user(request, _("Nodes of a chain run with their master."), messages.WARNING)

    @admin.action(description=gettext_lazy("Enable on all their OLTs"), permissions=["change"])
    def enable(self, request: HttpRequest, queryset: QuerySet[SnmpJob]) -> None:
        """Enable the nodes of the jobs that were chosen."""
        _switch(request, queryset, _nodes_of(queryset), enabled=True)

    @admin.action(description=gettext_lazy("Disable on all their OLTs"), permissions=["change"])
    def disable(self, request: HttpRequest, queryset: QuerySet[SnmpJob]) -> None:
        """Disable the nodes of the jobs that were chosen."""
        _switch(request, queryset, _nodes_of(queryset), enabled=False)

    def _carry(self, request: HttpRequest, jobs: Collection[SnmpJob]) -> None:
        moved = carry_chain(jobs, now=timezone.now())
        if moved:
            told = ngettext("%(n)s node follows the new chain.", "%(n)s nodes follow the new chain.", moved)
            self.message_user(request, told % {"n": moved})


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


class JobFilter(admin.SimpleListFilter):
    """Narrows nodes to those of one job; the list of jobs leads here."""

    title = gettext_lazy("job")
    parameter_name = "job"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Offer every job, with the vendor it is for."""
        jobs = SnmpJob.objects.order_by("name").values_list("pk", "name", "vendor")
        return [(str(pk), job_title(name, vendor)) for pk, name, vendor in jobs]

    def queryset(self, request: HttpRequest, queryset: QuerySet[WorkflowNode]) -> QuerySet[WorkflowNode]:
        """Narrow to the chosen one."""
        chosen = self.value()
        return queryset.filter(job_id=int(chosen)) if chosen and chosen.isdecimal() else queryset


class NodeOltFilter(OltFilter):
    """Narrows nodes to those of one OLT."""

    path = "workflow__olt_id"


@admin.register(WorkflowNode)
class WorkflowNodeAdmin(LongListAdmin):
    """Nodes: one job on one OLT, and when it runs."""

    form = NodeForm
    empty_value_display = ""
    list_display = ["olt", "job", "state", "interval", "master", "next_run", "last_run"]
    list_display_links = ["job"]
    list_filter = [
        "enabled",
        "is_chain_node",
        ("suspended_at", admin.EmptyFieldListFilter),
        JobFilter,
        NodeOltFilter,
    ]
    search_fields = ["job__name", "job__slug", "workflow__olt__name"]
    actions = ["run_now", "resume", "enable", "disable"]
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

    @admin.display(description=gettext_lazy("state"), ordering="enabled")
    def state(self, node: WorkflowNode) -> SafeString:
        """Draw whether it runs."""
        if not node.enabled:
            return badge("quiet", _("disabled"))
        return badge("warn", _("suspended")) if node.suspended_at else badge("good", _("enabled"))

    @admin.display(description=gettext_lazy("interval"), ordering="interval_seconds")
    def interval(self, node: WorkflowNode) -> str:
        """Write how often it runs."""
        return format_interval(node.interval_seconds)

    @admin.display(description=gettext_lazy("next run"), ordering="next_run_at")
    def next_run(self, node: WorkflowNode) -> SafeString | str:
        """Write when it runs next."""
        return short_time(node.next_run_at)

    @admin.display(description=gettext_lazy("last run"), ordering="last_run_at")
    def last_run(self, node: WorkflowNode) -> SafeString | str:
        """Write when it ran last."""
        return short_time(node.last_run_at)

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

    @admin.action(description=gettext_lazy("Run now"), permissions=["change"])
    def run_now(self, request: HttpRequest, queryset: QuerySet[WorkflowNode]) -> None:
        """Ask for a run of each master that was chosen; a chain member runs with its master."""
        _run_now(request, queryset, queryset)
        if queryset.filter(is_chain_node=True).exists():
            self.message_user(request, _("Nodes of a chain run with their master."), messages.WARNING)

    @admin.action(description=gettext_lazy("Enable"), permissions=["change"])
    def enable(self, request: HttpRequest, queryset: QuerySet[WorkflowNode]) -> None:
        """Enable the nodes that were chosen."""
        _switch(request, queryset, queryset, enabled=True)

    @admin.action(description=gettext_lazy("Disable"), permissions=["change"])
    def disable(self, request: HttpRequest, queryset: QuerySet[WorkflowNode]) -> None:
        """Disable the nodes that were chosen."""
        _switch(request, queryset, queryset, enabled=False)

    @admin.action(description=gettext_lazy("Return to the schedule"), permissions=["change"])
    @transaction.atomic
    def resume(self, request: HttpRequest, queryset: QuerySet[WorkflowNode]) -> None:
        """End the suspension of the nodes that were chosen."""
        chosen = WorkflowNode.objects.filter(id__in=[node.id for node in queryset])
        resumed = return_to_schedule(chosen, now=timezone.now())
        write_down(request, queryset, CHANGE, gettext_lazy("Returned to the schedule."))
        told = ngettext("%(n)s node was resumed.", "%(n)s nodes were resumed.", resumed) % {"n": resumed}
        self.message_user(request, told)


def _nodes_of(jobs: QuerySet[SnmpJob]) -> QuerySet[WorkflowNode]:
    return WorkflowNode.objects.filter(job__in=[job.pk for job in jobs])


@transaction.atomic
def _run_now(request: HttpRequest, chosen: QuerySet[Any], nodes: QuerySet[WorkflowNode]) -> None:
    """Ask for the runs of nodes, and tell how many."""
    write_down(request, chosen, CHANGE, gettext_lazy("Run now."))
    asked = request_runs(nodes, now=timezone.now())
    messages.success(request, ngettext("%(n)s node will run now.", "%(n)s nodes will run now.", asked) % {"n": asked})


@transaction.atomic
def _switch(request: HttpRequest, chosen: QuerySet[Any], nodes: QuerySet[WorkflowNode], *, enabled: bool) -> None:
    """Enable or disable, tell how many, and what follows for their OLTs."""
    # First: in a list narrowed to those that are enabled, who was disabled is chosen no more.
    write_down(request, chosen, CHANGE, gettext_lazy("Enabled.") if enabled else gettext_lazy("Disabled."))
    olt_ids = set(nodes.order_by().values_list("workflow__olt_id", flat=True)) if enabled else set()
    changed = switch(nodes, enabled=enabled, now=timezone.now())
    if enabled:
        told = ngettext("%(n)s node was enabled.", "%(n)s nodes were enabled.", changed)
    else:
        told = ngettext("%(n)s node was disabled.", "%(n)s nodes were disabled.", changed)
    messages.success(request, told % {"n": changed})
    _warn(request, olt_ids)


def _warn(request: HttpRequest, olt_ids: Collection[int]) -> None:
    """Tell what follows for OLTs whose work has changed."""
    for warning in advise(olt_ids):
        messages.warning(request, warning)
