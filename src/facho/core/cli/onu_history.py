"""`facho onu history` and `facho onu events`: how an ONU's values changed, and what happened to it."""

import sys
from argparse import ArgumentParser, Namespace
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from gettext import gettext as _
from typing import TYPE_CHECKING

from facho.core.cli.arguments import Subparsers, add_command, add_json_flag, whole_number
from facho.core.cli.failure import CliError
from facho.core.cli.output import cell, print_rows
from facho.core.cli.product import database_command
from facho.core.cli.sparkline import sparkline

if TYPE_CHECKING:
    from facho.onus.history import Series
    from facho.onus.history_read_model import Question
    from facho.onus.models import Onu

DEFAULT_METRIC = "rx_power"
# Beyond a week a line for each hour is more than a person reads.
HOURLY_DAYS = 7
# Nothing is kept for longer.
MAX_DAYS = 36_500
EVENT_DAYS = 30
WIDTH = 72
MAX_ID_DIGITS = 18


@dataclass(frozen=True, slots=True)
class HistoryRow:
    """One hour or day, by its beginning; nothing but the time is a gap."""

    at: datetime
    value: float | None
    min: float | None
    max: float | None
    unit: str


@dataclass(frozen=True, slots=True)
class EventRow:
    """One fact, at the poll that showed it; `place` is where the ONU was."""

    at: datetime
    kind: str
    cause: str
    olt: str
    place: str
    message: str


def register(onus: Subparsers) -> None:
    """Add the commands to those of `onu`."""
    command = add_command(onus, "history", _("show how a value of an ONU changed"), show_history)
    _add_onu(command)
    command.add_argument("--metric", metavar=_("NAME"), default=DEFAULT_METRIC, help=_("default: %s") % DEFAULT_METRIC)
    command.add_argument("--days", metavar="N", type=whole_number, default=1, help=_("default: %s") % 1)
    add_json_flag(command)
    command = add_command(onus, "events", _("show what happened to an ONU, the latest first"), show_events)
    _add_onu(command)
    command.add_argument(
        "--days", metavar="N", type=whole_number, default=EVENT_DAYS, help=_("default: %s") % EVENT_DAYS
    )
    add_json_flag(command)


def _add_onu(command: ArgumentParser) -> None:
    command.add_argument("onu", metavar=_("SERIAL|ID"), help=_("serial of the ONU, or its number in lists"))


@database_command
def show_history(arguments: Namespace) -> int:
    """Print a line for each hour, or for each day when it is more than a week, and all of it as a drawing."""
    from facho.onus.history_read_model import WrongQuestion, load_onu_history

    onu = find_onu(arguments.onu)
    question = _question(arguments)
    try:
        rows = _history_rows(load_onu_history(onu.id, question), question)
    except WrongQuestion as error:
        raise CliError(str(error)) from None
    print_rows(HistoryRow, rows, as_json=arguments.as_json)
    if not arguments.as_json:
        _draw(rows, question)
    return 0


@database_command
def show_events(arguments: Namespace) -> int:
    """Print the timeline of one ONU."""
    from django.utils import timezone

    from facho.onus.event_words import describe_event
    from facho.onus.events_read_model import all_events

    since = timezone.now() - timedelta(days=min(arguments.days, MAX_DAYS))
    events = all_events().filter(onu_id=find_onu(arguments.onu).id, at__gte=since).order_by("-at", "-id")
    rows = [
        EventRow(
            at=event.at,
            kind=event.kind,
            cause=event.cause,
            olt=event.olt.name,
            place=f"{event.pon_port}/{event.onu_number}",
            message=describe_event(event),
        )
        for event in events
    ]
    print_rows(EventRow, rows, as_json=arguments.as_json)
    return 0


def find_onu(text: str) -> "Onu":
    """Find an ONU by its serial, else by its id; of several with one serial the only one that is present."""
    from facho.onus.models import Onu

    # PostgreSQL refuses a NUL in any text, and no serial has one.
    found = [] if "\x00" in text else list(Onu.objects.filter(serial__iexact=text).order_by("id"))
    if not found and text.isascii() and text.isdecimal() and len(text) <= MAX_ID_DIGITS:
        found = list(Onu.objects.filter(pk=int(text)))
    present = [onu for onu in found if onu.is_present] or found
    if not present:
        raise CliError(_('There is no ONU "%s": give its serial, or the id that lists show.') % cell(text))
    if len(present) > 1:
        raise CliError(
            _('Several ONUs have the serial "%(serial)s": give one of their ids, %(ids)s.')
            % {"serial": cell(text), "ids": ", ".join(str(onu.id) for onu in present)}
        )
    return present[0]


def _question(arguments: Namespace) -> "Question":
    from django.utils import timezone

    from facho.onus.history_read_model import METRICS, Detail, ask

    if arguments.metric not in METRICS:
        arguments.usage_error(_("--metric is one of: %s") % ", ".join(METRICS))
    now = timezone.now()
    return ask(
        METRICS[arguments.metric],
        start=now - timedelta(days=min(arguments.days, MAX_DAYS)),
        end=now,
        detail=Detail.HOUR if arguments.days <= HOURLY_DAYS else Detail.DAY,
        now=now,
    )


def _history_rows(series: "Series", question: "Question") -> list[HistoryRow]:
    columns = (series.at, series.average, series.lowest, series.highest)
    return [
        HistoryRow(datetime.fromtimestamp(at, UTC), _known(value), _known(lowest), _known(highest), question.unit.value)
        for at, value, lowest, highest in zip(*(column.tolist() for column in columns), strict=True)
    ]


def _known(value: float) -> float | None:
    return None if value != value else value


def _draw(rows: list[HistoryRow], question: "Question") -> None:
    known = [row.value for row in rows if row.value is not None]
    if not known:
        print(_("Nothing is known of this time."))
        return
    by_step = {int(row.at.timestamp()) // question.resolution: row.value for row in rows}
    steps = range(min(by_step), max(by_step) + 1)
    drawing = sparkline([by_step.get(step) for step in steps], width=WIDTH, encoding=sys.stdout.encoding or "ascii")
    print(f"\n{drawing}")
    print(
        _("from %(lowest)s to %(highest)s %(unit)s")
        % {"lowest": min(known), "highest": max(known), "unit": question.unit.value}
    )
