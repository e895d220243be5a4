"""What happened to the ONUs of an OLT lately."""

from dataclasses import dataclass
from datetime import datetime

from facho.onus.event_words import describe_event
from facho.onus.events_read_model import all_events, load_page
from facho.onus.words import EventKinds

_LOOKS = {
    EventKinds.DOWN: "down",
    EventKinds.GONE: "down",
    EventKinds.FLAPPING: "late",
    EventKinds.POWER_DROP: "late",
    EventKinds.DUPLICATE_SERIAL: "late",
    EventKinds.UP: "up",
    EventKinds.RETURNED: "up",
}


@dataclass(frozen=True, slots=True)
class EventRow:
    """One line; everything in it may be text that a device chose."""

    id: int
    at: datetime
    look: str
    what: str
    place: str
    serial: str
    description: str


def load_events(olt_id: int, count: int) -> list[EventRow]:
    """Load the latest events of an OLT; one query."""
    page = load_page(all_events().filter(olt_id=olt_id), None, count)
    return [
        EventRow(
            id=event.id,
            at=event.at,
            look=_LOOKS.get(EventKinds(event.kind), "unknown"),
            what=describe_event(event),
            place=f"{event.pon_port}/{event.onu_number}",
            serial=event.onu.serial,
            description=event.onu.description,
        )
        for event in page.events
    ]
