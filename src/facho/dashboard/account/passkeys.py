"""Passkeys on pages: log-in without a password, making one at the account page or at the log-in, and removing it."""

import json

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST, require_safe

from facho.accounts import factors, passkeys
from facho.accounts.audit import Action, record
from facho.accounts.models import Passkey, WayIn
from facho.dashboard.account.factors import (
    PasskeyNameForm,
    ProvenForm,
    codes_page,
    enter_and_go,
    enter_pending,
    is_proven,
    load_pending,
    local_user,
)
from facho.dashboard.account.sign_on import refuse


@require_safe
@never_cache
def passkey_question(request: HttpRequest) -> HttpResponse:
    """Ask for a passkey: of the person who is logged in or in the second step, else of anybody."""
    place = passkeys.PasskeyHost.of(request)
    if place is None:
        raise Http404
    user = request.user if isinstance(request.user, User) else load_pending(request)
    options, question = passkeys.ask_to_use(user, place, timezone.now())
    answer = JsonResponse(options)
    passkeys.carry(answer, question)
    return answer


@require_POST
@never_cache
@sensitive_post_parameters()
def passkey_login(request: HttpRequest) -> HttpResponse:
    """Log in without a name or a password: the passkey was unlocked by its owner, which is two factors."""
    passkey = passkeys.answered(request, request.POST.get("answer", ""), timezone.now())
    if passkey is None:
        return refuse(request, _("This passkey was not accepted. Try again, or log in with your password."))
    return enter_and_go(request, passkey.user, WayIn.PASSKEY, request.POST.get("next", ""))


@require_POST
@never_cache
@sensitive_post_parameters()
def passkey_add(request: HttpRequest) -> HttpResponse:
    """Ask the browser for a new passkey, of somebody who has proven who they are."""
    place, named = passkeys.PasskeyHost.of(request), PasskeyNameForm(request.POST)
    if place is None:
        raise Http404
    user, is_step = _maker(request)
    if user is None:
        return redirect("login")
    here = "second-step" if is_step else "account"
    if not named.is_valid():
        messages.error(request, _("The passkey needs a name."))
        return redirect(here)
    if not is_step and not is_proven(request, user, ProvenForm(request.POST)):
        messages.error(request, _("Password or code is wrong. Nothing was changed."))
        return redirect(here)
    options, question = passkeys.ask_to_make(user, named.cleaned_data["name"], place, timezone.now())
    context = {"name": question.name, "options": json.dumps(options), "here": "account"}
    page = render(request, "account/passkey.html", context)
    passkeys.carry(page, question)
    return page


@require_POST
@never_cache
@sensitive_post_parameters()
def passkey_save(request: HttpRequest) -> HttpResponse:
    """Keep the passkey that was made, and show recovery codes where it is the first factor."""
    user, is_step = _maker(request)
    if user is None:
        return redirect("login")
    try:
        question, place = passkeys.load_question(request, timezone.now())
        with transaction.atomic():
            passkey = passkeys.make(user, question, place, request.POST.get("answer", ""))
            codes = factors.codes_for_first(user)
            record(user, passkey, Action.ADDED)
    except passkeys.PasskeyRefused as error:
        passkeys.log_refusal(request, error)
        messages.error(request, _("The passkey was not saved: the browser's answer was not accepted. Try again."))
        return redirect("second-step" if is_step else "account")
    answer = enter_pending(request, user, WayIn.PASSKEY) if is_step else redirect("account")
    if codes:
        return codes_page(request, codes)
    messages.success(request, _("The passkey was added."))
    return answer


@require_POST
@never_cache
@sensitive_post_parameters()
@login_required
def passkey_remove(request: HttpRequest, passkey_id: int) -> HttpResponse:
    """Remove one's own passkey where the role allows it; wants a proof."""
    user = local_user(request)
    passkey = get_object_or_404(Passkey, id=passkey_id, user=user)
    if not is_proven(request, user, ProvenForm(request.POST)):
        messages.error(request, _("Password or code is wrong. Nothing was changed."))
    elif factors.is_last_duty(user):
        messages.error(request, _("Your role needs a second factor: it cannot be removed."))
    else:
        with transaction.atomic():
            record(user, passkey, Action.DELETED)
            factors.remove(passkey)
        messages.success(request, _("The passkey was removed."))
    return redirect("account")


def _maker(request: HttpRequest) -> tuple[User | None, bool]:
    """Return the maker of a passkey, and whether it is in the second step, where a user without a factor is."""
    if request.user.is_authenticated:
        return local_user(request), False
    user = load_pending(request)
    return (None if user is None or factors.has_factor(user) else user), True
