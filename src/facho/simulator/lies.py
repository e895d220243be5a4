"""Agents that lie: walks that never end or end too early, and cells that are far larger than any OLT's."""

from enum import StrEnum
from typing import Any

from facho.polling.snmp.ber_values import Oid, Tag, decode_oid, encode_oid, encode_value, enter, wrap
from facho.simulator.mib import CellRun, MibColumn, MibView, Position

MAX_SUB_ID = 0xFFFF_FFFF
# An OID has at most 128 numbers; columns and their own indexes take up to 28.
DEPTH = 100
MAX_DATAGRAM_BYTES = 65_535
DEEP: Oid = (MAX_SUB_ID,) * DEPTH


class LoopKind(StrEnum):
    STUCK = "stuck"  # the successor of a row is the row itself
    WRAP = "wrap"  # the successor of a column's last row is its first row
    ENDLESS = "endless"  # behind a column's last row comes one invented row after the other


class LoopingView(MibView):
    def __init__(self, view: MibView, kind: LoopKind) -> None:
        super().__init__(view.columns)
        self._kind = kind

    def successors(self, oid: Oid, count: int) -> CellRun:
        at = self.column_of(oid)
        column = self.columns[at] if at is not None else None
        if column is None or len(column.rows.indexes) < 2:
            return super().successors(oid, count)
        if self._kind is LoopKind.STUCK:
            found = self.get(oid)
            cells = [found[1]] if found else super().successors(oid, 1).cells
            return CellRun(cells * count, [])
        row = self.after(oid).row
        if self._kind is LoopKind.WRAP:
            rows = len(column.rows.indexes)
            around = (column.slice(at % rows, at % rows + 1) for at in range(row, row + count))
            return CellRun([cell for cells in around for cell in cells], [])
        cells = [cell for cell in column.slice(row, row + count) if cell]
        last = max(oid[len(column.prefix) :], column.rows.indexes[-1])
        room = min(count - len(cells), MAX_SUB_ID - last[-1])
        cells += column.encode_as((*last[:-1], last[-1] + step) for step in range(1, room + 1))
        return CellRun(cells, [])


class ShortView(MibView):
    """The cells of another view, in tables that end early; a GET of a later row still works."""

    def __init__(self, view: MibView, max_rows: int) -> None:
        super().__init__(view.columns)
        self._max_rows = max_rows

    def row_count(self, column: MibColumn[Any]) -> int:
        return min(super().row_count(column), self._max_rows)


class BloatedView(MibView):
    """The rows of another view with values of a given size, below OIDs of maximum length if `deep`."""

    def __init__(self, view: MibView, value_bytes: int, *, is_deep: bool) -> None:
        super().__init__(view.columns)
        self._view = view
        self._value = encode_value(Tag.OCTET_STRING, b"A" * value_bytes) if value_bytes else b""
        self._is_deep = is_deep

    def get(self, oid: Oid) -> tuple[Position, bytes] | None:
        found = self._view.get(oid)
        return found and (found[0], self._bloated(found[1], is_deep=False))

    def successors(self, oid: Oid, count: int) -> CellRun:
        if self._value:
            # No more than fits into a datagram is worth the work.
            count = min(count, MAX_DATAGRAM_BYTES // len(self._value) + 1)
        # Behind a deep OID comes what comes behind the row that it was made of.
        run = self._view.successors(oid[:-DEPTH] if oid[-DEPTH:] == DEEP else oid, count)
        return run._replace(cells=[self._bloated(cell, is_deep=self._is_deep) for cell in run.cells])

    def _bloated(self, cell: bytes, *, is_deep: bool) -> bytes:
        start, stop = enter(cell, 0, len(cell), 0x30)
        oid_at, oid_end = enter(cell, start, stop, Tag.OBJECT_IDENTIFIER)
        name = cell[oid_at:oid_end]
        if is_deep:
            name = encode_oid(decode_oid(name) + DEEP)
        return wrap(0x30, wrap(Tag.OBJECT_IDENTIFIER, name) + (self._value or cell[oid_end:stop]))
