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


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """One thing that happened; `at` is in seconds of world time. For a whole port ONU and serial are left out."""

    at: float
    kind: JournalKind
    olt: str
    place: Place
    serial: str = ""
    cause: DownCause | None = None
    moved_from: Place | None = None
