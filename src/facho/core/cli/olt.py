"""`facho olt …`: the inventory of OLTs."""

import sys
from argparse import Namespace
from dataclasses import dataclass
from datetime import datetime
from gettext import gettext as _
from pathlib import Path
from typing import TYPE_CHECKING

from facho.core.cli import secret_input
from facho.core.cli.arguments import Subparsers, add_command, add_group, add_json_flag, port_number
from facho.core.cli.failure import CliError
from facho.core.cli.output import cell, print_rows
from facho.core.cli.product import database_command

if TYPE_CHECKING:
    from collections.abc import Callable

    from facho.hosts.inventory import InventoryError
    from facho.hosts.models import Olt
    from facho.hosts.olt_entry import OltEntry

STDOUT = "-"
# A national network has some thousands of OLTs; a hundred times that is a mistake.
MAX_CSV_BYTES = 32 * 1024 * 1024


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


def register(subparsers: Subparsers) -> None:
    """Add `olt` with its commands."""
    olts = add_group(subparsers, "olt", _("the inventory of OLTs"))
    _register_add(olts)
    command = add_command(olts, "import", _("add and update OLTs from a CSV file, all or nothing"), import_file)
    command.add_argument("file", metavar=_("FILE"), type=Path)
    command.add_argument("--no-jobs", action="store_true", help=_("leave out the vendor's ready-made jobs"))
    command = add_command(olts, "export", _("write the inventory as CSV, without secrets"), export)
    command.add_argument("file", metavar=_("FILE"), nargs="?", default=STDOUT, help=_("default: standard output"))
    add_json_flag(add_command(olts, "list", _("list the OLTs"), list_olts))
    command = add_command(olts, "probe", _("ask an OLT who it is"), probe)
    command.add_argument("name", metavar=_("NAME"))
    add_json_flag(command)


def _register_add(olts: Subparsers) -> None:
    command = add_command(olts, "add", _("add an OLT; its secrets are asked for, never arguments"), add)
    command.add_argument("name", metavar=_("NAME"))
    command.add_argument("host", metavar=_("HOST"), help=_("name or address"))
    command.add_argument("--port", type=port_number, default=161, help=_("UDP port (default: 161)"))
    command.add_argument("--vendor", default="auto", help=_("vendor definition (default: recognise it)"))
    command.add_argument("--version", choices=("1", "2c", "3"), default="2c", help=_("SNMP version (default: 2c)"))
    command.add_argument("--community-stdin", action="store_true", help=_("read the community from standard input"))
    command.add_argument("--v3-user", default="", help=_("SNMPv3 user"))
    command.add_argument("--auth-protocol", choices=("MD5", "SHA"), default="", type=str.upper)
    command.add_argument("--priv-protocol", choices=("DES", "AES"), default="", type=str.upper)
    command.add_argument(
        "--keys-stdin",
        action="store_true",
        help=_("read the SNMPv3 authentication key and, on the next line, the privacy key from standard input"),
    )
    command.add_argument("--no-jobs", action="store_true", help=_("leave out the vendor's ready-made jobs"))


@database_command
def add(arguments: Namespace) -> int:
    """Add one OLT."""
    from facho.hosts.inventory import InventoryError, add_olt

    try:
        olt = add_olt(_entry(arguments), on_vendor=_job_giver(arguments))
    except InventoryError as error:
        raise CliError(*(_sentence(problem.reason) for problem in error.problems)) from None
    place = {"name": olt.name, "address": olt.address, "port": olt.port}
    print(_("OLT %(name)s added: %(address)s port %(port)s") % place)
    return 0


@database_command
def import_file(arguments: Namespace) -> int:
    """Import a CSV file."""
    from facho.hosts import csv_file
    from facho.hosts.inventory import InventoryError

    try:
        saved = csv_file.import_file(_read(arguments.file), on_vendor=_job_giver(arguments))
    except InventoryError as error:
        raise _refused(arguments.file, error) from None
    print(_("%(added)s OLTs added, %(updated)s updated") % {"added": len(saved.added), "updated": len(saved.updated)})
    return 0


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
        raise _file_failure(arguments.file, error) from error
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
    from facho.core.wiring import probe_olt
    from facho.hosts.models import Olt

    if not Olt.objects.filter(name=arguments.name).exists():
        raise CliError(_('There is no OLT "%s"; `facho olt list` shows them.') % arguments.name)
    report = probe_olt(arguments.name)
    print_rows(type(report), [report], as_json=arguments.as_json)
    if not report.answered:
        raise CliError(
            _("OLT %(name)s did not answer: %(error)s. Check address, port, community and the way to it.")
            % {"name": arguments.name, "error": cell(report.error)}
        )
    return 0


def _entry(arguments: Namespace) -> "OltEntry":
    from facho.hosts.olt_entry import OltEntry
    from facho.hosts.secrets import Secret

    is_v3 = arguments.version == "3"
    auth_key, priv_key = _read_keys(arguments) if is_v3 else ("", "")
    return OltEntry(
        name=arguments.name,
        host=arguments.host,
        port=str(arguments.port),
        vendor=arguments.vendor,
        version=arguments.version,
        community=Secret("" if is_v3 else _read_community(arguments)),
        v3_user=arguments.v3_user,
        v3_auth_protocol=arguments.auth_protocol,
        v3_auth_key=Secret(auth_key),
        v3_priv_protocol=arguments.priv_protocol,
        v3_priv_key=Secret(priv_key),
    )


def _read_community(arguments: Namespace) -> str:
    if arguments.community_stdin:
        return secret_input.read_line()
    if secret_input.is_interactive():
        return secret_input.ask(_("Community"))
    raise CliError(_("The community is needed: give it with --community-stdin, or run this in a terminal."))


def _read_keys(arguments: Namespace) -> tuple[str, str]:
    wanted = (arguments.auth_protocol, arguments.priv_protocol)
    prompts = (_("Authentication key"), _("Privacy key"))
    if arguments.keys_stdin:
        auth, priv = (secret_input.read_line() if protocol else "" for protocol in wanted)
    elif not any(wanted):
        auth = priv = ""
    elif secret_input.is_interactive():
        auth, priv = (
            secret_input.ask(prompt) if protocol else "" for protocol, prompt in zip(wanted, prompts, strict=True)
        )
    else:
        raise CliError(_("The SNMPv3 keys are needed: give them with --keys-stdin, or run this in a terminal."))
    return auth, priv


def _job_giver(arguments: Namespace) -> "Callable[[Olt], None] | None":
    if arguments.no_jobs:
        return None
    from django.utils import timezone

    from facho.snmp_jobs.ready_made import apply_ready_made_jobs

    def give(olt: "Olt") -> None:
        apply_ready_made_jobs(olt, now=timezone.now())

    return give


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


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(MAX_CSV_BYTES + 1)
    except OSError as error:
        raise _file_failure(path, error) from error
    if len(content) > MAX_CSV_BYTES:
        raise CliError(_("%s is too large to be an inventory.") % path)
    return content


def _file_failure(path: Path | str, error: OSError) -> CliError:
    return CliError(f"{path}: {error.strerror}")


def _refused(path: Path, error: "InventoryError") -> CliError:
    lines = []
    for problem in error.problems:
        place = _("%(file)s line %(line)s") % {"file": path, "line": problem.line} if problem.line else str(path)
        lines.append(f"{place}: {cell(problem.reason)}")
    return CliError(*lines, _("Nothing was imported: correct the file and import it again."))


def _sentence(reason: str) -> str:
    return cell(reason[:1].upper() + reason[1:]) + "."
