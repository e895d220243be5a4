"""What one column means for another in the same rows: which value stands for a key, and when it counts.

Devices of one family differ: a column is missing, or means something else under another setting. A definition says what
follows from that; it is applied once all columns of a read are decoded.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from facho.polling.domain.onu_table import NO_VALUE, NO_VALUE_TAGS, OnuColumn, OnuTable
from facho.polling.vendors.schema import Section


@dataclass(frozen=True, slots=True)
class RowRule:
    """`fills` is the key that this column stands for in rows without a value of it.

    `when` has the values of other keys under which the column counts. `shown_with` are values of the column itself: a
    device that shows none of them in any row does not tell them apart, and the column says nothing there. `lists` are
    those of rows that are ONUs, in tables with rows for free places. `guard` is a key whose value, where it cannot be
    true, shows that the row has other columns than the definition says.
    """

    fills: str = ""
    when: Mapping[str, tuple[object, ...]] | None = None
    shown_with: tuple[str, ...] = ()
    lists: tuple[object, ...] = ()
    guard: str = ""

    @property
    def is_empty(self) -> bool:
        return not (self.fills or self.when or self.shown_with or self.lists or self.guard)

    @property
    def needed(self) -> tuple[str, ...]:
        """The keys without which it cannot be told whether the column counts."""
        return (*(self.when or ()), *filter(None, [self.guard]))


NO_RULE = RowRule()


def read_row_rule(section: Section) -> RowRule:
    when = section.optional_section("when")
    conditions = {key: when.items(key, object) for key in list(when.data)}
    return RowRule(
        fills=section.text("fills", ""),
        when=conditions or None,
        shown_with=section.items("shown_with", str, required=False),
        lists=section.items("lists", object, required=False),
    )


def settle(rules: Mapping[str, RowRule], table: OnuTable) -> OnuTable:
    """Return what was read as the rules say."""
    columns = {column.key: column for column in table.columns if column.key}
    for key, rule in rules.items():
        if key in columns and rule.shown_with and not _has(columns[key], rule.shown_with).any():
            columns[key] = _limit(columns[key], np.zeros(len(table), np.bool_), rule)
        if key in columns and rule.when is not None:
            columns[key] = _limit(columns[key], _holds(rule.when, columns, len(table)), rule)
        if key in columns and rule.guard in columns and not (is_true := _is_true(columns[rule.guard])).all():
            columns[key] = _limit(columns[key], is_true, rule)
    for key, rule in rules.items():
        if rule.fills and key in columns:
            columns[rule.fills] = _fill(rule.fills, columns.get(rule.fills), columns[key])
    return replace(table, columns=(*columns.values(), *(column for column in table.columns if not column.key)))


def _holds(when: Mapping[str, tuple[object, ...]], columns: Mapping[str, OnuColumn], rows: int) -> NDArray[np.bool_]:
    holds = np.ones(rows, np.bool_)
    for key, values in when.items():
        holds &= _has(columns[key], values) if key in columns else False
    return holds


def _is_true(column: OnuColumn) -> NDArray[np.bool_]:
    """Tell the rows in which a column has a value, or came without any: a closed view shows nothing."""
    is_absent = np.isin(column.raw.tags, [NO_VALUE, *NO_VALUE_TAGS])
    return is_absent | [value is not None for value in column.values_of(np.arange(len(column.raw)))]


def _has(column: OnuColumn, values: Sequence[object]) -> NDArray[np.bool_]:
    """Tell the rows in which a column has one of these values."""
    if column.codes is not None:
        return np.isin(column.codes, [code for code, word in enumerate(column.words) if word in values])
    return np.array([value in values for value in column.values_of(np.arange(len(column.raw)))], np.bool_)


def _limit(column: OnuColumn, counts: NDArray[np.bool_], rule: RowRule) -> OnuColumn:
    return replace(
        column,
        rule=_joined(column.rule, repr(rule)),
        numbers=None if column.numbers is None else np.where(counts, column.numbers, np.nan),
        codes=None if column.codes is None else np.where(counts, column.codes, np.int16(-1)),
        counts=counts if column.counts is None else counts & column.counts,
    )


def _fill(key: str, column: OnuColumn | None, other: OnuColumn) -> OnuColumn:
    """Return a column whose missing values are another's."""
    if column is None:
        return replace(other, key=key)
    numbers, codes, words = column.numbers, column.codes, tuple(column.words)
    if numbers is not None and other.numbers is not None:
        numbers = np.where(np.isnan(numbers), other.numbers, numbers)
    if codes is not None and other.codes is not None:
        words = tuple(dict.fromkeys((*words, *other.words)))
        # The last entry is for code -1.
        renamed = np.array([*(words.index(word) for word in other.words), -1], np.int16)
        codes = np.where(codes < 0, renamed[other.codes], codes)
    return replace(
        column,
        rule=_joined(column.rule, other.rule),
        numbers=numbers,
        codes=codes,
        words=words,
        stand_ins=(*column.stand_ins, other),
    )


def _joined(*rules: str) -> str:
    return blake2b(" ".join(rules).encode(), digest_size=8).hexdigest()
