"""The admin page that puts jobs on OLTs: choose, see what each OLT would get and what it costs, then do it."""

from collections.abc import Sequence
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.models import CHANGE
from django.core.exceptions import PermissionDenied
from django.db import IntegrityError, transaction
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import path, reverse
from django.utils import timezone
from django.utils.decorators import method_decorator
from django.utils.text import format_lazy
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.http import require_http_methods

from facho.hosts.admin_pages import write_down
from facho.hosts.inventory import stored_olts
from facho.hosts.models import Olt
from facho.polling.domain.interval_text import format_interval
from facho.snmp_jobs.application import Overtaken, apply_plan, fingerprint, plan_application, weigh, with_chains
from facho.snmp_jobs.apply_form import ApplyForm
from facho.snmp_jobs.models import SnmpJob


class ApplyAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # generic in its stubs only
    """Jobs with `apply/` beside their list."""

    def get_urls(self) -> list[Any]:
        """Put the page before those that Django has."""
        ours = path("apply/", self.admin_site.admin_view(self.apply_view), name="snmp_jobs_snmpjob_apply")
        return [ours, *super().get_urls()]

    @method_decorator(require_http_methods(["GET", "HEAD", "POST"]))
    def apply_view(self, request: HttpRequest) -> HttpResponse:
        """Ask for OLTs, show what they would get, and give it when that is confirmed."""
        if not self.has_change_permission(request):
            raise PermissionDenied
        jobs = _jobs(request.GET.get("jobs", ""))
        if "shown" in request.POST:
            return self._carry_out(request, jobs)
        form = ApplyForm(request.POST or None, fitting=_fitting(jobs))
        if not form.is_valid():
            return self._page(request, jobs, form=form)
        return self._show(request, jobs, form.cleaned_data["chosen"])

    def _show(self, request: HttpRequest, jobs: Sequence[SnmpJob], olts: Sequence[Olt]) -> HttpResponse:
        plan = plan_application(jobs, olts)
        work = weigh(plan, jobs, now=timezone.now())
        rows = [(each, *work.get(each.olt_id, (None, None))) for each in plan]
        return self._page(
            request,
            jobs,
            rows=rows,
            shown=fingerprint(plan),
            chosen=",".join(str(olt.pk) for olt in olts),
            count=sum(len(each.adds) for each in plan),
        )

    def _carry_out(self, request: HttpRequest, jobs: Sequence[SnmpJob]) -> HttpResponse:
        try:
            added = _apply_as_shown(request, jobs)
        except IntegrityError:
            messages.error(request, _("Nothing was added: something has changed meanwhile. This would be done now."))
            return self._show(request, jobs, _chosen(request, jobs))
        messages.success(request, ngettext("%(n)s node was added.", "%(n)s nodes were added.", added) % {"n": added})
        return HttpResponseRedirect(reverse("admin:snmp_jobs_snmpjob_changelist"))

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
    """Return where jobs are put on OLTs."""
    return f"{reverse('admin:snmp_jobs_snmpjob_apply')}?jobs={','.join(str(job.pk) for job in jobs)}"


@transaction.atomic
def _apply_as_shown(request: HttpRequest, jobs: Sequence[SnmpJob]) -> int:
    """Add what was shown and write it down; Overtaken when it would be something else by now."""
    plan = plan_application(jobs, _chosen(request, jobs))
    if fingerprint(plan) != request.POST["shown"]:
        raise Overtaken
    added = apply_plan(plan, jobs, now=timezone.now())
    names = ", ".join(each.olt for each in plan if each.adds)
    write_down(request, jobs, CHANGE, format_lazy(gettext_lazy("Applied to {olts}."), olts=names))
    return added


def _chosen(request: HttpRequest, jobs: Sequence[SnmpJob]) -> list[Olt]:
    numbers = _numbers(request.POST.get("chosen", ""))
    return [olt for olt in _fitting(jobs) if olt.pk in numbers]


def _jobs(text: str) -> list[SnmpJob]:
    chosen = list(SnmpJob.objects.filter(pk__in=_numbers(text)))
    if not chosen:
        raise Http404
    return with_chains(chosen)


def _fitting(jobs: Sequence[SnmpJob]) -> list[Olt]:
    """Return the OLTs that at least one of the jobs fits."""
    olts = stored_olts().select_related("group")
    vendors = {job.vendor for job in jobs}
    return list(olts if "" in vendors else olts.filter(vendor__in=vendors))


def _numbers(text: str) -> set[int]:
    # Nothing that a row could have is longer.
    return {int(part) for part in text.split(",") if part.isascii() and part.isdecimal() and len(part) < 19}
