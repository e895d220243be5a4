"""Whether an ONU carries service, why it went away and where it hangs: the words that brands and rules share."""

from enum import StrEnum

# frame, slot, port and ONU id; the first three are the PON port, the first two its card.
OnuPlace = tuple[int, int, int, int]
PortPlace = tuple[int, int, int]
CardPlace = tuple[int, int]


class RunState(StrEnum):
    """Whether an ONU carries service."""

    ONLINE = "online"
    OFFLINE = "offline"
    UNKNOWN = "unknown"


class DownCause(StrEnum):
    """Why an ONU went away. OTHER is a cause the brand names and we do not tell apart."""

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
    """Return what may be said of an ONU now; behind an OLT that is silent nothing is known, least of all down."""
    return state if can_be_asked else RunState.UNKNOWN
