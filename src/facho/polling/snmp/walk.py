"""Walks of several columns side by side that adapt their size, go on from the last good row and never lie.

A walk that broke returns its rows with `complete` false, the failure, and a cursor to resume from.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from facho.polling.snmp.ber import Oid, Tag, Value, VarBind
from facho.polling.snmp.errors import (
    AccessDenied,
    AgentError,
    AgentTimeout,
    BudgetSpent,
    MalformedMessage,
    MissingObject,
    SnmpError,
    TooBig,
    UnexpectedAnswer,
    WalkLoop,
)
from facho.polling.snmp.oid import format_oid
from facho.polling.snmp.page_size import PageSize
from facho.polling.snmp.session import NO_DEADLINE, Session, Traffic
from facho.polling.snmp.target import CHEAP, Patience, SnmpVersion

# (index suffix, tag, value): a plain tuple, because a pass over a network makes millions.
Row = tuple[Oid, int, Value]

_FIRST_CONTEXT_TAG = int(Tag.NO_SUCH_OBJECT)
_NOT_HELPED_BY_LESS = (BudgetSpent, UnexpectedAnswer, AccessDenied)


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where a column stands: the suffix of its last good row, () before the first."""

    after: Oid = ()
    is_done: bool = False


@dataclass(frozen=True, slots=True)
class WalkOptions:
    """How to walk. `learned_repetitions` is what an earlier walk of the same table returned in its stats."""

    max_repetitions: int = 25
    learned_repetitions: int | None = None
    patience: Patience = CHEAP
    deadline: float = NO_DEADLINE
    # Far above any table of an OLT: an agent that goes on beyond makes rows up.
    max_rows: int = 100_000


@dataclass(frozen=True, slots=True)
class WalkStats:
    """What the walk cost, and the repetitions to start with next time (None: nothing was learned)."""

    traffic: Traffic
    learned_repetitions: int | None

    @property
    def packets(self) -> int:
        """Datagrams sent, retransmissions included."""
        return self.traffic.packets


@dataclass(frozen=True, slots=True)
class WalkResult:
    """The rows of each column, in the order of the columns asked for; absent rows mean absence only if complete."""

    rows: tuple[list[Row], ...]
    failure: SnmpError | None
    cursors: tuple[Cursor, ...]
    stats: WalkStats

    @property
    def complete(self) -> bool:
        """Tell whether the end of every column was reached."""
        return self.failure is None


async def walk_columns(
    session: Session,
    columns: Sequence[Oid],
    options: WalkOptions | None = None,
    *,
    resume: Sequence[Cursor] | None = None,
) -> WalkResult:
    """Walk columns side by side; SNMP failures are returned, not raised.

    A column may carry an index prefix (one port of a table): suffixes are what follows it. `resume` takes the
    cursors of an earlier, broken walk of the same columns and returns only the rows after them.
    """
    walk = _Walk(session, columns, options or WalkOptions(), resume)
    before = session.traffic.copy()
    failure: SnmpError | None = None
    try:
        await walk.run()
    except SnmpError as error:
        failure = error
    return WalkResult(
        rows=tuple(column.rows for column in walk.columns),
        failure=failure,
        cursors=tuple(Cursor(column.last, column.is_done) for column in walk.columns),
        stats=WalkStats(session.traffic.since(before), walk.size.learned),
    )


@dataclass(slots=True)
class _Column:
    prefix: Oid
    max_rows: int
    # The suffixes of all columns of the walk: rows of one ONU share a single tuple, which halves what a walk holds.
    suffixes: dict[Oid, Oid]
    last: Oid = ()
    is_done: bool = False
    # Tuples of tuples of plain values are what the garbage collector looks at once and never again; a list with as
    # many rows would be gone through each time, and that was a seventh of the cost of a large walk.
    pages: list[tuple[Row, ...]] = field(default_factory=list)
    row_count: int = 0

    @property
    def rows(self) -> list[Row]:
        return list(chain.from_iterable(self.pages))

    def take(self, varbinds: Sequence[VarBind]) -> None:
        """Add the rows that belong to this column, up to its end or to the first that cannot be true."""
        page: list[Row] = []
        try:
            self._read(varbinds, page)
        finally:
            if page:
                self.last = page[-1][0]
                self.pages.append(tuple(page))
                self.row_count += len(page)
        if self.row_count > self.max_rows:
            raise WalkLoop(f"more than {self.max_rows} rows under {format_oid(self.prefix)}")

    def _read(self, varbinds: Sequence[VarBind], page: list[Row]) -> None:
        prefix, size, last, append = self.prefix, len(self.prefix), self.last, page.append
        share = self.suffixes.setdefault
        for oid, tag, value in varbinds:
            if oid[:size] != prefix or tag >= _FIRST_CONTEXT_TAG:
                self._end_at(oid, tag, last)
                return
            suffix = oid[size:]
            if suffix <= last:
                raise WalkLoop(f"{format_oid(oid)} does not come after {format_oid(prefix + last)}")
            last = share(suffix, suffix)
            append((last, tag, value))

    def _end_at(self, oid: Oid, tag: int, last: Oid) -> None:
        if tag >= _FIRST_CONTEXT_TAG:
            if tag != Tag.END_OF_MIB_VIEW:
                raise UnexpectedAnswer(f"no end and no row, but an exception at {format_oid(oid)}")
        elif oid <= self.prefix + last:
            raise WalkLoop(f"{format_oid(oid)} does not come after {format_oid(self.prefix + last)}")
        self.is_done = True


class _Walk:
    def __init__(
        self, session: Session, columns: Sequence[Oid], options: WalkOptions, resume: Sequence[Cursor] | None
    ) -> None:
        cursors = resume or [Cursor()] * len(columns)
        suffixes: dict[Oid, Oid] = {}
        self.columns = [
            _Column(prefix, options.max_rows, suffixes, cursor.after, cursor.is_done)
            for prefix, cursor in zip(columns, cursors, strict=True)
        ]
        self._width = len(columns)
        self._is_v1 = session.target.version is SnmpVersion.V1
        self.size = PageSize(1 if self._is_v1 else options.max_repetitions, options.learned_repetitions)
        self._session = session
        self._patience = self._page_patience = options.patience
        self._deadline = options.deadline
        # Sent for the page at hand without any answer, and answers to it that were of no use.
        self._unanswered = 0
        self._useless = 0
        self._empty_pages = 0

    async def run(self) -> None:
        while active := [column for column in self.columns if not column.is_done][: self._width]:
            try:
                varbinds = await self._ask(active)
            except MissingObject as error:
                self._end_column(active, error)
            except (AgentTimeout, AgentError, MalformedMessage) as error:
                if isinstance(error, _NOT_HELPED_BY_LESS) or not self._ask_for_less(error, len(active)):
                    raise
            else:
                self._take(active, varbinds)

    async def _ask(self, active: list[_Column]) -> list[VarBind]:
        oids = [column.prefix + column.last for column in active]
        tries = self._tries()
        self._unanswered += tries
        varbinds = await self._session.next_page(
            oids, self.size.rows, patience=self._patience_for(tries), deadline=self._deadline
        )
        self._unanswered = 0
        self._empty_pages = 0 if varbinds else self._empty_pages + 1
        # Some agents answer overload with an empty page instead of an error: ask once more before less.
        if self._empty_pages > 1:
            raise MalformedMessage(f"{self._session.target.address} answers with empty pages")
        return varbinds

    def _patience_for(self, tries: int) -> Patience:
        if self._page_patience.tries != tries:
            self._page_patience = replace(self._patience, tries=tries)
        return self._page_patience

    def _tries(self) -> int:
        """The first silence may be a lost packet: the same bytes go twice, before size is suspected."""
        twice = min(2, self._patience.tries)
        if self.size.is_smallest:
            # An agent that has answered before gets all its tries once more; of one that never did, two are enough.
            spent = 0 if self.size.has_worked else self._unanswered
            return max(twice, self._patience.tries - spent)
        return 1 if self._unanswered else twice

    def _ask_for_less(self, error: SnmpError, width: int) -> bool:
        """Make the next page smaller, in rows or else in columns; False when it is as small as can be."""
        is_too_big = isinstance(error, TooBig)
        if not isinstance(error, AgentTimeout):
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

    def _end_column(self, active: list[_Column], error: MissingObject) -> None:
        """Take a v1 agent's noSuchName for the end of the column it names."""
        if not self._is_v1 or not (error.index or len(active) == 1):
            raise error
        self._unanswered = 0
        active[error.index - 1].is_done = True

    def _take(self, active: list[_Column], varbinds: list[VarBind]) -> None:
        if varbinds:
            self.size.page_came()
            self._useless = 0
        width = len(active)
        for position, column in enumerate(active):
            column.take(varbinds[position::width])
