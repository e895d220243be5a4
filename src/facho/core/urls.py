"""Every address the product answers, and what it answers where there is none or something failed."""

import sys
from contextlib import suppress
from http import HTTPStatus

from django.contrib import admin
from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.template.loader import render_to_string
from django.urls import include, path
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.generic import RedirectView

from facho.accounts.roles import NO_ROLE, Role, RoleNeeded
from facho.api.metrics import MetricsView
from facho.api.shared.problems import problem_response
from facho.core import health
from facho.core.health import livez, readyz
from facho.dashboard.account.views import admin_login
from facho.infrastructure.standstill import WORDS
from facho.neighbours.onu_metrics import OnuMetricsView
from facho.neighbours.smartolt_views import smartolt_calls

# Programs are answered here, never with a page.
API_PREFIXES = ("/api/", "/smartolt/")
# Time to make room on the disk.
RETRY_SECONDS = 30
# Errors of the request: the menu leads to another page.
WITH_MENU = (HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND)
NEEDED: dict[Role, Promise] = {
    Role.OPERATOR: gettext_lazy("It needs the role operator or admin, which an administrator can give you."),
    Role.ADMIN: gettext_lazy("It needs the role admin, which an administrator can give you."),
}

admin.autodiscover()

urlpatterns = [
    path("", include("facho.dashboard.urls")),
    path("api/v1/", include("facho.api.urls")),
    path("api/v1/", include("facho.neighbours.webhook_api")),
    # Before the admin's own: there is one way to log in.
    path("admin/login/", admin_login),
    # As there is one to change one's own password.
    path("admin/password_change/", RedirectView.as_view(pattern_name="account")),
    path("admin/", admin.site.urls),
    path("livez", livez, name="livez"),
    path("readyz", readyz, name="readyz"),
    path("metrics", MetricsView.as_view(), name="metrics"),
    path("metrics/onus", OnuMetricsView.as_view(), name="onu-metrics"),
    path("smartolt/api/", include(smartolt_calls)),
]


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    """Answer a request that Django refused to read."""
    return _answer(request, HTTPStatus.BAD_REQUEST, "bad_request", _("This request cannot be understood."))


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    if isinstance(exception, RoleNeeded) and exception.role is Role.VIEWER:
        # With the head of the page, to log out: the database has just answered who this is.
        return render(request, "account/no_role.html", {"hint": NO_ROLE}, status=HTTPStatus.FORBIDDEN)
    hint = str(NEEDED[exception.role]) if isinstance(exception, RoleNeeded) else ""
    return _answer(
        request, HTTPStatus.FORBIDDEN, "permission_denied", _("You do not have permission to see or do this."), hint
    )


def not_found(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    return _answer(request, HTTPStatus.NOT_FOUND, "not_found", _("There is nothing at this address."))


def server_error(request: HttpRequest) -> HttpResponseBase:
    """Answer after a defect, whose traceback is in the log, or when the storage fails."""
    if reason := health.notice(sys.exception()):
        what, remedy = str(WORDS[reason].what), str(WORDS[reason].remedy)
        is_api = request.path.startswith(API_PREFIXES)
        detail, hint = (f"{what} {remedy}", "") if is_api else (what, remedy)
        answer = _answer(request, HTTPStatus.SERVICE_UNAVAILABLE, reason, detail, hint)
        answer.headers["Retry-After"] = str(RETRY_SECONDS)
        return answer
    detail = _("Something failed inside Facho. See the log of the server.")
    return _answer(request, HTTPStatus.INTERNAL_SERVER_ERROR, "error", detail)


def _answer(request: HttpRequest, status: HTTPStatus, code: str, detail: str, hint: str = "") -> HttpResponseBase:
    if request.path.startswith(API_PREFIXES):
        return problem_response(code, status, detail)
    context = {"status": status.value, "detail": detail, "hint": hint}
    if status in WITH_MENU:
        # The menu needs the user, a database query that may fail as well.
        with suppress(DatabaseError):
            return render(request, "core/error.html", context, status=status)
    return HttpResponse(render_to_string("core/error.html", context), status=status)


handler400, handler403, handler404, handler500 = bad_request, permission_denied, not_found, server_error
