"""Joins the admin's page of OLTs with the jobs that a new OLT gets, and with its nodes."""

from typing import Any

from django.contrib import admin
from django.contrib.admin.models import CHANGE
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from facho.executions.store import load_busy_olts
from facho.hosts.admin import OltAdmin
from facho.hosts.models import Olt
from facho.infrastructure.admin_pages import write_down
from facho.snmp_jobs.application import apply_ready_made_jobs
from facho.snmp_jobs.models import WorkflowNode
from facho.snmp_jobs.store import request_runs


@admin.register(Olt)
class OltAdminWithJobs(OltAdmin):
    actions = ["run_now", "enable", "disable", "add_jobs"]

    def after_save(self, olt: Olt) -> None:
        """Give an OLT of a known vendor its jobs; one to be recognised gets them from the engine."""
        if olt.vendor:
            apply_ready_made_jobs(olt, now=timezone.now())

    @admin.action(description=_("Run everything now"), permissions=["change"])
    @transaction.atomic
    def run_now(self, request: HttpRequest, queryset: QuerySet[Olt]) -> None:
        nodes = WorkflowNode.objects.filter(workflow__olt__in=[olt.pk for olt in queryset])
        asked = request_runs(nodes, now=timezone.now())
        write_down(request, queryset, CHANGE, _("Run now."))
        self.message_user(
            request, ngettext("%(n)s node will run now.", "%(n)s nodes will run now.", asked) % {"n": asked}
        )

    @admin.action(description=_("Enable"), permissions=["change"])
    def enable(self, request: HttpRequest, queryset: QuerySet[Olt]) -> None:
        self._switch(request, queryset, enabled=True)

    @admin.action(description=_("Disable"), permissions=["change"])
    def disable(self, request: HttpRequest, queryset: QuerySet[Olt]) -> None:
        """Let nothing be asked of the OLTs that were chosen; what runs ends before its next packet."""
        self._switch(request, queryset, enabled=False)

    @transaction.atomic
    def _switch(self, request: HttpRequest, queryset: QuerySet[Olt], *, enabled: bool) -> None:
        """Enable or disable OLTs; the coordinator sees it and does what follows."""
        others = Olt.objects.filter(pk__in=[olt.pk for olt in queryset], enabled=not enabled)
        changed = others.update(enabled=enabled, updated_at=timezone.now())
        if enabled:
            done, text = _("Enabled."), ngettext("%(n)s OLT was enabled.", "%(n)s OLTs were enabled.", changed)
        else:
            done, text = _("Disabled."), ngettext("%(n)s OLT was disabled.", "%(n)s OLTs were disabled.", changed)
        write_down(request, queryset, CHANGE, done)
        self.message_user(request, text % {"n": changed})

    @admin.action(description=_("Add the vendor's ready-made jobs"), permissions=["change"])
    @transaction.atomic
    def add_jobs(self, request: HttpRequest, queryset: QuerySet[Olt]) -> None:
        """Give the chosen OLTs the jobs of their vendors that they lack; what they have stays as it is."""
        added = sum(apply_ready_made_jobs(olt, now=timezone.now()) for olt in queryset)
        write_down(request, queryset, CHANGE, _("Added the vendor's ready-made jobs."))
        self.message_user(request, ngettext("%(n)s node was added.", "%(n)s nodes were added.", added) % {"n": added})

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Protect an OLT that is being asked; its rows may go with it, though no user may delete a single one."""
        deleted, counts, _missing_permissions, protected = super().get_deleted_objects(objs, request)
        busy = load_busy_olts()
        sentence = _("%(olt)s is being polled: disable it, and delete it when its run has ended.")
        asked = [str(sentence % {"olt": olt}) for olt in objs if olt.id in busy]
        return deleted, counts, set(), [*protected, *asked]
