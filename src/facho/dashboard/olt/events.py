"""What happened to the ONUs of an OLT lately."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from facho.dashboard.onu.names import code_of
from facho.onus.events import all_events, describe_event, load_page
from facho.onus.models import OnuEvent
from facho.onus.words import EventKinds

_LOOKS = {
    EventKinds.DOWN: "down",
    EventKinds.GONE: "down",
    EventKinds.FLAPPING: "late",
    EventKinds.POWER_DROP: "late",
    EventKinds.DUPLICATE_SERIAL: "late",
    EventKinds.DUPLICATE_MAC: "late",
    EventKinds.UP: "up",
    EventKinds.RETURNED: "up",
}


@dataclass(frozen=True, slots=True)
class EventLine:
    """One line of the table; any text in it may come from the device."""

    id: int
    onu_id: int
    at: datetime
    look: str
    what: str
    place: str
    code: str
    description: str


def load_events(olt_id: int, count: int) -> list[EventLine]:
    """Load the latest events of an OLT; one query."""
    return event_rows(load_page(all_events().filter(olt_id=olt_id), None, count).events)


def event_rows(events: Iterable[OnuEvent]) -> list[EventLine]:
    return [
        EventLine(
            id=event.id,
            onu_id=event.onu_id,
            at=event.at,
            look=_LOOKS.get(EventKinds(event.kind), "unknown"),
            what=describe_event(event),
            place=f"{event.pon_port}/{event.onu_number}",
            code=code_of(event.onu),
            description=event.onu.description,
        )
        for event in events
    ]
