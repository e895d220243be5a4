"""What an OLT says in a notification, and which reads follow from it.

A notification is a hint: it names a place to read. The state is what the read brings.
"""

from dataclasses import dataclass
from enum import StrEnum


class Meaning(StrEnum):
    ONU_DOWN = "onu_down"
    ONU_UP = "onu_up"
    ONU_LOS = "onu_los"
    ONU_DYING_GASP = "onu_dying_gasp"
    ONU_DISCOVERED = "onu_discovered"
    PON_LOS = "pon_los"
    PON_DOWN = "pon_down"
    PON_UP = "pon_up"
    BOARD_DOWN = "board_down"
    BOARD_UP = "board_up"
    DEVICE_RESTART = "device_restart"
    OPTICAL_WARNING = "optical_warning"
    POWER = "power"
    FAN = "fan"
    TEMPERATURE = "temperature"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class HintPlace:
    """The place that a notification names; None for the parts that it leaves out."""

    frame: int | None = None
    slot: int | None = None
    port: int | None = None
    onu: int | None = None


@dataclass(frozen=True, slots=True)
class Said:
    """What a notification means in a vendor definition; `is_end` when it ends what another one began."""

    name: str
    meaning: Meaning
    place: HintPlace = HintPlace()
    serial: str = ""
    is_end: bool = False
