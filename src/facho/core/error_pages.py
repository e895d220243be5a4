"""What is answered where no view did: a page for people, a problem for programs."""

from http import HTTPStatus

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.template.loader import render_to_string
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from facho.accounts.roles import Role, RoleNeeded
from facho.api.problems import problem_response

API_PREFIX = "/api/"
NEEDED: dict[Role, Promise] = {
    Role.OPERATOR: gettext_lazy("It needs the role operator or admin, which an administrator can give you."),
    Role.ADMIN: gettext_lazy("It needs the role admin, which an administrator can give you."),
}


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    """Answer a request that Django refused to read."""
    return _answer(request, HTTPStatus.BAD_REQUEST, "bad_request", _("This request cannot be understood."))


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    """Answer who may not do this."""
    hint = str(NEEDED[exception.role]) if isinstance(exception, RoleNeeded) else ""
    return _answer(request, HTTPStatus.FORBIDDEN, "permission_denied", _("You may not see or do this."), hint)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    """Answer an address that nothing has."""
    return _answer(request, HTTPStatus.NOT_FOUND, "not_found", _("There is nothing at this address."))


def server_error(request: HttpRequest) -> HttpResponseBase:
    """Answer after a fault of ours; the log has the traceback."""
    detail = _("Something failed inside Facho. The log of the server says what.")
    return _answer(request, HTTPStatus.INTERNAL_SERVER_ERROR, "error", detail)


def _answer(request: HttpRequest, status: HTTPStatus, code: str, detail: str, hint: str = "") -> HttpResponseBase:
    if request.path.startswith(API_PREFIX):
        return problem_response(code, status, detail)
    # Without the request: who is logged in is a question to the database, which may be what failed.
    context = {"status": status.value, "detail": detail, "hint": hint}
    return HttpResponse(render_to_string("core/error.html", context), status=status)
