"""Who may look and who may act, and what a request of a page's own part is answered with."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django_htmx.http import HttpResponseClientRefresh

from facho.accounts.roles import Role, role_of

View = Callable[..., HttpResponse]


def for_users(view: View) -> View:
    """Ask visitors to log in; a part that refreshes itself makes its page do so, instead of showing a login inside."""
    page = login_required(view)

    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if is_part(request) and not request.user.is_authenticated:
            return HttpResponseClientRefresh()
        return page(request, *args, **kwargs)

    return guarded


def may_operate(request: HttpRequest) -> bool:
    """Tell whether the role of the user allows to change things; one query."""
    role = role_of(request.user)
    return role is not None and role.includes(Role.OPERATOR)


def is_part(request: HttpRequest) -> bool:
    """Tell whether a page asks for a part of itself; going back in the browser asks for the whole."""
    return request.headers.get("HX-Request") == "true" and "HX-History-Restore-Request" not in request.headers
