"""Takes note of what is wrong in somebody's name. Whoever comes second is told who did; nothing is overwritten."""

from datetime import datetime
from typing import TypeVar

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils.functional import Promise
from django.utils.text import format_lazy
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from facho.accounts.audit import Action, record
from facho.accounts.models import Acknowledgeable

MAX_NOTE_LENGTH = Acknowledgeable._meta.get_field("acknowledgement").max_length
_FIELDS = ("acknowledged_at", "acknowledged_by", "acknowledgement")
_NOBODY = {"acknowledged_at": None, "acknowledged_by": None, "acknowledgement": ""}

Thing = TypeVar("Thing", bound=Acknowledgeable)
Person = AbstractBaseUser | AnonymousUser


class AcknowledgementError(Exception):
    """Says, in the language of whoever asked, why nothing was changed."""


def acknowledge(thing: Acknowledgeable, user: Person, note: str, *, now: datetime) -> None:
    """Take note in the name of a user, who may write their own note anew.

    `thing` has the stored values afterwards, also after the AcknowledgementError that somebody else was first.
    """
    free_or_own = Q(acknowledged_at__isnull=True) | Q(acknowledged_by_id=user.pk)
    with transaction.atomic():
        changed = _row(thing).filter(free_or_own)
        if changed.update(acknowledged_at=now, acknowledged_by_id=user.pk, acknowledgement=note):
            record(user, thing, Action.CHANGED, _noted(note))
            thing.refresh_from_db(fields=_FIELDS)
            return
    thing.refresh_from_db(fields=_FIELDS)
    raise AcknowledgementError(_("%(who)s has acknowledged this already.") % {"who": who_acknowledged(thing)})


def take_back(thing: Acknowledgeable, user: Person) -> None:
    """Undo an acknowledgement, one's own or another's; AcknowledgementError when there is none."""
    words = format_lazy(gettext_lazy("Took back the acknowledgement of {who}"), who=who_acknowledged(thing))
    with transaction.atomic():
        if not _row(thing).filter(acknowledged_at__isnull=False).update(**_NOBODY):
            raise AcknowledgementError(_("Nobody has acknowledged this."))
        record(user, thing, Action.CHANGED, words)
    thing.refresh_from_db(fields=_FIELDS)


def with_acknowledger(things: QuerySet[Thing]) -> QuerySet[Thing]:
    """Load who took note along with what is wrong, and no password."""
    return things.select_related("acknowledged_by").defer("acknowledged_by__password")


def who_acknowledged(thing: Acknowledgeable) -> str:
    """Name who took note; a user who was deleted since has no name any more."""
    return thing.acknowledged_by.get_username() if thing.acknowledged_by else _("a deleted user")


def _noted(note: str) -> Promise:
    return format_lazy(gettext_lazy("Acknowledged: {note}"), note=note) if note else gettext_lazy("Acknowledged")


def _row(thing: Acknowledgeable) -> QuerySet[Acknowledgeable]:
    return type(thing)._default_manager.filter(pk=thing.pk)
