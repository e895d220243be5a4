"""The one-time link that makes the first administrator: signed, short-lived, and dead once any user exists."""

from typing import TYPE_CHECKING

from django import forms
from django.contrib.auth import login
from django.contrib.auth.forms import BaseUserCreationForm
from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType
from django.core import signing
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from facho.accounts.models import Profile
from facho.accounts.people import people
from facho.accounts.roles import Role, give_role
from facho.accounts.tastes import remember_tastes
from facho.core.account_forms import zone_choices

if TYPE_CHECKING:
    _UserForm = BaseUserCreationForm[User]
else:
    _UserForm = BaseUserCreationForm  # Django's forms take type parameters in their stubs only

LIFETIME_SECONDS = 24 * 60 * 60
_SALT = "facho.core.first_admin"
_CONTENT = "first administrator"


def make_setup_path() -> str | None:
    """Return the path of a fresh link, or None when someone can already log in."""
    if people().exists():
        return None
    return reverse("setup", args=[signing.dumps(_CONTENT, salt=_SALT)])


class FirstAdministratorForm(_UserForm):
    """A name and a password, twice, checked by the rules that hold for every password; and where its clock is."""

    # A script chooses the browser's own.
    time_zone = forms.ChoiceField(
        label=_("Time zone"),
        required=False,
        choices=zone_choices,
        widget=forms.Select(attrs={"data-own-zone": ""}),
    )

    class Meta:
        model = User
        fields = ["username"]
        labels = {"username": _("User name")}


@never_cache
@sensitive_post_parameters("password1", "password2")
@require_http_methods(["GET", "POST"])
def setup(request: HttpRequest, token: str) -> HttpResponse:
    """Ask for name, password and time zone, make the administrator, and log in."""
    if not _is_valid(token) or people().exists():
        return _closed(request)
    form = FirstAdministratorForm(request.POST or None)
    if not form.is_valid():
        return render(request, "core/setup.html", {"form": form})
    user = _create_first(form)
    if user is None:
        return _closed(request)
    login(request, user)
    remember_tastes(request)
    return redirect("dashboard")


def _is_valid(token: str) -> bool:
    try:
        return bool(signing.loads(token, salt=_SALT, max_age=LIFETIME_SECONDS) == _CONTENT)
    except signing.BadSignature:
        return False


@transaction.atomic
def _create_first(form: FirstAdministratorForm) -> User | None:
    """Make the administrator unless someone was faster; of two at once the second waits, and finds the first."""
    # A row that every database has, as a lock: SQLite already has one writer, PostgreSQL needs to be told.
    ContentType.objects.select_for_update().get(app_label="auth", model="user")
    if people().exists():
        return None
    user = form.save()
    give_role(user, Role.ADMIN)
    Profile.objects.update_or_create(user=user, defaults={"time_zone": form.cleaned_data["time_zone"]})
    return user


def _closed(request: HttpRequest) -> HttpResponse:
    return render(request, "core/setup_closed.html", status=410)
