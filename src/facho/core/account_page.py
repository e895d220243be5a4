"""One's own account: password, language and time zone, and the tokens of one's programs."""

from datetime import timedelta
from typing import Any

from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST, require_safe

from facho.accounts.audit import Action, changed_words, record
from facho.accounts.models import Profile
from facho.accounts.roles import ROLE_WORDS, Role
from facho.accounts.scope import scope_of
from facho.accounts.tastes import remember_tastes
from facho.accounts.throttle import LoginTries
from facho.api.models import ApiToken
from facho.api.tokens import RoleTooHigh, create_token
from facho.core.account_forms import OwnPasswordForm, TastesForm, TokenForm
from facho.dashboard.parts import for_users
from facho.hosts.secrets import Secret, decrypt, encrypt

TASTES = ("language", "time_zone")
SHOWN_ONCE = "new_token"


@require_safe
@never_cache
@for_users
def account(request: HttpRequest) -> HttpResponse:
    """Show one's own account, with a token that was just made: this one time."""
    kept = request.session.pop(SHOWN_ONCE, "")
    return _page(request, new_token=decrypt(kept).reveal())


@require_POST
@for_users
def change_tastes(request: HttpRequest) -> HttpResponse:
    """Read from now on in another language or time zone."""
    user = _user(request)
    profile = Profile.objects.filter(user=user).first() or Profile(user=user)
    before = {name: getattr(profile, name) for name in TASTES}
    form = TastesForm(request.POST, instance=profile)
    if not form.is_valid():
        return _page(request, tastes_form=form)
    with transaction.atomic():
        form.save()
        record(user, user, Action.CHANGED, changed_words(before, form.cleaned_data))
    remember_tastes(request)
    return redirect("account")


@require_POST
@never_cache
@sensitive_post_parameters()
@for_users
def change_password(request: HttpRequest) -> HttpResponse:
    """Take a new password and end all other sessions; guessing the old one is as slow as at the login."""
    user = _user(request)
    form = OwnPasswordForm(user, request.POST)
    tries, now = LoginTries.of(user.get_username(), request), timezone.now()
    if tries.count(now):
        messages.error(request, _("Too many wrong tries. Wait a little."))
        return redirect("account")
    if not form.is_valid():
        return _page(request, password_form=form)
    tries.succeed(now)
    with transaction.atomic():
        form.save()
        record(user, user, Action.CHANGED, changed_words({}, {"password": True}, secrets=["password"]))
    update_session_auth_hash(request, user)
    messages.success(request, _("The password was changed, and all other sessions have ended."))
    return redirect("account")


@require_POST
@never_cache
@for_users
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
    # Sessions are rows: what is meant for one pair of eyes is not readable there.
    request.session[SHOWN_ONCE] = encrypt(Secret(text))
    return redirect("account")


@require_POST
@for_users
def revoke_token(request: HttpRequest, token_id: int) -> HttpResponse:
    """End one of one's own tokens."""
    user = _user(request)
    token = ApiToken.objects.filter(id=token_id, user=user).first()
    if token is None:
        raise Http404
    with transaction.atomic():
        record(user, token, Action.DELETED)
        token.delete()
    messages.success(request, _("The token was revoked."))
    return redirect("account")


def _page(request: HttpRequest, **context: Any) -> HttpResponse:
    user = _user(request)
    tokens = ApiToken.objects.filter(user=user).prefetch_related("olt_groups").order_by("-id")
    shown = {
        "here": "account",
        "now": timezone.now(),
        "password_form": OwnPasswordForm(user),
        "tastes_form": TastesForm(instance=Profile.objects.filter(user=user).first()),
        "token_form": TokenForm(user, scope_of(user)),
        "tokens": [(token, ROLE_WORDS[Role(token.role)]) for token in tokens],
        **context,
    }
    return render(request, "core/account.html", shown)


def _user(request: HttpRequest) -> User:
    if not isinstance(request.user, User):
        raise PermissionDenied
    return request.user
