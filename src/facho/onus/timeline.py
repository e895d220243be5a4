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
class TimelineCursor:
    """A position in the timeline, next to a row, towards older or newer ones."""

    at: datetime
    row_id: int
    is_newer: bool = False

    def __str__(self) -> str:
        side = "newer" if self.is_newer else "older"
        return f"{side}-{(self.at - _EPOCH) // _MICROSECOND}-{self.row_id}"

    def condition(self, column: str) -> Q:
        """Match the rows beyond it; the redundant first part lets an index be used."""
        side = "gt" if self.is_newer else "lt"
        beyond = Q(**{f"{column}__{side}": self.at}) | Q(**{column: self.at, f"id__{side}": self.row_id})
        return Q(**{f"{column}__{side}e": self.at}) & beyond


@dataclass(frozen=True, slots=True)
class RowPage(Generic[Row]):
    """Rows, latest first, with cursors to the neighbouring pages; None at either end."""

    rows: list[Row]
    newer: TimelineCursor | None
    older: TimelineCursor | None


def read_cursor(text: str) -> TimelineCursor:
    """Parse a cursor; ValueError if invalid."""
    parts = _TEXT.fullmatch(text)
    if parts is None:
        raise ValueError(text)
    try:
        at = _EPOCH + int(parts["at"]) * _MICROSECOND
    except OverflowError:
        raise ValueError(text) from None
    return TimelineCursor(at, int(parts["id"]), is_newer=parts["side"] == "newer")


def load_rows(timeline: QuerySet[Row], column: str, cursor: TimelineCursor | None, size: int) -> RowPage[Row]:
    """Load one page ordered by a time column; one query."""
    is_newer = cursor is not None and cursor.is_newer
    order = (column, "id") if is_newer else (f"-{column}", "-id")
    beyond = cursor.condition(column) if cursor else Q()
    # Chosen among the narrow rows first: joined to what names them, SQLite would rather sort all.
    chosen = timeline.filter(beyond).order_by(*order).values("pk")[: size + 1]
    found = list(timeline.filter(pk__in=chosen).order_by(*order))
    rows = found[:size][::-1] if is_newer else found[:size]
    # Return the cursors: there is a page where we came from, and another one if more rows were found.
    has_more = len(found) > size
    has_newer = has_more if cursor and cursor.is_newer else cursor is not None
    has_older = has_more if not cursor or not cursor.is_newer else True
    if not rows:
        return RowPage(rows, None, None)
    newer = TimelineCursor(_time(rows[0], column), rows[0].pk, is_newer=True) if has_newer else None
    return RowPage(rows, newer, TimelineCursor(_time(rows[-1], column), rows[-1].pk) if has_older else None)


def _time(row: Any, column: str) -> datetime:
    at: datetime = getattr(row, column)
    return at
