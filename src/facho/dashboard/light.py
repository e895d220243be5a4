"""Judges the light that ONUs receive: one of them, or a port's together."""

from enum import StrEnum

from facho.polling.domain import light_bands

# What the optics are rated for; outside, errors begin.
WEAKEST_CDBM = light_bands.WEAKEST_CDBM
STRONGEST_CDBM = -800
# Where a port's average leaves little for ageing and bends.
FAIR_CDBM = -2300
LOW_CDBM = -2500


class Light(StrEnum):
    """Whether the receive power is within what the optics are rated for."""

    UNKNOWN = "unknown"
    GOOD = "good"
    WEAK = "weak"
    STRONG = "strong"


class Level(StrEnum):
    """How a port's average stands, for a drawing; a step is worth two dB or more."""

    UNKNOWN = "level-unknown"
    DOWN = "level-down"
    STRONG = "level-strong"
    GOOD = "level-good"
    FAIR = "level-fair"
    LOW = "level-low"
    WEAK = "level-weak"


def judge_light(power_cdbm: int | None) -> Light:
    """Judge a receive power in hundredths of a dBm."""
    if power_cdbm is None:
        return Light.UNKNOWN
    if power_cdbm < WEAKEST_CDBM:
        return Light.WEAK
    return Light.STRONG if power_cdbm > STRONGEST_CDBM else Light.GOOD


def judge_level(average_cdbm: float | None) -> Level:
    """Judge the average of a port."""
    if average_cdbm is None:
        return Level.UNKNOWN
    steps = ((STRONGEST_CDBM, Level.STRONG), (FAIR_CDBM, Level.GOOD), (LOW_CDBM, Level.FAIR), (WEAKEST_CDBM, Level.LOW))
    return next((level for above, level in steps if average_cdbm > above), Level.WEAK)
