"""What is true on a simulated OLT, told by its world and not by its agent."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from types import MappingProxyType

from facho.polling.domain.onu_state import DownCause
from facho.polling.snmp.walk import Row
from facho.polling.vendors.vocabulary import Typed
from facho.simulator.readings import Optics, read_optics
from facho.simulator.server import SimulatedOlt
from facho.simulator.world import SimulatedOnu

# World time 0 of every world that is compared with its truth.
EPOCH = datetime(2030, 1, 1, tzinfo=UTC)

# What is true of an ONU at a second of world time.
Told = Callable[[SimulatedOnu, float], Typed | None]


def true_rows(olt: SimulatedOlt, key: str) -> list[Row]:
    """Encode what the world says of a column, as its definition has it on the wire."""
    column = olt.definition.column(key)
    return sorted((column.index.encode(onu.place), *column.encode(TRUTH[key](onu, 0.0))) for onu in olt.world.onus)


def true_values(olt: SimulatedOlt, keys: Sequence[str], *, at: float) -> dict[str, list[Typed | None]]:
    """Return what the world says now, by the place of the ONU, in the order of the keys."""
    olt.refresh()
    told = [TRUTH[key] for key in keys]
    return {"/".join(map(str, onu.place)): [tell(onu, at) for tell in told] for onu in olt.world.onus}


def _light(read: Callable[[Optics], float]) -> Told:
    return lambda onu, at: read(read_optics(onu, at=at)) if onu.is_online else None


def _time(seconds: float | None) -> datetime | None:
    return None if seconds is None else (EPOCH + timedelta(seconds=seconds)).replace(microsecond=0)


TRUTH: Mapping[str, Told] = MappingProxyType(
    {
        "onu.serial": lambda onu, _: onu.serial,
        "onu.description": lambda onu, _: onu.description,
        "onu.run_state": lambda onu, _: onu.state,
        "onu.last_down_cause": lambda onu, _: onu.last_down_cause or DownCause.UNKNOWN,
        "onu.distance": lambda onu, _: onu.distance_m if onu.is_online else None,
        "onu.last_up": lambda onu, _: _time(onu.last_up_at),
        "onu.last_down": lambda onu, _: _time(onu.last_down_at),
        "onu.temperature": _light(lambda optics: optics.temperature_c),
        "onu.bias": _light(lambda optics: optics.bias_ma),
        "onu.tx_power": _light(lambda optics: optics.tx_dbm),
        "onu.rx_power": _light(lambda optics: optics.rx_dbm),
        "onu.voltage": _light(lambda optics: optics.voltage_v),
        "onu.olt_rx_power": _light(lambda optics: optics.olt_rx_dbm),
        # No ONU has television.
        "onu.catv_rx_power": lambda onu, _: None,
    }
)
