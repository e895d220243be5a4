"""The timeline of ONUs, the latest first, by the page. A page costs the same however long the timeline is.

It begins after an event that was shown before, not after a number of events that would have to be counted off.
"""

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q, QuerySet

from facho.hosts.store import OLT_SECRETS
from facho.onus.models import OnuEvent
from facho.onus.search import MANY


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where a page begins: beside an event, on the side of those that are older or newer."""

    at: datetime
    event_id: int
    is_newer: bool = False

    @property
    def condition(self) -> Q:
        """Match what lies beyond; the first part repeats the second where an index can use it."""
        if self.is_newer:
            return Q(at__gte=self.at) & (Q(at__gt=self.at) | Q(at=self.at, id__gt=self.event_id))
        return Q(at__lte=self.at) & (Q(at__lt=self.at) | Q(at=self.at, id__lt=self.event_id))


@dataclass(frozen=True, slots=True)
class EventPage:
    """Some events, the latest first, and where their neighbours are; None where there are none."""

    events: list[OnuEvent]
    newer: Cursor | None
    older: Cursor | None


@dataclass(frozen=True, slots=True)
class Count:
    """How many there are, or how many there are at least."""

    number: int
    is_exact: bool


def all_events() -> QuerySet[OnuEvent]:
    """Return all events with what names them, and no secret of an OLT."""
    return OnuEvent.objects.select_related("olt", "pon_port", "onu__pon_port", "other_port").defer(*OLT_SECRETS)


def load_page(timeline: QuerySet[OnuEvent], cursor: Cursor | None, size: int) -> EventPage:
    """Load one page, in one query."""
    is_newer = cursor is not None and cursor.is_newer
    order = ("at", "id") if is_newer else ("-at", "-id")
    beyond = cursor.condition if cursor else Q()
    found = list(timeline.filter(beyond).order_by(*order)[: size + 1])
    events = found[:size][::-1] if is_newer else found[:size]
    return _between(events, cursor, has_more=len(found) > size)


def count_events(timeline: QuerySet[OnuEvent]) -> Count:
    """Count up to MANY, in one query."""
    number = timeline.order_by()[: MANY + 1].count()
    return Count(min(number, MANY), number <= MANY)


def _between(events: list[OnuEvent], cursor: Cursor | None, *, has_more: bool) -> EventPage:
    """Name the neighbours: where a page came from there are some, and where it went to if more were found."""
    has_newer = has_more if cursor and cursor.is_newer else cursor is not None
    has_older = has_more if not cursor or not cursor.is_newer else True
    if not events:
        return EventPage(events, None, None)
    first, last = events[0], events[-1]
    newer = Cursor(first.at, first.id, is_newer=True) if has_newer else None
    return EventPage(events, newer, Cursor(last.at, last.id) if has_older else None)
