"""The closed vocabulary in which every brand is told: a definition may map to these words and to no others."""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

from facho.polling.domain.onu_state import DownCause, RunState


class Confidence(StrEnum):
    """How well a fact is supported: vendor MIB or capture, one working driver, or inference."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class Cost(StrEnum):
    """What a read costs the OLT. LIVE means that it has to ask the ONU: the heavy class."""

    CONFIG = "config"
    STATE = "state"
    COUNTER = "counter"
    LIVE = "live"


class Scope(StrEnum):
    """What one row of a table is about; it tells which fields of a Place carry meaning."""

    ONU = "onu"
    PON = "pon"
    BOARD = "board"
    # A fan, a power supply: by its number.
    PART = "part"
    AUTOFIND = "autofind"
    INTERFACE = "interface"
    SCALAR = "scalar"


class Unit(StrEnum):
    """Units of measured values; values arrive converted to them."""

    DBM = "dBm"
    VOLT = "V"
    MILLIAMPERE = "mA"
    CELSIUS = "degC"
    METRE = "m"
    PERCENT = "percent"
    KILOBIT_PER_SECOND = "kbit/s"
    MEGABIT_PER_SECOND = "Mbit/s"
    CENTISECOND = "cs"
    BYTE = "B"


class PhaseState(StrEnum):
    """Where an ONU stands between darkness and service, on brands that tell."""

    LOGGING = "logging"
    LOS = "los"
    SYNC_MIB = "sync_mib"
    WORKING = "working"
    DYING_GASP = "dying_gasp"
    AUTH_FAILED = "auth_failed"
    OFFLINE = "offline"
    DEACTIVATED = "deactivated"
    CONFIG_FAILED = "config_failed"


class AdminState(StrEnum):
    """What the operator wants: service or suspension."""

    ENABLED = "enabled"
    DISABLED = "disabled"


class ConfigState(StrEnum):
    """Whether the OLT got its configuration into the ONU."""

    INITIAL = "initial"
    NORMAL = "normal"
    FAILED = "failed"
    NOT_RESUMED = "not_resumed"
    CONFIGURING = "configuring"


class MatchState(StrEnum):
    """Whether the ONU has the ports that its profile expects."""

    INITIAL = "initial"
    MATCH = "match"
    MISMATCH = "mismatch"


class LinkState(StrEnum):
    """State of an interface or a PON port."""

    UP = "up"
    DOWN = "down"
    TESTING = "testing"
    UNKNOWN = "unknown"
    DORMANT = "dormant"
    NOT_PRESENT = "not_present"
    LOWER_LAYER_DOWN = "lower_layer_down"


class BoardState(StrEnum):
    """How a card of the chassis does."""

    NORMAL = "normal"
    EMPTY = "empty"
    FAULT = "fault"
    OFFLINE = "offline"
    CONFIGURING = "configuring"
    UNCONFIRMED = "unconfirmed"
    MISMATCH = "mismatch"
    DISABLED = "disabled"
    OVERHEATED = "overheated"
    NO_POWER = "no_power"
    OTHER = "other"


class PartState(StrEnum):
    """How a fan or a power supply does."""

    NORMAL = "normal"
    STOPPED = "stopped"
    LOW_VOLTAGE = "low_voltage"
    FAULT = "fault"
    UNKNOWN = "unknown"


VOCABULARIES: Mapping[str, type[StrEnum]] = MappingProxyType(
    {
        "run_state": RunState,
        "phase_state": PhaseState,
        "down_cause": DownCause,
        "admin_state": AdminState,
        "config_state": ConfigState,
        "match_state": MatchState,
        "link_state": LinkState,
        "board_state": BoardState,
        "part_state": PartState,
    }
)

# What no device can mean; a definition may narrow or widen it for a column.
PLAUSIBLE: Mapping[Unit, tuple[float, float]] = MappingProxyType(
    {
        Unit.DBM: (-50, 15),
        Unit.CELSIUS: (-100, 200),
        Unit.PERCENT: (0, 100),
        Unit.METRE: (0, 200_000),
    }
)
