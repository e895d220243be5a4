"""ONUs waiting for authorisation, as a page and a CSV file."""

import csv

from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe

from facho.accounts.scope import scope_of
from facho.dashboard.shared.page import (
    ROWS_PER_PAGE,
    TimelineFilter,
    cursor_of,
    for_users,
    render_part_or_page,
    search_field,
)
from facho.hosts.models import WaitingOnu
from facho.infrastructure.spreadsheet import guard
from facho.onus.timeline import load_rows

# As the API names them.
CSV_COLUMNS = ("serial", "model", "olt", "pon_port", "first_seen_at", "last_seen_at")
_COLUMNS = ("serial", "model", "frame", "slot", "port", "first_seen_at", "last_seen_at", "olt__name")


class WaitingFilter(TimelineFilter):
    lookups = {"olt": "olt_id", "after": "first_seen_at__gte", "before": "first_seen_at__lt"}
    q = search_field(_("ONU"), _("serial or model"), max_length=60)
    field_order = ("q", "olt", "after", "before")

    def narrow(self, onus: QuerySet[WaitingOnu]) -> QuerySet[WaitingOnu]:
        if text := self.chosen.get("q"):
            onus = onus.filter(Q(serial__icontains=text) | Q(model__icontains=text))
        return super().narrow(onus)


@require_safe
@for_users
def waiting_page(request: HttpRequest) -> HttpResponse:
    form, onus = _narrowed(request)
    page = load_rows(onus, "first_seen_at", cursor_of(request), ROWS_PER_PAGE)
    context = {"here": "waiting", "now": timezone.now(), "form": form, "page": page, "rows": page.rows}
    return render_part_or_page(request, "waiting/list.html", "waiting/waiting.html", context)


@require_safe
@for_users
def waiting_export(request: HttpRequest) -> HttpResponse:
    """Export the filtered list as CSV, with formulas neutralised."""
    onus = _narrowed(request)[1].order_by("-first_seen_at", "-id")
    answer = HttpResponse(
        content_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": 'attachment; filename="waiting-onus.csv"'},
    )
    writer = csv.writer(answer, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    for onu in onus.iterator():
        times = (onu.first_seen_at.isoformat(), onu.last_seen_at.isoformat())
        writer.writerow([guard(cell) for cell in (onu.serial, onu.model, onu.olt.name, onu.pon_port, *times)])
    return answer


def _narrowed(request: HttpRequest) -> tuple[WaitingFilter, QuerySet[WaitingOnu]]:
    scope = scope_of(request.user)
    form = WaitingFilter(request.GET, scope)
    onus = WaitingOnu.objects.select_related("olt").only(*_COLUMNS)
    return form, form.narrow(scope.narrow(onus))
