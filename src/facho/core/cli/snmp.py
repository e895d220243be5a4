"""`facho snmp get|walk|table`: one gentle question by hand, under the OLT's claim like everything else."""

import asyncio
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from contextlib import suppress
from gettext import gettext as _
from typing import TYPE_CHECKING, Literal

from facho.core.cli import snmp_output
from facho.core.cli.arguments import Subparsers, add_command, add_group, add_json_flag, whole_number
from facho.core.cli.failure import CliError
from facho.core.cli.output import cell, print_rows
from facho.core.cli.product import database_command
from facho.core.cli.site import tell_site

if TYPE_CHECKING:
    from facho.core.wiring import Parts
    from facho.hosts.models import Olt
    from facho.polling.vendors.index import Place
    from facho.snmp_get.interactive import Answer, InteractiveCollector
    from facho.snmp_get.question import Question, Way

# Longer than it takes to get an OLT that is free, so that only who has to wait is told for whom.
FIRST_LOOK_SECONDS = 0.5
LOOK_SECONDS = 2.0
MAX_PLACE_FIELDS = 4


def register(subparsers: Subparsers) -> None:
    """Add `snmp` with its commands."""
    snmp = add_group(subparsers, "snmp", _("ask an OLT by hand, one gentle operation at a time"))
    command = _add_question(snmp, "get", _("read single values"), nargs="+", metavar=_("OID|COLUMN"))
    command.add_argument("--at", type=_place, metavar="F/S/P/ONU", help=_("the ONU or port that a column is read of"))
    _add_question(snmp, "walk", _("read everything below an OID, or a column"), nargs=1, metavar=_("OID|COLUMN"))
    _add_question(snmp, "table", _("read columns side by side"), nargs="+", metavar=_("TABLE|COLUMN"))


@database_command
def read(arguments: Namespace) -> int:
    """Ask, print what was said, and tell when there is more."""
    from facho.snmp_get.interactive import ReadValue
    from facho.snmp_get.question import Way

    olt = _find(arguments.name)
    way = Way(arguments.way)
    question = _question(olt, way, arguments)
    tell_site(olt.name, olt.poller_group)
    answer = _ask(olt, question, wait_seconds=arguments.wait)
    if way is Way.TABLE:
        snmp_output.print_table(answer.values, as_json=arguments.as_json)
    else:
        print_rows(ReadValue, answer.values, as_json=arguments.as_json)
    _tell_end(olt, answer, question)
    return 0


def _add_question(snmp: Subparsers, way: str, summary: str, *, nargs: Literal["+", 1], metavar: str) -> ArgumentParser:
    command = add_command(snmp, way, summary, read)
    command.set_defaults(way=way, at=None)
    command.add_argument("name", metavar=_("NAME"), help=_("name of the OLT"))
    command.add_argument("subjects", nargs=nargs, metavar=metavar)
    command.add_argument("--rows", type=whole_number, default=200, metavar="N", help=_("rows at most (default: 200)"))
    command.add_argument(
        "--seconds", type=whole_number, default=30, metavar="N", help=_("hold the OLT for at most (default: 30)")
    )
    command.add_argument(
        "--wait", type=whole_number, default=60, metavar="N", help=_("seconds to wait for the OLT (default: 60)")
    )
    add_json_flag(command)
    return command


def _place(text: str) -> "Place":
    from facho.polling.vendors.index import Place

    numbers = text.split("/")
    if len(numbers) > MAX_PLACE_FIELDS or not all(n.isascii() and n.isdecimal() and len(n) <= 9 for n in numbers):
        raise ArgumentTypeError(_("%s is not FRAME/SLOT/PORT/ONU") % repr(text))
    return Place(*map(int, numbers))


def _find(name: str) -> "Olt":
    from facho.hosts.models import Olt

    olt = Olt.objects.filter(name=name).only("name", "vendor", "enabled", "poller_group").first()
    if olt is None:
        raise CliError(_('There is no OLT "%s"; `facho olt list` shows them.') % name)
    if not olt.enabled:
        raise CliError(_("OLT %s is disabled, so it is not asked anything: enable it first.") % name)
    return olt


def _question(olt: "Olt", way: "Way", arguments: Namespace) -> "Question":
    from facho.polling.vendors.loader import load_definitions
    from facho.snmp_get.device import BUDGET_SECONDS
    from facho.snmp_get.question import MAX_ROWS, BadQuestion, Bounds, plan_question

    bounds = Bounds(min(arguments.rows, MAX_ROWS), min(arguments.seconds, BUDGET_SECONDS))
    try:
        definition = load_definitions().get(olt.vendor)
        return plan_question(way, arguments.subjects, definition, place=arguments.at, bounds=bounds)
    except BadQuestion as error:
        raise CliError(cell(error)) from error


def _ask(olt: "Olt", question: "Question", *, wait_seconds: int) -> "Answer":
    from facho.core.wiring import OltBusy

    try:
        return asyncio.run(_ask_when_free(olt, question, wait_seconds))
    except OltBusy as error:
        raise CliError(
            _("OLT %(name)s stayed busy for %(seconds)s s: try again later, or wait longer with --wait.")
            % {"name": olt.name, "seconds": wait_seconds}
        ) from error


async def _ask_when_free(olt: "Olt", question: "Question", wait_seconds: int) -> "Answer":
    from django.conf import settings

    from facho.core.wiring import COMMAND_LINE, open_parts, run_interactive
    from facho.executions.models import Origin
    from facho.executions.store import ClaimRequest
    from facho.snmp_get.interactive import InteractiveCollector

    async with open_parts(COMMAND_LINE) as parts:
        timeout = settings.FACHO_PACKET_TIMEOUT_SECONDS
        collector = InteractiveCollector(parts.network, parts.database, timeout, question)
        wish = ClaimRequest(olt_id=olt.id, task_type=f"snmp_{question.way}", origin=Origin.MANUAL)
        watch = asyncio.create_task(_tell_holders(parts, olt, collector))
        try:
            await run_interactive(parts, wish, collector, wait_seconds=wait_seconds)
        finally:
            watch.cancel()
            with suppress(asyncio.CancelledError):
                await watch
        return collector.answer


async def _tell_holders(parts: "Parts", olt: "Olt", collector: "InteractiveCollector") -> None:
    """Say who holds the OLT for as long as that is somebody else, each of them once."""
    from facho.zabbix_pollers.activity import load_holder
    from facho.zabbix_pollers.explain_words import describe_holder

    told: set[int] = set()
    await asyncio.sleep(FIRST_LOOK_SECONDS)
    while not collector.has_begun:
        holder = await parts.database.run(load_holder, olt.id)
        if holder and holder.owner != parts.owner and holder.execution_id not in told:
            told.add(holder.execution_id)
            _tell(_("Waiting for OLT %(name)s: %(holder)s.") % {"name": olt.name, "holder": describe_holder(holder)})
        await asyncio.sleep(LOOK_SECONDS)


def _tell_end(olt: "Olt", answer: "Answer", question: "Question") -> None:
    """Say when there is more than what was printed, and why."""
    if answer.failure is not None:
        words = {"name": olt.name, "count": len(answer.values), "reason": cell(answer.failure.message).rstrip(".")}
        raise CliError(_("OLT %(name)s told %(count)s values, then: %(reason)s.") % words)
    if answer.cut == "rows":
        _tell(_("There is more: only the first %s rows are shown.") % question.max_rows)
    elif answer.cut == "time":
        _tell(_("There is more: the time of %s s is over.") % f"{question.max_seconds:g}")


def _tell(text: str) -> None:
    print(cell(text), file=sys.stderr)
