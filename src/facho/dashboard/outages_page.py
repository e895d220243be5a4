"""The list of outages: those that go on, the largest first, then those that are over, the latest first."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe
from django.views.decorators.vary import vary_on_headers

from facho.accounts.scope import scope_of
from facho.dashboard.outage_filter import OutageFilter
from facho.dashboard.outages_now import outage_rows, shape_outages, whole_outages, with_names
from facho.dashboard.parts import for_users, is_part
from facho.dashboard.timeline_lists import ROWS_PER_PAGE, cursor_of
from facho.onus.timeline import load_rows

# More at once is one outage of something larger, or nobody reads them all.
OPEN_LINES = 200


@require_safe
@vary_on_headers("HX-Request")
@for_users
def outages_page(request: HttpRequest) -> HttpResponse:
    """List outages, narrowed by the form; htmx gets the list alone."""
    scope = scope_of(request.user)
    form = OutageFilter(request.GET, scope)
    context = _context(request, form, form.narrow(whole_outages(scope)))
    return render(request, "dashboard/outage_list.html" if is_part(request) else "dashboard/outages.html", context)


def _context(request: HttpRequest, form: OutageFilter, outages: Any) -> dict[str, Any]:
    cursor = cursor_of(request)
    over = load_rows(with_names(outages.filter(ended_at__isnull=False)), "started_at", cursor, ROWS_PER_PAGE)
    going_on = outages.filter(ended_at__isnull=True).order_by("-affected", "started_at", "id")
    return {
        "here": "outages",
        "now": timezone.now(),
        "form": form,
        "is_first": cursor is None,
        "going_on": [] if cursor else outage_rows(going_on[:OPEN_LINES]),
        "over": shape_outages(over.rows),
        "page": over,
    }
