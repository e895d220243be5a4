"""`facho plant …`: zones, boxes and the ONUs on them, as files."""

import sys
from argparse import Namespace
from gettext import gettext as _

from django.utils import timezone

from facho.accounts.audit import console
from facho.accounts.scope import EVERYTHING
from facho.core.cli.output import NOTHING, cell, problem_line, read_csv, refused
from facho.hosts.inventory import InventoryError, RowVerdict
from facho.plant.files import import_plant, plan_file, write_file


def import_file(arguments: Namespace) -> int:
    """Import a file of any kind; who is left out is named on standard error. A dry run shows each change."""
    content = read_csv(arguments.file)
    if arguments.dry_run:
        return show_plan(content, arguments)
    try:
        saved = import_plant(content, who=console(), source=str(arguments.file), now=timezone.now())
    except InventoryError as error:
        raise refused(arguments.file, error) from None
    for problem in saved.left_out:
        print(f"facho: {problem_line(arguments.file, problem)}", file=sys.stderr)
    counts = {"written": saved.written, "unchanged": saved.unchanged, "left_out": len(saved.left_out)}
    print(_("%(written)s written, %(unchanged)s unchanged, %(left_out)s left out") % counts)
    return 0


def show_plan(content: bytes, arguments: Namespace) -> int:
    """Print what a file would change, a line each; 1 if it would be refused."""
    plan = plan_file(content, EVERYTHING)
    for row in plan.rows:
        if row.verdict is not RowVerdict.UNCHANGED:
            words = "; ".join(row.in_words)
            print(f"{row.line or NOTHING}  {cell(row.name)}  {row.verdict.label}  {cell(words)}".rstrip())
    counts = {"new": plan.counts[RowVerdict.NEW], "changed": plan.counts[RowVerdict.CHANGED]}
    print(_("%(new)s new, %(changed)s changed; nothing was written") % counts)
    return 0 if plan.is_good else 1


def export_file(arguments: Namespace) -> int:
    """Write the whole plant to standard output."""
    for part in write_file(arguments.kind, EVERYTHING):
        sys.stdout.buffer.write(part)
    sys.stdout.buffer.flush()
    return 0
