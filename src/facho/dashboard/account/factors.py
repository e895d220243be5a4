"""The second step of a log-in, and the set-up of a second factor, at the log-in or from the account page."""

from datetime import timedelta
from typing import Any

import segno
from django import forms
from django.contrib import messages
from django.contrib.auth import login
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import cache_control, never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from facho.accounts import factors
from facho.accounts.audit import Action, record
from facho.accounts.models import RecoveryCode, SecondFactor
from facho.accounts.roles import people
from facho.accounts.sign_on import remember_preferences
from facho.accounts.throttle import LoginTries, remember_browser

PENDING = "second_step"
PENDING_FOR = timedelta(minutes=10)
MODEL_BACKEND = "django.contrib.auth.backends.ModelBackend"


class CodeForm(forms.Form):
    """A code of the app, or where one may stand in, a recovery code."""

    code = forms.CharField(
        label=gettext_lazy("Code"),
        max_length=40,
        widget=forms.TextInput(attrs={"autocomplete": "one-time-code", "inputmode": "text", "spellcheck": "false"}),
    )


class ProvenForm(CodeForm):
    """The present password besides: an open window is not enough to change how somebody gets in."""

    password = forms.CharField(
        label=gettext_lazy("Your password"), widget=forms.PasswordInput(attrs={"autocomplete": "current-password"})
    )
    field_order = ["password", "code"]


def lead_on(request: HttpRequest, user: User, next_path: str) -> HttpResponse | None:
    """Return the way to the second step of somebody whose password was right; None when there is none."""
    if not factors.has_factor(user) and not factors.must_have_factor(user):
        return None
    # No session of before goes on under another person's steps.
    request.session.flush()
    request.session[PENDING] = {
        "user": user.pk,
        "hash": user.get_session_auth_hash(),
        "next": next_path,
        "began_at": timezone.now().timestamp(),
    }
    request.session.set_expiry(PENDING_FOR)
    return redirect("second-step")


@never_cache
@cache_control(no_transform=True)
@sensitive_post_parameters()
@require_http_methods(["GET", "HEAD", "POST"])
def second_step(request: HttpRequest) -> HttpResponse:
    """Ask for the code, or lead through the set-up where the role wants a factor and there is none; then log in."""
    user = _pending(request)
    if user is None:
        return redirect("login")
    has_factor = factors.has_factor(user)
    form = CodeForm(request.POST or None, auto_id="factor-%s", label_suffix="")
    if form.is_valid() and not _must_wait(user, form):
        now, code = timezone.now(), form.cleaned_data["code"]
        codes = None
        if has_factor:
            is_right = factors.check(user, code, now)
        else:
            codes = _confirm(user, code)
            is_right = codes is not None
        if is_right:
            factors.tries_of(user).forget()
            answer = _enter(request, user)
            return _codes_page(request, codes) if codes else answer
        form.add_error("code", _("This code is wrong, or was used already."))
    context = {"form": form, "is_setup": not has_factor, "is_step": True} | (
        {} if has_factor else _key_of(request, user)
    )
    return render(request, "account/factor.html", context)


@never_cache
@cache_control(no_transform=True)
@sensitive_post_parameters()
@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def own_factor(request: HttpRequest) -> HttpResponse:
    """Set up one's own second factor, and show the recovery codes this one time."""
    user = _local(request)
    if factors.has_factor(user):
        return redirect("account")
    form = ProvenForm(request.POST or None, auto_id="factor-%s", label_suffix="")
    if form.is_valid() and _is_proven(request, user, form) and not _must_wait(user, form):
        codes = _confirm(user, form.cleaned_data["code"])
        if codes is not None:
            factors.tries_of(user).forget()
            return _codes_page(request, codes)
        form.add_error("code", _("This code is wrong, or was used already."))
    return render(
        request, "account/factor.html", {"form": form, "is_setup": True, "here": "account"} | _key_of(request, user)
    )


@require_POST
@never_cache
@sensitive_post_parameters()
@login_required
def change_factor(request: HttpRequest) -> HttpResponse:
    """Make new recovery codes, or remove the factor where no role wants it; both want password and code."""
    user = _local(request)
    form = ProvenForm(request.POST, auto_id="factor-%s", label_suffix="")
    if not form.is_valid() or not _is_proven(request, user, form) or _must_wait(user, form):
        messages.error(request, _("Password or code is wrong. Nothing was changed."))
        return redirect("account")
    if not factors.check(user, form.cleaned_data["code"], timezone.now()):
        messages.error(request, _("Password or code is wrong. Nothing was changed."))
        return redirect("account")
    factors.tries_of(user).forget()
    if "renew" in request.POST:
        with transaction.atomic():
            codes = factors.renew_recovery_codes(user)
            record(user, user, Action.CHANGED, gettext_lazy("Made new recovery codes"))
        return _codes_page(request, codes)
    if factors.must_have_factor(user):
        messages.error(request, _("Your role needs a second factor: it cannot be removed."))
        return redirect("account")
    with transaction.atomic():
        factors.reset(user)
        record(user, user, Action.CHANGED, gettext_lazy("Removed the second factor"))
    messages.success(request, _("The second factor was removed."))
    return redirect("account")


def factor_context(user: User) -> dict[str, Any]:
    """What the account page shows of the second factor."""
    return {
        "factor": SecondFactor.objects.filter(user=user, confirmed_at__isnull=False).defer("key").first(),
        "codes_left": RecoveryCode.objects.filter(user=user).count(),
        "factor_form": ProvenForm(auto_id="factor-%s", label_suffix=""),
    }


def _pending(request: HttpRequest) -> User | None:
    """Return whose password was right in this session a moment ago, and has not changed meanwhile."""
    pending = request.session.get(PENDING)
    if not pending or timezone.now().timestamp() - pending["began_at"] > PENDING_FOR.total_seconds():
        return None
    user = people().filter(pk=pending["user"], is_active=True).first()
    return user if user is not None and user.get_session_auth_hash() == pending["hash"] else None


def _enter(request: HttpRequest, user: User) -> HttpResponse:
    next_path = request.session.pop(PENDING)["next"]
    request.session.set_expiry(None)
    login(request, user, backend=MODEL_BACKEND)
    remember_preferences(request)
    is_ours = url_has_allowed_host_and_scheme(next_path, {request.get_host()}, require_https=request.is_secure())
    answer = redirect(next_path if is_ours else "dashboard")
    remember_browser(answer, user.get_username())
    return answer


def _confirm(user: User, code: str) -> list[str] | None:
    with transaction.atomic():
        codes = factors.confirm(factors.begin(user), "".join(code.split()), timezone.now())
        if codes is not None:
            record(user, user, Action.CHANGED, gettext_lazy("Set up a second factor"))
    return codes


def _must_wait(user: User, form: forms.Form) -> bool:
    """Count a try before it is judged."""
    if wait := factors.tries_of(user).count(timezone.now()):
        seconds = max(1, round(wait.total_seconds()))
        form.add_error(None, _("Too many wrong codes. Wait %(n)s s.") % {"n": seconds})
    return bool(wait)


def _is_proven(request: HttpRequest, user: User, form: ProvenForm) -> bool:
    """Judge the password, as slowly as at the login."""
    tries, now = LoginTries.of(user.get_username(), request), timezone.now()
    is_right = not tries.count(now) and user.check_password(form.cleaned_data["password"])
    if is_right:
        tries.succeed(now)
    else:
        form.add_error("password", _("This password is wrong, or there were too many wrong ones."))
    return is_right


def _local(request: HttpRequest) -> User:
    if not isinstance(request.user, User) or not request.user.has_usable_password():
        raise PermissionDenied
    return request.user


def _key_of(request: HttpRequest, user: User) -> dict[str, str]:
    """Show a fresh key whenever the page is opened: one that was seen before may be known to others."""
    if request.method != "POST":
        SecondFactor.objects.filter(user=user, confirmed_at=None).delete()
    factor = factors.begin(user)
    text = factor.key.reveal()
    picture = segno.make(factors.address_for_app(user, factor), error="m").svg_data_uri(scale=4, border=4, light="#fff")
    return {"key": " ".join(text[at : at + 4] for at in range(0, len(text), 4)), "picture": picture}


def _codes_page(request: HttpRequest, codes: list[str]) -> HttpResponse:
    return render(request, "account/recovery_codes.html", {"codes": codes, "here": "account"})
