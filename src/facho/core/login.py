"""The login page; before anyone can log in it says how the first administrator is made. Whoever guesses has to wait."""

import logging
import math
from datetime import timedelta
from http import HTTPStatus
from typing import Any

from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView, redirect_to_login
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.translation import ngettext

from facho.accounts.people import people
from facho.accounts.roles import Role, RoleNeeded
from facho.accounts.tastes import remember_tastes
from facho.accounts.throttle import LoginTries, address_of, remember_browser

logger = logging.getLogger(__name__)


class Login(LoginView):
    """Django's own login in our design; no password is hashed for who has to wait."""

    template_name = "core/login.html"
    redirect_authenticated_user = True
    http_method_names = ["get", "post", "head", "options"]

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Judge the password unless there were too many wrong ones."""
        self._tries = LoginTries.of(request.POST.get("username", ""), request)
        wait = self._tries.count(timezone.now())
        return self._ask_to_wait(wait) if wait else super().post(request, *args, **kwargs)

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        """Log in, and read as this person likes to."""
        self._tries.succeed(timezone.now())
        answer = super().form_valid(form)
        remember_browser(answer, form.get_user().get_username())
        remember_tastes(self.request)
        return answer

    def form_invalid(self, form: AuthenticationForm) -> HttpResponse:
        """Leave a line for who reads logs; a name that nobody has may be a password, and is not written."""
        known = people().filter(username=form.cleaned_data.get("username", "")).exists()
        name = form.cleaned_data["username"] if known else "?"
        logger.warning("login.failed address=%s user=%s", address_of(self.request), name)
        return super().form_invalid(form)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Tell whether there is anyone who could log in."""
        return super().get_context_data(**kwargs, has_users=people().exists())

    def _ask_to_wait(self, wait: timedelta) -> HttpResponse:
        context = self.get_context_data(form=AuthenticationForm(self.request), wait=wait_words(wait))
        answer = self.render_to_response(context, status=HTTPStatus.TOO_MANY_REQUESTS)
        answer.headers["Retry-After"] = str(math.ceil(wait.total_seconds()))
        return answer


def admin_login(request: HttpRequest) -> HttpResponse:
    """Send who wants to enter the admin to the one login page; who is logged in already may not enter."""
    if request.user.is_authenticated:
        raise RoleNeeded(Role.ADMIN)
    return redirect_to_login(request.GET.get("next", "/admin/"))


def wait_words(wait: timedelta) -> str:
    """Say for how long to wait, in minutes where seconds are many."""
    seconds = math.ceil(wait.total_seconds())
    if seconds < 60:
        return ngettext("Wait %(n)s second.", "Wait %(n)s seconds.", seconds) % {"n": seconds}
    minutes = math.ceil(seconds / 60)
    return ngettext("Wait %(n)s minute.", "Wait %(n)s minutes.", minutes) % {"n": minutes}
