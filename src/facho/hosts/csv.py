"""Files that people write, CSV or workbooks: read with line numbers, safe from formulas; and OLTs as such files."""

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from django.utils.translation import gettext as _

from facho.hosts.inventory import (
    AfterSave,
    EntryProblem,
    Finish,
    ImportPlan,
    InventoryError,
    Saved,
    bad_rows,
    import_olts,
    plan_import,
)
from facho.hosts.models import SnmpVersionChoice
from facho.hosts.olt_entry import COLUMNS, SECRET_COLUMNS, V3_COLUMNS, OltEntry
from facho.infrastructure.secrets import Secret
from facho.infrastructure.spreadsheet import SIGNATURE, NotAWorkbook, guard, read_workbook, unguard

_FIRST_LINE = re.compile(r"\s*([^\r\n]*)")
_OTHER_SEPARATORS = (";", "\t")
OPTIONAL_COLUMNS = ("poller_group", "group", "trap_addresses")
REQUIRED_COLUMNS = tuple(name for name in COLUMNS if name not in (*V3_COLUMNS, *OPTIONAL_COLUMNS))


def read_rows(content: bytes) -> Iterator[tuple[int, list[str]]]:
    """Yield each non-blank row with its first line number; InventoryError if it is neither CSV nor a workbook."""
    if content.startswith(SIGNATURE):
        yield from _workbook_rows(content)
        return
    text = _decode(content)
    found = _FIRST_LINE.match(text)
    header = found[1] if found else ""
    # Spreadsheets in many countries write semicolons.
    separator = next((each for each in _OTHER_SEPARATORS if each in header and "," not in header), ",")
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    line = 1
    try:
        for cells in reader:
            if any("\0" in cell for cell in cells):
                # PostgreSQL stores none, and no text has one.
                raise InventoryError([EntryProblem(line, _("this is not CSV: %s") % "NUL")])
            if any(cell.strip() for cell in cells):
                yield line, cells
            line = reader.line_num + 1
    except csv.Error as error:
        # The reader's words name the fault and never the cell.
        raise InventoryError([EntryProblem(line, _("this is not CSV: %s") % error)]) from None


def _workbook_rows(content: bytes) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of a workbook, each as long as the header: empty cells at the end are not stored."""
    width = 0
    try:
        for number, cells in read_workbook(content):
            while len(cells) > width and width and not cells[-1].strip():
                cells.pop()
            width = width or len(cells)
            yield number, cells + [""] * (width - len(cells))
    except NotAWorkbook as error:
        raise InventoryError([EntryProblem(None, _("this workbook cannot be read: %s") % error)]) from None


def misshapen(line: int, cells: Sequence[str], columns: Sequence[str]) -> EntryProblem:
    numbers = {"found": len(cells), "expected": len(columns)}
    return EntryProblem(line, _("%(found)s columns instead of %(expected)s") % numbers)


def _decode(content: bytes) -> str:
    try:
        # Spreadsheets put a byte order mark first.
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
    raise InventoryError([EntryProblem(line, _("the file is not UTF-8 text"))])


def import_file(
    content: bytes,
    *,
    after_save: AfterSave | None = None,
    shown: str | None = None,
    finish: Finish | None = None,
) -> Saved:
    """Import a whole file; nothing is saved if a row is invalid or the plan differs from the one `shown`."""
    entries, problems = read_entries(content)
    return import_olts(entries, problems=problems, after_save=after_save, shown=shown, finish=finish)


def plan_file(content: bytes) -> ImportPlan:
    """Plan an import; for an unreadable file the plan lists what is wrong."""
    try:
        entries, problems = read_entries(content)
    except InventoryError as error:
        return ImportPlan(tuple(bad_rows(((each.line, each.reason) for each in error.problems), {})))
    return plan_import(entries, problems=problems)


def read_entries(content: bytes) -> tuple[list[OltEntry], list[EntryProblem]]:
    """Read rows that match the header, and list the others; a wrong header stops at once."""
    rows = read_rows(content)
    header_line, header = next(rows, (1, []))
    columns = [name.strip().lower() for name in header]
    if not columns:
        raise InventoryError([EntryProblem(None, _("the file is empty"))])
    missing = [name for name in REQUIRED_COLUMNS if name not in columns]
    unknown = [name for name in columns if name not in COLUMNS]
    if missing or unknown or len(set(columns)) != len(columns):
        expected = ",".join(REQUIRED_COLUMNS)
        reason = _(
            "the header must be %(expected)s, separated by commas; for SNMPv3 also %(more)s;"
            " for a site also %(site)s; for a group of OLTs also %(group)s; for further trap addresses also %(traps)s"
        )
        names = {"expected": expected, "more": ",".join(V3_COLUMNS), "site": "poller_group", "group": "group"}
        names["traps"] = "trap_addresses"
        raise InventoryError([EntryProblem(header_line, reason % names)])
    entries: list[OltEntry] = []
    problems: list[EntryProblem] = []
    try:
        for line, cells in rows:
            if len(cells) == len(columns):
                entries.append(_entry(line, dict(zip(columns, cells, strict=True))))
            else:
                problems.append(misshapen(line, cells, columns))
    except InventoryError as error:
        problems += error.problems
    return entries, problems


def write_entries(entries: Iterable[OltEntry]) -> str:
    """Write the file with empty secret columns; rarely used columns only if an OLT needs them."""
    rows = list(entries)
    v3 = V3_COLUMNS if any(entry.version == SnmpVersionChoice.V3 for entry in rows) else ()
    optional = (name for name in OPTIONAL_COLUMNS if any(getattr(entry, name) for entry in rows))
    columns = (*REQUIRED_COLUMNS, *v3, *optional)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for entry in rows:
        writer.writerow(["" if name in SECRET_COLUMNS else guard(getattr(entry, name)) for name in columns])
    return text.getvalue()


def _entry(line: int, cells: Mapping[str, str]) -> OltEntry:
    # Secrets are taken verbatim: a space or an apostrophe may be part of one.
    values: dict[str, Any] = {
        name: Secret(text) if name in SECRET_COLUMNS else unguard(text.strip()) for name, text in cells.items()
    }
    return OltEntry(**values, line=line)
