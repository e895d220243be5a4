"""Answers one request as RFC 3416 and, for v1, RFC 1157 say, from a MIB view that may lie; no socket and no time.

The view is what an agent can be asked, in lexicographic order, as columns over shared rows. A cell is encoded when it
is first asked for and kept until its row changes; columns of a table share one index list.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Generic, NamedTuple, TypeVar

from facho.polling.snmp.ber import Oid, PduKind, SnmpMessage, Tag, Value, encode_message_raw, encode_varbind
from facho.polling.snmp.ber_values import decode_oid, encode_oid, encode_value, enter, wrap

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


V1, V2C = 0, 1
NO_ERROR, TOO_BIG, NO_SUCH_NAME, GENERAL_ERROR = 0, 1, 2, 5
# Sequence headers, version, PDU header, request id, error fields: what surrounds the varbinds at most.
MESSAGE_OVERHEAD_BYTES = 40
SMALLEST_VARBIND_BYTES = 9


@dataclass(frozen=True, slots=True)
class ReplyWork:
    """The work a reply caused; its cost is computed from this."""

    cells: int = 0
    columns: int = 0
    live_rows: int = 0


class Reply(NamedTuple):
    data: bytes
    varbinds: int
    work: ReplyWork


class RequestRefused(Exception):
    def __init__(self, status: int, index: int = 0) -> None:
        super().__init__(status, index)
        self.status = status
        self.index = index


class Responder:
    """Answers requests to one agent; a bulk answer that is too long is shortened, or refused with `too_big_above`."""

    def __init__(self, view: MibView, *, max_message_bytes: int) -> None:
        self.max_message_bytes = max_message_bytes
        self.too_big_above: int | None = None
        # Answers a bulk with as many rows as fit, however few were asked for.
        self.ignores_repetitions = False
        self._true_views = {V1: view.without_counter64(), V2C: view}
        self._views = self._true_views

    def mislead(self, loop: LoopKind | None, *, max_rows: int | None = None, closed: Collection[Oid] = ()) -> None:
        """Return false successors from now on, and nothing below closed OIDs; None stops it."""
        views = self._true_views
        if closed:
            views = {version: view.without(closed) for version, view in views.items()}
        if max_rows is not None:
            views = {version: ShortView(view, max_rows) for version, view in views.items()}
        if loop is not None:
            views = {version: LoopingView(view, loop) for version, view in views.items()}
        self._views = views

    def bloat(self, value_bytes: int, *, is_deep: bool) -> None:
        """Send values of this size from now on, below OIDs of maximum length if deep."""
        if value_bytes or is_deep:
            self._views = {
                version: BloatedView(view, value_bytes, is_deep=is_deep) for version, view in self._views.items()
            }

    def respond(self, message: SnmpMessage) -> Reply | None:
        """Answer a request; None for a PDU agents ignore."""
        if message.pdu.kind is PduKind.RESPONSE:
            return None
        view = self._views[message.version]
        try:
            answer = self._answer(view, message)
        except RequestRefused as refused:
            return refuse(message, refused.status, refused.index)
        data = _encode(message, NO_ERROR, 0, b"".join(answer.cells))
        if self.too_big_above is not None and len(data) > self.too_big_above:
            return refuse(message, TOO_BIG, 0)
        return Reply(data, len(answer.cells), _measure(view, answer, len(message.pdu.varbinds)))

    def asks_live(self, message: SnmpMessage) -> bool:
        """Whether a request includes a column the OLT reads from its ONUs."""
        view = self._views[message.version]
        columns = [view.column_of(oid) for oid, _, _ in message.pdu.varbinds]
        return any(at is not None and view.columns[at].kind is ColumnKind.LIVE for at in columns)

    def _answer(self, view: MibView, message: SnmpMessage) -> CellRun:
        pdu = message.pdu
        room = self.max_message_bytes - MESSAGE_OVERHEAD_BYTES - len(message.community)
        oids = [varbind[0] for varbind in pdu.varbinds]
        if pdu.kind is PduKind.GET_BULK:
            rows = room if self.ignores_repetitions else pdu.error_index
            single = min(max(pdu.error_status, 0), len(oids))
            head = _get_next(view, oids[:single], version=V2C)
            room -= sum(map(len, head.cells))
            if room < 0:
                raise RequestRefused(TOO_BIG)
            repeaters = oids[single:]
            if not repeaters or rows <= 0:
                return head
            body = _repeat_within(view, repeaters, rows, room=room)
            return CellRun(head.cells + body.cells, head.spans + body.spans)
        read = _get if pdu.kind is PduKind.GET else _get_next
        answer = read(view, oids, version=message.version)
        if sum(map(len, answer.cells)) > room:
            raise RequestRefused(TOO_BIG)
        return answer


def refuse(message: SnmpMessage, status: int, index: int) -> Reply:
    """Answer with an error; the varbinds are repeated, except for tooBig in v2c."""
    echoed = message.pdu.varbinds if message.version == V1 or status != TOO_BIG else ()
    body = b"".join(encode_varbind((oid, Tag.NULL, None)) for oid, _, _ in echoed)
    return Reply(_encode(message, status, index, body), len(echoed), ReplyWork())


def _encode(message: SnmpMessage, status: int, index: int, body: bytes) -> bytes:
    pdu = message.pdu
    return encode_message_raw(message.version, message.community, PduKind.RESPONSE, pdu.request_id, status, index, body)


def _get(view: MibView, oids: list[Oid], *, version: int) -> CellRun:
    answer = CellRun([], [])
    for number, oid in enumerate(oids, start=1):
        found = view.get(oid)
        if found is not None:
            (column, row), cell = found
            answer.cells.append(cell)
            answer.spans.append((column, row, row + 1))
        elif version == V1:
            raise RequestRefused(NO_SUCH_NAME, number)
        else:
            missing = Tag.NO_SUCH_OBJECT if view.column_of(oid) is None else Tag.NO_SUCH_INSTANCE
            answer.cells.append(encode_varbind((oid, missing, None)))
    return answer


def _get_next(view: MibView, oids: list[Oid], *, version: int) -> CellRun:
    answer = CellRun([], [])
    for number, oid in enumerate(oids, start=1):
        run = view.successors(oid, 1)
        if not run.cells and version == V1:
            raise RequestRefused(NO_SUCH_NAME, number)
        answer.cells.extend(run.cells or [encode_varbind((oid, Tag.END_OF_MIB_VIEW, None))])
        answer.spans.extend(run.spans)
    return answer


def _repeat_within(view: MibView, oids: list[Oid], repetitions: int, *, room: int) -> CellRun:
    """Drop varbinds from the end until the rest fits, as RFC 3416 allows."""
    body = _repeat(view, oids, min(repetitions, room // (SMALLEST_VARBIND_BYTES * len(oids)) + 1))
    fitting = _count_fitting(body.cells, room)
    if fitting == len(body.cells):
        return body
    if not fitting:
        raise RequestRefused(TOO_BIG)
    shorter = _repeat(view, oids, -(-fitting // len(oids)))
    return shorter._replace(cells=shorter.cells[:fitting])


def _count_fitting(cells: list[bytes], room: int) -> int:
    if sum(map(len, cells)) <= room:
        return len(cells)
    for number, cell in enumerate(cells):
        room -= len(cell)
        if room < 0:
            return number
    return len(cells)


def _repeat(view: MibView, oids: list[Oid], repetitions: int) -> CellRun:
    runs = [view.successors(oid, repetitions) for oid in oids]
    # One repetition in which every variable is at its end is enough to say so.
    rows = min(repetitions, max(len(run.cells) for run in runs) + 1)
    columns = [_pad(view, run, oid, rows) for run, oid in zip(runs, oids, strict=True)]
    cells = columns[0] if len(columns) == 1 else [cell for row in zip(*columns, strict=True) for cell in row]
    return CellRun(cells, [span for run in runs for span in run.spans])


def _pad(view: MibView, run: CellRun, oid: Oid, rows: int) -> list[bytes]:
    if len(run.cells) == rows:
        return run.cells
    if run.spans:
        column, _, stop = run.spans[-1]
        oid = view.oid_at(Position(column, stop - 1))
    end = encode_varbind((oid, Tag.END_OF_MIB_VIEW, None))
    return run.cells + [end] * (rows - len(run.cells))


def _measure(view: MibView, answer: CellRun, columns: int) -> ReplyWork:
    live: set[int] = set()
    for column, start, stop in answer.spans:
        if view.columns[column].kind is ColumnKind.LIVE:
            live.update(map(id, view.columns[column].rows.owners[start:stop]))
    return ReplyWork(len(answer.cells), columns, len(live))
