"""Which value of a definition lands in which column of an ONU, and in what whole numbers; impossible ones in none."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

from django.utils.timezone import make_aware

from facho.onus.words import AdminStates

# What the columns hold; a device may send any number.
MAX_SMALL, MAX_INTEGER = 32_767, 2_147_483_647
# A clock that was never set, or runs wild, tells no time.
_EARLIEST, _LATEST = datetime(1990, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)

RX_POWER = "onu.rx_power"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of an ONU or of its reading. A value that could not be read empties it only if it `forgets`.

    What `stays` is filled by reading and changed by an inventory alone, which sees who is where.
    """

    key: str
    name: str
    convert: Callable[[Any], Any]
    forgets: bool = False
    stays: bool = False

    def of(self, values: Mapping[str, object], stored: Any) -> Any:
        """Return what the column is to hold, given what a poll read."""
        if self.key not in values or (self.stays and stored):
            return stored
        value = self.convert(values[self.key])
        return stored if value is None and not self.forgets else value


def _steps(per_unit: int, lowest: int, highest: int, value: object) -> int | None:
    if not isinstance(value, int | float):
        return None
    steps = value * per_unit
    # Also refuses what is no number.
    return round(steps) if lowest <= steps <= highest else None


def _text(max_length: int, value: object) -> str | None:
    return value[:max_length] if isinstance(value, str) else None


def _told_text(max_length: int, value: object) -> str | None:
    """Return a text that only the ONU itself could tell: one that is away tells nothing, and stays what it was."""
    return _text(max_length, value) or None


def _admin_state(value: object) -> str | None:
    return str(value) if value in AdminStates.values else None


def _moment(value: object) -> datetime | None:
    """Return a time of the device's clock; one without a zone is taken for one of ours."""
    if not isinstance(value, datetime) or not 1990 <= value.year < 2100:
        return None
    moment = make_aware(value) if value.tzinfo is None else value
    return moment if _EARLIEST <= moment < _LATEST else None


power_steps = partial(_steps, 100, -MAX_SMALL, MAX_SMALL)

ONU_COLUMNS = (
    # Of an ONU without a serial it is its identity.
    Column("onu.mac", "mac", partial(_text, 17), stays=True),
    Column("onu.name", "name", partial(_text, 255)),
    Column("onu.model", "model", partial(_told_text, 60)),
    Column("onu.sw_version", "firmware", partial(_told_text, 60)),
    Column("onu.admin_state", "admin_state", _admin_state),
)
READING_COLUMNS = (
    Column("onu.last_up", "last_up_at", _moment),
    Column("onu.last_down", "last_down_at", _moment),
    Column("onu.distance", "distance_m", partial(_steps, 1, 0, MAX_INTEGER)),
    Column(RX_POWER, "rx_power_cdbm", power_steps, forgets=True),
    Column("onu.tx_power", "tx_power_cdbm", power_steps, forgets=True),
    Column("onu.olt_rx_power", "olt_rx_power_cdbm", power_steps, forgets=True),
    Column("onu.temperature", "temperature_tenths", partial(_steps, 10, -MAX_SMALL, MAX_SMALL), forgets=True),
    Column("onu.voltage", "voltage_mv", partial(_steps, 1000, 0, MAX_INTEGER), forgets=True),
    Column("onu.bias", "bias_ua", partial(_steps, 1000, 0, MAX_INTEGER), forgets=True),
)
