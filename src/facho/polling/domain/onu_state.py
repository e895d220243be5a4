"""States and down causes of an ONU, shared by vendor definitions and rules."""

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
