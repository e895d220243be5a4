"""How an ONU, or an event of one, is shown as one line of many."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.urls import reverse

from facho.onus.events import describe_event
from facho.onus.models import Onu, OnuEvent
from facho.onus.words import DownCauses, EventKinds, ShownState

# A clock that was never set is decades off.
OLDEST_TOLD = timedelta(days=3 * 365)


@dataclass(frozen=True, slots=True)
class Since:
    """When a state began; `is_olt_time` if only the OLT's own clock knows."""

    at: datetime | None
    is_olt_time: bool = False


def code_of(onu: Onu) -> str:
    """Return the serial, or the hardware address on EPON; empty if the OLT reports neither."""
    return onu.serial or onu.mac or f"{onu.pon_port}/{onu.onu_id}"


def name_of(onu: Onu) -> str:
    """Return the customer's name if known, else the OLT's description."""
    customer = getattr(onu, "customer", None)
    return (customer.label if customer else "") or onu.description or onu.name


def cause_of(onu: Onu) -> str:
    reading = getattr(onu, "reading", None)
    return str(DownCauses(reading.last_down_cause).label) if reading and reading.last_down_cause else ""


def since_of(onu: Onu, state: ShownState) -> Since:
    reading = getattr(onu, "reading", None)
    if state is ShownState.ABSENT:
        return Since(onu.absent_since)
    if state is ShownState.UNKNOWN:
        return Since(onu.olt.last_answer_at)
    if reading is None or reading.state_since or state is not ShownState.OFFLINE:
        return Since(reading.state_since if reading else None)
    # Accept the OLT's time for an ONU already down at first sight, unless it is implausibly old.
    down_at = reading.last_down_at
    if down_at is None or not onu.first_seen_at - OLDEST_TOLD < down_at <= onu.first_seen_at:
        return Since(None)
    return Since(down_at, is_olt_time=True)


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
    olt_id: int
    olt: str

    @property
    def url(self) -> str:
        return reverse("onu", args=[self.onu_id])


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
            olt_id=event.olt_id,
            olt=event.olt.name,
        )
        for event in events
    ]
