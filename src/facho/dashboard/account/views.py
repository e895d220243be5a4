"""The login, the first administrator, and the account page: password, language, time zone, tokens.

Language and time zone are kept in the session, so that other pages need no query for them.
"""

import logging
import math
from collections.abc import Callable
from datetime import timedelta
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.contrib.auth.forms import AuthenticationForm, BaseUserCreationForm, PasswordChangeForm
from django.contrib.auth.models import User
from django.contrib.auth.views import LoginView, redirect_to_login
from django.contrib.contenttypes.models import ContentType
from django.core import signing
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone, translation
from django.utils.timezone import override as use_zone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.cache import cache_control, never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from facho.accounts import ldap, sessions
from facho.accounts.audit import Action, changed_words, record
from facho.accounts.models import LoginSession, Passkey, Profile, WayIn
from facho.accounts.roles import ROLE_WORDS, Role, RoleNeeded, give_role, local_people, people, role_of
from facho.accounts.scope import OltScope, scope_of
from facho.accounts.sign_on import SignOnRefused, admit
from facho.accounts.throttle import LoginTries, address_of, remember_browser
from facho.alerts.links import read_public_address, save_public_address
from facho.api.models import ApiToken
from facho.api.tokens import DEFAULT_DAYS, MOST_DAYS, RoleTooHigh, create_token
from facho.dashboard.account.factors import factor_context, lead_on
from facho.hosts.models import OltGroup
from facho.infrastructure.secrets import Secret, UndecryptableSecret, decrypt, encrypt

if TYPE_CHECKING:
    _ProfileForm = forms.ModelForm[Profile]
    _UserForm = BaseUserCreationForm[User]
else:
    _ProfileForm, _UserForm = forms.ModelForm, BaseUserCreationForm  # they take type parameters in their stubs only

logger = logging.getLogger(__name__)

PREFERENCES = ("language", "time_zone")
SHOWN_ONCE = "new_token"
LIFETIME_SECONDS = 24 * 60 * 60
# In links that were printed before this module moved.
_SALT = "facho.core.account"
_CONTENT = "first administrator"


def zone_choices() -> list[tuple[str, str]]:
    """Offer the installation's time zone, which is the empty choice, and every one by its name."""
    default = gettext_lazy("the installation's: %(zone)s") % {"zone": settings.TIME_ZONE}
    return [("", default), *((zone, zone) for zone in sorted(available_timezones()))]


class PreferencesForm(_ProfileForm):
    """Language and time zone; empty is the installation's own."""

    language = forms.ChoiceField(
        label=gettext_lazy("Language"),
        required=False,
        choices=[("", gettext_lazy("as the browser requests")), *settings.LANGUAGES],
    )
    time_zone = forms.ChoiceField(label=gettext_lazy("Time zone"), required=False, choices=zone_choices)

    class Meta:
        model = Profile
        fields = ["language", "time_zone"]

    def __init__(self, data: Any = None, *, instance: Profile | None = None) -> None:
        super().__init__(data, instance=instance, label_suffix="")


class OwnPasswordForm(PasswordChangeForm):
    """The old password and twice a new one, by the rules; it is one form of several and takes no focus."""

    def __init__(self, user: User, data: Any = None) -> None:
        super().__init__(user, data, label_suffix="")
        self.fields["old_password"].widget.attrs.pop("autofocus", None)


class TokenForm(forms.Form):
    """What a new token is for, what it may do and see, and when it ends."""

    name = forms.CharField(
        label=gettext_lazy("What is it for?"),
        max_length=80,
        widget=forms.TextInput(attrs={"placeholder": gettext_lazy("for example: Grafana"), "autocomplete": "off"}),
    )
    role = forms.ChoiceField(label=gettext_lazy("What it may do"))
    days = forms.IntegerField(
        label=gettext_lazy("Days until it ends"), min_value=1, max_value=MOST_DAYS, initial=DEFAULT_DAYS
    )
    olt_groups = forms.ModelMultipleChoiceField(
        OltGroup.objects.none(),
        label=gettext_lazy("Only the OLTs of these groups"),
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text=gettext_lazy("None: all OLTs that you see."),
    )

    def __init__(self, user: User, scope: OltScope, data: Any = None) -> None:
        super().__init__(data, auto_id="token-%s", label_suffix="")
        highest = role_of(user)
        self.fields["role"].choices = [  # type: ignore[attr-defined]
            (role.value, ROLE_WORDS[role]) for role in Role if highest and highest.includes(role)
        ]
        groups = OltGroup.objects.all() if scope.group_ids is None else OltGroup.objects.filter(id__in=scope.group_ids)
        self.fields["olt_groups"].queryset = groups  # type: ignore[attr-defined]
        if not groups.exists():
            del self.fields["olt_groups"]


@require_safe
@never_cache
@cache_control(no_transform=True)
@login_required
def account(request: HttpRequest) -> HttpResponse:
    """Show one's own account, with a token that was just made: this one time."""
    kept = request.session.pop(SHOWN_ONCE, "")
    try:
        return _page(request, new_token=decrypt(kept).reveal())
    except UndecryptableSecret:  # the key was changed in between
        messages.error(request, _("The token cannot be shown any more: revoke it, and make another one."))
        return _page(request)


@require_POST
@login_required
def change_preferences(request: HttpRequest) -> HttpResponse:
    """Change the user's language or time zone."""
    user = _user(request)
    profile = Profile.objects.filter(user=user).first() or Profile(user=user)
    before = {name: getattr(profile, name) for name in PREFERENCES}
    form = PreferencesForm(request.POST, instance=profile)
    if not form.is_valid():
        return _page(request, preferences_form=form)
    with transaction.atomic():
        form.save()
        record(user, user, Action.CHANGED, changed_words(before, form.cleaned_data))
    sessions.remember_preferences(request)
    return redirect("account")


@require_POST
@never_cache
@sensitive_post_parameters()
@login_required
def change_password(request: HttpRequest) -> HttpResponse:
    """Take a new password and end all other sessions; guessing the old one is as slow as at the login."""
    user = _user(request)
    form = OwnPasswordForm(user, request.POST)
    tries, now = LoginTries.of(user.get_username(), request), timezone.now()
    if tries.count(now):
        messages.error(request, _("Too many wrong attempts. Wait a little."))
        return redirect("account")
    if not form.is_valid():
        return _page(request, password_form=form)
    tries.succeed(now)
    with transaction.atomic():
        form.save()
        record(user, user, Action.CHANGED, changed_words({}, {"password": True}, secrets=["password"]))
    sessions.keep_session(request, user)
    messages.success(request, _("The password was changed, and all other sessions have ended."))
    return redirect("account")


@require_POST
@never_cache
@login_required
def add_token(request: HttpRequest) -> HttpResponse:
    """Make a token, and have its text shown by the page that follows: reloading that one makes no second token."""
    user = _user(request)
    form = TokenForm(user, scope_of(user), request.POST)
    if not form.is_valid():
        return _page(request, token_form=form)
    wish = form.cleaned_data
    try:
        with transaction.atomic():
            text = create_token(
                user,
                role=Role(wish["role"]),
                expires_at=timezone.now() + timedelta(days=wish["days"]),
                name=wish["name"],
                olt_groups=wish.get("olt_groups", ()),
            )
            record(user, user.api_tokens.latest("id"), Action.ADDED)
    except RoleTooHigh as error:
        raise PermissionDenied from error
    # Sessions are rows: a token that only its owner may see is not readable there.
    request.session[SHOWN_ONCE] = encrypt(Secret(text))
    return redirect("account")


@require_POST
@login_required
def revoke_token(request: HttpRequest, token_id: int) -> HttpResponse:
    user = _user(request)
    token = get_object_or_404(ApiToken, id=token_id, user=user)
    with transaction.atomic():
        record(user, token, Action.DELETED)
        token.delete()
    messages.success(request, _("The token was revoked."))
    return redirect("account")


@require_POST
@login_required
def end_session(request: HttpRequest, session_id: int) -> HttpResponse:
    """End a session of the user; logging out ends the present one."""
    user = _user(request)
    ended = get_object_or_404(LoginSession.objects.select_related("session"), id=session_id, user=user)
    if ended.session_id == request.session.session_key:
        return redirect("account")
    with transaction.atomic():
        record(user, user, Action.CHANGED, changed_words({"session": ended}, {"session": ""}))
        ended.session.delete()
    messages.success(request, _("The session has ended."))
    return redirect("account")


@require_POST
@login_required
def end_other_sessions(request: HttpRequest) -> HttpResponse:
    """End all sessions of the user but this one, including those that are not listed."""
    user = _user(request)
    with transaction.atomic():
        ended = sessions.end_sessions_of(user, but=request.session.session_key)
        record(user, user, Action.CHANGED, changed_words({"sessions": ended + 1}, {"sessions": 1}))
    messages.success(request, _("All other sessions have ended."))
    return redirect("account")


def _page(request: HttpRequest, **context: Any) -> HttpResponse:
    user = _user(request)
    tokens = ApiToken.objects.filter(user=user).prefetch_related("olt_groups").order_by("-id")
    shown = {
        "here": "account",
        "now": timezone.now(),
        "password_form": OwnPasswordForm(user),
        "preferences_form": PreferencesForm(instance=Profile.objects.filter(user=user).first()),
        "token_form": TokenForm(user, scope_of(user)),
        **(factor_context(request, user) if user.has_usable_password() else {}),
        "sessions": sessions.load_sessions(user, timezone.now()),
        "own_key": request.session.session_key,
        "tokens": [(token, ROLE_WORDS[Role(token.role)]) for token in tokens],
        **context,
    }
    return render(request, "account/account.html", shown)


def _user(request: HttpRequest) -> User:
    if not isinstance(request.user, User):
        raise PermissionDenied
    return request.user


class LogInForm(AuthenticationForm):
    """The form of local accounts, and of the directory for names that no local account has."""

    is_sign_on = False

    def clean(self) -> dict[str, Any]:
        """Judge the password here first: a local name is never sent to the directory."""
        try:
            return super().clean()
        except forms.ValidationError as error:
            name, password = self.cleaned_data.get("username", ""), self.cleaned_data.get("password", "")
            if not settings.FACHO_LDAP_URL or local_people().filter(username__iexact=name).exists():
                raise
            self.user_cache = self._admitted(name, password, error)
            self.is_sign_on = True
            return self.cleaned_data

    def _admitted(self, name: str, password: str, wrong: forms.ValidationError) -> User:
        try:
            identity = ldap.identify(name, password)
            if identity is None:
                raise wrong
            return admit(identity, timezone.now())
        except ldap.DirectoryAway as error:
            logger.warning("sign_on.directory_away url=%s reason=%s", settings.FACHO_LDAP_URL, error)
            text = _("The directory does not answer. Try again in a moment, or log in with a local account.")
            raise forms.ValidationError(text) from error
        except SignOnRefused as error:
            logger.warning("sign_on.refused issuer=%s why=%s", settings.FACHO_LDAP_URL, error)
            raise forms.ValidationError(str(error.sentence)) from error


class Login(LoginView):
    """Django's own login in our design; no password is hashed for users who have to wait."""

    template_name = "account/login.html"
    authentication_form = LogInForm
    redirect_authenticated_user = True
    http_method_names = ["get", "post", "head", "options"]

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Judge the password unless there were too many wrong ones."""
        self._tries = LoginTries.of(request.POST.get("username", ""), request)
        wait = self._tries.count(timezone.now())
        if not wait:
            return super().post(request, *args, **kwargs)
        context = self.get_context_data(form=AuthenticationForm(self.request), wait=wait_words(wait))
        answer = self.render_to_response(context, status=HTTPStatus.TOO_MANY_REQUESTS)
        answer.headers["Retry-After"] = str(math.ceil(wait.total_seconds()))
        return answer

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        """Log in, in the person's language and time zone."""
        self._tries.succeed(timezone.now())
        is_sign_on = isinstance(form, LogInForm) and form.is_sign_on
        if not is_sign_on and (second := lead_on(self.request, form.get_user(), self.get_redirect_url())):
            return second
        sessions.enter(self.request, form.get_user(), WayIn.DIRECTORY if is_sign_on else WayIn.PASSWORD)
        answer = redirect(self.get_success_url())
        remember_browser(answer, form.get_user().get_username())
        return answer

    def form_invalid(self, form: AuthenticationForm) -> HttpResponse:
        """Log the failure; an unknown name may be a password, and is not written."""
        known = people().filter(username=form.cleaned_data.get("username", "")).exists()
        name = form.cleaned_data["username"] if known else "?"
        logger.warning("login.failed address=%s user=%s", address_of(self.request), name)
        return super().form_invalid(form)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return login_context(self.request) | super().get_context_data(**kwargs)


def login_context(request: HttpRequest) -> dict[str, Any]:
    """Return what the login page shows: its form, whether there is anyone who could log in, and the other way in."""
    return {
        "form": AuthenticationForm(request),
        "has_users": local_people().exists(),
        "has_provider": bool(settings.FACHO_OIDC_ISSUER),
        "provider_name": settings.FACHO_OIDC_NAME,
        "has_passkeys": Passkey.objects.exists(),
        "next": request.GET.get("next", ""),
    }


def admin_login(request: HttpRequest) -> HttpResponse:
    """Send the admin's visitors to the one login page; users who are logged in already may not enter."""
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


def make_setup_path() -> str | None:
    """Return the path of a fresh link, or None when someone can already log in."""
    if local_people().exists():
        return None
    return reverse("setup", args=[signing.dumps(_CONTENT, salt=_SALT)])


class FirstAdministratorForm(_UserForm):
    """A name and a password, twice, checked by the rules that hold for every password; and where its clock is."""

    # A script chooses the browser's own.
    time_zone = forms.ChoiceField(
        label=gettext_lazy("Time zone"),
        required=False,
        choices=zone_choices,
        widget=forms.Select(attrs={"data-own-zone": ""}),
    )
    public_url = forms.CharField(
        label=gettext_lazy("Address of these pages"),
        required=False,
        max_length=200,
        help_text=gettext_lazy("The address your team uses; links in messages lead there."),
    )

    class Meta:
        model = User
        fields = ["username"]
        labels = {"username": gettext_lazy("User name")}

    def clean_public_url(self) -> str:
        typed: str = self.cleaned_data["public_url"]
        try:
            return read_public_address(typed) if typed else ""
        except ValueError:
            raise forms.ValidationError(_("Enter https://HOST, as in the address bar of your browser.")) from None


@never_cache
@cache_control(no_transform=True)
@sensitive_post_parameters("password1", "password2")
@require_http_methods(["GET", "POST"])
def setup(request: HttpRequest, token: str) -> HttpResponse:
    """Ask for name, password and time zone, make the administrator, and log in."""
    if not _is_valid(token) or local_people().exists():
        return _closed(request)
    here = {"public_url": f"{request.scheme}://{request.get_host()}"}
    form = FirstAdministratorForm(request.POST or None, initial=here)
    if not form.is_valid():
        return render(request, "account/setup.html", {"form": form})
    user = _create_first(form)
    if user is None:
        return _closed(request)
    sessions.enter(request, user, WayIn.LINK)
    return redirect("dashboard")


def _is_valid(token: str) -> bool:
    try:
        return bool(signing.loads(token, salt=_SALT, max_age=LIFETIME_SECONDS) == _CONTENT)
    except signing.BadSignature:
        return False


@transaction.atomic
def _create_first(form: FirstAdministratorForm) -> User | None:
    """Make the administrator unless someone was faster; of two at once the second waits, and finds the first."""
    # A row that every database has, as a lock: SQLite already has one writer, PostgreSQL has many.
    ContentType.objects.select_for_update().get(app_label="auth", model="user")
    if local_people().exists():
        return None
    user = form.save()
    give_role(user, Role.ADMIN)
    Profile.objects.update_or_create(user=user, defaults={"time_zone": form.cleaned_data["time_zone"]})
    if address := form.cleaned_data["public_url"]:
        save_public_address(address)
    return user


def _closed(request: HttpRequest) -> HttpResponse:
    return render(request, "account/setup_closed.html", status=410)


class PreferencesMiddleware:
    """Uses the user's language and time zone on every page, whatever the browser asks for."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        has_session = settings.SESSION_COOKIE_NAME in request.COOKIES
        language = request.session.get(sessions.LANGUAGE) if has_session else None
        if language in dict(settings.LANGUAGES):
            translation.activate(language)
            request.LANGUAGE_CODE = language
        # Only for this request: threads are shared.
        with use_zone(_zone(request.session.get(sessions.TIME_ZONE) if has_session else None)):
            return self.get_response(request)


def _zone(name: str | None) -> ZoneInfo | None:
    """Return a time zone; None, the installation's, if empty or unknown on this machine."""
    try:
        return ZoneInfo(name) if name else None
    except (ZoneInfoNotFoundError, OSError, ValueError):
        return None
