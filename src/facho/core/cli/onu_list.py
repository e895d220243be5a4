"""`facho onu list` and `facho onu show`: the ONUs of all OLTs at a terminal."""

import sys
from argparse import ArgumentTypeError, Namespace
from dataclasses import asdict, dataclass
from datetime import datetime
from gettext import gettext as _
from typing import TYPE_CHECKING

from facho.core.cli.arguments import Subparsers, add_command, add_json_flag, whole_number
from facho.core.cli.failure import CliError
from facho.core.cli.onu_history import find_onu
from facho.core.cli.output import print_record, print_rows
from facho.core.cli.product import database_command
from facho.polling.domain.onu_state import DownCause, RunState

if TYPE_CHECKING:
    from django.db.models import Q

    from facho.onus.models import Onu

DEFAULT_LIMIT = 50
STATES = (*map(str, RunState), "absent")
# No optics see light outside of this, by far.
MAX_DBM = 100


@dataclass(frozen=True, slots=True)
class OnuRow:
    """An ONU as lists show it."""

    id: int
    serial: str
    olt: str
    place: str
    state: str
    last_known: str
    since: datetime | None
    cause: str
    rx_dbm: float | None
    description: str
    customer: str


@dataclass(frozen=True, slots=True)
class OnuRecord(OnuRow):
    """All that is known of one ONU now."""

    mac: str
    name: str
    model: str
    firmware: str
    admin_state: str
    first_seen_at: datetime
    absent_since: datetime | None
    flapping: bool
    distance_m: int | None
    tx_dbm: float | None
    olt_rx_dbm: float | None
    power_at: datetime | None
    temperature_celsius: float | None
    voltage_v: float | None
    bias_ma: float | None
    address: str
    phone: str
    notes: str
    tags: str


def register(onus: Subparsers) -> None:
    """Add the commands to `onu`."""
    command = add_command(onus, "list", _("list ONUs, narrowed and sorted"), list_onus)
    command.add_argument("--olt", metavar=_("NAME"), help=_("of this OLT"))
    command.add_argument("--port", metavar="F/S/P", type=port_place, help=_("of this PON port, such as 0/1/3"))
    command.add_argument("--state", choices=STATES, help=_("of which this may be said now"))
    command.add_argument("--cause", choices=tuple(map(str, DownCause)), help=_("that went down last for this cause"))
    command.add_argument("--power-below", metavar="DBM", type=dbm, help=_("that receive less light, such as -27"))
    command.add_argument("--search", metavar=_("TEXT"), help=_("with a part of any text, from 3 letters on"))
    command.add_argument("--sort", metavar=_("ORDER"), default="place", help=_("default: place; a minus reverses it"))
    command.add_argument(
        "--limit", metavar="N", type=whole_number, default=DEFAULT_LIMIT, help=_("at most so many (default: 50)")
    )
    add_json_flag(command)
    command = add_command(onus, "show", _("show all that is known of an ONU"), show)
    command.add_argument("onu", metavar=_("SERIAL|ID"), help=_("serial of the ONU, or its number in lists"))
    add_json_flag(command)


def port_place(text: str) -> tuple[int, int, int]:
    """Read FRAME/SLOT/PORT; wrong use otherwise."""
    parts = text.split("/")
    if len(parts) != 3 or not all(part.isascii() and part.isdecimal() and len(part) <= 5 for part in parts):
        raise ArgumentTypeError(_("%s is not FRAME/SLOT/PORT") % repr(text))
    frame, slot, port = map(int, parts)
    return frame, slot, port


def dbm(text: str) -> float:
    """Read a power; wrong use otherwise."""
    try:
        power = float(text)
    except ValueError:
        power = float("nan")
    # Also not true of NaN.
    if not abs(power) <= MAX_DBM:
        raise ArgumentTypeError(_("%s is not a power in dBm") % repr(text))
    return power


@database_command
def list_onus(arguments: Namespace) -> int:
    """List the ONUs that meet all that was asked for, and say when they are more than were asked for."""
    from facho.onus.search import SORT_WORDS, FoundOnus

    if arguments.sort not in SORT_WORDS:
        arguments.usage_error(_("--sort is one of: %s") % ", ".join(SORT_WORDS))
    found = FoundOnus(_conditions(arguments), arguments.sort)[: arguments.limit + 1]
    print_rows(OnuRow, [_row(onu) for onu in found[: arguments.limit]], as_json=arguments.as_json)
    if len(found) > arguments.limit:
        print("facho: " + _("there are more: narrow the list, or raise --limit."), file=sys.stderr)
    return 0


@database_command
def show(arguments: Namespace) -> int:
    """Show one ONU."""
    from facho.onus.search import shown_onus

    onu = shown_onus().get(pk=find_onu(arguments.onu).id)
    print_record(_record(onu), as_json=arguments.as_json)
    return 0


def _conditions(arguments: Namespace) -> "list[Q]":
    from django.db.models import Q

    from facho.onus.search import of_state

    conditions = []
    if arguments.olt:
        conditions.append(Q(olt_id=_olt_id(arguments.olt)))
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
        conditions.append(_searched(arguments))
    return conditions


def _searched(arguments: Namespace) -> "Q":
    from facho.onus.search import of_text

    try:
        return of_text(arguments.search)
    except ValueError as error:
        arguments.usage_error(f"--search: {error}")
        raise


def _olt_id(name: str) -> int:
    from facho.hosts.models import Olt

    olt_id = Olt.objects.filter(name=name).values_list("id", flat=True).first()
    if olt_id is None:
        raise CliError(_('There is no OLT "%s"; `facho olt list` shows them.') % name)
    return olt_id


def _row(onu: "Onu") -> OnuRow:
    from facho.onus.shown_state import last_known_state, shown_state

    reading, customer = getattr(onu, "reading", None), getattr(onu, "customer", None)
    return OnuRow(
        id=onu.id,
        serial=onu.serial,
        olt=onu.olt.name,
        place=f"{onu.pon_port}/{onu.onu_id}",
        state=shown_state(onu).value,
        last_known=last_known_state(onu).value,
        since=getattr(reading, "state_since", None),
        cause=getattr(reading, "last_down_cause", ""),
        rx_dbm=getattr(reading, "rx_power_dbm", None),
        description=onu.description,
        customer=getattr(customer, "label", ""),
    )


def _record(onu: "Onu") -> OnuRecord:
    reading, customer = getattr(onu, "reading", None), getattr(onu, "customer", None)
    return OnuRecord(
        **asdict(_row(onu)),
        mac=onu.mac,
        name=onu.name,
        model=onu.model,
        firmware=onu.firmware,
        admin_state=onu.admin_state,
        first_seen_at=onu.first_seen_at,
        absent_since=onu.absent_since,
        flapping=getattr(reading, "is_flapping", False),
        distance_m=getattr(reading, "distance_m", None),
        tx_dbm=getattr(reading, "tx_power_dbm", None),
        olt_rx_dbm=getattr(reading, "olt_rx_power_dbm", None),
        power_at=getattr(reading, "power_at", None),
        temperature_celsius=getattr(reading, "temperature_celsius", None),
        voltage_v=getattr(reading, "voltage_v", None),
        bias_ma=getattr(reading, "bias_ma", None),
        address=getattr(customer, "address", ""),
        phone=getattr(customer, "phone", ""),
        notes=getattr(customer, "notes", ""),
        tags=getattr(customer, "tags", ""),
    )
