"""What was last read of an ONU's optics, each figure judged in words."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from django.utils.formats import number_format
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy

from facho.dashboard.onu_limits import LIMITS, Limits, Verdict
from facho.onus.models import OnuReading

# Name of the value, what it is called, its unit and its decimals; the first two tell a fault of the fibre.
_FIGURES = (
    ("rx_power_dbm", gettext_lazy("The ONU receives"), "dBm", 2),
    ("olt_rx_power_dbm", gettext_lazy("The OLT receives"), "dBm", 2),
    ("tx_power_dbm", gettext_lazy("The ONU sends"), "dBm", 2),
    ("distance_m", gettext_lazy("Distance"), "m", 0),
    ("temperature_celsius", gettext_lazy("Temperature"), "°C", 1),
    ("voltage_v", gettext_lazy("Voltage"), "V", 2),
    ("bias_ma", gettext_lazy("Laser bias"), "mA", 1),
)
_LIGHT_WORDS: Mapping[Verdict, Promise] = MappingProxyType(
    {
        Verdict.GOOD: pgettext_lazy("light", "good"),
        Verdict.LOW: gettext_lazy("weak"),
        Verdict.HIGH: gettext_lazy("too strong"),
    }
)
_VALUE_WORDS: Mapping[Verdict, Promise] = MappingProxyType(
    {
        Verdict.GOOD: pgettext_lazy("value", "normal"),
        Verdict.LOW: pgettext_lazy("value", "too low"),
        Verdict.HIGH: pgettext_lazy("value", "too high"),
    }
)


@dataclass(frozen=True, slots=True)
class Figure:
    """A value as it is shown, with its verdict and the limits behind that."""

    key: str
    name: str
    value: str
    unit: str
    verdict: Verdict
    verdict_words: str
    limits: str


def figures_of(reading: OnuReading | None, *, are_old: bool) -> list[Figure]:
    """Judge every value that was ever read, unless they are old; those that this OLT never tells are left out."""
    if reading is None:
        return []
    values = ((row, getattr(reading, row[0])) for row in _FIGURES)
    limits = {} if are_old else LIMITS
    return [_figure(*row, value, limits.get(row[0])) for row, value in values if value is not None]


def _figure(key: str, name: Promise, unit: str, decimals: int, value: float, limits: Limits | None) -> Figure:
    verdict = limits.judge(value) if limits else Verdict.NONE
    words = _LIGHT_WORDS if unit == "dBm" else _VALUE_WORDS
    shown = number_format(value, decimal_pos=decimals, force_grouping=True)
    said = str(words[verdict]) if verdict else ""
    return Figure(key, str(name), shown, unit, verdict, said, _between(limits, unit) if limits else "")


def _between(limits: Limits, unit: str) -> str:
    if limits.lowest is None or limits.highest is None:
        return ""
    numbers = {"lowest": _short(limits.lowest), "highest": _short(limits.highest), "unit": unit}
    return _("good from %(lowest)s to %(highest)s %(unit)s") % numbers


def _short(value: float) -> str:
    return number_format(value, decimal_pos=0 if value == int(value) else 1)
