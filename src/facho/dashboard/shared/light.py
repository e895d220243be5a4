"""Judges the light that ONUs receive; names why a due node waits."""

from enum import StrEnum

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from facho.polling.domain import onu_state
from facho.polling.domain.planning import WaitReason

# What the optics are rated for; outside, errors begin.
WEAKEST_CDBM = onu_state.WEAKEST_CDBM
STRONGEST_CDBM = -800
# Where a port's average leaves little for ageing and bends.
FAIR_CDBM = -2300
LOW_CDBM = -2500
WAITS: dict[str, Promise] = {
    WaitReason.OLT_BUSY: _("its OLT is busy"),
    WaitReason.NO_POLLER: _("no poller is free"),
    WaitReason.OLT_UNREACHABLE: _("its OLT does not answer"),
    WaitReason.FIRST_DISCOVERY: _("its OLT is not discovered yet"),
}


class Light(StrEnum):
    """Whether the receive power is within the optics' rated range."""

    UNKNOWN = "unknown"
    GOOD = "good"
    WEAK = "weak"
    STRONG = "strong"


class LightLevel(StrEnum):
    """Colour step for a port's average; each spans at least 2 dB."""

    UNKNOWN = "level-unknown"
    DOWN = "level-down"
    STRONG = "level-strong"
    GOOD = "level-good"
    FAIR = "level-fair"
    LOW = "level-low"
    WEAK = "level-weak"


def judge_light(power_cdbm: int | None) -> Light:
    """Judge a receive power in 0.01 dBm."""
    if power_cdbm is None:
        return Light.UNKNOWN
    if power_cdbm < WEAKEST_CDBM:
        return Light.WEAK
    return Light.STRONG if power_cdbm > STRONGEST_CDBM else Light.GOOD


def judge_level(average_cdbm: float | None) -> LightLevel:
    if average_cdbm is None:
        return LightLevel.UNKNOWN
    steps = (
        (STRONGEST_CDBM, LightLevel.STRONG),
        (FAIR_CDBM, LightLevel.GOOD),
        (LOW_CDBM, LightLevel.FAIR),
        (WEAKEST_CDBM, LightLevel.LOW),
    )
    return next((level for above, level in steps if average_cdbm > above), LightLevel.WEAK)


LIGHTS: dict[str, Promise] = {
    Light.WEAK: _("weak"),
    Light.STRONG: _("too strong"),
}
