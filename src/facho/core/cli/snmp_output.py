"""Prints values of several columns as one table: a line for each place, a column for each column."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from facho.core.cli.output import COLUMN_GAP, NOTHING, cell, dump

if TYPE_CHECKING:
    from facho.snmp_get.interactive import ReadValue

Table = dict[str, dict[str, "ReadValue"]]


def print_table(values: Sequence["ReadValue"], *, as_json: bool) -> None:
    """Print a table for people, or a list of places with their values for programs."""
    rows, columns = _rows(values), list(dict.fromkeys(value.column for value in values))
    if as_json:
        dump([{"place": place, "values": _json_values(row)} for place, row in rows.items()])
        return
    lines = [["PLACE", *columns]]
    lines += [[place, *(_shown(row.get(column)) for column in columns)] for place, row in rows.items()]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        padded = (text.ljust(width) for text, width in zip(line, widths, strict=True))
        print(COLUMN_GAP.join(padded).rstrip())


def _rows(values: Sequence["ReadValue"]) -> Table:
    """Put values of the same place together; where a place cannot be read, the OID stands for it."""
    rows: Table = {}
    for value in values:
        rows.setdefault(value.place or value.oid, {})[value.column] = value
    return rows


def _shown(value: "ReadValue | None") -> str:
    """Write a value with its unit; without one, why there is none."""
    if value is None:
        return NOTHING
    if value.value is None:
        return f"({value.note})" if value.note else NOTHING
    return f"{cell(value.value)} {value.unit}".rstrip()


def _json_values(row: dict[str, "ReadValue"]) -> dict[str, Any]:
    return {
        column: {"value": value.value, "unit": value.unit, "raw": value.raw, "note": value.note, "oid": value.oid}
        for column, value in row.items()
    }
