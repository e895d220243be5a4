"""Prints rows as a table for people or as JSON for scripts, and reads CSV files that are named as arguments.

Text of devices cannot reach the terminal's controls.
"""

import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, fields
from datetime import datetime
from gettext import gettext as _
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from django.conf import settings
from django.db.models import Model

from facho.accounts.audit import Action, console, record
from facho.core.env import Mode
from facho.core.product import OperatorError
from facho.hosts.inventory import EntryProblem, InventoryError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


COLUMN_GAP = "  "
NOTHING = "-"


def print_rows(kind: type["DataclassInstance"], rows: Sequence["DataclassInstance"], *, as_json: bool) -> None:
    """Print values of one dataclass; its field names are the JSON keys and the headings."""
    if as_json:
        print_json(rows)
        return
    names = [field.name for field in fields(kind)]
    cells = [[cell(getattr(row, name)) for name in names] for row in rows]
    headings = [name.upper() for name in names]
    widths = [max(map(len, column)) for column in zip(headings, *cells, strict=True)]
    for line in (headings, *cells):
        padded = (text.ljust(width) for text, width in zip(line, widths, strict=True))
        print(COLUMN_GAP.join(padded).rstrip())


def print_record(record: "DataclassInstance", *, as_json: bool) -> None:
    """Print one value, a line for each field."""
    if as_json:
        dump(asdict(record))
        return
    for name, value in asdict(record).items():
        print(f"{name}: {cell(value)}")


def print_json(rows: Sequence["DataclassInstance"]) -> None:
    dump([asdict(row) for row in rows])


def dump(value: Any) -> None:
    written = json.dumps(value, default=_json_value, ensure_ascii=False, indent=2)
    # JSON itself escapes what is below the space, and lets the other controls of a terminal through.
    print(
        "".join(
            letter if letter.isprintable() or letter == "\n" else json.dumps(letter).strip('"') for letter in written
        )
    )


def cell(value: Any) -> str:
    """Write one value on one line, without control characters."""
    match value:
        case None | "":
            return NOTHING
        case bool():
            return _("yes") if value else _("no")
        case datetime():
            return f"{value.astimezone():%Y-%m-%d %H:%M:%S}"
        case _:
            return "".join(letter if letter.isprintable() else " " for letter in str(value))


def _json_value(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} has no JSON form")


def write_down(done: Literal["ADDED", "CHANGED", "DELETED"], rows: Iterable[Model], message: str = "") -> None:
    """Add an entry for each row to the audit; call it in the transaction of the change."""
    who = console()
    for row in rows:
        record(who, row, Action[done], message)


def tell_site(name: str, group: str) -> None:
    """Say, where workers of a group poll the OLT, that this machine may not reach it."""
    if group and settings.FACHO_MODE is Mode.DISTRIBUTED:
        text = _(
            "OLT %(name)s belongs to the poller group %(group)s: this machine asks it directly and may not reach it;"
            " if it does not answer, run the command on a machine of that group."
        )
        print(cell(text % {"name": name, "group": group}), file=sys.stderr)


# A national network has some thousands of OLTs and some hundred thousand customers; ten times that is a mistake.
MAX_CSV_BYTES = 64 * 1024 * 1024


def read_csv(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(MAX_CSV_BYTES + 1)
    except OSError as error:
        raise file_failure(path, error) from error
    if len(content) > MAX_CSV_BYTES:
        raise OperatorError(_("%s is too large to be an inventory.") % path)
    return content


def file_failure(path: Path | str, error: OSError) -> OperatorError:
    return OperatorError(f"{path}: {error.strerror}")


def refused(path: Path, error: InventoryError) -> OperatorError:
    """List every problem of a file of which nothing was imported."""
    lines = [problem_line(path, problem) for problem in error.problems]
    return OperatorError(*lines, _("Nothing was imported: correct the file and import it again."))


def problem_line(path: Path, problem: EntryProblem) -> str:
    """Say what is wrong, and on which line."""
    place = _("%(file)s line %(line)s") % {"file": path, "line": problem.line} if problem.line else str(path)
    return f"{place}: {cell(problem.reason)}"
