"""The one trail of who changed what: Django's log of the admin, to which pages, API and commands add."""

from enum import IntEnum

from django.conf import settings
from django.contrib.admin.models import ADDITION, CHANGE, DELETION, LogEntry
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.db.models import Model
from django.utils import translation
from django.utils.functional import Promise


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
        LogEntry.objects.log_actions(str(user.pk), [changed], action, change_message=str(message))
