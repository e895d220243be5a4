"""Answers a question by hand: one gentle operation, decoded where the vendor definition knows how.

What a device sent is hostile: it is shown as printable text of bounded length, or as hexadecimal digits.
"""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from django.utils.translation import gettext as _

from facho.hosts.store import load_target
from facho.polling.domain.collection import Collected, CollectRequest, Failure, RunControl
from facho.polling.domain.execution_state import FailureKind
from facho.polling.domain.onu_table import NO_VALUE_TAGS, raw_text
from facho.polling.domain.ports import DatabaseGateway
from facho.polling.snmp.batch import BatchOptions, get_batched
from facho.polling.snmp.ber import VarBind
from facho.polling.snmp.errors import BudgetSpent, SnmpError, WalkLoop
from facho.polling.snmp.memory import PER_ROW
from facho.polling.snmp.network import Network
from facho.polling.snmp.oid import Oid, format_oid, parse_oid
from facho.polling.snmp.session import Session
from facho.polling.snmp.target import CHEAP, Patience
from facho.polling.snmp.walk import WalkOptions, WalkResult, walk_columns
from facho.polling.vendors.column import Column
from facho.polling.vendors.definition import Definition
from facho.polling.vendors.index import Place, write_place
from facho.polling.vendors.loader import load_definitions
from facho.polling.vendors.vocabulary import Cost, Scope
from facho.snmp_get.reading import EXPECTED, count_traffic, failure_of, plain_value, tag_name

# A person reads this; a pass over the whole device is a job's.
MAX_ROWS = 10_000
MAX_SECONDS = 300
# One PON port: what each of these costs, the OLT has to ask an ONU for.
LIVE_ROWS = 64
MAX_SUBJECTS = 64


class Way(StrEnum):
    GET = "get"
    WALK = "walk"
    TABLE = "table"


class BadQuestion(ValueError):
    """A question that means nothing on this OLT; its text is for the person who asked."""


@dataclass(frozen=True, slots=True)
class Subject:
    """One OID to ask for or to walk below, and the column that reads it, if one does."""

    oid: Oid
    column: Column | None = None


@dataclass(frozen=True, slots=True)
class SnmpQuestion:
    """What is asked, within bounds that a weak agent bears."""

    way: Way
    subjects: tuple[Subject, ...]
    cost: Cost
    max_rows: int
    max_seconds: float


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much a person wants to see at most, and how long the OLT may be held for it."""

    rows: int
    seconds: float


def plan_question(
    way: Way, words: Sequence[str], definition: Definition | None, *, place: Place | None, bounds: Bounds
) -> SnmpQuestion:
    """Find out what the words mean; BadQuestion when one of them means nothing here."""
    if len(words) > MAX_SUBJECTS:
        raise BadQuestion(_("Request at most %s items at a time.") % MAX_SUBJECTS)
    subjects = tuple(subject for word in words for subject in _subjects(way, word, definition, place))
    cost = max((_cost(subject, definition) for subject in subjects), key=list(Cost).index)
    rows = min(bounds.rows, LIVE_ROWS) if cost is Cost.LIVE and way is not Way.GET else bounds.rows
    return SnmpQuestion(way, subjects, cost, rows, bounds.seconds)


def column_at(oid: Oid, definition: Definition | None) -> Column | None:
    columns = definition.columns.values() if definition else ()
    return next((column for column in columns if oid[: len(column.oid)] == column.oid and not column.shares), None)


def _subjects(way: Way, word: str, definition: Definition | None, place: Place | None) -> Iterator[Subject]:
    columns: list[Column] = []
    if definition is not None and definition.has_column(word):
        columns = [definition.column(word)]
    elif definition is not None and way is Way.TABLE:
        columns = [column for table in definition.tables if table.name == word for column in table.columns]
    if columns:
        yield from (Subject(_oid(way, column, place), column) for column in columns)
    elif way is Way.TABLE:
        raise _unknown(word, definition, [table.name for table in definition.tables] if definition else [])
    else:
        try:
            oid = parse_oid(word)
        except ValueError:
            raise _unknown(word, definition, list(definition.columns) if definition else []) from None
        yield Subject(oid, column_at(oid, definition))


def _oid(way: Way, column: Column, place: Place | None) -> Oid:
    """Return what to walk below, or, for a get, the column's value at the place."""
    if way is not Way.GET:
        return column.oid
    if place is None and column.index.scope is not Scope.SCALAR:
        raise BadQuestion(_("%s has many values: choose one with --at, or use walk or table.") % column.key)
    try:
        return column.instance(place or Place())
    except ValueError as error:
        raise BadQuestion(_("%(column)s has no such place: %(why)s.") % {"column": column.key, "why": error}) from error


def _cost(subject: Subject, definition: Definition | None) -> Cost:
    if subject.column:
        return subject.column.cost
    below = [
        column.cost
        for column in (definition.columns.values() if definition else ())
        if column.oid[: len(subject.oid)] == subject.oid
    ]
    return max(below, key=list(Cost).index, default=Cost.CONFIG)


def _unknown(word: str, definition: Definition | None, known: Sequence[str]) -> BadQuestion:
    if definition is None:
        return BadQuestion(_("%s is not an OID, and this OLT has no columns until its vendor is known.") % repr(word))
    words = {"word": repr(word), "vendor": definition.key, "known": ", ".join(known)}
    return BadQuestion(_("%(vendor)s has no %(word)s. It has: %(known)s.") % words)


# For an OLT of unknown vendor: small enough for the weakest.
UNKNOWN_ROWS_PER_PAGE = 10
UNKNOWN_VARBINDS = 10


@dataclass(frozen=True, slots=True)
class ReadValue:
    """One value: `raw` as it came, `value` as the definition reads it, `note` why there is none."""

    oid: str
    column: str
    place: str
    type: str
    raw: str
    value: int | float | str | None
    unit: str
    note: str


class Cut(StrEnum):
    """Which bound of the question ended the answer, though the device would have gone on."""

    ROWS = "rows"
    TIME = "time"


@dataclass(frozen=True, slots=True)
class Answer:
    """What the device said, all of it unless `cut` or `failure` says why not."""

    values: tuple[ReadValue, ...] = ()
    cut: Cut | None = None
    failure: Failure | None = None


NOT_ASKED = Answer(failure=Failure(FailureKind.CANCELLED, "the run was withdrawn before it began"))


@dataclass(slots=True)
class InteractiveCollector:
    """A collector whose answer is kept in `answer`, for the person who asked; nothing of it is stored."""

    network: Network
    database: DatabaseGateway
    max_timeout_seconds: float
    question: SnmpQuestion
    answer: Answer = NOT_ASKED
    has_begun: bool = False

    async def collect(self, request: CollectRequest, control: RunControl) -> Collected:
        """Ask the question; what came before a failure is part of the answer."""
        self.has_begun = True
        try:
            definition = load_definitions().get(request.vendor)
            in_flight = definition.polling.in_flight if definition else 1
            target, limits = await self.database.run(load_target, request, definition_in_flight=in_flight)
            deadline = asyncio.get_running_loop().time() + self.question.max_seconds
            session = self.network.open(target, control, limits)
            try:
                reading = _Reading(session, definition, self.question, deadline, self._patience(definition))
                self.answer = await (reading.get() if self.question.way is Way.GET else reading.walk())
            finally:
                await session.close()
            was_heard = session.traffic.bytes_received > 0
            counts = {"values": len(self.answer.values), **count_traffic(session)}
            return Collected(counts, self.answer.failure, was_heard=was_heard)
        except EXPECTED as error:
            self.answer = Answer(failure=failure_of(error))
            return Collected(failure=self.answer.failure)

    def _patience(self, definition: Definition | None) -> Patience:
        if definition is None:
            return Patience(min(CHEAP.timeout_s, self.max_timeout_seconds), CHEAP.tries)
        cost = definition.polling.classes[self.question.cost]
        return Patience(min(cost.timeout_seconds, self.max_timeout_seconds), cost.tries)


@dataclass(frozen=True, slots=True)
class _Reading:
    session: Session
    definition: Definition | None
    question: SnmpQuestion
    deadline: float
    patience: Patience

    @property
    def width(self) -> int:
        """How many columns or values go into one packet."""
        return self.definition.polling.max_varbinds if self.definition else UNKNOWN_VARBINDS

    async def get(self) -> Answer:
        """Ask for every OID; one that cannot be read does not hide the others."""
        subjects = self.question.subjects
        options = BatchOptions(max_varbinds=self.width, patience=self.patience, deadline=self.deadline)
        batch = await get_batched(self.session, [[subject.oid] for subject in subjects], options)
        values = [
            read_value(answer[0], subject.column) if answer else _refused(subject, batch.failures.get(number))
            for number, (subject, answer) in enumerate(zip(subjects, batch.answers, strict=True))
            if answer or number in batch.failures
        ]
        return self._answer(values, batch.failure)

    async def walk(self) -> Answer:
        """Walk as many columns side by side as the family takes, up to the rows that a person wants to see."""
        values: list[ReadValue] = []
        error: SnmpError | None = None
        cut: Cut | None = None
        subjects, rows = self.question.subjects, self.question.max_rows
        page = self.definition.polling.max_repetitions if self.definition else UNKNOWN_ROWS_PER_PAGE
        options = WalkOptions(min(page, rows), patience=self.patience, deadline=self.deadline, max_rows=rows)
        for start in range(0, len(subjects), self.width):
            together = subjects[start : start + self.width]
            walk = await walk_columns(self.session, [subject.oid for subject in together], options)
            self.session.memory.take(PER_ROW * sum(map(len, walk.rows)))
            values += self._read(together, walk)
            # It ended only because it had more rows than were wanted.
            if isinstance(walk.failure, WalkLoop) and any(len(rows) > options.max_rows for rows in walk.rows):
                cut = Cut.ROWS
            elif walk.failure:
                error = walk.failure
                break
        return self._answer(values, error, cut)

    def _answer(self, values: Sequence[ReadValue], error: SnmpError | None, cut: Cut | None = None) -> Answer:
        """A bound that a person set is no failure of a device that answers."""
        if isinstance(error, BudgetSpent) and self.session.traffic.bytes_received:
            return Answer(tuple(values), Cut.TIME)
        return Answer(tuple(values), cut, failure_of(error) if error else None)

    def _read(self, subjects: Sequence[Subject], walk: WalkResult) -> Iterator[ReadValue]:
        """Read what all columns had a chance to tell: the column that was cut may be a page ahead."""
        ends = [cursor.after for cursor in walk.cursors if not cursor.is_done]
        for subject, rows in zip(subjects, walk.rows, strict=True):
            shown = [row for row in rows if not ends or row[0] <= min(ends)][: self.question.max_rows]
            for suffix, tag, value in shown:
                oid = subject.oid + suffix
                yield read_value((oid, tag, value), subject.column or column_at(oid, self.definition))


def read_value(varbind: VarBind, column: Column | None) -> ReadValue:
    """Decode a varbind with its column, and show it as it came."""
    oid, tag, raw = varbind
    value, note = None, tag_name(tag) if tag in NO_VALUE_TAGS else ""
    if column is not None and not note:
        decoded = column.decode(tag, raw)
        value, note = plain_value(decoded.value), decoded.reason or ""
    # The formula may not know where the row belongs.
    place = column.index.decode(oid[len(column.oid) :]) if column else None
    return ReadValue(
        oid=format_oid(oid),
        column=column.key if column else "",
        place=write_place(column.index, place) if column and place is not None else "",
        type=tag_name(tag),
        raw="" if tag in NO_VALUE_TAGS else raw_text(tag, raw),
        value=value,
        unit=column.unit.value if column and column.unit and value is not None else "",
        note=note,
    )


def _refused(subject: Subject, error: SnmpError | None) -> ReadValue:
    key = subject.column.key if subject.column else ""
    return ReadValue(format_oid(subject.oid), key, "", "", "", None, "", error.kind.value if error else "")
