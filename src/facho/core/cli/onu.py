"""`facho onu …`: the ONUs of all OLTs and their customers."""

import math
import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from gettext import gettext as _
from typing import Any

from django.db.models import Q
from django.utils import timezone

from facho.core.cli.output import cell, find_olt, print_record, print_rows, problem_line, read_csv, refused
from facho.core.product import OperatorError
from facho.hosts.inventory import InventoryError
from facho.onus.customers import import_customers
from facho.onus.events import all_events, describe_event
from facho.onus.history_read_model import METRICS, Detail, HistoryQuery, WrongQuestion, ask, load_onu_history
from facho.onus.models import Onu
from facho.onus.search import SORT_WORDS, FoundOnus, of_state, of_text, shown_onus
from facho.onus.shown_state import last_known_state, shown_state

BLOCKS = "▁▂▃▄▅▆▇█"
# For terminals that cannot write blocks.
PLAIN = "_.-:=+*#"
GAP = " "
# Beyond a week a line for each hour is more than a person reads.
HOURLY_DAYS = 7
# Nothing is kept for longer.
MAX_DAYS = 36_500
WIDTH = 72
MAX_ID_DIGITS = 18


def sparkline(values: Sequence[float | None], *, width: int, encoding: str) -> str:
    """Draw values at equal distances on at most `width` letters; each is an average, what has no value stays blank."""
    per_letter = math.ceil(len(values) / width)
    averages: list[float | None] = []
    for start in range(0, len(values), per_letter or 1):
        some = [value for value in values[start : start + per_letter] if value is not None]
        averages.append(sum(some) / len(some) if some else None)
    known = [value for value in averages if value is not None]
    if not known:
        return ""
    try:
        BLOCKS.encode(encoding)
        letters = BLOCKS
    except (UnicodeEncodeError, LookupError):
        letters = PLAIN
    lowest, span = min(known), max(known) - min(known)
    steps = len(letters) - 1
    return "".join(
        GAP if value is None else letters[round((value - lowest) / span * steps) if span else 0] for value in averages
    )


def show_history(arguments: Namespace) -> None:
    """Print a line for each hour, or for each day when it is more than a week, and all of it as a drawing."""
    onu = find_onu(arguments.onu)
    if arguments.metric not in METRICS:
        arguments.usage_error(_("--metric is one of: %s") % ", ".join(METRICS))
    now = timezone.now()
    question = ask(
        METRICS[arguments.metric],
        start=now - timedelta(days=min(arguments.days, MAX_DAYS)),
        end=now,
        detail=Detail.HOUR if arguments.days <= HOURLY_DAYS else Detail.DAY,
        now=now,
    )
    try:
        series = load_onu_history(onu.id, question)
    except WrongQuestion as error:
        raise OperatorError(str(error)) from None
    columns = (series.at, series.average, series.lowest, series.highest)
    # An hour or day by its beginning; a row with only the time is a gap.
    at, *values = (column.tolist() for column in columns)
    moments = [datetime.fromtimestamp(each, UTC) for each in at]
    average, lowest, highest = ([None if value != value else value for value in column] for column in values)
    units = [question.unit.value] * len(at)
    rows = zip(moments, average, lowest, highest, units, strict=True)
    print_rows(("at", "value", "min", "max", "unit"), rows, as_json=arguments.as_json)
    if not arguments.as_json:
        _draw(dict(zip(moments, average, strict=True)), question)


def show_events(arguments: Namespace) -> None:
    since = timezone.now() - timedelta(days=min(arguments.days, MAX_DAYS))
    events = all_events().filter(onu_id=find_onu(arguments.onu).id, at__gte=since).order_by("-at", "-id")
    rows = [
        (
            event.at,
            event.kind,
            event.cause,
            event.olt.name,
            f"{event.pon_port}/{event.onu_number}",
            describe_event(event),
        )
        for event in events
    ]
    print_rows(("at", "kind", "cause", "olt", "place", "message"), rows, as_json=arguments.as_json)


def find_onu(text: str) -> Onu:
    """Find an ONU by its serial, else by its id; of several with one serial the only one that is present."""
    # PostgreSQL refuses a NUL in any text, and no serial has one.
    found = [] if "\x00" in text else list(Onu.objects.filter(serial__iexact=text).order_by("id"))
    if not found and text.isascii() and text.isdecimal() and len(text) <= MAX_ID_DIGITS:
        found = list(Onu.objects.filter(pk=int(text)))
    present = [onu for onu in found if onu.is_present] or found
    if not present:
        raise OperatorError(_('There is no ONU "%s": give its serial, or the id that lists show.') % cell(text))
    if len(present) > 1:
        raise OperatorError(
            _('Several ONUs have the serial "%(serial)s": give one of their ids, %(ids)s.')
            % {"serial": cell(text), "ids": ", ".join(str(onu.id) for onu in present)}
        )
    return present[0]


def _draw(values: Mapping[datetime, float | None], question: HistoryQuery) -> None:
    known = [value for value in values.values() if value is not None]
    if not known:
        print(_("Nothing is known of this time."))
        return
    by_step = {int(at.timestamp()) // question.resolution: value for at, value in values.items()}
    steps = range(min(by_step), max(by_step) + 1)
    drawing = sparkline([by_step.get(step) for step in steps], width=WIDTH, encoding=sys.stdout.encoding or "ascii")
    print(f"\n{drawing}")
    print(
        _("from %(lowest)s to %(highest)s %(unit)s")
        % {"lowest": min(known), "highest": max(known), "unit": question.unit.value}
    )


COLUMNS = (
    "id", "serial", "olt", "place", "state", "last_known", "since", "cause", "rx_dbm", "description", "customer"
)  # fmt: skip


def list_onus(arguments: Namespace) -> None:
    """List the ONUs that meet all that was asked for, and say when they are more than were asked for."""
    if arguments.sort not in SORT_WORDS:
        arguments.usage_error(_("--sort is one of: %s") % ", ".join(SORT_WORDS))
    found = FoundOnus(_conditions(arguments), arguments.sort)[: arguments.limit + 1]
    print_rows(COLUMNS, [_row(onu) for onu in found[: arguments.limit]], as_json=arguments.as_json)
    if len(found) > arguments.limit:
        print("facho: " + _("there are more: narrow the list, or raise --limit."), file=sys.stderr)


def show(arguments: Namespace) -> None:
    onu = shown_onus().get(pk=find_onu(arguments.onu).id)
    reading, customer = getattr(onu, "reading", None), getattr(onu, "customer", None)
    values = {
        **dict(zip(COLUMNS, _row(onu), strict=True)),
        "mac": onu.mac,
        "name": onu.name,
        "model": onu.model,
        "firmware": onu.firmware,
        "admin_state": onu.admin_state,
        "first_seen_at": onu.first_seen_at,
        "absent_since": onu.absent_since,
        "flapping": getattr(reading, "is_flapping", False),
        "distance_m": getattr(reading, "distance_m", None),
        "tx_dbm": getattr(reading, "tx_power_dbm", None),
        "olt_rx_dbm": getattr(reading, "olt_rx_power_dbm", None),
        **{name: getattr(reading, name, None) for name in ("power_at", "temperature_celsius", "voltage_v", "bias_ma")},
        **{name: getattr(customer, name, "") for name in ("address", "phone", "notes", "tags", "contract")},
        **{name: getattr(customer, name, None) for name in ("latitude", "longitude")},
    }
    print_record(values, as_json=arguments.as_json)


def _conditions(arguments: Namespace) -> list[Q]:
    conditions = []
    if arguments.olt:
        conditions.append(Q(olt=find_olt(arguments.olt)))
    if arguments.port:
        names = ("pon_port__frame", "pon_port__slot", "pon_port__port")
        conditions.append(Q(**dict(zip(names, arguments.port, strict=True))))
    if arguments.state:
        conditions.append(of_state(arguments.state))
    if arguments.cause:
        conditions.append(Q(reading__last_down_cause=arguments.cause))
    if arguments.power_below is not None:
        conditions.append(Q(reading__rx_power_cdbm__lt=round(arguments.power_below * 100)))
    if arguments.search is not None:
        try:
            conditions.append(of_text(arguments.search))
        except ValueError as error:
            arguments.usage_error(f"--search: {error}")
    return conditions


def _row(onu: Onu) -> tuple[Any, ...]:
    reading, customer = getattr(onu, "reading", None), getattr(onu, "customer", None)
    return (
        onu.id,
        onu.serial,
        onu.olt.name,
        f"{onu.pon_port}/{onu.onu_id}",
        shown_state(onu).value,
        last_known_state(onu).value,
        getattr(reading, "state_since", None),
        getattr(reading, "last_down_cause", ""),
        getattr(reading, "rx_power_dbm", None),
        onu.description,
        getattr(customer, "label", ""),
    )


def import_file(arguments: Namespace) -> None:
    """Import customers by serial, hardware address or place; who is left out is named on standard error."""
    content = read_csv(arguments.file)
    try:
        imported = import_customers(
            content, is_dry_run=arguments.dry_run, now=timezone.now(), source=str(arguments.file)
        )
    except InventoryError as error:
        raise refused(arguments.file, error) from None
    for problem in imported.left_out:
        print(f"facho: {problem_line(arguments.file, problem)}", file=sys.stderr)
    counts = {"written": imported.written, "unchanged": imported.unchanged, "left_out": len(imported.left_out)}
    if arguments.dry_run:
        print(_("%(written)s customers would be written, %(unchanged)s unchanged, %(left_out)s left out") % counts)
    else:
        print(_("%(written)s customers written, %(unchanged)s unchanged, %(left_out)s left out") % counts)
