"""What a simulated OLT really did, for tests that compare detected events with the truth."""

from dataclasses import dataclass
from enum import StrEnum

from facho.polling.domain.onu_state import DownCause
from facho.polling.vendors.index import Place


class JournalKind(StrEnum):
    ONU_DOWN = "onu_down"
    ONU_UP = "onu_up"
    PON_CUT = "pon_cut"
    PON_RESTORED = "pon_restored"
    ONU_MOVED = "onu_moved"
    ONU_APPEARED = "onu_appeared"
    ONU_REMOVED = "onu_removed"
    ONU_DIMMED = "onu_dimmed"
    ONU_DESCRIBED = "onu_described"
    ONU_GARBLED = "onu_garbled"
    ONU_CLEAR = "onu_clear"
    POWER_LOST = "power_lost"
    POWER_BACK = "power_back"
    CARD_FAILED = "card_failed"
    CARD_RESTORED = "card_restored"
    OLT_SILENT = "olt_silent"
    OLT_HEARD = "olt_heard"


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """One thing that happened; `at` is in seconds of world time. For a port, card or OLT the rest of the place is 0."""

    at: float
    kind: JournalKind
    olt: str
    place: Place
    serial: str = ""
    cause: DownCause | None = None
    moved_from: Place | None = None
    # Which street of the port lost its power.
    street: int | None = None
    # What the ONU's light has lost now, in all.
    loss_db: float | None = None
    description: str | None = None
