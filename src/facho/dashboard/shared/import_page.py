"""A page that imports a file or its text: what it would change, and the import once that was confirmed."""

import base64
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.crypto import constant_time_compare, get_random_string
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from facho.accounts.scope import OltScope, scope_of
from facho.hosts.inventory import ImportPlan, InventoryError, PlanChanged, RowVerdict, content_of
from facho.onus.customers import Imported

# 50,000 customers; more are imported by the command line, or in parts.
MAX_BYTES = 5_000_000
# More rows than anybody reads; the counts cover all rows.
SHOWN_ROWS = 200
SHOWN_VERDICTS = (RowVerdict.ERROR, RowVerdict.LEFT_OUT, RowVerdict.NEW, RowVerdict.CHANGED)


class FileForm(forms.Form):
    """Kinds of files, an example and the words for a file that is too large are those of the page."""

    file = forms.FileField(required=False)
    text = forms.CharField(
        label=gettext_lazy("or its text"),
        required=False,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 6, "spellcheck": "false"}),
    )

    def __init__(self, page: "ImportPage", request: HttpRequest | None = None) -> None:
        super().__init__(*((request.POST, request.FILES) if request else ()))
        self._too_large = page.too_large
        self.fields["file"].label = str(page.file_label)
        self.fields["file"].widget.attrs["accept"] = page.accepts
        self.fields["text"].widget.attrs["placeholder"] = page.example

    def clean(self) -> dict[str, Any]:
        values = super().clean() or {}
        return {**values, "content": content_of(values, most_bytes=MAX_BYTES, too_large=str(self._too_large))}


@dataclass(frozen=True, slots=True)
class ImportPage:
    """What differs between imports; `pending` is the key of the session under which a sound file waits."""

    pending: str
    template: str
    address: str
    address_after: str
    file_label: Promise
    accepts: str
    example: str
    too_large: Promise
    changed_meanwhile: Promise
    saved: Promise
    plan: Callable[[bytes, OltScope], ImportPlan]
    save: Callable[..., Imported]
    context: Mapping[str, Any] = field(default_factory=dict)

    def answer(self, request: HttpRequest) -> HttpResponse:
        """Ask for a file, preview the changes, and write them once confirmed."""
        if request.method != "POST":
            return self._show(request, FileForm(self))
        pending = request.session.pop(self.pending, None)
        if "confirmed" in request.POST:
            return self.carry_out(request, pending)
        form = FileForm(self, request)
        if not form.is_valid():
            return self._show(request, form)
        return self.preview(request, form.cleaned_data["content"], form)

    def preview(self, request: HttpRequest, content: bytes, form: FileForm) -> HttpResponse:
        """Show what a file would change; a sound one is kept for the confirmation."""
        plan, ticket = self.plan(content, scope_of(request.user)), get_random_string(20)
        if plan.is_good:
            packed = base64.b64encode(zlib.compress(content)).decode()
            request.session[self.pending] = {"ticket": ticket, "file": packed, "shown": plan.fingerprint}
        return self._show(request, form, plan, ticket)

    def carry_out(self, request: HttpRequest, pending: dict[str, str] | None) -> HttpResponse:
        """Import what was confirmed, unless something changed since it was shown."""
        if not pending or not constant_time_compare(pending["ticket"], request.POST["confirmed"]):
            messages.error(
                request, _("Nothing was imported: another file was uploaded meanwhile. Upload this one again.")
            )
            return redirect(self.address)
        content = zlib.decompress(base64.b64decode(pending["file"]))
        try:
            saved = self.save(
                content,
                who=request.user,
                scope=scope_of(request.user),
                source=_("Imported from a file."),
                now=timezone.now(),
                shown=pending["shown"],
            )
        except (PlanChanged, InventoryError):
            messages.error(request, str(self.changed_meanwhile))
            return self.preview(request, content, FileForm(self))
        counts = {"written": saved.written, "unchanged": saved.unchanged, "left_out": len(saved.left_out)}
        messages.success(request, str(self.saved) % counts)
        return redirect(self.address_after)

    def _show(
        self, request: HttpRequest, form: FileForm, plan: ImportPlan | None = None, ticket: str = ""
    ) -> HttpResponse:
        rows = [row for verdict in SHOWN_VERDICTS for row in plan.rows_of(verdict)] if plan else []
        context = {
            "form": form,
            "plan": plan,
            "ticket": ticket,
            "rows": rows[:SHOWN_ROWS],
            "further": max(len(rows) - SHOWN_ROWS, 0),
            "to_write": plan.counts[RowVerdict.NEW] + plan.counts[RowVerdict.CHANGED] if plan else 0,
        }
        return render(request, self.template, {**context, **self.context})
