"""Pages in parts that refresh themselves, who may look and act, and how a request of a part is answered."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import wraps
from typing import Any, Generic, TypeVar

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django_htmx.http import HttpResponseClientRefresh

from facho.accounts.roles import Role, RoleNeeded, role_of

View = Callable[..., HttpResponse]
Subject = TypeVar("Subject")


@dataclass(frozen=True, slots=True)
class Part(Generic[Subject]):
    """A part of the page of something: what draws it, what it loads, and after how many seconds it does so again."""

    template: str
    seconds: int
    load: Callable[[HttpRequest, Subject, datetime], dict[str, Any]]


def part_called(name: str, parts: Mapping[str, Part[Subject]]) -> Part[Subject]:
    """Return the part that an address names; 404 for what is none."""
    if name not in parts:
        raise Http404
    return parts[name]


def load_parts(
    parts: Mapping[str, Part[Subject]], request: HttpRequest, subject: Subject, now: datetime
) -> dict[str, Any]:
    """Load what the whole page shows, and how often each part asks again."""
    context: dict[str, Any] = {"parts": parts}
    for part in parts.values():
        context |= part.load(request, subject, now)
    return context


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


def must_operate(request: HttpRequest) -> None:
    """Refuse who may not change things, and say who may."""
    if not may_operate(request):
        raise RoleNeeded(Role.OPERATOR)


def is_part(request: HttpRequest) -> bool:
    """Tell whether a page asks for a part of itself; going back in the browser asks for the whole."""
    return request.headers.get("HX-Request") == "true" and "HX-History-Restore-Request" not in request.headers
