"""Agents that lie about successors: walks that never end, and walks that end too early and look complete."""

from enum import StrEnum
from typing import Any

from facho.polling.snmp.ber import Oid
from facho.simulator.mib import Column, MibView, Run

MAX_SUB_ID = 0xFFFF_FFFF


class LoopKind(StrEnum):
    """How a walk is led astray."""

    STUCK = "stuck"  # the successor of a row is the row itself
    WRAP = "wrap"  # the successor of a column's last row is its first row
    ENDLESS = "endless"  # behind a column's last row comes one invented row after the other


class LoopingView(MibView):
    """The same cells as another view, with successors that lie inside of tables with rows."""

    def __init__(self, view: MibView, kind: LoopKind) -> None:
        super().__init__(view.columns)
        self._kind = kind

    def successors(self, oid: Oid, count: int) -> Run:
        at = self.column_of(oid)
        column = self.columns[at] if at is not None else None
        if column is None or len(column.rows.indexes) < 2:
            return super().successors(oid, count)
        if self._kind is LoopKind.STUCK:
            return self._stuck(oid, count)
        if self._kind is LoopKind.WRAP:
            return _wrapped(column, self.after(oid).row, count)
        return _endless(column, oid[len(column.prefix) :], self.after(oid).row, count)

    def _stuck(self, oid: Oid, count: int) -> Run:
        found = self.get(oid)
        cells = [found[1]] if found else super().successors(oid, 1).cells
        return Run(cells * count, [])


class ShortView(MibView):
    """The same cells as another view, in tables that end after some rows; who asks for a row by name gets it."""

    def __init__(self, view: MibView, max_rows: int) -> None:
        super().__init__(view.columns)
        self._max_rows = max_rows

    def row_count(self, column: Column[Any]) -> int:
        return min(super().row_count(column), self._max_rows)


def _wrapped(column: Column[object], row: int, count: int) -> Run:
    rows = len(column.rows.indexes)
    cells = [cell for at in range(row, row + count) for cell in column.slice(at % rows, at % rows + 1)]
    return Run(cells, [])


def _endless(column: Column[object], suffix: Oid, row: int, count: int) -> Run:
    cells = [cell for cell in column.slice(row, row + count) if cell]
    last = max(suffix, column.rows.indexes[-1])
    room = min(count - len(cells), MAX_SUB_ID - last[-1])
    cells += [column.encode_as((*last[:-1], last[-1] + step)) for step in range(1, room + 1)]
    return Run(cells, [])
