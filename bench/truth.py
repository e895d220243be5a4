"""What is true on a simulated OLT, told by its world and not by its agent."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from types import MappingProxyType

from facho.polling.domain.onu_state import DownCause
from facho.polling.snmp.walk import Row
from facho.polling.vendors.values import Typed
from facho.simulator.onu import Onu
from facho.simulator.optics import Optics, read_optics
from facho.simulator.server import SimulatedOlt

# World time 0 of every world that is compared with its truth.
EPOCH = datetime(2030, 1, 1, tzinfo=UTC)

Told = Callable[[Onu], Typed | None]


def true_rows(olt: SimulatedOlt, key: str) -> list[Row]:
    """Encode what the world says of a column, as its definition has it on the wire."""
    column = olt.definition.column(key)
    return sorted((column.index.encode(onu.place), *column.encode(TRUTH[key](onu))) for onu in olt.world.onus)


def _light(read: Callable[[Optics], float]) -> Told:
    return lambda onu: read(read_optics(onu, at=0.0)) if onu.is_online else None


def _time(seconds: float | None) -> datetime | None:
    return None if seconds is None else (EPOCH + timedelta(seconds=seconds)).replace(microsecond=0)


TRUTH: Mapping[str, Told] = MappingProxyType(
    {
        "onu.serial": lambda onu: onu.serial,
        "onu.description": lambda onu: onu.description,
        "onu.run_state": lambda onu: onu.state,
        "onu.last_down_cause": lambda onu: onu.last_down_cause or DownCause.UNKNOWN,
        "onu.distance": lambda onu: onu.distance_m if onu.is_online else None,
        "onu.last_up": lambda onu: _time(onu.last_up_at),
        "onu.last_down": lambda onu: _time(onu.last_down_at),
        "onu.temperature": _light(lambda optics: optics.temperature_c),
        "onu.bias": _light(lambda optics: optics.bias_ma),
        "onu.tx_power": _light(lambda optics: optics.tx_dbm),
        "onu.rx_power": _light(lambda optics: optics.rx_dbm),
        "onu.voltage": _light(lambda optics: optics.voltage_v),
        "onu.olt_rx_power": _light(lambda optics: optics.olt_rx_dbm),
        # Nobody has television.
        "onu.catv_rx_power": lambda onu: None,
    }
)
