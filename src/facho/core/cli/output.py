"""Prints rows as a table for people or as JSON for scripts, and reads CSV files that are named as arguments.

Text of devices cannot reach the terminal's controls.
"""

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from gettext import gettext as _
from pathlib import Path
from typing import Any, Literal

from django.conf import settings
from django.db.models import Model

from facho.accounts.audit import Action, console, record
from facho.core.env import Mode
from facho.core.product import OperatorError
from facho.hosts.inventory import EntryProblem, InventoryError
from facho.hosts.models import Olt
from facho.hosts.olt_entry import SECRET_COLUMNS

COLUMN_GAP = "  "
NOTHING = "-"


def print_rows(columns: Sequence[str], rows: Iterable[Iterable[Any]], *, as_json: bool) -> None:
    """Print rows of values; the names of the columns are the JSON keys and the headings."""
    if as_json:
        dump([dict(zip(columns, row, strict=True)) for row in rows])
        return
    print_lines([name.upper() for name in columns], [[cell(value) for value in row] for row in rows])


def print_lines(headings: Sequence[str], lines: Iterable[Sequence[str]]) -> None:
    table = [headings, *lines]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for line in table:
        padded = (text.ljust(width) for text, width in zip(line, widths, strict=True))
        print(COLUMN_GAP.join(padded).rstrip())


def print_record(values: Mapping[str, Any], *, as_json: bool) -> None:
    if as_json:
        dump(values)
        return
    for name, value in values.items():
        print(f"{name}: {cell(value)}")


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


def find_olt(name: str) -> Olt:
    olt = Olt.objects.filter(name=name).defer(*SECRET_COLUMNS).first()
    if olt is None:
        raise OperatorError(_('There is no OLT "%s"; `facho olt list` shows them.') % name)
    return olt


def warn_of_site(name: str, group: str) -> None:
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
    with file_failures(path), path.open("rb") as file:
        content = file.read(MAX_CSV_BYTES + 1)
    if len(content) > MAX_CSV_BYTES:
        raise OperatorError(_("%s is too large to be an inventory.") % path)
    return content


@contextmanager
def file_failures(path: Path | str) -> Iterator[None]:
    """Say in a sentence why a file cannot be read or written."""
    try:
        yield
    except OSError as error:
        raise OperatorError(f"{path}: {error.strerror}") from error


def refused(path: Path, error: InventoryError) -> OperatorError:
    """List every problem of a file of which nothing was imported."""
    lines = [problem_line(path, problem) for problem in error.problems]
    return OperatorError(*lines, _("Nothing was imported: correct the file and import it again."))


def problem_line(path: Path, problem: EntryProblem) -> str:
    place = _("%(file)s line %(line)s") % {"file": path, "line": problem.line} if problem.line else str(path)
    return f"{place}: {cell(problem.reason)}"
