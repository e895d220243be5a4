"""Judges the light that an ONU receives."""

from enum import StrEnum

# What class B+ and C+ optics of customers' devices are rated for; outside, errors begin.
WEAKEST_CDBM = -2700
STRONGEST_CDBM = -800


class Light(StrEnum):
    """Whether the receive power is within what the optics are rated for."""

    UNKNOWN = "unknown"
    GOOD = "good"
    WEAK = "weak"
    STRONG = "strong"


def judge_light(power_cdbm: int | None) -> Light:
    """Judge a receive power in hundredths of a dBm."""
    if power_cdbm is None:
        return Light.UNKNOWN
    if power_cdbm < WEAKEST_CDBM:
        return Light.WEAK
    return Light.STRONG if power_cdbm > STRONGEST_CDBM else Light.GOOD
