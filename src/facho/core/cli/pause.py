"""`facho pause …`: maintenance, a time without polling that always has an end."""

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from dataclasses import dataclass
from datetime import datetime
from gettext import gettext as _
from typing import TYPE_CHECKING

from facho.core.cli.arguments import Subparsers, add_command, add_group, add_json_flag, whole_number
from facho.core.cli.failure import CliError
from facho.core.cli.output import cell, print_rows
from facho.core.cli.product import database_command
from facho.core.cli.written import write_down

if TYPE_CHECKING:
    from facho.hosts.models import Olt

MAX_NOTE = 200


@dataclass(frozen=True, slots=True)
class PauseRow:
    """A pause that holds or is to come; without an OLT it is of everything."""

    id: int
    olt: str | None
    starts_at: datetime
    ends_at: datetime
    note: str


def register(subparsers: Subparsers) -> None:
    """Add `pause` with its commands."""
    pauses = add_group(subparsers, "pause", _("maintenance: start nothing for a while"))
    command = add_command(pauses, "add", _("start nothing new from now on; what runs is finished"), add)
    _add_place(command)
    command.add_argument("--minutes", type=whole_number, required=True, metavar="N", help=_("how long"))
    command.add_argument("--note", type=_note, default="", metavar=_("TEXT"), help=_("why, for whoever asks"))
    add_json_flag(add_command(pauses, "list", _("list the pauses that hold or are to come"), list_pauses))
    command = add_command(pauses, "end", _("end the pauses of an OLT, or those of everything, now"), end)
    _add_place(command)


@database_command
def add(arguments: Namespace) -> int:
    """Begin a pause."""
    from django.db import transaction
    from django.utils import timezone

    from facho.hosts.pauses import MAX_MINUTES, pause

    if arguments.minutes > MAX_MINUTES:
        raise CliError(_("A pause lasts at most %s minutes; for longer, disable the OLT.") % MAX_MINUTES)
    with transaction.atomic():
        held = pause(_olt(arguments.olt), minutes=arguments.minutes, note=arguments.note, now=timezone.now())
        write_down("ADDED", [held])
    print(_("%(what)s paused until %(until)s") % {"what": _what(arguments.olt), "until": cell(held.ends_at)})
    return 0


@database_command
def list_pauses(arguments: Namespace) -> int:
    """List what holds or is to come."""
    from django.utils import timezone

    from facho.hosts.models import Pause

    rows = Pause.objects.filter(ends_at__gt=timezone.now()).order_by("starts_at", "id")
    fields = rows.values_list("id", "olt__name", "starts_at", "ends_at", "note")
    print_rows(PauseRow, [PauseRow(*row) for row in fields], as_json=arguments.as_json)
    return 0


@database_command
def end(arguments: Namespace) -> int:
    """End what holds, and tell when something else still pauses the same OLT."""
    from django.db import transaction
    from django.utils import timezone

    from facho.hosts.pauses import active_pauses, end_pauses, load_pause

    olt, now = _olt(arguments.olt), timezone.now()
    with transaction.atomic():
        write_down("CHANGED", active_pauses(now).filter(olt=olt), _("ended"))
        was_paused = end_pauses(olt, now=now)
    if not was_paused:
        raise CliError(_("%s is not paused; `facho pause list` shows what is.") % _what(arguments.olt))
    print(_("pause of %s ended") % _what(arguments.olt))
    if olt is not None and load_pause(olt.id, now) is not None:
        print(_("everything is paused, so %s stays paused: see `facho pause list`") % _what(arguments.olt))
    return 0


def _add_place(command: ArgumentParser) -> None:
    """Have the whole network named on purpose, never by leaving something out."""
    place = command.add_mutually_exclusive_group(required=True)
    place.add_argument("--olt", metavar=_("NAME"), help=_("only this OLT"))
    place.add_argument("--all", action="store_true", dest="every", help=_("everything"))


def _note(text: str) -> str:
    if len(text) > MAX_NOTE or not text.isprintable():
        raise ArgumentTypeError(_("a note is one line of at most %s characters") % MAX_NOTE)
    return text


def _olt(name: str | None) -> "Olt | None":
    from facho.hosts.inventory import stored_olts

    if name is None:
        return None
    olt = stored_olts().filter(name=name).first()
    if olt is None:
        raise CliError(_('There is no OLT "%s"; `facho olt list` shows them.') % name)
    return olt


def _what(olt: str | None) -> str:
    return _("everything") if olt is None else _("OLT %s") % olt
