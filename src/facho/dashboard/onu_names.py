"""How an ONU is called where it is one line of many, and since when it is as it is."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from facho.onus.models import Onu
from facho.onus.words import DownCauses, ShownState

# A clock that was never set tells of decades ago.
OLDEST_TOLD = timedelta(days=3 * 365)


@dataclass(frozen=True, slots=True)
class Since:
    """When a state began; `is_told` when nobody saw it and the OLT says so, by its own clock."""

    at: datetime | None
    is_told: bool = False


def code_of(onu: Onu) -> str:
    """Return what identifies it on its label: EPON has no serials, and an OLT may tell neither."""
    return onu.serial or onu.mac or f"{onu.pon_port}/{onu.onu_id}"


def name_of(onu: Onu) -> str:
    """Return whose it is: as people wrote it, else as the OLT has it."""
    customer = getattr(onu, "customer", None)
    return (customer.label if customer else "") or onu.description or onu.name


def cause_of(onu: Onu) -> str:
    """Say why it went when it last did, as far as its OLT told."""
    reading = getattr(onu, "reading", None)
    return str(DownCauses(reading.last_down_cause).label) if reading and reading.last_down_cause else ""


def since_of(onu: Onu, state: ShownState) -> Since:
    """Tell since when a loaded ONU is in the state that is shown of it."""
    reading = getattr(onu, "reading", None)
    if state is ShownState.ABSENT:
        return Since(onu.absent_since)
    if state is ShownState.UNKNOWN:
        return Since(onu.olt.last_answer_at)
    if reading is None or reading.state_since or state is not ShownState.OFFLINE:
        return Since(reading.state_since if reading else None)
    return _told(onu.first_seen_at, reading.last_down_at)


def _told(first_seen_at: datetime, down_at: datetime | None) -> Since:
    """Believe an OLT that an ONU went before anybody looked, but not that this was in another age."""
    if down_at is None or not first_seen_at - OLDEST_TOLD < down_at <= first_seen_at:
        return Since(None)
    return Since(down_at, is_told=True)
