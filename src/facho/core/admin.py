"""Names the admin, and joins its page of OLTs with the jobs that a new OLT gets."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from facho.executions.store import load_busy_olts
from facho.hosts.admin import OltAdmin
from facho.hosts.models import Olt
from facho.snmp_jobs.ready_made import apply_ready_made_jobs

admin.site.site_header = _("Facho administration")
admin.site.site_title = "Facho"
admin.site.index_title = _("What Facho knows and does")


@admin.register(Olt)
class OltAdminWithJobs(OltAdmin):
    """OLTs, each with its vendor's ready-made jobs."""

    actions = ["add_jobs"]

    def after_save(self, olt: Olt) -> None:
        """Give an OLT of a known vendor its jobs; one to be recognised gets them from the engine."""
        if olt.vendor:
            apply_ready_made_jobs(olt, now=timezone.now())

    @admin.action(description=_("Add the vendor's ready-made jobs"), permissions=["change"])
    def add_jobs(self, request: HttpRequest, queryset: QuerySet[Olt]) -> None:
        """Give the chosen OLTs the jobs of their vendors that they lack; what they have stays as it is."""
        added = sum(apply_ready_made_jobs(olt, now=timezone.now()) for olt in queryset)
        self.message_user(request, ngettext("%(n)s node was added.", "%(n)s nodes were added.", added) % {"n": added})

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Protect an OLT that is being asked: its claim would vanish with it, and the packets would go on.

        What belongs to an OLT goes with it, though nobody may delete a single execution or ONU.
        """
        deleted, counts, _missing_permissions, protected = super().get_deleted_objects(objs, request)
        busy = load_busy_olts()
        sentence = _("%(olt)s is being polled: disable it, and delete it when its run has ended.")
        asked = [str(sentence % {"olt": olt}) for olt in objs if olt.id in busy]
        return deleted, counts, set(), [*protected, *asked]
