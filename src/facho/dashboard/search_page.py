"""The page of what was found, and the lines below the search field while somebody types."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_safe

from facho.accounts.scope import scope_of
from facho.dashboard.parts import for_users
from facho.dashboard.search import find, find_page, tidy

PAGE_LINES = 50
SUGGESTION_LINES = 6


@require_safe
@for_users
def search_page(request: HttpRequest) -> HttpResponse:
    """Go to the one thing that is meant, or list what may be."""
    text, scope = tidy(request.GET.get("q", "")), scope_of(request.user)
    found = find(text, scope, lines=PAGE_LINES)
    if page := find_page(text, found, scope):
        return redirect(page)
    return render(
        request, "dashboard/search.html", {"here": "search", "now": timezone.now(), "found": found, "searched": text}
    )


@require_safe
@for_users
def search_suggestions(request: HttpRequest) -> HttpResponse:
    """List a few of what may be meant by what is typed so far."""
    found = find(tidy(request.GET.get("q", "")), scope_of(request.user), lines=SUGGESTION_LINES)
    return render(request, "dashboard/search_suggestions.html", {"found": found})
