"""`facho snmp get|walk|table`: one gentle question by hand, under the OLT's claim like everything else."""

import asyncio
import sys
from argparse import Namespace
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import astuple, fields
from gettext import gettext as _

from django.conf import settings

from facho.core.cli.output import NOTHING, cell, dump, find_olt, print_lines, print_rows, warn_of_site
from facho.core.product import OperatorError
from facho.core.wiring import COMMAND_LINE, OltBusy, Parts, open_parts, run_interactive
from facho.executions.models import Origin
from facho.executions.store import ClaimRequest
from facho.hosts.models import Olt
from facho.polling.vendors.index import Place
from facho.polling.vendors.loader import load_definitions
from facho.snmp_get import interactive
from facho.snmp_get.reading import BUDGET_SECONDS
from facho.zabbix_pollers.activity import load_holder
from facho.zabbix_pollers.explain import describe_holder

# Longer than it takes to get an OLT that is free, so the holder is shown only after a real wait.
FIRST_LOOK_SECONDS = 0.5
LOOK_SECONDS = 2.0

Table = dict[str, dict[str, interactive.ReadValue]]


def print_table(values: Sequence[interactive.ReadValue], *, as_json: bool) -> None:
    rows: Table = {}
    for value in values:
        # Where a place cannot be read, the OID stands for it.
        rows.setdefault(value.place or value.oid, {})[value.column] = value
    if as_json:
        parts = ("value", "unit", "raw", "note", "oid")
        dump(
            [
                {
                    "place": place,
                    "values": {column: {part: getattr(value, part) for part in parts} for column, value in row.items()},
                }
                for place, row in rows.items()
            ]
        )
        return
    columns = list(dict.fromkeys(value.column for value in values))
    lines = [[place, *(_shown(row.get(column)) for column in columns)] for place, row in rows.items()]
    print_lines(["PLACE", *columns], lines)


def _shown(value: interactive.ReadValue | None) -> str:
    """Write a value with its unit; without one, why there is none."""
    if value is None:
        return NOTHING
    if value.value is None:
        return f"({value.note})" if value.note else NOTHING
    return f"{cell(value.value)} {value.unit}".rstrip()


def read(arguments: Namespace) -> None:
    olt = olt_to_ask(arguments.name)
    way = interactive.Way(arguments.way)
    bounds = interactive.Bounds(min(arguments.rows, interactive.MAX_ROWS), min(arguments.seconds, BUDGET_SECONDS))
    place = Place(*arguments.at) if arguments.at else None
    try:
        definition = load_definitions().get(olt.vendor)
        question = interactive.plan_question(way, arguments.subjects, definition, place=place, bounds=bounds)
    except interactive.BadQuestion as error:
        raise OperatorError(cell(error)) from error
    warn_of_site(olt.name, olt.poller_group)
    try:
        answer = asyncio.run(_ask_when_free(olt, question, arguments.wait))
    except OltBusy as error:
        raise stayed_busy(olt.name, arguments.wait) from error
    if way is interactive.Way.TABLE:
        print_table(answer.values, as_json=arguments.as_json)
    else:
        columns = [field.name for field in fields(interactive.ReadValue)]
        print_rows(columns, map(astuple, answer.values), as_json=arguments.as_json)
    # Say when there is more than what was printed, and why.
    if answer.failure is not None:
        words = {"name": olt.name, "count": len(answer.values), "reason": cell(answer.failure.message).rstrip(".")}
        raise OperatorError(_("OLT %(name)s sent %(count)s values, then: %(reason)s.") % words)
    if answer.cut == "rows":
        _print_status(_("There is more: only the first %s rows are shown.") % question.max_rows)
    elif answer.cut == "time":
        _print_status(_("There is more: the %s s are up.") % f"{question.max_seconds:g}")


def stayed_busy(name: str, seconds: float) -> OperatorError:
    text = _("OLT %(name)s stayed busy for %(seconds)s s: try again later, or wait longer with --wait.")
    return OperatorError(text % {"name": name, "seconds": seconds})


def olt_to_ask(name: str) -> Olt:
    olt = find_olt(name)
    if not olt.enabled:
        raise OperatorError(_("OLT %s is disabled, so it is not queried: enable it first.") % name)
    return olt


async def _ask_when_free(olt: Olt, question: interactive.SnmpQuestion, wait_seconds: int) -> interactive.Answer:
    async with open_parts(COMMAND_LINE) as parts:
        timeout = settings.FACHO_PACKET_TIMEOUT_SECONDS
        collector = interactive.InteractiveCollector(parts.network, parts.database, timeout, question)
        wish = ClaimRequest(olt_id=olt.id, task_type=f"snmp_{question.way}", origin=Origin.MANUAL)
        watch = asyncio.create_task(_print_holders(parts, olt, collector))
        try:
            await run_interactive(parts, wish, collector, wait_seconds=wait_seconds)
        finally:
            watch.cancel()
            with suppress(asyncio.CancelledError):
                await watch
        return collector.answer


async def _print_holders(parts: Parts, olt: Olt, collector: interactive.InteractiveCollector) -> None:
    """Say who holds the OLT for as long as that is somebody else, each of them once."""
    reported: set[int] = set()
    await asyncio.sleep(FIRST_LOOK_SECONDS)
    while not collector.has_begun:
        holder = await parts.database.run(load_holder, olt.id)
        if holder and holder.owner != parts.owner and holder.execution_id not in reported:
            reported.add(holder.execution_id)
            _print_status(
                _("Waiting for OLT %(name)s: %(holder)s.") % {"name": olt.name, "holder": describe_holder(holder)}
            )
        await asyncio.sleep(LOOK_SECONDS)


def _print_status(text: str) -> None:
    print(cell(text), file=sys.stderr)
