"""Acknowledges problems for a user. A second user gets an error that names the first; nothing is overwritten."""

from datetime import datetime
from typing import TypeVar

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils.text import format_lazy
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from facho.accounts.audit import Action, record
from facho.accounts.models import Acknowledgeable

MAX_NOTE_LENGTH = Acknowledgeable._meta.get_field("acknowledgement").max_length
_FIELDS = ("acknowledged_at", "acknowledged_by", "acknowledgement")
_NOBODY = {"acknowledged_at": None, "acknowledged_by": None, "acknowledgement": ""}

# Alerts have this column, too.
_THROUGH = "acknowledged_through"

Thing = TypeVar("Thing", bound=Acknowledgeable)
Person = AbstractBaseUser | AnonymousUser


class AcknowledgementError(Exception):
    """Says, in the user's language, why nothing was changed."""


def acknowledge(thing: Acknowledgeable, user: Person, note: str, *, now: datetime) -> None:
    """Acknowledge for a user, who can rewrite their own note; `thing` has the stored values in any case."""
    free_or_own = Q(acknowledged_at__isnull=True) | Q(acknowledged_by_id=user.pk)
    with transaction.atomic():
        changed = _row(thing).filter(free_or_own)
        if changed.update(acknowledged_at=now, acknowledged_by_id=user.pk, acknowledgement=note):
            noted = (
                format_lazy(gettext_lazy("Acknowledged: {note}"), note=note) if note else gettext_lazy("Acknowledged")
            )
            record(user, thing, Action.CHANGED, noted)
            thing.refresh_from_db(fields=_FIELDS)
            return
    thing.refresh_from_db(fields=_FIELDS)
    raise AcknowledgementError(_("%(who)s already acknowledged this.") % {"who": who_acknowledged(thing)})


def take_back(thing: Acknowledgeable, user: Person) -> None:
    """Withdraw an acknowledgement, one's own or another's; AcknowledgementError if there is none."""
    words = format_lazy(gettext_lazy("Withdrew the acknowledgement of {who}"), who=who_acknowledged(thing))
    with transaction.atomic():
        nobody = _NOBODY | ({_THROUGH: ""} if hasattr(thing, _THROUGH) else {})
        if not _row(thing).filter(acknowledged_at__isnull=False).update(**nobody):
            raise AcknowledgementError(_("This is not acknowledged."))
        record(user, thing, Action.CHANGED, words)
    thing.refresh_from_db(fields=_FIELDS)


def with_acknowledger(things: QuerySet[Thing]) -> QuerySet[Thing]:
    return things.select_related("acknowledged_by").defer("acknowledged_by__password")


def who_acknowledged(thing: Acknowledgeable) -> str:
    """Return who acknowledged; a deleted user has no name, and a link only that of its channel."""
    if thing.acknowledged_by:
        return thing.acknowledged_by.get_username()
    if channel := getattr(thing, _THROUGH, ""):
        return _("someone through the channel %(name)s") % {"name": channel}
    return _("a deleted user")


def _row(thing: Acknowledgeable) -> QuerySet[Acknowledgeable]:
    return type(thing)._default_manager.filter(pk=thing.pk)
