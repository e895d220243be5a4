"""Tables like an OLT's, and what a walk of them has to give."""

import math
from collections.abc import Iterable

from snmp_scripted_agent import (
    Table,
)

from facho.polling.snmp.ber import Oid, Tag
from facho.polling.snmp.walk import Row, WalkResult

TABLE = (1, 3, 6, 1, 4, 1, 99_999, 1, 1)
COLUMNS = [(*TABLE, n) for n in (2, 3, 5)]
PORT = 4_194_304_000


def onu_table(rows: int, columns: Iterable[Oid] = COLUMNS, *, per_port: int = 64) -> Table:
    """A table like an OLT's, with something before and something after it."""
    table: Table = {(1, 3, 6, 1, 2, 1, 1, 1, 0): (Tag.OCTET_STRING, b"x"), (1, 3, 6, 1, 6, 0): (Tag.INTEGER, 1)}
    for place, column in enumerate(columns):
        for n in range(rows):
            table[(*column, PORT + n // per_port * 256, n % per_port)] = (Tag.INTEGER, n * 10 + place)
    return table


def expected_rows(table: Table, column: Oid) -> list[Row]:
    size = len(column)
    return sorted((oid[size:], tag, value) for oid, (tag, value) in table.items() if oid[:size] == column)


def assert_exact(result: WalkResult, table: Table, columns: list[Oid]) -> None:
    assert result.failure is None
    assert result.complete
    assert list(map(list, result.rows)) == [expected_rows(table, column) for column in columns]


def assert_honest(result: WalkResult, table: Table, columns: list[Oid]) -> None:
    """Incomplete, with every row true and none left out before the cursor."""
    assert not result.complete
    for rows, cursor, column in zip(result.rows, result.cursors, columns, strict=True):
        assert list(rows) == [row for row in expected_rows(table, column) if row[0] <= cursor.after]


def pages_needed(rows: int, per_page: int) -> int:
    """What an oracle sends: every page as large as the agent answers, and one row more to see the end."""
    return math.ceil((rows + 1) / per_page)
