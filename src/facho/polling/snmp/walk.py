"""Walks of several columns side by side that adapt their size and resume from the last good row.

A walk that broke returns its rows with `complete` false, the failure, and a cursor to resume from. The rows of a
column are arrays, with a view of single rows where few are needed.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from facho.polling.domain.onu_table import RawValues
from facho.polling.snmp import errors, pages
from facho.polling.snmp.ber_values import Oid, Tag, Value, decode_oid, encode_oid
from facho.polling.snmp.memory import PER_ROW, PER_SUB_ID
from facho.polling.snmp.oid import format_oid
from facho.polling.snmp.session import NO_DEADLINE, PageSize, Session, Traffic
from facho.polling.snmp.target import CHEAP, Patience, SnmpVersion

if TYPE_CHECKING:
    from facho.polling.snmp._pages import ColumnBuffer

Row = tuple[Oid, int, Value]


@dataclass(frozen=True, slots=True, eq=False)
class ColumnRows:
    """One column in the agent's order; the sub-identifiers of suffix i end at `suffix_ends[i]` of `suffix_ids`.

    Every row came, so one without a value (NO_VALUE) was a NULL.
    """

    suffix_ids: NDArray[np.uint32]
    suffix_ends: NDArray[np.int64]
    values: RawValues

    @classmethod
    def from_buffer(cls, buffer: "ColumnBuffer") -> "ColumnRows":
        """Return what a walk has gathered, without a Python object for each value."""
        suffix_ids, suffix_ends, tags, numbers, sizes, octets = buffer.buffers()
        values = RawValues(
            np.frombuffer(tags, np.uint8), np.frombuffer(numbers, np.int64), np.frombuffer(sizes, np.int32), octets
        )
        return cls(np.frombuffer(suffix_ids, np.uint32), np.frombuffer(suffix_ends, np.int64), values)

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, row: int) -> Row:
        if not 0 <= row < len(self):
            raise IndexError(row)
        start = int(self.suffix_ends[row - 1]) if row else 0
        suffix = tuple(self.suffix_ids[start : int(self.suffix_ends[row])].tolist())
        return _row(suffix, int(self.values.tags[row]), self.values.at(row))

    def __iter__(self) -> Iterator[Row]:
        ids, values = self.suffix_ids.tolist(), self.values
        bounds = pairwise([0, *self.suffix_ends.tolist()])
        for row, ((start, end), tag) in enumerate(zip(bounds, values.tags.tolist(), strict=True)):
            yield _row(tuple(ids[start:end]), tag, values.at(row))


def _row(suffix: Oid, tag: int, raw: int | bytes | None) -> Row:
    if tag == Tag.OBJECT_IDENTIFIER and isinstance(raw, bytes):
        return suffix, tag, decode_oid(raw)
    return suffix, tag or int(Tag.NULL), raw


if TYPE_CHECKING:
    from facho.polling.snmp._pages import ColumnBuffer, VarBindPage

_FIRST_CONTEXT_TAG = int(Tag.NO_SUCH_OBJECT)
_NOT_HELPED_BY_LESS = (errors.BudgetSpent, errors.UnexpectedAnswer, errors.AccessDenied)


@dataclass(frozen=True, slots=True)
class Cursor:
    """Position in a column: the suffix of its last good row, () before the first."""

    after: Oid = ()
    is_done: bool = False


@dataclass(frozen=True, slots=True)
class WalkOptions:
    """How to walk. `learned_repetitions` is from the stats of an earlier walk of the same table."""

    max_repetitions: int = 25
    learned_repetitions: int | None = None
    # Repetitions of the first page where nothing was learned, if a time-out is dear; None: as many as wanted.
    first_repetitions: int | None = None
    patience: Patience = CHEAP
    deadline: float = NO_DEADLINE
    # Far above any table of an OLT: an agent beyond this invents rows.
    max_rows: int = 100_000
    # Called with the number of rows so far, once a page.
    on_rows: Callable[[int], None] | None = None


@dataclass(frozen=True, slots=True)
class WalkStats:
    """Cost of the walk, and the repetitions to start with next time (None: nothing learned)."""

    traffic: Traffic
    learned_repetitions: int | None

    @property
    def packets(self) -> int:
        return self.traffic.packets


@dataclass(frozen=True, slots=True)
class WalkResult:
    """The rows of each column, in the requested order; missing rows mean absence only if complete."""

    rows: tuple[ColumnRows, ...]
    failure: errors.SnmpError | None
    cursors: tuple[Cursor, ...]
    stats: WalkStats

    @property
    def complete(self) -> bool:
        return self.failure is None


async def walk_columns(
    session: Session,
    columns: Sequence[Oid],
    options: WalkOptions | None = None,
    *,
    resume: Sequence[Cursor] | None = None,
) -> WalkResult:
    """Walk columns in parallel; SNMP failures are returned, not raised.

    A column may have an index prefix (one port of a table): suffixes are what follows it. `resume` takes the cursors of
    an earlier, aborted walk of the same columns and returns only the rows after them.
    """
    walk = _Walk(session, columns, options or WalkOptions(), resume)
    before = replace(session.traffic)
    failure: errors.SnmpError | None = None
    try:
        await walk.run()
    except errors.SnmpError as error:
        # Its traceback would keep the rows alive in a cycle, long after they were stored or refused.
        failure = error.with_traceback(None)
    return WalkResult(
        rows=tuple(ColumnRows.from_buffer(column.buffer) for column in walk.columns),
        failure=failure,
        cursors=tuple(Cursor(column.buffer.last, column.is_done) for column in walk.columns),
        stats=WalkStats(session.traffic.since(before), walk.size.learned),
    )


@dataclass(slots=True)
class _Column:
    prefix: Oid
    max_rows: int
    buffer: "ColumnBuffer"
    is_done: bool = False

    @property
    def last(self) -> Oid:
        """The OID to ask for the successor of."""
        return self.prefix + self.buffer.last

    def take(self, page: "VarBindPage", position: int, width: int) -> None:
        """Add the rows of this column, up to its end or the first impossible one."""
        stopped_at = self.buffer.take(page, position, width)
        if stopped_at >= 0:
            oid, tag, _ = page[stopped_at]
            self._end_at(oid, tag)
        if len(self.buffer) > self.max_rows:
            raise errors.WalkLoop(f"more than {self.max_rows} rows under {format_oid(self.prefix)}")

    def _end_at(self, oid: Oid, tag: int) -> None:
        if tag >= _FIRST_CONTEXT_TAG:
            if tag != Tag.END_OF_MIB_VIEW:
                raise errors.UnexpectedAnswer(f"no end and no row, but an exception at {format_oid(oid)}")
        elif oid <= self.last:
            raise errors.WalkLoop(f"{format_oid(oid)} does not come after {format_oid(self.last)}")
        self.is_done = True


class _Walk:
    def __init__(
        self, session: Session, columns: Sequence[Oid], options: WalkOptions, resume: Sequence[Cursor] | None
    ) -> None:
        cursors = resume or [Cursor()] * len(columns)
        self.columns = [
            _Column(
                prefix,
                options.max_rows,
                pages.decoder.ColumnBuffer(encode_oid(prefix), cursor.after),
                cursor.is_done,
            )
            for prefix, cursor in zip(columns, cursors, strict=True)
        ]
        # The part of what the rows take beyond their answers that is accounted for.
        self._held_bytes = 0
        self._width = len(columns)
        self._is_v1 = session.target.version is SnmpVersion.V1
        wanted = 1 if self._is_v1 else options.max_repetitions
        self.size = PageSize(wanted, options.learned_repetitions, start=options.first_repetitions)
        self._session = session
        self._patience = self._page_patience = options.patience
        self._deadline = options.deadline
        self._on_rows = options.on_rows
        # Unanswered tries of the current page, and useless answers to it.
        self._unanswered = 0
        self._useless = 0
        self._empty_pages = 0

    async def run(self) -> None:
        while active := [column for column in self.columns if not column.is_done][: self._width]:
            try:
                page = await self._ask(active)
            except errors.MissingObject as error:
                # A v1 agent's noSuchName is the end of the column it names.
                if not self._is_v1 or not (error.index or len(active) == 1):
                    raise
                self._unanswered = 0
                active[error.index - 1].is_done = True
            except (errors.AgentTimeout, errors.AgentError, errors.MalformedMessage) as error:
                if isinstance(error, _NOT_HELPED_BY_LESS) or not self._ask_for_less(error, len(active)):
                    raise
            else:
                self._take(active, page)

    async def _ask(self, active: list[_Column]) -> "VarBindPage":
        oids = [column.last for column in active]
        tries = self._tries()
        self._unanswered += tries
        if self._page_patience.tries != tries:
            self._page_patience = replace(self._patience, tries=tries)
        page = await self._session.next_page(
            oids, self.size.rows, patience=self._page_patience, deadline=self._deadline
        )
        self._unanswered = 0
        self._empty_pages = 0 if page else self._empty_pages + 1
        # Some agents answer overload with an empty page instead of an error: ask once more before less.
        if self._empty_pages > 1:
            raise errors.MalformedMessage(f"{self._session.target.address} answers with empty pages")
        return page

    def _tries(self) -> int:
        """The first timeout may be a lost packet: send the same bytes twice before suspecting the size."""
        twice = min(2, self._patience.tries)
        if self.size.is_smallest:
            # An agent that has answered before gets all its tries once more; of one that never did, two are enough.
            spent = 0 if self.size.has_worked else self._unanswered
            return max(twice, self._patience.tries - spent)
        return 1 if self._unanswered else twice

    def _ask_for_less(self, error: errors.SnmpError, width: int) -> bool:
        """Make the next page smaller, in rows or else columns; False if it is already minimal."""
        is_too_big = isinstance(error, errors.TooBig)
        if not isinstance(error, errors.AgentTimeout):
            self._unanswered = 0
            self._useless += not is_too_big
        if not self.size.is_smallest:
            # The last tries are for a single row: its silence says most.
            if self._unanswered >= self._patience.tries - 1:
                self.size.nothing_comes()
            else:
                self.size.page_failed(is_too_big=is_too_big)
            return True
        if is_too_big and width > 1:
            # Only tooBig says for sure that size is the trouble. Columns left out have their turn later.
            self._width = math.ceil(width / 2)
            return True
        # A single answer may have been damaged on its way.
        return not self._unanswered and not is_too_big and self._useless < self._patience.tries

    def _take(self, active: list[_Column], page: "VarBindPage") -> None:
        if page:
            self.size.page_came()
            self._useless = 0
        for position, column in enumerate(active):
            column.take(page, position, len(active))
        buffers = [column.buffer for column in self.columns]
        rows = max(map(len, buffers))
        if self._on_rows is not None:
            self._on_rows(rows)
        held_bytes = PER_ROW * rows + PER_SUB_ID * sum(buffer.sub_ids for buffer in buffers)
        self._session.memory.take(held_bytes - self._held_bytes)
        self._held_bytes = held_bytes
