"""`facho olt …`: the inventory of OLTs."""

import sys
from argparse import Namespace
from dataclasses import dataclass
from datetime import datetime
from gettext import gettext as _
from pathlib import Path
from typing import TYPE_CHECKING

from facho.core.cli import olt_add
from facho.core.cli.arguments import Subparsers, add_command, add_group, add_json_flag
from facho.core.cli.csv_input import file_failure, read_csv, refused
from facho.core.cli.failure import CliError
from facho.core.cli.olt_jobs import add_jobs_flag, give_jobs
from facho.core.cli.output import print_record, print_rows
from facho.core.cli.product import database_command
from facho.core.cli.site import tell_site
from facho.core.cli.written import write_down

if TYPE_CHECKING:
    from facho.hosts.inventory import Saved
    from facho.hosts.models import Olt
    from facho.snmp_get.identity import ProbeReport

STDOUT = "-"


@dataclass(frozen=True, slots=True)
class OltRow:
    """An OLT as lists show it."""

    name: str
    host: str
    address: str
    port: int
    vendor: str
    version: str
    enabled: bool
    reachability: str
    last_answer_at: datetime | None


@dataclass(frozen=True, slots=True)
class PlanRow:
    """A row of a file, and what importing it would do."""

    line: int | None
    name: str
    what: str
    details: str


@dataclass(frozen=True, slots=True)
class ProbeRow:
    """What an OLT said of itself; `error` is why it said nothing, or why it will not be polled."""

    olt: str
    answered: bool
    sys_name: str
    sys_descr: str
    sys_object_id: str
    vendor: str
    model: str
    round_trip_ms: float | None
    error: str


def register(subparsers: Subparsers) -> None:
    """Add `olt` with its commands."""
    olts = add_group(subparsers, "olt", _("the inventory of OLTs"))
    olt_add.register(olts)
    command = add_command(olts, "import", _("add and update OLTs from a CSV file, all or nothing"), import_file)
    command.add_argument("file", metavar=_("FILE"), type=Path)
    command.add_argument("--dry-run", action="store_true", help=_("print what would change, and write nothing"))
    add_json_flag(command)
    add_jobs_flag(command)
    command = add_command(olts, "export", _("write the inventory as CSV, without secrets"), export)
    command.add_argument("file", metavar=_("FILE"), nargs="?", default=STDOUT, help=_("default: standard output"))
    add_json_flag(add_command(olts, "list", _("list the OLTs"), list_olts))
    command = add_command(olts, "probe", _("ask an OLT who it is"), probe)
    command.add_argument("name", metavar=_("NAME"))
    add_json_flag(command)


@database_command
def import_file(arguments: Namespace) -> int:
    """Import a CSV file, or tell what importing it would do."""
    from facho.hosts import csv_file
    from facho.hosts.inventory import InventoryError, stored_olts

    if arguments.dry_run:
        return _print_plan(arguments)
    if arguments.as_json:
        arguments.usage_error(_("--json goes with --dry-run"))

    def finish(saved: "Saved") -> None:
        write_down("ADDED", stored_olts().filter(name__in=saved.added), arguments.file)
        write_down("CHANGED", stored_olts().filter(name__in=saved.updated), arguments.file)

    try:
        saved = csv_file.import_file(read_csv(arguments.file), after_save=give_jobs(arguments), finish=finish)
    except InventoryError as error:
        raise refused(arguments.file, error) from None
    print(_("%(added)s OLTs added, %(updated)s updated") % {"added": len(saved.added), "updated": len(saved.updated)})
    return 0


def _print_plan(arguments: Namespace) -> int:
    """Print the table; a file with a bad row fails as importing it would."""
    from facho.hosts.csv_file import plan_file

    plan = plan_file(read_csv(arguments.file))
    rows = [
        PlanRow(
            row.line,
            row.name,
            row.verdict.value if arguments.as_json else str(row.verdict.label),
            "; ".join(row.in_words),
        )
        for row in plan.rows
    ]
    print_rows(PlanRow, rows, as_json=arguments.as_json)
    return 0 if plan.is_good else 1


@database_command
def export(arguments: Namespace) -> int:
    """Write the inventory as CSV."""
    from facho.hosts.csv_file import write_entries
    from facho.hosts.inventory import export_entries

    text = write_entries(export_entries())
    if arguments.file == STDOUT:
        sys.stdout.write(text)
        return 0
    try:
        Path(arguments.file).write_text(text, encoding="utf-8", newline="")
    except OSError as error:
        raise file_failure(arguments.file, error) from error
    return 0


@database_command
def list_olts(arguments: Namespace) -> int:
    """List the OLTs."""
    from facho.hosts.inventory import stored_olts

    print_rows(OltRow, [_row(olt) for olt in stored_olts()], as_json=arguments.as_json)
    return 0


@database_command
def probe(arguments: Namespace) -> int:
    """Ask one OLT who it is, under its claim like every other packet."""
    from facho.core.recognition import probe_olt
    from facho.core.wiring import OltBusy
    from facho.hosts.models import Olt
    from facho.hosts.olt_entry import SECRET_COLUMNS

    olt = Olt.objects.filter(name=arguments.name).defer(*SECRET_COLUMNS).first()
    if olt is None:
        raise CliError(_('There is no OLT "%s"; `facho olt list` shows them.') % arguments.name)
    tell_site(arguments.name, olt.poller_group)
    try:
        report = probe_olt(olt.id)
    except OltBusy as error:
        raise CliError(_("OLT %s is busy with a long run: try again later.") % arguments.name) from error
    row = _probe_row(arguments.name, report)
    print_record(row, as_json=arguments.as_json)
    if not row.answered:
        raise _diagnosis(olt, report)
    if row.error:
        raise CliError(_("OLT %(name)s is not polled. %(why)s") % {"name": row.olt, "why": row.error})
    return 0


def _diagnosis(olt: "Olt", report: "ProbeReport") -> CliError:
    """Say why it did not answer, and what to look at, as the guided steps of the pages do."""
    from facho.polling.domain.probe_finding import Finding
    from facho.snmp_get.diagnosis_words import diagnose, place_of

    told = diagnose(report.finding or Finding.STOPPED, place_of(olt, asked_from=report.asked_from))
    return CliError(f"OLT {olt.name}: {told.title}. {told.meaning}", *(f"- {check}" for check in told.checks))


def _probe_row(name: str, report: "ProbeReport") -> ProbeRow:
    identity = report.identity
    return ProbeRow(
        olt=name,
        answered=report.answered,
        sys_name=identity.sys_name if identity else "",
        sys_descr=identity.sys_descr if identity else "",
        sys_object_id=identity.sys_object_id if identity else "",
        vendor=identity.vendor if identity else "",
        model=identity.model if identity else "",
        round_trip_ms=None if report.round_trip_ms is None else round(report.round_trip_ms, 1),
        error=report.failure.message if report.failure else _(report.refusal) if report.refusal else "",
    )


def _row(olt: "Olt") -> OltRow:
    return OltRow(
        name=olt.name,
        host=olt.host,
        address=olt.address,
        port=olt.port,
        vendor=olt.vendor or "auto",
        version=olt.snmp_version,
        enabled=olt.enabled,
        reachability=olt.reachability,
        last_answer_at=olt.last_answer_at,
    )
