"""`facho onu …`: the ONUs of all OLTs and their customers."""

import sys
from argparse import Namespace
from gettext import gettext as _
from pathlib import Path

from facho.core.cli import onu_history, onu_list
from facho.core.cli.arguments import Subparsers, add_command, add_group
from facho.core.cli.csv_input import problem_line, read_csv, refused
from facho.core.cli.product import database_command


def register(subparsers: Subparsers) -> None:
    """Add `onu` with its commands."""
    onus = add_group(subparsers, "onu", _("ONUs and their customers"))
    onu_list.register(onus)
    command = add_command(
        onus,
        "import",
        _("write customers from a CSV file: serial, and any of label, address, phone, notes, tags"),
        import_file,
    )
    command.add_argument("file", metavar=_("FILE"), type=Path)
    command.add_argument("--dry-run", action="store_true", help=_("tell what would be written, and write nothing"))
    onu_history.register(onus)


@database_command
def import_file(arguments: Namespace) -> int:
    """Import customers by serial; who is left out is named on standard error."""
    from django.utils import timezone

    from facho.hosts.inventory import InventoryError
    from facho.onus.customers import import_customers

    content = read_csv(arguments.file)
    try:
        imported = import_customers(content, is_dry_run=arguments.dry_run, now=timezone.now())
    except InventoryError as error:
        raise refused(arguments.file, error) from None
    for problem in imported.left_out:
        print(f"facho: {problem_line(arguments.file, problem)}", file=sys.stderr)
    counts = {"written": imported.written, "unchanged": imported.unchanged, "left_out": len(imported.left_out)}
    if arguments.dry_run:
        print(_("%(written)s customers would be written, %(unchanged)s unchanged, %(left_out)s left out") % counts)
    else:
        print(_("%(written)s customers written, %(unchanged)s unchanged, %(left_out)s left out") % counts)
    return 0
