"""Template filters for times, durations and codes, and what the navigation of every page shows."""

import shlex
from collections.abc import Mapping
from datetime import datetime

from django import template
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.timezone import localtime
from django.utils.translation import gettext as _

from facho.accounts.acknowledge import who_acknowledged
from facho.accounts.roles import Role, role_of
from facho.accounts.scope import scope_of
from facho.dashboard.shared.hour import zone_in_short
from facho.dashboard.shared.light import WAITS
from facho.dashboard.shared.outages import count_unseen
from facho.snmp_jobs.application import ready_name

register = template.Library()
register.filter(ready_name)
register.filter(who_acknowledged)

_MINUTE, _HOUR, _DAY = 60, 3600, 86_400
# Under two ticks of the scheduler nothing is late; live.js has the same number.
NOT_LATE_SECONDS = 2


@register.filter
def shell_word(text: str) -> str:
    """Quote a name for a command that a person copies."""
    return shlex.quote(text)


@register.filter
def length_of_time(seconds: float) -> str:
    whole = int(seconds)
    if whole < 2 * _MINUTE:
        return _("%(n)s s") % {"n": whole}
    if whole < 2 * _HOUR:
        return _("%(n)s min") % {"n": whole // _MINUTE}
    if whole < 2 * _DAY:
        return _("%(n)s h") % {"n": whole // _HOUR}
    return _("%(n)s d") % {"n": whole // _DAY}


@register.filter
def wait_words(reason: str) -> str:
    return str(WAITS.get(reason, reason))


@register.filter
def job_name(task_type: str, names: Mapping[str, str]) -> str:
    """Return the job's name for a task type, with the code if another has the same; the code if it was deleted."""
    name = names.get(task_type, task_type)
    is_shared = sum(each == name for each in names.values()) > 1
    return f"{ready_name(name)} · {task_type}" if is_shared else ready_name(name)


@register.simple_tag
def ago(moment: datetime | None, now: datetime) -> SafeString | str:
    if moment is None:
        return "—"
    return _ticking(moment, _("%(length)s ago"), now)


@register.simple_tag
def elapsed(moment: datetime | None, now: datetime) -> SafeString | str:
    """Format for how long something has been running."""
    return "—" if moment is None else _ticking(moment, "%(length)s", now)


@register.simple_tag
def since(moment: datetime | None, now: datetime) -> SafeString | str:
    """Format when an ongoing thing began and how long ago; with the date unless it was today."""
    if moment is None:
        return "—"
    return _ticking(moment, f"{_day_and_time(moment, now)} · %(length)s", now)


@register.simple_tag
def when(moment: datetime | None, now: datetime) -> SafeString | str:
    """Format when something happened and how long ago; with the date unless it was today."""
    if moment is None:
        return "—"
    return _ticking(moment, f"{_day_and_time(moment, now)} · {_('%(length)s ago')}", now)


@register.filter
def clock(moment: datetime) -> str:
    return f"{localtime(moment):%H:%M}"


@register.simple_tag
def hour(starts_at: datetime, ends_at: datetime) -> str:
    return f"{localtime(starts_at):%Y-%m-%d %H:%M}-{localtime(ends_at):%H:%M}"


@register.filter
def bucket_words(seconds: int) -> str:
    return f"≥ {length_of_time(seconds)}"


@register.simple_tag
def due(moment: datetime | None, now: datetime) -> SafeString | str:
    if moment is None:
        return "—"
    seconds = (moment - now).total_seconds()
    before, at, after = _("in %(length)s"), _("now"), _("%(length)s late")
    words = before if seconds >= 1 else at if seconds > -NOT_LATE_SECONDS else after
    ticks = {"tick": _to_fill(after), "before": _to_fill(before), "now": at}
    return _time(moment, words % {"length": length_of_time(abs(seconds))}, ticks)


def _ticking(moment: datetime, words: str, now: datetime) -> SafeString:
    """Format the time since a moment; the browser continues to count."""
    seconds = max((now - moment).total_seconds(), 0)
    return _time(moment, words % {"length": length_of_time(seconds)}, {"tick": _to_fill(words)})


def _to_fill(words: str) -> str:
    return words % {"length": "{}"}


def _day_and_time(moment: datetime, now: datetime) -> str:
    local, today = localtime(moment), localtime(now).date()
    return f"{local:%H:%M}" if local.date() == today else f"{local:%Y-%m-%d %H:%M}"


def _time(moment: datetime, words: str, ticks: Mapping[str, str]) -> SafeString:
    """Wrap text in a <time> element with the exact value as tooltip, and the words with which live.js counts on."""
    local = localtime(moment)
    exact = f"{local:%Y-%m-%d %H:%M:%S} {local.tzname()}"
    data = format_html_join("", ' data-{}="{}"', ticks.items())
    at = local.isoformat(timespec="seconds")
    return format_html('<time datetime="{}" title="{}"{}>{}</time>', at, exact, data, words)


@register.filter
def has_role(user: AbstractBaseUser | AnonymousUser) -> bool:
    """Whether the user may see more than their own account."""
    return role_of(user) is not None


@register.filter
def may_operate(user: AbstractBaseUser | AnonymousUser) -> bool:
    """Whether the user has more to do than to look."""
    role = role_of(user)
    return role is not None and role.includes(Role.OPERATOR)


@register.filter
def sees_everything(user: AbstractBaseUser | AnonymousUser) -> bool:
    """Whether the user is limited to no group of OLTs."""
    return scope_of(user).is_everything


@register.simple_tag
def zone_of_times() -> str:
    return zone_in_short(timezone.now())


@register.simple_tag
def unseen_outages(user: AbstractBaseUser | AnonymousUser) -> int:
    """Count open, unacknowledged outages in the user's scope; one query."""
    return count_unseen(scope_of(user))
