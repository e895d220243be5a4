"""The closed vocabulary of all brands: definitions map to these words only."""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from facho.polling.domain.onu_state import DownCause, RunState


class Reject(StrEnum):
    SENTINEL = "sentinel"
    OUT_OF_RANGE = "out_of_range"
    WRONG_TYPE = "wrong_type"
    UNKNOWN_ENUM = "unknown_enum"
    MALFORMED = "malformed"
    MISSING = "missing"


# A device without a value is not a device that lies.
HONEST = frozenset({Reject.SENTINEL, Reject.MISSING})
Typed = int | float | str | datetime


class Decoded(NamedTuple):
    """A typed value, or None and why; exactly one of the two is None. A tuple, because a walk makes millions."""

    value: Typed | None
    reason: Reject | None = None


SENTINEL = Decoded(None, Reject.SENTINEL)
OUT_OF_RANGE = Decoded(None, Reject.OUT_OF_RANGE)
WRONG_TYPE = Decoded(None, Reject.WRONG_TYPE)
UNKNOWN_ENUM = Decoded(None, Reject.UNKNOWN_ENUM)
MALFORMED = Decoded(None, Reject.MALFORMED)
MISSING = Decoded(None, Reject.MISSING)


class Confidence(StrEnum):
    """How well a fact is supported: vendor MIB or capture, one working driver, or inference."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class Cost(StrEnum):
    """What a read costs the OLT. LIVE means that it asks the ONU: the expensive class."""

    CONFIG = "config"
    STATE = "state"
    COUNTER = "counter"
    LIVE = "live"


class Scope(StrEnum):
    """What a table row is about, which decides the fields of its Place."""

    ONU = "onu"
    PON = "pon"
    BOARD = "board"
    # A fan, a power supply: by its number.
    PART = "part"
    AUTOFIND = "autofind"
    INTERFACE = "interface"
    SCALAR = "scalar"


class Unit(StrEnum):
    """Units of measured values; values are converted to them."""

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
    """Activation phase of an ONU, on brands that report it."""

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
    ENABLED = "enabled"
    DISABLED = "disabled"


class ConfigState(StrEnum):
    INITIAL = "initial"
    NORMAL = "normal"
    FAILED = "failed"
    NOT_RESUMED = "not_resumed"
    CONFIGURING = "configuring"


class MatchState(StrEnum):
    """Whether the ONU has the ports its profile expects."""

    INITIAL = "initial"
    MATCH = "match"
    MISMATCH = "mismatch"


class LinkState(StrEnum):
    UP = "up"
    DOWN = "down"
    TESTING = "testing"
    UNKNOWN = "unknown"
    DORMANT = "dormant"
    NOT_PRESENT = "not_present"
    LOWER_LAYER_DOWN = "lower_layer_down"


class BoardState(StrEnum):
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
    NORMAL = "normal"
    STOPPED = "stopped"
    LOW_VOLTAGE = "low_voltage"
    FAULT = "fault"
    UNKNOWN = "unknown"


VOCABULARIES: Mapping[str, type[StrEnum]] = {
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

# What no device can mean; a definition may narrow or widen it for a column.
PLAUSIBLE: Mapping[Unit, tuple[float, float]] = {
    Unit.DBM: (-50, 15),
    Unit.CELSIUS: (-100, 200),
    Unit.PERCENT: (0, 100),
    Unit.METRE: (0, 200_000),
}
