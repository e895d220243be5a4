"""ONUs that OLTs have found and that nobody has authorised, on a page and as a file."""

import csv
from collections.abc import Iterable

from django import forms
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe
from django.views.decorators.vary import vary_on_headers

from facho.accounts.scope import scope_of
from facho.dashboard.parts import for_users, is_part
from facho.dashboard.timeline_lists import ROWS_PER_PAGE, TimelineFilter, cursor_of
from facho.hosts.csv_rows import guard
from facho.hosts.models import WaitingOnu
from facho.onus.timeline import load_rows

# As the API names them.
CSV_COLUMNS = ("serial", "model", "olt", "pon_port", "first_seen_at", "last_seen_at")


class WaitingFilter(TimelineFilter):
    """Which ONUs, at which OLT, waiting since when."""

    q = forms.CharField(
        label=_("ONU"),
        required=False,
        max_length=60,
        widget=forms.TextInput(attrs={"type": "search", "placeholder": _("serial or model")}),
    )
    field_order = ("q", "olt", "after", "before")

    def narrow(self, onus: QuerySet[WaitingOnu]) -> QuerySet[WaitingOnu]:
        """Apply what was filled in."""
        values = self.chosen
        if text := values.get("q"):
            onus = onus.filter(Q(serial__icontains=text) | Q(model__icontains=text))
        given = {"olt": "olt_id", "after": "first_seen_at__gte", "before": "first_seen_at__lt"}
        return onus.filter(**{lookup: values[name] for name, lookup in given.items() if name in values})


@require_safe
@vary_on_headers("HX-Request")
@for_users
def waiting_page(request: HttpRequest) -> HttpResponse:
    """List ONUs that wait, narrowed by the form; htmx gets the list alone."""
    form, onus = _narrowed(request)
    page = load_rows(onus, "first_seen_at", cursor_of(request), ROWS_PER_PAGE)
    context = {"here": "waiting", "now": timezone.now(), "form": form, "page": page, "rows": page.rows}
    return render(request, "dashboard/waiting_list.html" if is_part(request) else "dashboard/waiting.html", context)


@require_safe
@for_users
def waiting_export(request: HttpRequest) -> HttpResponse:
    """Give all that the form leaves as CSV, with nothing in it that a spreadsheet would run."""
    onus = _narrowed(request)[1].order_by("-first_seen_at", "-id")
    answer = HttpResponse(
        content_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": 'attachment; filename="waiting-onus.csv"'},
    )
    writer = csv.writer(answer, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    writer.writerows(_cells(onus.iterator()))
    return answer


def _narrowed(request: HttpRequest) -> tuple[WaitingFilter, QuerySet[WaitingOnu]]:
    scope = scope_of(request.user)
    form = WaitingFilter(request.GET, scope)
    onus = WaitingOnu.objects.select_related("olt").only(*_COLUMNS)
    return form, form.narrow(scope.narrow(onus))


_COLUMNS = ("serial", "model", "frame", "slot", "port", "first_seen_at", "last_seen_at", "olt__name")


def _cells(onus: Iterable[WaitingOnu]) -> Iterable[list[str]]:
    for onu in onus:
        times = (onu.first_seen_at.isoformat(), onu.last_seen_at.isoformat())
        yield [guard(cell) for cell in (onu.serial, onu.model, onu.olt.name, onu.pon_port, *times)]
