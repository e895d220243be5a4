"""The second step of a log-in, and the set-up of an authenticator app, at the log-in or from the account page."""

from datetime import timedelta
from typing import Any

import segno
from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import cache_control, never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from facho.accounts import factors
from facho.accounts.audit import Action, record
from facho.accounts.models import RecoveryCode, SecondFactor, WayIn
from facho.accounts.passkeys import PasskeyHost, answered
from facho.accounts.roles import people
from facho.accounts.sessions import enter
from facho.accounts.throttle import LoginTries, remember_browser

PENDING = "second_step"
PENDING_FOR = timedelta(minutes=10)


class CodeForm(forms.Form):
    """A code of the app or a recovery code, or instead of it what a passkey answered, which a script puts in."""

    code = forms.CharField(
        label=gettext_lazy("Code"),
        required=False,
        max_length=40,
        widget=forms.TextInput(
            {"autocomplete": "one-time-code", "inputmode": "text", "spellcheck": "false", "required": True}
        ),
    )
    answer = forms.CharField(required=False, widget=forms.HiddenInput)

    def __init__(self, data: Any = None, *, name: str = "factor") -> None:
        super().__init__(data, auto_id=f"{name}-%s", label_suffix="")


class ProvenForm(CodeForm):
    """The present password besides: an open window is not enough to change how somebody gets in."""

    password = forms.CharField(
        label=gettext_lazy("Your password"),
        required=False,
        widget=forms.PasswordInput({"autocomplete": "current-password", "required": True}),
    )
    field_order = ["password", "code"]


class PasskeyNameForm(forms.Form):
    name = forms.CharField(
        label=gettext_lazy("Name of the passkey"),
        max_length=60,
        widget=forms.TextInput({"placeholder": gettext_lazy("for example: phone"), "autocomplete": "off"}),
    )

    def __init__(self, data: Any = None) -> None:
        super().__init__(data, auto_id="passkey-%s", label_suffix="")


def lead_on(request: HttpRequest, user: User, next_path: str) -> HttpResponse | None:
    """Return the way to the second step of somebody whose password was right; None when there is none."""
    if not factors.has_factor(user) and not factors.must_have_factor(user):
        return None
    # No earlier session continues under another person's steps.
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
    """Ask for code or passkey, or lead through the set-up where the role wants a factor; then log in."""
    user = load_pending(request)
    if user is None:
        return redirect("login")
    has_factor = factors.has_factor(user)
    form = CodeForm(request.POST or None)
    codes, way = _judge_step(request, user, form, has_factor=has_factor) if form.is_valid() else (None, None)
    if way is not None:
        factors.tries_of(user).forget()
        answer = enter_pending(request, user, way)
        return codes_page(request, codes) if codes else answer
    context = {
        "form": form,
        "is_setup": not has_factor,
        "is_step": True,
        "has_place": PasskeyHost.of(request) is not None,
    }
    context |= {"has_passkeys": user.passkeys.exists()} if has_factor else {"name_form": PasskeyNameForm()}
    return render(request, "account/factor.html", context | ({} if has_factor else _key_of(request, user)))


def _judge_step(
    request: HttpRequest, user: User, form: CodeForm, *, has_factor: bool
) -> tuple[list[str] | None, WayIn | None]:
    """Return new recovery codes, if any, and by what somebody may enter; the form says why when by nothing."""
    now, code, answer = timezone.now(), form.cleaned_data["code"], form.cleaned_data["answer"]
    if answer:
        if answered(request, answer, now, by=user):
            return None, WayIn.PASSKEY
        form.add_error(None, _("This passkey was not accepted. Try again."))
        return None, None
    if _must_wait(user, form):
        return None, None
    codes = None if has_factor else _confirm(user, code)
    if codes or (has_factor and factors.check(user, code, now)):
        return codes, WayIn.RECOVERY if factors.is_recovery_code(code) else WayIn.CODE
    form.add_error("code", _("This code is wrong, or was used already."))
    return None, None


@never_cache
@cache_control(no_transform=True)
@sensitive_post_parameters()
@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def own_factor(request: HttpRequest) -> HttpResponse:
    """Set up one's own authenticator app, and show the recovery codes this one time."""
    user = local_user(request)
    if factors.has_app(user):
        return redirect("account")
    # The code is that of the new app: somebody with a passkey proves themselves with it.
    has_passkeys = user.passkeys.exists()
    form = CodeForm(request.POST or None) if has_passkeys else ProvenForm(request.POST or None)
    is_proven = form.is_valid() and (
        _has_answered(request, user, form) if has_passkeys else _knows_password(request, user, form)
    )
    if is_proven and not _must_wait(user, form):
        codes = _confirm(user, form.cleaned_data["code"])
        if codes is not None:
            factors.tries_of(user).forget()
            return codes_page(request, codes)
        form.add_error("code", _("This code is wrong, or was used already."))
    context = {"form": form, "is_setup": True, "here": "account", "has_passkeys": has_passkeys}
    return render(request, "account/factor.html", context | _key_of(request, user))


@require_POST
@never_cache
@sensitive_post_parameters()
@login_required
def change_factor(request: HttpRequest) -> HttpResponse:
    """Make new recovery codes, or remove the app where the role allows it; both want a proof."""
    user = local_user(request)
    if not is_proven(request, user, ProvenForm(request.POST)):
        messages.error(request, _("Password or code is wrong. Nothing was changed."))
        return redirect("account")
    if "renew" in request.POST:
        with transaction.atomic():
            codes = factors.renew_recovery_codes(user)
            record(user, user, Action.CHANGED, gettext_lazy("Created new recovery codes"))
        return codes_page(request, codes)
    factor = get_object_or_404(SecondFactor, user=user, confirmed_at__isnull=False)
    if factors.is_last_duty(user):
        messages.error(request, _("Your role needs a second factor: it cannot be removed."))
        return redirect("account")
    with transaction.atomic():
        factors.remove(factor)
        record(user, user, Action.CHANGED, gettext_lazy("Removed the second factor"))
    messages.success(request, _("The second factor was removed."))
    return redirect("account")


def factor_context(request: HttpRequest, user: User) -> dict[str, Any]:
    """What the account page shows of the app and of passkeys, each with the form that removes it."""
    place, passkeys = PasskeyHost.of(request), list(user.passkeys.order_by("-created_at"))
    return {
        "passkeys": [(row, ProvenForm(name=f"passkey-{row.pk}")) for row in passkeys],
        # One that belongs to this address stands for password and code.
        "has_passkeys": place is not None and any(row.host == place.host for row in passkeys),
        "has_place": place is not None,
        "name_form": PasskeyNameForm(),
        "proof_form": ProvenForm(name="passkey"),
        "factor": SecondFactor.objects.filter(user=user, confirmed_at__isnull=False).defer("key").first(),
        "codes_left": RecoveryCode.objects.filter(user=user).count(),
        "factor_form": ProvenForm(),
    }


def load_pending(request: HttpRequest) -> User | None:
    """Return whose password was right in this session a moment ago, and has not changed meanwhile."""
    pending = request.session.get(PENDING)
    if not pending or timezone.now().timestamp() - pending["began_at"] > PENDING_FOR.total_seconds():
        return None
    user = people().filter(pk=pending["user"], is_active=True).first()
    return user if user is not None and user.get_session_auth_hash() == pending["hash"] else None


def enter_pending(request: HttpRequest, user: User, way: WayIn) -> HttpResponse:
    next_path = request.session.pop(PENDING)["next"]
    request.session.set_expiry(None)
    return enter_and_go(request, user, way, next_path)


def enter_and_go(request: HttpRequest, user: User, way: WayIn, next_path: str) -> HttpResponse:
    """Log in, and lead on to one of our own pages."""
    enter(request, user, way)
    is_ours = url_has_allowed_host_and_scheme(next_path, {request.get_host()}, require_https=request.is_secure())
    answer = redirect(next_path if is_ours else "dashboard")
    remember_browser(answer, user.get_username())
    return answer


def is_proven(request: HttpRequest, user: User, form: ProvenForm) -> bool:
    """Judge a passkey's answer, or the password and, where there is a factor, a code."""
    if not form.is_valid():
        return False
    if form.cleaned_data["answer"]:
        return _has_answered(request, user, form)
    if not _knows_password(request, user, form):
        return False
    if not factors.has_factor(user):
        return True
    if _must_wait(user, form) or not factors.check(user, form.cleaned_data["code"], timezone.now()):
        return False
    factors.tries_of(user).forget()
    return True


def _has_answered(request: HttpRequest, user: User, form: CodeForm) -> bool:
    if answered(request, form.cleaned_data["answer"], timezone.now(), by=user):
        return True
    form.add_error(None, _("This passkey was not accepted. Try again."))
    return False


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


def _knows_password(request: HttpRequest, user: User, form: forms.Form) -> bool:
    """Judge the password, as slowly as at the login."""
    tries, now = LoginTries.of(user.get_username(), request), timezone.now()
    is_right = not tries.count(now) and user.check_password(form.cleaned_data["password"])
    if is_right:
        tries.succeed(now)
    else:
        form.add_error("password", _("This password is wrong, or there were too many wrong ones."))
    return is_right


def local_user(request: HttpRequest) -> User:
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


def codes_page(request: HttpRequest, codes: list[str]) -> HttpResponse:
    return render(request, "account/recovery_codes.html", {"codes": codes, "here": "account"})
