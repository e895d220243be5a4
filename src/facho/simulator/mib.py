"""What an agent can be asked, in lexicographic order, as columns over shared rows with every cell encoded once.

A cell is encoded when it is first asked for and kept until its row changes; columns of a table share one index list.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Sequence
from enum import StrEnum
from typing import Any, Generic, NamedTuple, TypeVar

from facho.polling.snmp.ber import Oid, Tag, Value, encode_varbind

Owner = TypeVar("Owner")
Typed = tuple[int, Value]

# Stands for a cell that the row does not have; no varbind is encoded to nothing.
ABSENT = b""


class ColumnKind(StrEnum):
    """When a column's cells change, and what reading them costs the OLT."""

    FIXED = "fixed"  # only with its row
    DRIFTING = "drifting"  # with time, since it counts
    LIVE = "live"  # with time, and the OLT has to ask the ONU
    COUNTER64 = "counter64"  # with time, and SNMP v1 cannot see it


class MibRows(Generic[Owner]):
    """The sorted rows of one or more columns; each row belongs to an ONU, a port or a scalar."""

    def __init__(self, index_of: Callable[[Owner], Oid], owners: Iterable[Owner]) -> None:
        self.index_of = index_of
        pairs = sorted(((index_of(owner), owner) for owner in owners), key=lambda pair: pair[0])
        self.indexes: list[Oid] = [index for index, _ in pairs]
        self.owners: list[Owner] = [owner for _, owner in pairs]
        self.columns: list[MibColumn[Owner]] = []

    def insert(self, owner: Owner) -> None:
        """Add a row; other rows stay encoded."""
        index = self.index_of(owner)
        at = bisect_left(self.indexes, index)
        self.indexes.insert(at, index)
        self.owners.insert(at, owner)
        for column in self._encoded():
            column.cells.insert(at, None)

    def remove(self, owner: Owner) -> None:
        at = self._find(owner)
        del self.indexes[at], self.owners[at]
        for column in self._encoded():
            del column.cells[at]

    def forget(self, owner: Owner) -> None:
        at = self._find(owner)
        for column in self._encoded():
            column.cells[at] = None

    def _encoded(self) -> list["MibColumn[Owner]"]:
        return [column for column in self.columns if column.cells]

    def _find(self, owner: Owner) -> int:
        return bisect_left(self.indexes, self.index_of(owner))


class MibColumn(Generic[Owner]):
    """A column: its OID prefix, how its cells get their values, and the cells encoded so far."""

    def __init__(
        self,
        prefix: Oid,
        rows: MibRows[Owner],
        read: Callable[[Owner], Typed | None],
        kind: ColumnKind = ColumnKind.FIXED,
    ) -> None:
        self.prefix = prefix
        self.rows = rows
        self.kind = kind
        # Empty until the column is first asked for: most columns of most OLTs never are.
        self.cells: list[bytes | None] = []
        self.read = read
        rows.columns.append(self)

    def forget_all(self) -> None:
        self.cells = []

    def slice(self, start: int, stop: int) -> list[bytes]:
        """Return the encoded cells of some rows; absent ones are empty."""
        if not self.cells:
            self.cells = [None] * len(self.rows.indexes)
        cells = self.cells[start:stop]
        if None in cells:
            for at in range(start, start + len(cells)):
                if self.cells[at] is None:
                    typed = self.read(self.rows.owners[at])
                    oid = self.prefix + self.rows.indexes[at]
                    self.cells[at] = ABSENT if typed is None else encode_varbind((oid, *typed))
            cells = self.cells[start:stop]
        return cells  # type: ignore[return-value]  # no cell is None any more

    def encode_as(self, indexes: Iterable[Oid]) -> list[bytes]:
        typed = self.read(self.rows.owners[-1]) or (Tag.NULL, None)
        return [encode_varbind((self.prefix + index, *typed)) for index in indexes]


class Position(NamedTuple):
    column: int
    row: int


class MibView:
    """All columns of one agent, in order. No prefix may be inside another."""

    def __init__(self, columns: Sequence[MibColumn[Any]]) -> None:
        self.columns = sorted(columns, key=lambda column: column.prefix)
        self._prefixes = [column.prefix for column in self.columns]
        self._drifting = [column for column in self.columns if column.kind is not ColumnKind.FIXED]
        self._counting = [column for column in self._drifting if column.kind is not ColumnKind.LIVE]
        for before, after in zip(self._prefixes, self._prefixes[1:], strict=False):
            if after[: len(before)] == before:
                raise ValueError(f"column {after} lies inside column {before}")

    def without_counter64(self) -> "MibView":
        return MibView([column for column in self.columns if column.kind is not ColumnKind.COUNTER64])

    def without(self, closed: Collection[Oid]) -> "MibView":
        """The cells a manager may see whose view excludes these subtrees."""
        return MibView([each for each in self.columns if not any(each.prefix[: len(oid)] == oid for oid in closed)])

    def forget_drifting(self) -> None:
        for column in self._drifting:
            column.forget_all()

    def forget_counters(self) -> None:
        """Encode counters again: they change between any two readings."""
        for column in self._counting:
            column.forget_all()

    def column_of(self, oid: Oid) -> int | None:
        """None if the OID is in no column."""
        at = bisect_right(self._prefixes, oid) - 1
        if at < 0 or oid[: len(self._prefixes[at])] != self._prefixes[at]:
            return None
        return at

    def get(self, oid: Oid) -> tuple[Position, bytes] | None:
        """None if there is no such instance."""
        at = self.column_of(oid)
        if at is None:
            return None
        column = self.columns[at]
        suffix = oid[len(column.prefix) :]
        row = bisect_left(column.rows.indexes, suffix)
        if row == len(column.rows.indexes) or column.rows.indexes[row] != suffix:
            return None
        (cell,) = column.slice(row, row + 1)
        return (Position(at, row), cell) if cell else None

    def after(self, oid: Oid) -> Position:
        """Return the first position after an OID; it may be a column's end, or an absent cell."""
        at = bisect_right(self._prefixes, oid) - 1
        if at < 0:
            return Position(0, 0)
        prefix = self._prefixes[at]
        if oid[: len(prefix)] != prefix:
            return Position(at + 1, 0)
        return Position(at, bisect_right(self.columns[at].rows.indexes, oid[len(prefix) :]))

    def oid_at(self, position: Position) -> Oid:
        column = self.columns[position.column]
        return column.prefix + column.rows.indexes[position.row]

    def successors(self, oid: Oid, count: int) -> "CellRun":
        return self.run(self.after(oid), count)

    def run(self, start: Position, count: int) -> "CellRun":
        """Collect up to `count` cells from a position on, skipping absent ones."""
        run = CellRun([], [])
        number, row = start
        while count > 0 and number < len(self.columns):
            column = self.columns[number]
            end = self.row_count(column)
            cells = column.slice(row, min(row + count, end))
            count -= run.add(number, row, cells)
            row += len(cells)
            if row >= end:
                number, row = number + 1, 0
        return run

    def row_count(self, column: MibColumn[Any]) -> int:
        return len(column.rows.indexes)


class CellRun(NamedTuple):
    """Consecutive cells and their origin, as (column, first row, row after the last)."""

    cells: list[bytes]
    spans: list[tuple[int, int, int]]

    def add(self, column: int, row: int, cells: list[bytes]) -> int:
        before = len(self.cells)
        if not cells:
            return 0
        if ABSENT not in cells:
            self.cells.extend(cells)
            self.spans.append((column, row, row + len(cells)))
        else:
            present = [at for at, cell in enumerate(cells) if cell]
            self.cells.extend(cells[at] for at in present)
            self.spans.extend((column, row + at, row + at + 1) for at in present)
        return len(self.cells) - before
