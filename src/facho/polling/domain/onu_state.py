"""States and down causes of an ONU, shared by vendor definitions and rules; received light in bands of one dB."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

# frame, slot, port and ONU id; the first three are the PON port, the first two its card.
OnuPlace = tuple[int, int, int, int]
PortPlace = tuple[int, int, int]
CardPlace = tuple[int, int]


class RunState(StrEnum):
    ONLINE = "online"
    OFFLINE = "offline"
    UNKNOWN = "unknown"


class DownCause(StrEnum):
    """Why an ONU went down. OTHER is a vendor's cause that we do not distinguish."""

    LOS = "los"
    LOF = "lof"
    SIGNAL_FAIL = "signal_fail"
    LOSS_OF_ACK = "loss_of_ack"
    LOSS_OF_PLOAM = "loss_of_ploam"
    LOSS_OF_KEY = "loss_of_key"
    DYING_GASP = "dying_gasp"
    POWER_OFF = "power_off"
    DEACTIVATED = "deactivated"
    RESET = "reset"
    AUTH_FAILED = "auth_failed"
    ROGUE = "rogue"
    OTHER = "other"
    UNKNOWN = "unknown"


def shown_state(state: RunState, *, can_be_asked: bool) -> RunState:
    """Return the state to show; unknown, not down, behind an OLT that does not answer."""
    return state if can_be_asked else RunState.UNKNOWN


BAND_CDBM = 100
# What class B+ and C+ optics of customers' devices are rated for; below, errors begin.
WEAKEST_CDBM = -2700


@dataclass(frozen=True, slots=True)
class LightBand:
    """ONUs that receive at least `from_dbm` and less than `to_dbm`."""

    from_dbm: int
    to_dbm: int
    onus: int


def count_bands(powers_cdbm: Iterable[int]) -> tuple[LightBand, ...]:
    """Count powers in 0.01 dBm, from the weakest band to the strongest; bands in between may be empty."""
    counts = Counter(power // BAND_CDBM for power in powers_cdbm)
    if not counts:
        return ()
    return tuple(LightBand(dbm, dbm + 1, counts[dbm]) for dbm in range(min(counts), max(counts) + 1))
