"""Rows by their time, the latest first, by the page. A page costs the same however long the timeline is.

It begins after a row that was shown before, not after a number of rows that would have to be counted off.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Generic, TypeVar

from django.db.models import Model, Q, QuerySet

Row = TypeVar("Row", bound=Model)

# Microseconds of the epoch and the row's id.
_TEXT = re.compile(r"(?P<side>older|newer)-(?P<at>\d{1,18})-(?P<id>\d{1,18})", re.ASCII)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where a page begins: beside a row, on the side of those that are older or newer."""

    at: datetime
    row_id: int
    is_newer: bool = False

    def __str__(self) -> str:
        side = "newer" if self.is_newer else "older"
        return f"{side}-{(self.at - _EPOCH) // _MICROSECOND}-{self.row_id}"

    def condition(self, column: str) -> Q:
        """Match what lies beyond; the first part repeats the second where an index can use it."""
        side = "gt" if self.is_newer else "lt"
        beyond = Q(**{f"{column}__{side}": self.at}) | Q(**{column: self.at, f"id__{side}": self.row_id})
        return Q(**{f"{column}__{side}e": self.at}) & beyond


@dataclass(frozen=True, slots=True)
class Page(Generic[Row]):
    """Some rows, the latest first, and where their neighbours are; None where there are none."""

    rows: list[Row]
    newer: Cursor | None
    older: Cursor | None


def read_cursor(text: str) -> Cursor:
    """Read what a cursor was written as; ValueError for anything else."""
    parts = _TEXT.fullmatch(text)
    if parts is None:
        raise ValueError(text)
    try:
        at = _EPOCH + int(parts["at"]) * _MICROSECOND
    except OverflowError:
        raise ValueError(text) from None
    return Cursor(at, int(parts["id"]), is_newer=parts["side"] == "newer")


def load_rows(timeline: QuerySet[Row], column: str, cursor: Cursor | None, size: int) -> Page[Row]:
    """Load one page by a column of times, in one query."""
    is_newer = cursor is not None and cursor.is_newer
    order = (column, "id") if is_newer else (f"-{column}", "-id")
    beyond = cursor.condition(column) if cursor else Q()
    # Chosen among the narrow rows first: joined to what names them, SQLite would rather sort all.
    chosen = timeline.filter(beyond).order_by(*order).values("pk")[: size + 1]
    found = list(timeline.filter(pk__in=chosen).order_by(*order))
    rows = found[:size][::-1] if is_newer else found[:size]
    return _between(rows, column, cursor, has_more=len(found) > size)


def _between(rows: list[Row], column: str, cursor: Cursor | None, *, has_more: bool) -> Page[Row]:
    """Name the neighbours: where a page came from there are some, and where it went to if more were found."""
    has_newer = has_more if cursor and cursor.is_newer else cursor is not None
    has_older = has_more if not cursor or not cursor.is_newer else True
    if not rows:
        return Page(rows, None, None)
    newer = Cursor(_time(rows[0], column), rows[0].pk, is_newer=True) if has_newer else None
    return Page(rows, newer, Cursor(_time(rows[-1], column), rows[-1].pk) if has_older else None)


def _time(row: Any, column: str) -> datetime:
    at: datetime = getattr(row, column)
    return at
