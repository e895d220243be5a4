"""A question by hand: which OIDs a person means by columns, tables and OIDs, and how much may be asked at once."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from django.utils.translation import gettext as _

from facho.polling.snmp.oid import Oid, parse_oid
from facho.polling.vendors.column import Column
from facho.polling.vendors.definition import Definition
from facho.polling.vendors.index import Place
from facho.polling.vendors.vocabulary import Cost, Scope

# A person reads this; a pass over the whole device is a job's.
MAX_ROWS = 10_000
MAX_SECONDS = 300
# One PON port: what each of these costs, the OLT has to ask an ONU for.
LIVE_ROWS = 64
MAX_SUBJECTS = 64


class Way(StrEnum):
    """How the device is asked."""

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
class Question:
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
) -> Question:
    """Find out what the words mean; BadQuestion when one of them means nothing here."""
    if len(words) > MAX_SUBJECTS:
        raise BadQuestion(_("Ask for at most %s things at a time.") % MAX_SUBJECTS)
    subjects = tuple(subject for word in words for subject in _subjects(way, word, definition, place))
    cost = max((_cost(subject, definition) for subject in subjects), key=list(Cost).index)
    rows = min(bounds.rows, LIVE_ROWS) if cost is Cost.LIVE and way is not Way.GET else bounds.rows
    return Question(way, subjects, cost, rows, bounds.seconds)


def column_at(oid: Oid, definition: Definition | None) -> Column | None:
    """Return the column in which an OID lies."""
    columns = definition.columns.values() if definition else ()
    return next((column for column in columns if oid[: len(column.oid)] == column.oid and not column.shares), None)


def _subjects(way: Way, word: str, definition: Definition | None, place: Place | None) -> Iterator[Subject]:
    columns = _columns(way, word, definition)
    if columns:
        yield from (Subject(_oid(way, column, place), column) for column in columns)
    elif way is Way.TABLE:
        raise _unknown(word, definition, [table.name for table in definition.tables] if definition else [])
    else:
        yield _raw_subject(word, definition)


def _columns(way: Way, word: str, definition: Definition | None) -> list[Column]:
    if definition is None:
        return []
    if definition.has_column(word):
        return [definition.column(word)]
    tables = definition.tables if way is Way.TABLE else ()
    return [column for table in tables if table.name == word for column in table.columns]


def _raw_subject(word: str, definition: Definition | None) -> Subject:
    try:
        oid = parse_oid(word)
    except ValueError:
        raise _unknown(word, definition, list(definition.columns) if definition else []) from None
    return Subject(oid, column_at(oid, definition))


def _oid(way: Way, column: Column, place: Place | None) -> Oid:
    """Return what to walk below, or, for a get, the column's value at the place."""
    if way is not Way.GET:
        return column.oid
    if place is None and column.index.scope is not Scope.SCALAR:
        raise BadQuestion(_("%s has many values: say which with --at, or use walk or table.") % column.key)
    try:
        return column.instance(place or Place())
    except ValueError as error:
        raise BadQuestion(_("%(column)s has no such place: %(why)s.") % {"column": column.key, "why": error}) from error


def _cost(subject: Subject, definition: Definition | None) -> Cost:
    """Return the dearest cost of what lies at or below an OID."""
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
        return BadQuestion(
            _("%s is no OID, and as long as the vendor of this OLT is not known it has no columns.") % repr(word)
        )
    words = {"word": repr(word), "vendor": definition.key, "known": ", ".join(known)}
    return BadQuestion(_("%(vendor)s has no %(word)s. It has: %(known)s.") % words)
