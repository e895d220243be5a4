"""CSV files that people write: their rows with line numbers, and cells that a spreadsheet would take for formulas."""

import csv
import io
import re
from collections.abc import Iterator, Sequence

from django.utils.translation import gettext as _

from facho.hosts.inventory import InventoryError, Problem

# A spreadsheet runs a cell that begins so; an apostrophe before it keeps it text.
_FORMULA = re.compile(r"'*[=+\-@\t\r]")
_GUARDED_FORMULA = re.compile(r"'+[=+\-@\t\r]")

_FIRST_LINE = re.compile(r"\s*([^\r\n]*)")
_OTHER_SEPARATORS = (";", "\t")


def read_rows(content: bytes) -> Iterator[tuple[int, list[str]]]:
    """Give each row that is not blank with the line on which it begins; InventoryError for what is no CSV."""
    text = _decode(content)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=_separator_of(text), strict=True)
    line = 1
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                yield line, cells
            line = reader.line_num + 1
    except csv.Error as error:
        # The reader's words name the fault and never the cell.
        raise InventoryError([Problem(line, _("this is not CSV: %s") % error)]) from None


def misshapen(line: int, cells: Sequence[str], columns: Sequence[str]) -> Problem:
    """Say that a row has not the header's shape."""
    numbers = {"found": len(cells), "expected": len(columns)}
    return Problem(line, _("%(found)s columns instead of %(expected)s") % numbers)


def guard(cell: str) -> str:
    """Write text so that a spreadsheet does not run it."""
    return f"'{cell}" if _FORMULA.match(cell) else cell


def unguard(cell: str) -> str:
    """Read text that was guarded."""
    return cell[1:] if _GUARDED_FORMULA.match(cell) else cell


def _separator_of(text: str) -> str:
    """Return what separates the names of the header; spreadsheets of many countries write semicolons."""
    found = _FIRST_LINE.match(text)
    header = found[1] if found else ""
    return next((each for each in _OTHER_SEPARATORS if each in header and "," not in header), ",")


def _decode(content: bytes) -> str:
    try:
        # Spreadsheets put a byte order mark first.
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
    raise InventoryError([Problem(line, _("the file is not UTF-8 text"))])
