"""The import of customers: a file or its text, what it would change, and the import once that was confirmed."""

import base64
import zlib
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.crypto import constant_time_compare, get_random_string
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_http_methods

from facho.accounts.scope import scope_of
from facho.dashboard.shared.page import for_users, must_operate
from facho.hosts.inventory import ImportPlan, InventoryError, PlanChanged, RowVerdict, content_of
from facho.onus.customers import COORDINATES, FIELDS, plan_file, read_file, save_customers

PENDING = "customer_import"
# 50,000 customers; more are imported by the command line, or in parts.
MAX_BYTES = 5_000_000
# More rows than anybody reads; the counts cover all rows.
SHOWN_ROWS = 200


class CustomerFileForm(forms.Form):
    file = forms.FileField(
        label=gettext_lazy("CSV file or Excel workbook"),
        required=False,
        widget=forms.ClearableFileInput(attrs={"accept": ".csv,.txt,.tsv,.xlsx"}),
    )
    text = forms.CharField(
        label=gettext_lazy("or its text"),
        required=False,
        strip=False,
        widget=forms.Textarea(
            attrs={
                "rows": 6,
                "spellcheck": "false",
                "placeholder": "serial,label,phone\nHWTC12345678,Ana Ríos,555 1234",
            }
        ),
    )

    def clean(self) -> dict[str, Any]:
        values = super().clean() or {}
        too_large = _("The file is too large: import it in parts, or with `facho onu import`.")
        return {**values, "content": content_of(values, most_bytes=MAX_BYTES, too_large=too_large)}


@require_http_methods(["GET", "HEAD", "POST"])
@for_users
def customers_page(request: HttpRequest) -> HttpResponse:
    """Ask for a file, preview the changes, and write them once confirmed; for operators, within their OLTs."""
    must_operate(request)
    if request.method != "POST":
        return _page(request, CustomerFileForm())
    pending = request.session.pop(PENDING, None)
    if "confirmed" in request.POST:
        return _carry_out(request, pending)
    form = CustomerFileForm(request.POST, request.FILES)
    if not form.is_valid():
        return _page(request, form)
    return _preview(request, form.cleaned_data["content"], form)


def _preview(request: HttpRequest, content: bytes, form: CustomerFileForm) -> HttpResponse:
    plan, ticket = plan_file(content, scope_of(request.user)), get_random_string(20)
    if plan.is_good:
        packed = base64.b64encode(zlib.compress(content)).decode()
        request.session[PENDING] = {"ticket": ticket, "file": packed, "shown": plan.fingerprint}
    return _page(request, form, plan=plan, ticket=ticket)


def _carry_out(request: HttpRequest, pending: dict[str, str] | None) -> HttpResponse:
    if not pending or not constant_time_compare(pending["ticket"], request.POST["confirmed"]):
        messages.error(request, _("Nothing was imported: another file was uploaded meanwhile. Upload this one again."))
        return redirect("settings-customers")
    content = zlib.decompress(base64.b64decode(pending["file"]))
    try:
        saved = save_customers(
            read_file(content),
            who=request.user,
            scope=scope_of(request.user),
            source=_("Imported from a file."),
            now=timezone.now(),
            shown=pending["shown"],
        )
    except (PlanChanged, InventoryError):
        messages.error(
            request, _("Nothing was imported: some customers changed meanwhile. Check the changes below again.")
        )
        return _preview(request, content, CustomerFileForm())
    counts = {"written": saved.written, "unchanged": saved.unchanged, "left_out": len(saved.left_out)}
    messages.success(
        request, _("%(written)s customers written, %(unchanged)s unchanged, %(left_out)s left out") % counts
    )
    return redirect("settings-customers")


def _page(
    request: HttpRequest, form: CustomerFileForm, plan: ImportPlan | None = None, ticket: str = ""
) -> HttpResponse:
    told = (RowVerdict.ERROR, RowVerdict.LEFT_OUT, RowVerdict.NEW, RowVerdict.CHANGED)
    rows = [row for verdict in told for row in plan.rows_of(verdict)] if plan else []
    context = {
        "here": "settings",
        "place": "customers",
        "form": form,
        "plan": plan,
        "ticket": ticket,
        "rows": rows[:SHOWN_ROWS],
        "further": max(len(rows) - SHOWN_ROWS, 0),
        "to_write": plan.counts[RowVerdict.NEW] + plan.counts[RowVerdict.CHANGED] if plan else 0,
        "columns": [name for name in FIELDS if name not in COORDINATES],
    }
    return render(request, "settings/customers.html", context)
