"""Judges what an ONU tells of its optics against what such optics are rated for."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from facho.dashboard.light import STRONGEST_CDBM, WEAKEST_CDBM


class Verdict(StrEnum):
    """Where a value stands; a figure without limits has none."""

    NONE = ""
    GOOD = "good"
    LOW = "low"
    HIGH = "high"


@dataclass(frozen=True, slots=True)
class Limits:
    """What is still good, in the unit that people read; None is no limit on that side."""

    lowest: float | None
    highest: float | None

    def judge(self, value: float | None) -> Verdict:
        """Judge a value; what was not read is not judged."""
        if value is None:
            return Verdict.NONE
        if self.lowest is not None and value < self.lowest:
            return Verdict.LOW
        return Verdict.HIGH if self.highest is not None and value > self.highest else Verdict.GOOD


# The receiver of class B+ optics at the OLT; the ONU's own is judged as in every list.
OLT_WEAKEST_DBM, OLT_STRONGEST_DBM = -28.0, -8.0

LIMITS: Mapping[str, Limits] = MappingProxyType(
    {
        "rx_power_dbm": Limits(WEAKEST_CDBM / 100, STRONGEST_CDBM / 100),
        "olt_rx_power_dbm": Limits(OLT_WEAKEST_DBM, OLT_STRONGEST_DBM),
        # Modules for homes are rated from 0 to 70 °C, and for 3.3 V.
        "temperature_celsius": Limits(0, 70),
        "voltage_v": Limits(3.0, 3.6),
    }
)
