"""Sessions of people: the one way in, when and from where each was last used, and how they are ended.

The session itself is Django's row; what people see of it is a LoginSession, deleted with it.
"""

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta

from django.conf import settings
from django.contrib.auth import HASH_SESSION_KEY, SESSION_KEY, login, update_session_auth_hash
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.db import DatabaseError
from django.http import HttpRequest, HttpResponseBase
from django.utils import timezone

from facho.accounts.models import LoginSession, Profile, WayIn
from facho.accounts.throttle import address_of

MODEL_BACKEND = "django.contrib.auth.backends.ModelBackend"
# Of the session, so that pages need no query for them.
LANGUAGE, TIME_ZONE = "facho_language", "facho_time_zone"
# In the session: whether it has a LoginSession, without a query.
NOTED = "facho_noted"
# The use of a session is written at most this often by each process.
SEEN_EVERY = timedelta(minutes=5)
MOST_REMEMBERED = 10_000
SIGN_ONS = (WayIn.PROVIDER, WayIn.DIRECTORY)
# Words of the User-Agent header, the most specific first: Edge calls itself Chrome, and Chrome Safari.
_BROWSERS = (
    *(("Edg", "Edge"), ("OPR/", "Opera"), ("SamsungBrowser/", "Samsung Internet")),
    *(("Firefox/", "Firefox"), ("FxiOS/", "Firefox"), ("CriOS/", "Chrome"), ("Chrome/", "Chrome")),
    *(("Safari/", "Safari"), ("curl/", "curl")),
)
_SYSTEMS = (
    *(("Android", "Android"), ("iPhone", "iPhone"), ("iPad", "iPad"), ("Windows", "Windows")),
    *(("Mac OS X", "macOS"), ("CrOS", "ChromeOS"), ("Linux", "Linux")),
)
# By session, when this process last wrote its use.
_written_at: dict[str, datetime] = {}


def enter(request: HttpRequest, user: User, way: WayIn) -> None:
    """Log somebody in who has proven who they are, and note the session; one of a sign-on ends in time."""
    login(request, user, backend=MODEL_BACKEND)
    remember_preferences(request)
    if way in SIGN_ONS:
        # For groups to be read again, whether it is used or not.
        request.session.set_expiry(timezone.now() + timedelta(hours=settings.FACHO_SIGN_ON_HOURS))
    request.session[NOTED] = True
    request.session.save()
    now, key = timezone.now(), request.session.session_key or ""
    _written_at[key] = now
    noted = {"address": address_of(request), "browser": _of(request), "begun_at": now, "seen_at": now, "way": way}
    # A second log-in in the same browser keeps the session.
    LoginSession.objects.update_or_create(session_id=key, defaults={"user": user, **noted})


def remember_preferences(request: HttpRequest) -> None:
    """Copy the user's language and time zone into the session; empty means the installation's."""
    profile = Profile.objects.filter(user_id=request.user.pk or 0).first() or Profile()
    request.session[LANGUAGE], request.session[TIME_ZONE] = profile.language, profile.time_zone


def keep_session(request: HttpRequest, user: User) -> None:
    """Keep this session when the password is new, and end all others."""
    noted = LoginSession.objects.filter(session_id=request.session.session_key).first()
    # It gets another key, and its old row goes with ours.
    update_session_auth_hash(request, user)
    if noted is not None:
        noted.pk, noted.session_id = None, request.session.session_key or ""
        noted.save(force_insert=True)
    end_sessions_of(user, but=request.session.session_key)


def load_sessions(user: User, now: datetime) -> list[LoginSession]:
    """Load the sessions that open something, the last used first; one of an old password does not."""
    rows = LoginSession.objects.filter(user=user, session__expire_date__gt=now).select_related("session")
    proof = user.get_session_auth_hash()
    return [row for row in rows.order_by("-seen_at", "-id") if row.session.get_decoded().get(HASH_SESSION_KEY) == proof]


def end_sessions_of(user: User, *, but: str | None = None) -> int:
    """End all sessions of an account at once, noted or not; returns how many."""
    keys = [
        row.session_key
        for row in Session.objects.iterator()
        if row.session_key != but and row.get_decoded().get(SESSION_KEY) == str(user.pk)
    ]
    return Session.objects.filter(session_key__in=keys).delete()[1].get(Session._meta.label, 0)


class SessionUseMiddleware:
    """Notes that a session is used; costs no query within the minutes after it was written."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        # A page is not lost because its time cannot be written.
        with suppress(DatabaseError):
            if settings.SESSION_COOKIE_NAME in request.COOKIES and request.session.get(NOTED):
                _note_use(request, timezone.now())
        return response


def _note_use(request: HttpRequest, now: datetime) -> None:
    key = request.session.session_key or ""
    if abs(now - _written_at.get(key, datetime.min.replace(tzinfo=now.tzinfo))) < SEEN_EVERY:
        return
    if not request.user.is_authenticated:
        return
    if len(_written_at) >= MOST_REMEMBERED:
        _written_at.clear()
    _written_at[key] = now
    # Another process may just have written it.
    stale = LoginSession.objects.filter(session_id=key).exclude(seen_at__range=(now - SEEN_EVERY, now))
    stale.update(seen_at=now, address=address_of(request), browser=_of(request))


def _of(request: HttpRequest) -> str:
    """Name the browser and the system by a few known words: nothing of the header itself is kept."""
    agent = request.headers.get("User-Agent", "")[:500]
    found = (next((name for word, name in names if word in agent), "") for names in (_BROWSERS, _SYSTEMS))
    return " · ".join(filter(None, found))
