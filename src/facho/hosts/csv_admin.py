"""Admin pages for the inventory as CSV: what would change is shown, then done exactly so or not at all."""

from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.models import ADDITION, CHANGE
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import path, reverse
from django.utils.crypto import constant_time_compare, get_random_string
from django.utils.decorators import method_decorator
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_safe

from facho.hosts.admin_pages import write_down
from facho.hosts.csv_file import import_file, plan_file, write_entries
from facho.hosts.import_form import ImportForm
from facho.hosts.import_plan import ImportPlan, Verdict
from facho.hosts.inventory import InventoryError, PlanChanged, Saved, export_entries
from facho.hosts.models import Olt
from facho.hosts.secrets import Secret, decrypt, encrypt

# What was shown and waits for its confirmation; the file holds secrets, so it is kept as they are.
PENDING = "olt_import"
_imported = gettext_lazy("Imported from a CSV file.")


class CsvAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # generic in its stubs only
    """OLTs with `import/` and `export/` beside their list."""

    change_list_template = "admin/hosts/olt/change_list.html"

    def get_urls(self) -> list[Any]:
        """Put the two pages before those that Django has."""
        ours = [
            path("import/", self.admin_site.admin_view(self.import_view), name="hosts_olt_import"),
            path("export/", self.admin_site.admin_view(self.export_view), name="hosts_olt_export"),
        ]
        return [*ours, *super().get_urls()]

    @method_decorator(require_safe)
    def export_view(self, request: HttpRequest) -> HttpResponse:
        """Give the file, without secrets and without formulas."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        headers = {"Content-Disposition": 'attachment; filename="olts.csv"'}
        return HttpResponse(write_entries(export_entries()), content_type="text/csv; charset=utf-8", headers=headers)

    @method_decorator([require_http_methods(["GET", "HEAD", "POST"]), sensitive_post_parameters()])
    def import_view(self, request: HttpRequest) -> HttpResponse:
        """Ask for a file, show what it would do, and do it when that is confirmed."""
        if not (self.has_add_permission(request) and self.has_change_permission(request)):
            raise PermissionDenied
        pending = request.session.pop(PENDING, None)
        if request.method != "POST":
            return self._page(request, ImportForm())
        if "confirmed" in request.POST:
            return self._carry_out(request, pending)
        form = ImportForm(request.POST, request.FILES)
        if not form.is_valid():
            return self._page(request, form)
        content = form.cleaned_data["content"]
        return self._show(request, content, plan_file(content))

    def after_save(self, olt: Olt) -> None:
        """Do what rooms above need for an OLT that is new or has another vendor; nothing here."""

    def _show(self, request: HttpRequest, content: bytes, plan: ImportPlan) -> HttpResponse:
        ticket = get_random_string(20)
        if plan.is_good:
            stored = encrypt(Secret(content.decode()))
            request.session[PENDING] = {"ticket": ticket, "file": stored, "shown": plan.fingerprint}
        return self._page(request, ImportForm(), plan=plan, ticket=ticket)

    def _carry_out(self, request: HttpRequest, pending: dict[str, str] | None) -> HttpResponse:
        if not pending or not constant_time_compare(pending["ticket"], request.POST["confirmed"]):
            messages.error(request, _("Nothing was imported: another file was given meanwhile. Give this one again."))
            return HttpResponseRedirect(reverse("admin:hosts_olt_import"))
        content = decrypt(pending["file"]).reveal().encode()
        try:
            saved = import_file(
                content,
                shown=pending["shown"],
                after_save=self.after_save,
                finish=lambda saved: _write_down(request, saved),
            )
        except (PlanChanged, InventoryError):
            messages.error(
                request, _("Nothing was imported: OLTs have changed meanwhile. This is what would be done now.")
            )
            return self._show(request, content, plan_file(content))
        counts = {"added": len(saved.added), "updated": len(saved.updated)}
        messages.success(request, _("%(added)s OLTs added, %(updated)s updated") % counts)
        return HttpResponseRedirect(reverse("admin:hosts_olt_changelist"))

    def _page(self, request: HttpRequest, form: ImportForm, **more: Any) -> HttpResponse:
        plan: ImportPlan | None = more.get("plan")
        context = {
            **self.admin_site.each_context(request),
            "title": _("Import OLTs"),
            "opts": self.opts,
            "form": form,
            "told": plan.rows_of(Verdict.ERROR, Verdict.NEW, Verdict.CHANGED) if plan else (),
            "unchanged": plan.rows_of(Verdict.UNCHANGED) if plan else (),
            "media": self.media,
            **more,
        }
        return TemplateResponse(request, "admin/hosts/olt/import.html", context)


def _write_down(request: HttpRequest, saved: Saved) -> None:
    for names, action in ((saved.added, ADDITION), (saved.updated, CHANGE)):
        write_down(request, Olt.objects.filter(name__in=names).only("name"), action, _imported)
