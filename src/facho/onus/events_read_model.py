"""What happened to ONUs, the latest first, by the page."""

from dataclasses import dataclass

from django.db.models import QuerySet

from facho.hosts.store import OLT_SECRETS
from facho.onus.models import OnuEvent
from facho.onus.search import MANY
from facho.onus.timeline import Cursor, load_rows


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
    page = load_rows(timeline, "at", cursor, size)
    return EventPage(page.rows, page.newer, page.older)


def count_events(timeline: QuerySet[OnuEvent]) -> Count:
    """Count up to MANY, in one query."""
    number = timeline.order_by()[: MANY + 1].count()
    return Count(min(number, MANY), number <= MANY)
