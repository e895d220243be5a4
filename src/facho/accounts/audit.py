"""The one trail of who changed what: Django's log of the admin, to which pages, API and commands add."""

from collections.abc import Collection, Mapping
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

from facho.accounts.people import CONSOLE

# An old and a new text of this length still fit a line; what is longer is cut.
MOST_LETTERS = 80


class Action(IntEnum):
    """What was done, as the admin's log counts it."""

    ADDED = ADDITION
    CHANGED = CHANGE
    DELETED = DELETION


def record(user: AbstractBaseUser | AnonymousUser, changed: Model, action: Action, message: str | Promise = "") -> None:
    """Write down what a logged-in user did to a saved row; in the installation's language, as readers differ.

    Call it in the transaction of the change, and for a deletion before it. No message may hold a secret.
    """
    with translation.override(settings.LANGUAGE_CODE):
        token_id = getattr(user, "_token_id", None)
        by_token = _("by token %(id)s") % {"id": token_id} if token_id else ""
        words = " · ".join(filter(None, [str(message), by_token]))
        LogEntry.objects.log_actions(str(user.pk), [changed], action, change_message=words)


def changed_words(before: Mapping[str, Any], after: Mapping[str, Any], secrets: Collection[str] = ()) -> str:
    """Write what differs as `name: old → new`; of a secret only that it changed, in the installation's language."""
    with translation.override(settings.LANGUAGE_CODE):
        changed = _("changed")
    return ", ".join(
        f"{name}: {changed}" if name in secrets else f"{name}: {_cut(before.get(name))} → {_cut(value)}"
        for name, value in after.items()
        if before.get(name) != value
    )


def speak_by_token(user: AbstractBaseUser, token_id: int) -> None:
    """Let what the user does in this request be written down as done by a token of theirs."""
    user._token_id = token_id  # type: ignore[attr-defined]


def console() -> User:
    """Return in whose name commands are written down: nobody's, who cannot log in."""
    nobody = {"is_active": False, "password": make_password(None)}
    return User.objects.get_or_create(username=CONSOLE, defaults=nobody)[0]


def _cut(value: Any) -> str:
    text = "—" if value in (None, "") else str(value)
    return text if len(text) <= MOST_LETTERS else f"{text[: MOST_LETTERS - 1]}…"
