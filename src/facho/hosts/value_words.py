"""What the values of an OLT are called, and the words of its states, for people."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from django.utils.formats import number_format
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise

# By the keys of the vendor definitions; a value of an operator's own has the name that the operator gave it.
TITLES: Mapping[str, "_StrPromise"] = MappingProxyType(
    {
        "board.type": _("Card"),
        "board.status": _("State of the card"),
        "board.cpu": _("Processor load"),
        "board.memory": _("Memory in use"),
        "board.temperature": _("Temperature of the card"),
        "board.control_cpu": _("Processor load of the control card"),
        "board.control_memory": _("Memory in use on the control card"),
        "chassis.cpu": _("Processor load of the OLT"),
        "chassis.memory": _("Memory in use on the OLT"),
        "chassis.temperature": _("Temperature of the chassis"),
        "fan.status": _("Fan"),
        "power.status": _("Power supply"),
        "pon.status": _("State of the PON port"),
        "pon.onu_count": _("ONUs of the PON port"),
        "pon.onu_online": _("ONUs online on the PON port"),
        "pon.onu_offline": _("ONUs offline on the PON port"),
        "pon.tx_power": _("Transmit power of the PON port"),
        "pon.temperature": _("Temperature of the PON port"),
        "pon.voltage": _("Voltage of the PON port"),
        "pon.bias": _("Bias current of the PON port"),
        "pon.in_octets": _("Received by the PON port"),
        "pon.out_octets": _("Sent by the PON port"),
        "if.name": _("Interface"),
        "if.descr": _("Description of the interface"),
        "if.oper": _("State of the interface"),
        "if.speed": _("Speed of the interface"),
        "if.in_octets": _("Received by the interface"),
        "if.out_octets": _("Sent by the interface"),
        "if.tx_power": _("Transmit power of the interface"),
        "if.temperature": _("Temperature of the interface"),
        "if.voltage": _("Voltage of the interface"),
        "if.bias": _("Bias current of the interface"),
        "sys.uptime": _("Time since the start"),
        "sys.name": _("System name"),
        "sys.descr": _("System description"),
    }
)

_STATES = frozenset({"board.status", "fan.status", "power.status", "pon.status", "if.oper"})
_SYMBOLS = {"percent": "%", "degC": "°C"}
WORDS: Mapping[str, "_StrPromise"] = MappingProxyType(
    {
        "up": pgettext_lazy("state", "up"),
        "down": pgettext_lazy("state", "down"),
        "testing": pgettext_lazy("state", "testing"),
        "unknown": pgettext_lazy("state", "unknown"),
        "dormant": pgettext_lazy("state", "dormant"),
        "not_present": pgettext_lazy("state", "not there"),
        "lower_layer_down": pgettext_lazy("state", "down below"),
        "normal": pgettext_lazy("state", "normal"),
        "empty": pgettext_lazy("state", "empty"),
        "fault": pgettext_lazy("state", "faulty"),
        "offline": pgettext_lazy("state", "offline"),
        "configuring": pgettext_lazy("state", "being configured"),
        "unconfirmed": pgettext_lazy("state", "not confirmed"),
        "mismatch": pgettext_lazy("state", "not the expected type"),
        "disabled": pgettext_lazy("state", "disabled"),
        "overheated": pgettext_lazy("state", "overheated"),
        "no_power": pgettext_lazy("state", "without power"),
        "other": pgettext_lazy("state", "other"),
        "stopped": pgettext_lazy("state", "stopped"),
        "low_voltage": pgettext_lazy("state", "low voltage"),
    }
)


def title_of(name: str) -> str:
    """Name a value for people; one that no definition knows keeps its own name."""
    return str(TITLES.get(name, name))


def shown_growth(per_second: float | None, unit: str) -> str:
    """Write how fast a counter grows; of bytes people want to know the bits."""
    if per_second is None:
        return ""
    if unit == "B":
        return f"{_shown_rate(per_second * 8 / 1e6)} Mbit/s"
    return f"{_shown_rate(per_second)} /s"


def _shown_rate(rate: float) -> str:
    # Three decimals of a whole number look like thousands in half of the countries.
    return number_format(rate, 1 if rate >= 1 else 3)


def shown_value(name: str, value: str, unit: str) -> str:
    """Write a value as people read it: a state in words, a measure with its unit."""
    if name in _STATES:
        return str(WORDS.get(value, value))
    return f"{value} {_SYMBOLS.get(unit, unit)}" if unit and value else value
