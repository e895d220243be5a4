"""Sign-on through the provider: the way there, the way back, and what it answered. The local form stays open to all.

Nothing is stored for somebody who has not signed on: what the way back needs is in a sealed cookie.
"""

import asyncio
import json
import logging
from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime, timedelta
from http import HTTPStatus
from threading import BoundedSemaphore
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth.models import User
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from facho.accounts import oidc
from facho.accounts.models import WayIn
from facho.accounts.oidc import BadAnswer, Journey, Provider, UnknownKey
from facho.accounts.sessions import enter
from facho.accounts.sign_on import Identity, SignOnRefused, admit
from facho.accounts.throttle import address_of, remember_browser
from facho.alerts.http_request import AnswerRefused, fetch_json
from facho.alerts.sender import Reach
from facho.dashboard.account.views import login_context
from facho.infrastructure.secrets import Secret, UndecryptableSecret, decrypt, encrypt

logger = logging.getLogger(__name__)

COOKIE = "facho_sign_on"
# Of the eight threads that answer pages; a provider that does not answer holds no others.
MOST_AT_ONCE = 3
WAIT_SECONDS = 1.0
REMEMBERED_FOR = timedelta(minutes=10)
# How soon a provider that failed is asked again, and how soon keys are read again for a key that nobody knew.
SPARED_FOR = timedelta(seconds=15)
_places = BoundedSemaphore(MOST_AT_ONCE)


class ProviderAway(Exception):
    """The provider did not answer, or not in its turn."""


class _Documents:
    """What the provider publishes, kept for a while; each process has its own."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[datetime, Any]] = {}
        self._failed_at: dict[str, datetime] = {}

    def get(self, url: str, now: datetime, *, newer_than: timedelta = REMEMBERED_FOR) -> Any:
        """Return a document at most that old; ProviderAway at once when it failed a moment ago."""
        fetched_at, document = self._kept.get(url, (datetime.min.replace(tzinfo=now.tzinfo), None))
        if abs(now - fetched_at) < max(newer_than, SPARED_FOR):
            return document
        if abs(now - self._failed_at.get(url, fetched_at)) < SPARED_FOR:
            raise ProviderAway("it failed a moment ago")
        try:
            document = ask(url)
        except ProviderAway:
            self._failed_at[url] = now
            raise
        self._kept[url] = now, document
        return document

    def clear(self) -> None:
        self._kept.clear()
        self._failed_at.clear()


documents = _Documents()


def ask(url: str, *, method: str = "GET", headers: Mapping[str, str] | None = None, body: bytes = b"") -> Any:
    """Ask the provider; its own host may be anywhere, others that it names only where channels may send to."""
    is_own_host = urlsplit(url).hostname == urlsplit(settings.FACHO_OIDC_ISSUER).hostname
    reach = None if is_own_host else Reach(settings.FACHO_WEBHOOK_ALLOW)
    if not _places.acquire(timeout=WAIT_SECONDS):
        raise ProviderAway("too many wait for it")
    try:
        return asyncio.run(fetch_json(method, url, headers=headers, body=body, reach=reach))
    except AnswerRefused as error:
        if error.status < HTTPStatus.INTERNAL_SERVER_ERROR:
            raise BadAnswer(f"the provider refused with {error.status}") from error
        raise ProviderAway(str(error)) from error
    except (OSError, EOFError, ValueError, RecursionError, asyncio.LimitOverrunError) as error:
        raise ProviderAway(str(error) or type(error).__name__) from error
    finally:
        _places.release()


def load_provider(now: datetime) -> Provider:
    return oidc.read_provider(documents.get(oidc.discovery_url(), now))


@require_safe
@never_cache
def sign_on(request: HttpRequest) -> HttpResponse:
    if not settings.FACHO_OIDC_ISSUER:
        raise Http404
    now = timezone.now()
    journey = Journey.begin(request.GET.get("next", "")[:500], now)
    try:
        address = oidc.authorization_url(load_provider(now), journey, _back(request))
    except (ProviderAway, BadAnswer) as error:
        return _away(request, error)
    answer = HttpResponse(status=HTTPStatus.FOUND, headers={"Location": address})
    sealed = encrypt(Secret(json.dumps(asdict(journey))))
    answer.set_cookie(
        COOKIE, sealed, max_age=oidc.JOURNEY_SECONDS, path=reverse("sign-on"), httponly=True, samesite="Lax"
    )
    return answer


@require_safe
@never_cache
def sign_on_back(request: HttpRequest) -> HttpResponse:
    """Sign in the user confirmed by the provider; the cookie is valid for one return."""
    if not settings.FACHO_OIDC_ISSUER:
        raise Http404
    now = timezone.now()
    try:
        journey = _journey(request, now)
        identity = _identity(request, journey, now)
        answer = let_in(request, admit(identity, now), journey.next)
    except ProviderAway as error:
        answer = _away(request, error)
    except BadAnswer as error:
        logger.warning("sign_on.bad_answer address=%s reason=%s", address_of(request), error)
        answer = refuse(request, _("Sign-on failed: try again, or ask an administrator."))
    except SignOnRefused as error:
        logger.warning(
            "sign_on.refused address=%s issuer=%s why=%s", address_of(request), settings.FACHO_OIDC_ISSUER, error
        )
        answer = refuse(request, error.sentence)
    answer.delete_cookie(COOKIE, path=reverse("sign-on"), samesite="Lax")
    return answer


def let_in(request: HttpRequest, user: User, next_path: str) -> HttpResponse:
    enter(request, user, WayIn.PROVIDER)
    is_ours = url_has_allowed_host_and_scheme(next_path, {request.get_host()}, require_https=request.is_secure())
    answer = redirect(next_path if is_ours else settings.LOGIN_REDIRECT_URL)
    remember_browser(answer, user.get_username())
    return answer


def refuse(request: HttpRequest, sentence: str | Promise, status: HTTPStatus = HTTPStatus.FORBIDDEN) -> HttpResponse:
    """Show it on the login page, next to the other way to log in."""
    return render(request, "account/login.html", login_context(request) | {"problem": sentence}, status=status)


def _away(request: HttpRequest, error: Exception) -> HttpResponse:
    logger.warning("sign_on.provider_away issuer=%s reason=%s", settings.FACHO_OIDC_ISSUER, error)
    text = _("The sign-on service does not answer correctly. Try again in a moment, or log in with a local account.")
    return refuse(request, text, HTTPStatus.BAD_GATEWAY)


def _back(request: HttpRequest) -> str:
    return request.build_absolute_uri(reverse("sign-on-back"))


def _journey(request: HttpRequest, now: datetime) -> Journey:
    """Open the cookie; a way back that did not begin in this browser is refused."""
    try:
        journey = Journey(**json.loads(decrypt(request.COOKIES.get(COOKIE, "")).reveal()))
    except (UndecryptableSecret, ValueError, TypeError) as error:
        raise BadAnswer("it did not begin in this browser") from error
    if request.GET.get("state") != journey.state or journey.is_over(now):
        raise BadAnswer("its state is another one, or too old")
    if request.GET.get("iss", settings.FACHO_OIDC_ISSUER) != settings.FACHO_OIDC_ISSUER:
        raise BadAnswer("another issuer answered")
    return journey


def _identity(request: HttpRequest, journey: Journey, now: datetime) -> Identity:
    """Change the code for a token and verify it, with fresh keys if no known one fits."""
    code = request.GET.get("code", "")
    if not code:
        raise BadAnswer(f"no code: {request.GET.get('error', '')[:80]!r}")
    provider = load_provider(now)
    try:
        headers, body = oidc.token_request(provider, journey, code, _back(request))
    except OSError as error:
        raise ProviderAway(f"the client secret cannot be read: {error}") from error
    answer = ask(provider.token, method="POST", headers=headers, body=body)

    try:
        return oidc.read_id_token(answer, documents.get(provider.keys, now), journey.nonce, now)
    except UnknownKey:
        fresh = documents.get(provider.keys, now, newer_than=timedelta(0))
        return oidc.read_id_token(answer, fresh, journey.nonce, now)
