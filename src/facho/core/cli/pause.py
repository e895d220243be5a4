"""`facho pause …`: maintenance, a time without polling that always has an end."""

from argparse import Namespace
from dataclasses import dataclass
from datetime import datetime
from gettext import gettext as _

from django.db import transaction
from django.utils import timezone

from facho.core.cli.output import cell, print_rows, write_down
from facho.core.product import OperatorError
from facho.hosts.inventory import stored_olts
from facho.hosts.models import Olt, Pause
from facho.hosts.pauses import MAX_MINUTES, active_pauses, end_pauses, load_pause, pause


@dataclass(frozen=True, slots=True)
class PauseRow:
    """A pause that holds or is to come; without an OLT it is of everything."""

    id: int
    olt: str | None
    starts_at: datetime
    ends_at: datetime
    note: str


def add(arguments: Namespace) -> int:
    if arguments.minutes > MAX_MINUTES:
        raise OperatorError(_("A pause lasts at most %s minutes; for longer, disable the OLT.") % MAX_MINUTES)
    with transaction.atomic():
        held = pause(_olt(arguments.olt), minutes=arguments.minutes, note=arguments.note, now=timezone.now())
        write_down("ADDED", [held])
    print(_("%(what)s paused until %(until)s") % {"what": _what(arguments.olt), "until": cell(held.ends_at)})
    return 0


def list_pauses(arguments: Namespace) -> int:
    """List what holds or is to come."""
    rows = Pause.objects.filter(ends_at__gt=timezone.now()).order_by("starts_at", "id")
    fields = rows.values_list("id", "olt__name", "starts_at", "ends_at", "note")
    print_rows(PauseRow, [PauseRow(*row) for row in fields], as_json=arguments.as_json)
    return 0


def end(arguments: Namespace) -> int:
    """End the pause, and say if something else still pauses the same OLT."""
    olt, now = _olt(arguments.olt), timezone.now()
    with transaction.atomic():
        write_down("CHANGED", active_pauses(now).filter(olt=olt), _("ended"))
        was_paused = end_pauses(olt, now=now)
    if not was_paused:
        raise OperatorError(_("%s is not paused; `facho pause list` shows what is.") % _what(arguments.olt))
    print(_("pause of %s ended") % _what(arguments.olt))
    if olt is not None and load_pause(olt.id, now) is not None:
        print(_("everything is paused, so %s stays paused: see `facho pause list`") % _what(arguments.olt))
    return 0


def _olt(name: str | None) -> Olt | None:
    if name is None:
        return None
    olt = stored_olts().filter(name=name).first()
    if olt is None:
        raise OperatorError(_('There is no OLT "%s"; `facho olt list` shows them.') % name)
    return olt


def _what(olt: str | None) -> str:
    return _("everything") if olt is None else _("OLT %s") % olt
