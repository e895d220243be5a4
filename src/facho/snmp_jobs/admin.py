"""Admin pages of jobs with their OIDs, of workflows and of nodes."""

from collections.abc import Collection, Iterable, Sequence
from itertools import groupby
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.models import CHANGE
from django.core.exceptions import PermissionDenied
from django.db import IntegrityError, transaction
from django.db.models import Count, OuterRef, QuerySet, Subquery
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import path, reverse
from django.utils import timezone
from django.utils.decorators import method_decorator
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import capfirst, format_lazy
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.http import require_http_methods

from facho.hosts.admin import OltFilter, VendorFilter
from facho.hosts.inventory import stored_olts
from facho.hosts.models import Olt, OltGroup
from facho.infrastructure import admin_pages
from facho.polling.domain.planning import MAX_PRIORITY
from facho.polling.domain.schedule import format_interval
from facho.snmp_jobs import application, job_form
from facho.snmp_jobs.models import SnmpJob, SnmpJobOid, Workflow, WorkflowNode
from facho.snmp_jobs.safety import check_change, check_job, reads_of
from facho.snmp_jobs.store import NodeChange, change_nodes, give_first_slots, request_runs, return_to_schedule


class JobChoiceField(forms.ModelChoiceField):  # type: ignore[type-arg]  # generic in its stubs only
    def label_from_instance(self, obj: SnmpJob) -> str:
        return job_title(obj.name, obj.vendor)


def job_title(name: str, vendor: str) -> str:
    """Write a job's name with the vendor that it is for; one for every OLT has its name alone."""
    return f"{name} ({vendor})" if vendor else name


class ChainMemberForm(forms.ModelForm):  # type: ignore[type-arg]  # generic in its stubs only
    """One job of a chain; a new row takes a job that is in no chain yet."""

    member = JobChoiceField(SnmpJob.objects.none(), label=capfirst(gettext_lazy("job")), required=False)
    priority = forms.IntegerField(
        label=capfirst(gettext_lazy("order")),
        min_value=0,
        max_value=MAX_PRIORITY,
        initial=50,
        help_text=gettext_lazy("0 to 100; within a chain the smaller runs first."),
    )
    leaves = forms.BooleanField(label=capfirst(gettext_lazy("take out")), required=False)

    class Meta:
        model = SnmpJob
        fields = ["priority", "chain_condition"]

    field_order = ["member", "priority", "chain_condition", "leaves"]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        member = self.fields["member"]
        if isinstance(member, forms.ModelChoiceField) and self.instance.pk:
            member.queryset = SnmpJob.objects.filter(pk=self.instance.pk)
            member.initial, member.disabled = self.instance, True

    def clean(self) -> dict[str, Any]:
        """Turn a row for a new member into a change of that job."""
        values = super().clean() or {}
        member = values.get("member")
        if not self.instance.pk and isinstance(member, SnmpJob):
            self.instance = member
        elif not self.instance.pk:
            self.add_error("member", _("Choose the job that runs after this one."))
        return values

    def save(self, commit: bool = True) -> SnmpJob:
        """Write the order, or let the job run by itself from now on."""
        if self.cleaned_data.get("leaves"):
            self.instance.master_job = None
        saved: SnmpJob = super().save(commit)
        return saved


class ChainFormSet(forms.BaseInlineFormSet):  # type: ignore[type-arg]  # generic in its stubs only
    """All members of a chain; each has to be safe at the pace of its master."""

    def add_fields(self, form: Any, index: int | None) -> None:
        """Offer to a new row the jobs that could join."""
        super().add_fields(form, index)
        member = form.fields["member"]
        if isinstance(member, forms.ModelChoiceField) and not member.disabled:
            member.queryset = job_form.possible_members(self.instance)

    def clean(self) -> None:
        """Refuse a chain of a chain, a job that is named twice, and one that may not be read so often."""
        super().clean()
        staying = [form for form in self.forms if form.has_changed() or form.initial.get("id")]
        members = [form for form in staying if not form.errors and not form.cleaned_data.get("leaves")]
        if members and self.instance.master_job_id:
            raise forms.ValidationError(_("A job that runs after another one has no chain of its own."))
        for number, form in enumerate(members):
            if any(form.instance == before.instance for before in members[:number]):
                form.add_error("member", _("This job is in the chain already."))
                continue
            form.instance.master_job = self.instance
            try:
                check_job(form.instance, reads_of(form.instance))
            except forms.ValidationError as error:
                form.add_error("member", error)


class NodeForm(forms.ModelForm):  # type: ignore[type-arg]  # generic in its stubs only
    interval_seconds = job_form.IntervalField(label=capfirst(gettext_lazy("interval")))

    class Meta:
        model = WorkflowNode
        fields = ["workflow", "job", "enabled", "interval_seconds", "priority"]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        workflow = self.fields.get("workflow")
        if isinstance(workflow, forms.ModelChoiceField):
            workflow.queryset = (
                Workflow.objects.select_related("olt")
                .defer(*admin_pages.without_secrets(Workflow))
                .order_by("olt__name")
            )

    def clean(self) -> dict[str, Any]:
        """Find the master of a chained job, and refuse what would hurt the OLT."""
        values = super().clean() or {}
        job, workflow = values.get("job"), values.get("workflow")
        if isinstance(job, SnmpJob) and isinstance(workflow, Workflow):
            reason = application.misfit(job, workflow.olt)
            if reason:
                self.add_error("job", _("This job cannot run on this OLT: %(reason)s.") % {"reason": reason})
            elif job.master_job_id:
                self._chain(job, workflow)
        if not self.errors:
            # Check the node as it will be; where OLT and job cannot be chosen any more, they are the stored ones.
            try:
                check_change(self.instance, values)
            except forms.ValidationError as error:
                self.add_error("interval_seconds", error)
        return values

    def _chain(self, job: SnmpJob, workflow: Workflow) -> None:
        master = WorkflowNode.objects.filter(workflow=workflow, job_id=job.master_job_id).first()
        if master is None:
            self.add_error(
                "job", _('It runs after "%s", which this OLT does not have: add that first.') % job.master_job
            )
            return
        self.instance.is_chain_node, self.instance.master_node = True, master


class ApplyForm(forms.Form):
    everything = forms.BooleanField(label=gettext_lazy("All OLTs listed here"), required=False)
    groups = forms.ModelMultipleChoiceField(
        OltGroup.objects.none(),
        label=gettext_lazy("Groups of OLTs"),
        required=False,
        widget=forms.CheckboxSelectMultiple,
    )
    olts = forms.MultipleChoiceField(label=gettext_lazy("OLTs"), required=False, widget=forms.CheckboxSelectMultiple)

    def __init__(self, *args: Any, fitting: Iterable[Olt], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._fitting = sorted(fitting, key=lambda olt: (_group_name(olt), olt.name))
        groups = {olt.group_id for olt in self._fitting if olt.group_id}
        if groups:
            self.fields["groups"].queryset = OltGroup.objects.filter(pk__in=groups)  # type: ignore[attr-defined]
        else:
            del self.fields["groups"]
        self.fields["olts"].choices = [  # type: ignore[attr-defined]
            (name or _("no group"), [(str(olt.pk), olt.name) for olt in olts])
            for name, olts in groupby(self._fitting, key=_group_name)
        ]

    def clean(self) -> dict[str, Any]:
        values = super().clean() or {}
        groups, ids = set(values.get("groups") or ()), set(values.get("olts") or ())
        chosen = [olt for olt in self._fitting if values.get("everything") or olt.group in groups or str(olt.pk) in ids]
        if not chosen:
            raise forms.ValidationError(_("Choose at least one OLT."))
        return {**values, "chosen": sorted(chosen, key=lambda olt: olt.name)}


def _group_name(olt: Olt) -> str:
    return olt.group.name if olt.group else ""


class ApplyAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # generic in its stubs only
    """Jobs with `apply/` next to their list."""

    def get_urls(self) -> list[Any]:
        ours = path("apply/", self.admin_site.admin_view(self.apply_view), name="snmp_jobs_snmpjob_apply")
        return [ours, *super().get_urls()]

    @method_decorator(require_http_methods(["GET", "HEAD", "POST"]))
    def apply_view(self, request: HttpRequest) -> HttpResponse:
        """Ask for OLTs, show what they would get, and give it when that is confirmed."""
        if not self.has_change_permission(request):
            raise PermissionDenied
        chosen = list(SnmpJob.objects.filter(pk__in=_numbers(request.GET.get("jobs", ""))))
        if not chosen:
            raise Http404
        jobs = application.with_chains(chosen)
        if "shown" in request.POST:
            try:
                added = _apply_as_shown(request, jobs)
            except IntegrityError:
                messages.error(
                    request, _("Nothing was added: something has changed meanwhile. This would be done now.")
                )
                return self._show(request, jobs, _chosen(request, jobs))
            messages.success(
                request, ngettext("%(n)s node was added.", "%(n)s nodes were added.", added) % {"n": added}
            )
            return HttpResponseRedirect(reverse("admin:snmp_jobs_snmpjob_changelist"))
        form = ApplyForm(request.POST or None, fitting=_fitting(jobs))
        if not form.is_valid():
            return self._page(request, jobs, form=form)
        return self._show(request, jobs, form.cleaned_data["chosen"])

    def _show(self, request: HttpRequest, jobs: Sequence[SnmpJob], olts: Sequence[Olt]) -> HttpResponse:
        plan = application.plan_application(jobs, olts)
        work = application.weigh(plan, jobs, now=timezone.now())
        rows = [(each, *work.get(each.olt_id, (None, None))) for each in plan]
        return self._page(
            request,
            jobs,
            rows=rows,
            shown=application.fingerprint(plan),
            chosen=",".join(str(olt.pk) for olt in olts),
            count=sum(len(each.adds) for each in plan),
        )

    def _page(self, request: HttpRequest, jobs: Sequence[SnmpJob], **more: Any) -> HttpResponse:
        context = {
            **self.admin_site.each_context(request),
            "title": _("Apply to OLTs"),
            "opts": self.opts,
            "jobs": [(job, format_interval(job.interval_seconds)) for job in jobs],
            "media": self.media,
            **more,
        }
        return TemplateResponse(request, "admin/snmp_jobs/snmpjob/apply.html", context)


def apply_address(jobs: Sequence[SnmpJob]) -> str:
    return f"{reverse('admin:snmp_jobs_snmpjob_apply')}?jobs={','.join(str(job.pk) for job in jobs)}"


@transaction.atomic
def _apply_as_shown(request: HttpRequest, jobs: Sequence[SnmpJob]) -> int:
    """Add what was shown and write it down; Overtaken when it would be something else by now."""
    plan = application.plan_application(jobs, _chosen(request, jobs))
    if application.fingerprint(plan) != request.POST["shown"]:
        raise application.Overtaken
    added = application.apply_plan(plan, jobs, now=timezone.now())
    names = ", ".join(each.olt for each in plan if each.adds)
    admin_pages.write_down(request, jobs, CHANGE, format_lazy(gettext_lazy("Applied to {olts}."), olts=names))
    return added


def _chosen(request: HttpRequest, jobs: Sequence[SnmpJob]) -> list[Olt]:
    numbers = _numbers(request.POST.get("chosen", ""))
    return [olt for olt in _fitting(jobs) if olt.pk in numbers]


def _fitting(jobs: Sequence[SnmpJob]) -> list[Olt]:
    """Return the OLTs that at least one of the jobs fits."""
    olts = stored_olts().select_related("group", "model__brand")
    return [olt for olt in olts if any(not application.misfit(job, olt) for job in jobs)]


def _numbers(text: str) -> set[int]:
    # Nothing that a row could have is longer.
    return {int(part) for part in text.split(",") if part.isascii() and part.isdecimal() and len(part) < 19}


class OidInline(admin.TabularInline):  # type: ignore[type-arg]  # generic in its stubs only
    model = SnmpJobOid
    form = job_form.OidForm
    formset = job_form.OidFormSet
    fields = ["position", "column_key", "oid", "name", "unit", "keeps_history"]
    extra = 1


class ChainInline(admin.TabularInline):  # type: ignore[type-arg]
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
        return super().get_queryset(request).order_by("priority", "id")


@admin.register(SnmpJob)
class SnmpJobAdmin(ApplyAdmin):
    """Jobs: what to read, how often it is suggested, in which hours it may run, and what runs after it."""

    form = job_form.JobForm
    list_display = ["name", "vendor", "query_type", "interval", "chain", "olts"]
    list_filter = [VendorFilter, "query_type"]
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
        return [OidInline, ChainInline] if obj and obj.master_job_id is None else [OidInline]

    @admin.display(description=gettext_lazy("interval"), ordering="interval_seconds")
    def interval(self, job: SnmpJob) -> str:
        return format_interval(job.interval_seconds)

    @admin.display(description=gettext_lazy("chain"))
    def chain(self, job: SnmpJob) -> str:
        if job.master_job:
            return _("after %(master)s") % {"master": job.master_job.name}
        number = getattr(job, "chain_length", 0) or 0
        return ngettext("%(n)s job after it", "%(n)s jobs after it", number) % {"n": number} if number else ""

    @admin.display(description=gettext_lazy("OLTs"), ordering="olts_all")
    def olts(self, job: SnmpJob) -> SafeString:
        place = f"{reverse('admin:snmp_jobs_workflownode_changelist')}?job={job.pk}"
        on, everywhere = getattr(job, "olts_on", 0) or 0, getattr(job, "olts_all", 0) or 0
        return format_html('<a href="{}">{}</a>', place, on if on == everywhere else f"{on} / {everywhere}")

    def save_model(self, request: HttpRequest, obj: SnmpJob, form: Any, change: bool) -> None:
        """Write the job, and move its nodes to a slot within its new hours, or after their new master."""
        super().save_model(request, obj, form, change)
        if change:
            self._report_carried(request, job_form.carry_to_nodes(form, now=timezone.now()))

    def response_add(self, request: HttpRequest, obj: SnmpJob, post_url_continue: str | None = None) -> HttpResponse:
        """Continue with the OLTs: a new job runs on none."""
        if {"_addanother", "_continue", "_popup"} & set(request.POST):
            return super().response_add(request, obj, post_url_continue)
        self.message_user(request, _("%(job)s was added. Choose the OLTs that it runs on.") % {"job": obj})
        return HttpResponseRedirect(apply_address([obj]))

    def save_formset(self, request: HttpRequest, form: Any, formset: Any, change: bool) -> None:
        """Write the rows below the job, and carry its chain to the nodes."""
        super().save_formset(request, form, formset, change)
        if formset.model is SnmpJob:
            members = [*formset.new_objects, *(job for job, _fields in formset.changed_objects)]
            self._report_carried(request, job_form.carry_chain(members, now=timezone.now()))

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        """Write what the job reads, and warn where it is more than an OLT has time for."""
        super().save_related(request, form, formsets, change)
        nodes = WorkflowNode.objects.filter(job=form.instance, enabled=True)
        _warn(request, set(nodes.order_by().values_list("workflow__olt_id", flat=True)))

    @admin.action(description=gettext_lazy("Apply to OLTs"), permissions=["change"])
    def apply_to_olts(self, request: HttpRequest, queryset: QuerySet[SnmpJob]) -> HttpResponse:
        return HttpResponseRedirect(apply_address(list(queryset)))

    @admin.action(description=gettext_lazy("Run now on all their OLTs"), permissions=["change"])
    def run_now(self, request: HttpRequest, queryset: QuerySet[SnmpJob]) -> None:
        """Ask for a run of the masters among the nodes of the jobs that were chosen."""
        _run_now(request, queryset, _nodes_of(queryset))
        if queryset.filter(master_job__isnull=False).exists():
            self.message_user(request, _("Nodes of a chain run with their master."), messages.WARNING)

    @admin.action(description=gettext_lazy("Enable on all their OLTs"), permissions=["change"])
    def enable(self, request: HttpRequest, queryset: QuerySet[SnmpJob]) -> None:
        _switch(request, queryset, _nodes_of(queryset), enabled=True)

    @admin.action(description=gettext_lazy("Disable on all their OLTs"), permissions=["change"])
    def disable(self, request: HttpRequest, queryset: QuerySet[SnmpJob]) -> None:
        _switch(request, queryset, _nodes_of(queryset), enabled=False)

    def _report_carried(self, request: HttpRequest, moved: int) -> None:
        if moved:
            text = ngettext("%(n)s node follows the new chain.", "%(n)s nodes follow the new chain.", moved)
            self.message_user(request, text % {"n": moved})


@admin.register(Workflow)
class WorkflowAdmin(admin_pages.ReadOnlyAdmin):
    list_display = ["olt", "node_count", "created_at"]
    search_fields = ["olt__name"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Workflow]:
        rows: QuerySet[Workflow] = super().get_queryset(request)
        return rows.annotate(nodes_counted=Count("nodes"))

    @admin.display(description=gettext_lazy("nodes"), ordering="nodes_counted")
    def node_count(self, workflow: Workflow) -> int:
        return int(getattr(workflow, "nodes_counted", 0))


class JobFilter(admin.SimpleListFilter):
    """Narrows nodes to those of one job; the list of jobs leads here."""

    title = gettext_lazy("job")
    parameter_name = "job"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        jobs = SnmpJob.objects.order_by("name").values_list("pk", "name", "vendor")
        return [(str(pk), job_title(name, vendor)) for pk, name, vendor in jobs]

    def queryset(self, request: HttpRequest, queryset: QuerySet[WorkflowNode]) -> QuerySet[WorkflowNode]:
        chosen = self.value()
        return queryset.filter(job_id=int(chosen)) if chosen and chosen.isdecimal() else queryset


class NodeOltFilter(OltFilter):
    path = "workflow__olt_id"


@admin.register(WorkflowNode)
class WorkflowNodeAdmin(admin_pages.LongListAdmin):
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
        return rows.defer(*admin_pages.without_secrets(WorkflowNode, "workflow__olt"))

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        """Let OLT and job be chosen once: another pair is another node."""
        return ["workflow", "job", *self.readonly_fields] if obj else self.readonly_fields

    @admin.display(description=gettext_lazy("OLT"), ordering="workflow__olt__name")
    def olt(self, node: WorkflowNode) -> str:
        return node.workflow.olt.name

    @admin.display(description=gettext_lazy("state"), ordering="enabled")
    def state(self, node: WorkflowNode) -> SafeString:
        if not node.enabled:
            return admin_pages.badge("quiet", _("disabled"))
        return (
            admin_pages.badge("warn", _("suspended")) if node.suspended_at else admin_pages.badge("good", _("enabled"))
        )

    @admin.display(description=gettext_lazy("interval"), ordering="interval_seconds")
    def interval(self, node: WorkflowNode) -> str:
        return format_interval(node.interval_seconds)

    @admin.display(description=gettext_lazy("next run"), ordering="next_run_at")
    def next_run(self, node: WorkflowNode) -> SafeString | str:
        return admin_pages.short_time(node.next_run_at)

    @admin.display(description=gettext_lazy("last run"), ordering="last_run_at")
    def last_run(self, node: WorkflowNode) -> SafeString | str:
        return admin_pages.short_time(node.last_run_at)

    @admin.display(description=gettext_lazy("runs after"), ordering="master_node")
    def master(self, node: WorkflowNode) -> str:
        return node.master_node.job.name if node.master_node else ""

    def save_model(self, request: HttpRequest, obj: WorkflowNode, form: Any, change: bool) -> None:
        now = timezone.now()
        if change:
            changed = {name: form.cleaned_data[name] for name in form.changed_data}
            change_nodes(WorkflowNode.objects.filter(id=obj.pk), NodeChange(**changed), now=now)
        else:
            obj.save()
            give_first_slots(WorkflowNode.objects.filter(id=obj.pk), now)
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
        _switch(request, queryset, queryset, enabled=True)

    @admin.action(description=gettext_lazy("Disable"), permissions=["change"])
    def disable(self, request: HttpRequest, queryset: QuerySet[WorkflowNode]) -> None:
        _switch(request, queryset, queryset, enabled=False)

    @admin.action(description=gettext_lazy("Return to the schedule"), permissions=["change"])
    @transaction.atomic
    def resume(self, request: HttpRequest, queryset: QuerySet[WorkflowNode]) -> None:
        chosen = WorkflowNode.objects.filter(id__in=[node.id for node in queryset])
        resumed = return_to_schedule(chosen, now=timezone.now())
        admin_pages.write_down(request, queryset, CHANGE, gettext_lazy("Returned to the schedule."))
        text = ngettext("%(n)s node was resumed.", "%(n)s nodes were resumed.", resumed) % {"n": resumed}
        self.message_user(request, text)


def _nodes_of(jobs: QuerySet[SnmpJob]) -> QuerySet[WorkflowNode]:
    return WorkflowNode.objects.filter(job__in=[job.pk for job in jobs])


@transaction.atomic
def _run_now(request: HttpRequest, chosen: QuerySet[Any], nodes: QuerySet[WorkflowNode]) -> None:
    admin_pages.write_down(request, chosen, CHANGE, gettext_lazy("Run now."))
    asked = request_runs(nodes, now=timezone.now())
    messages.success(request, ngettext("%(n)s node will run now.", "%(n)s nodes will run now.", asked) % {"n": asked})


@transaction.atomic
def _switch(request: HttpRequest, chosen: QuerySet[Any], nodes: QuerySet[WorkflowNode], *, enabled: bool) -> None:
    """Enable or disable, report how many, and what follows for their OLTs."""
    # Audit first: a list filtered by enabled no longer contains the nodes once they are disabled.
    admin_pages.write_down(request, chosen, CHANGE, gettext_lazy("Enabled.") if enabled else gettext_lazy("Disabled."))
    olt_ids = set(nodes.order_by().values_list("workflow__olt_id", flat=True)) if enabled else set()
    chosen_nodes = WorkflowNode.objects.filter(pk__in=nodes.order_by().values("pk"))
    changed = change_nodes(chosen_nodes, NodeChange(enabled=enabled), now=timezone.now())
    if enabled:
        text = ngettext("%(n)s node was enabled.", "%(n)s nodes were enabled.", changed)
    else:
        text = ngettext("%(n)s node was disabled.", "%(n)s nodes were disabled.", changed)
    messages.success(request, text % {"n": changed})
    _warn(request, olt_ids)


def _warn(request: HttpRequest, olt_ids: Collection[int]) -> None:
    for warning in application.advise(olt_ids):
        messages.warning(request, warning)
