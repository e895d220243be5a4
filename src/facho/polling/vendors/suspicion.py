"""Judges what a column of a definition made of the rows that a device sent, for the person who writes it.

Nothing here is proof: a suspicion is a reason to look at the column again.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from facho.polling.snmp.ber import Oid, Value
from facho.polling.vendors.column import Column
from facho.polling.vendors.definition import IDENTITY
from facho.polling.vendors.index import Place
from facho.polling.vendors.vocabulary import Reject, Typed

# (index suffix, tag, value), as a walk returns them.
SentRow = tuple[Oid, int, Value]

# Fewer equal values can be chance.
CONSTANT_ROWS = 4
# As many different ones as fit a line.
MOST_EXAMPLES = 8


class Suspicion(StrEnum):
    NO_ROWS = "no_rows"
    NO_PLACE = "no_place"
    WRONG_TYPE = "wrong_type"
    UNKNOWN_ENUM = "unknown_enum"
    OUT_OF_RANGE = "out_of_range"
    MALFORMED = "malformed"
    ONLY_SENTINELS = "only_sentinels"
    CONSTANT = "constant"


@dataclass(frozen=True, slots=True)
class Doubt:
    """One suspicion, in how many rows, and the raw values that caused it."""

    suspicion: Suspicion
    rows: int
    examples: tuple[Value, ...] = ()


@dataclass(frozen=True, slots=True)
class SentExample:
    """A row of the column: the first that has a value in a place, else the first."""

    suffix: Oid
    tag: int
    raw: Value
    value: Typed | None
    place: Place | None


@dataclass(frozen=True, slots=True)
class ColumnVerdict:
    """What a column made of the rows that were read."""

    column: Column
    rows: int
    example: SentExample | None
    doubts: tuple[Doubt, ...]


_BY_REASON = {
    Reject.WRONG_TYPE: Suspicion.WRONG_TYPE,
    Reject.UNKNOWN_ENUM: Suspicion.UNKNOWN_ENUM,
    Reject.OUT_OF_RANGE: Suspicion.OUT_OF_RANGE,
    Reject.MALFORMED: Suspicion.MALFORMED,
}


def judge_column(column: Column, rows: Sequence[SentRow]) -> ColumnVerdict:
    """Decode the rows and name what is odd about the outcome."""
    if not rows:
        return ColumnVerdict(column, 0, None, (Doubt(Suspicion.NO_ROWS, 0),))
    examples: list[SentExample] = []
    rejected: dict[Reject, Counter[Value]] = {}
    for suffix, tag, raw in rows:
        value, reason = column.decode(tag, raw)
        examples.append(SentExample(suffix, tag, raw, value, column.index.decode(suffix)))
        if reason is not None:
            rejected.setdefault(reason, Counter())[raw] += 1
    doubts = []
    if unplaced := sum(example.place is None for example in examples):
        doubts.append(Doubt(Suspicion.NO_PLACE, unplaced))
    for reason, suspicion in _BY_REASON.items():
        if counted := rejected.get(reason):
            doubts.append(
                Doubt(suspicion, counted.total(), tuple(raw for raw, _ in counted.most_common(MOST_EXAMPLES)))
            )
    if (sentinels := rejected.get(Reject.SENTINEL)) and sentinels.total() == len(rows):
        doubts.append(Doubt(Suspicion.ONLY_SENTINELS, len(rows), tuple(sentinels)[:MOST_EXAMPLES]))
    if _is_constant(column, examples):
        doubts.append(Doubt(Suspicion.CONSTANT, len(rows), (examples[0].raw,)))
    return ColumnVerdict(column, len(rows), max(examples, key=_how_telling), tuple(doubts))


def _is_constant(column: Column, examples: Sequence[SentExample]) -> bool:
    """Tell whether what should differ does not: all ONUs may be enabled or of one model, but not equally bright."""
    values = [example.value for example in examples if example.value is not None]
    is_expected_to_differ = column.key in IDENTITY or (column.rule.decoder.is_numeric and not column.rule.words)
    return is_expected_to_differ and len(values) >= CONSTANT_ROWS and len(set(values)) == 1


def _how_telling(example: SentExample) -> int:
    return 2 * (example.value is not None) + (example.place is not None)
