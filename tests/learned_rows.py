"""What a reader learns of a device before it reads: which row is which, where their numbers do not say it."""

from collections.abc import Iterable

from facho.polling.snmp.ber import VarBind
from facho.polling.vendors.column import Column
from facho.polling.vendors.definition import Definition
from facho.polling.vendors.index import LearnedIndex, Place
from facho.polling.vendors.loader import load_definitions
from facho.snmp_get.reading import is_standard


def _gives_ids(definition: Definition) -> bool:
    return not any(isinstance(index, LearnedIndex) and not index.forms for index in definition.indexes.values())


# The families that show ONUs by the ids that they gave them; the others know them by their serials alone.
GIVING_IDS = sorted(key for key, each in load_definitions().items() if each.onu_indexes and _gives_ids(each))


def rows_of_its_own(column: Column, rows: Iterable[VarBind]) -> list[tuple[Place | None, VarBind]]:
    """Return the rows of a column with their places; those of other interfaces in a standard table are left out."""
    size = len(column.oid)
    placed = [(column.index.decode(row[0][size:]), row) for row in rows if row[0][:size] == column.oid]
    return [(place, row) for place, row in placed if place is not None or not is_standard(column)]


def learned(definition: Definition, rows: Iterable[VarBind], last: Iterable[Place] = ()) -> Definition:
    """Return the definition for the device that has these rows."""
    reported: dict[str, dict[tuple[int, ...], object]] = {key: {} for key in definition.naming_columns}
    for oid, tag, raw in rows:
        for key, values in reported.items():
            column = definition.column(key)
            value = column.decode(tag, raw).value if oid[: len(column.oid)] == column.oid else None
            if value is not None:
                values[oid[len(column.oid) :]] = value
    return definition.learn(reported, last)  # type: ignore[arg-type]  # decoded values
