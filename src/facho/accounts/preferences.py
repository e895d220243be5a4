"""Language and time zone of a user, kept in the session so that pages need no query for them."""

from collections.abc import Callable
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from django.utils import timezone, translation

from facho.accounts.models import Profile

LANGUAGE, TIME_ZONE = "facho_language", "facho_time_zone"


def remember_preferences(request: HttpRequest) -> None:
    """Copy the user's language and time zone into the session; empty means the installation's."""
    profile = Profile.objects.filter(user_id=request.user.pk or 0).first() or Profile()
    request.session[LANGUAGE], request.session[TIME_ZONE] = profile.language, profile.time_zone


class PreferencesMiddleware:
    """Uses the user's language and time zone on every page, whatever the browser asks for."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        has_session = settings.SESSION_COOKIE_NAME in request.COOKIES
        language = request.session.get(LANGUAGE) if has_session else None
        if language in dict(settings.LANGUAGES):
            translation.activate(language)
            request.LANGUAGE_CODE = language
        # Only for this request: threads are shared.
        with timezone.override(_zone(request.session.get(TIME_ZONE) if has_session else None)):
            return self.get_response(request)


def _zone(name: str | None) -> ZoneInfo | None:
    """Return a time zone; None, the installation's, if empty or unknown on this machine."""
    try:
        return ZoneInfo(name) if name else None
    except (ZoneInfoNotFoundError, OSError, ValueError):
        return None
