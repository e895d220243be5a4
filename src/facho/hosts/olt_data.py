"""The values of an OLT: how they are shown, and storing them. Only what changed is written."""

import logging
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from django.utils.formats import number_format
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from facho.hosts.models import OltData
from facho.polling.domain.collection import OltValue, per_second

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise


# By the keys of the vendor definitions; a value of an operator's own has the name that the operator gave it.
TITLES: Mapping[str, "_StrPromise"] = {
    "board.type": _("Card"),
    "board.status": _("State of the card"),
    "board.cpu": _("Processor load"),
    "board.memory": _("Memory in use"),
    "board.temperature": _("Temperature of the card"),
    "board.sw_version": _("Software of the card"),
    "board.control_cpu": _("Processor load of the control card"),
    "board.control_memory": _("Memory in use on the control card"),
    "chassis.cpu": _("Processor load of the OLT"),
    "chassis.memory": _("Memory in use on the OLT"),
    "chassis.temperature": _("Temperature of the chassis"),
    "chassis.model": _("Model of the OLT"),
    "chassis.onu_count": _("ONUs of the OLT"),
    "chassis.version": _("Software of the OLT"),
    "fan.status": _("Fan"),
    "fan.speed": _("Fan speed"),
    "module.rx_power": _("Receive power of the optical module"),
    "module.tx_power": _("Transmit power of the optical module"),
    "module.temperature": _("Temperature of the optical module"),
    "module.voltage": _("Voltage of the optical module"),
    "module.bias": _("Bias current of the optical module"),
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

_STATES = frozenset({"board.status", "fan.status", "power.status", "pon.status", "if.oper"})
_SYMBOLS = {"percent": "%", "degC": "°C"}
WORDS: Mapping[str, "_StrPromise"] = {
    "up": pgettext_lazy("state", "up"),
    "down": pgettext_lazy("state", "down"),
    "testing": pgettext_lazy("state", "testing"),
    "unknown": pgettext_lazy("state", "unknown"),
    "dormant": pgettext_lazy("state", "dormant"),
    "not_present": pgettext_lazy("state", "not there"),
    "lower_layer_down": pgettext_lazy("state", "lower layer down"),
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
logger = logging.getLogger(__name__)
BATCH = 500
# Values that are compared at a time.
PART = 4_000
# Of one OLT: some hundred thousand are a chassis whose every service port is an interface with ten values.
MAX_VALUES = 200_000
MAX_INDEX_LENGTH = 128
MAX_VALUE_LENGTH = 255
MAX_NAME_LENGTH = 60
_SHOWN = ["name", "place", "value", "unit", "raw", "per_second"]


def title_of(name: str) -> str:
    """Return the title of a value; its own name if no definition has it."""
    return str(TITLES.get(name, name))


def shown_growth(per_second: float | None, unit: str) -> str:
    """Format the rate of a counter; bytes are shown as bits."""
    if per_second is None:
        return ""
    if unit == "B":
        return f"{_shown_rate(per_second * 8 / 1e6)} Mbit/s"
    return f"{_shown_rate(per_second)} /s"


def _shown_rate(rate: float) -> str:
    # Three decimals of a whole number look like thousands in half of the countries.
    return number_format(rate, 1 if rate >= 1 else 3)


def shown_value(name: str, value: str, unit: str) -> str:
    """Format a value: a state in words, a measurement with its unit."""
    if name in _STATES:
        return str(WORDS.get(value, value))
    return f"{value} {_SYMBOLS.get(unit, unit)}" if unit and value else value


def save_olt_values(olt_id: int, values: Sequence[OltValue], *, whole_oids: Collection[str], now: datetime) -> int:
    """Store the latest values of an OLT, and delete rows missing from `whole_oids`; returns how many rows changed."""
    room: int | None = None
    written = 0
    # Part by part: a row of the database takes more memory than the value that it is compared with.
    for start in range(0, len(values), PART):
        new, changed = _compare(olt_id, values[start : start + PART], now)
        if new and room is None:
            room = max(0, MAX_VALUES - OltData.objects.filter(olt_id=olt_id).count())
        if room is not None:
            if len(new) > room:
                logger.warning("olt_values.too_many olt=%s left_out=%s", olt_id, len(new) - room)
            new = new[:room]
            room -= len(new)
        written += len(new) + len(changed)
        OltData.objects.bulk_create(
            new + changed,
            batch_size=BATCH,
            update_conflicts=True,
            unique_fields=["olt", "oid", "index"],
            update_fields=[*_SHOWN, "updated_at"],
        )
    read = {(value.oid, value.index) for value in values}
    stored = OltData.objects.filter(olt_id=olt_id, oid__in=whole_oids).order_by().values_list("pk", "oid", "index")
    gone = [pk for pk, oid, index in stored.iterator() if (oid, index) not in read]
    OltData.objects.filter(pk__in=gone).delete()
    return written + len(gone)


def _compare(olt_id: int, values: Sequence[OltValue], now: datetime) -> tuple[list[OltData], list[OltData]]:
    """Return new and changed rows; touch the read time of the others."""
    of_oids = OltData.objects.filter(olt_id=olt_id, oid__in={value.oid for value in values})
    stored = {(row.oid, row.index): row for row in of_oids.filter(index__in={value.index for value in values})}
    wanted = {(value.oid, value.index): _row(olt_id, value, stored, now) for value in values}
    new = [row for key, row in wanted.items() if key not in stored]
    changed = [row for key, row in wanted.items() if key in stored and not _is_same(row, stored[key])]
    same = [stored[key].pk for key, row in wanted.items() if key in stored and _is_same(row, stored[key])]
    OltData.objects.filter(pk__in=same).update(updated_at=now)
    return new, changed


def _row(olt_id: int, value: OltValue, stored: Mapping[tuple[str, str], OltData], now: datetime) -> OltData:
    before = stored.get((value.oid, value.index)) if value.is_counter else None
    growth = None
    if before and before.value.isdecimal() and value.value.isdecimal():
        growth = per_second(int(before.value), int(value.value), read_before=before.updated_at, now=now)
    return OltData(
        olt_id=olt_id,
        oid=value.oid,
        index=value.index,
        name=value.name[:MAX_NAME_LENGTH],
        place=value.place[:MAX_NAME_LENGTH],
        value=value.value[:MAX_VALUE_LENGTH],
        unit=value.unit,
        raw=value.raw[:MAX_VALUE_LENGTH],
        per_second=growth,
        updated_at=now,
    )


def _is_same(row: OltData, stored: OltData) -> bool:
    return all(getattr(row, name) == getattr(stored, name) for name in _SHOWN)
