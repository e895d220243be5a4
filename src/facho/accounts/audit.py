"""The audit log: Django's admin log, extended by pages, API and commands."""

from collections.abc import Collection, Iterable, Mapping
from enum import IntEnum
from typing import Any

from django.conf import settings
from django.contrib.admin.models import ADDITION, CHANGE, DELETION, LogEntry
from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser, User
from django.db.models import Model
from django.utils import translation
from django.utils.functional import Promise
from django.utils.translation import gettext as _

from facho.accounts.roles import CONSOLE
from facho.infrastructure.admin_pages import write_down_each

# An old and a new text of this length still fit a line; what is longer is cut.
MOST_LETTERS = 80


class Action(IntEnum):
    ADDED = ADDITION
    CHANGED = CHANGE
    DELETED = DELETION


def record(user: AbstractBaseUser | AnonymousUser, changed: Model, action: Action, message: str | Promise = "") -> None:
    """Record a change of a saved row, in its transaction and before a deletion; messages contain no secrets."""
    with translation.override(settings.LANGUAGE_CODE):
        words = " · ".join(filter(None, [str(message), _by_token(user)]))
        LogEntry.objects.log_actions(str(user.pk), [changed], action, change_message=words)


def record_each(user: AbstractBaseUser | AnonymousUser, entries: Iterable[tuple[Model, Action, str]]) -> None:
    """Record changes of many rows, each with its own text, in few statements; see `record`."""
    with translation.override(settings.LANGUAGE_CODE):
        by_token = _by_token(user)
    joined = ((row, action, " · ".join(filter(None, [words, by_token]))) for row, action, words in entries)
    write_down_each(user.pk or 0, joined)


def _by_token(user: AbstractBaseUser | AnonymousUser) -> str:
    token_id = getattr(user, "_token_id", None)
    return _("by token %(id)s") % {"id": token_id} if token_id else ""


def changed_words(before: Mapping[str, Any], after: Mapping[str, Any], secrets: Collection[str] = ()) -> str:
    """Describe differences as `name: old → new`, in the installation's language; secrets are only named."""
    with translation.override(settings.LANGUAGE_CODE):
        changed = _("changed")
    return ", ".join(
        f"{name}: {changed}" if name in secrets else f"{name}: {_cut(before.get(name))} → {_cut(value)}"
        for name, value in after.items()
        if before.get(name) != value
    )


def speak_by_token(user: AbstractBaseUser, token_id: int) -> None:
    """Record this request's changes as made with a token of the user."""
    user._token_id = token_id  # type: ignore[attr-defined]


def console() -> User:
    """Return the account that commands are recorded under; it cannot log in."""
    no_login = {"is_active": False, "password": make_password(None)}
    return User.objects.get_or_create(username=CONSOLE, defaults=no_login)[0]


def _cut(value: Any) -> str:
    text = "—" if value in (None, "") else str(value)
    return text if len(text) <= MOST_LETTERS else f"{text[: MOST_LETTERS - 1]}…"
