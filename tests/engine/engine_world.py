"""What is true on a simulated OLT, told by its world and not by its agent, and a session to ask the agent."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import MappingProxyType

from facho.polling.snmp.ber import Oid
from facho.polling.snmp.network import Network
from facho.polling.snmp.session import Limits, Session
from facho.polling.snmp.target import Community, Target
from facho.polling.snmp.walk import Row
from facho.polling.vendors.values import Typed
from facho.simulator.config import SimulatorConfig
from facho.simulator.onu import Onu
from facho.simulator.optics import read_optics
from facho.simulator.server import SimulatedOlt, Simulation

# How the world knows what the columns of a definition tell.
TRUTH: Mapping[str, Callable[[Onu], Typed | None]] = MappingProxyType(
    {
        "onu.serial": lambda onu: onu.serial,
        "onu.description": lambda onu: onu.description,
        "onu.run_state": lambda onu: onu.state,
        "onu.distance": lambda onu: onu.distance_m if onu.is_online else None,
        "onu.rx_power": lambda onu: read_optics(onu, at=0.0).rx_dbm if onu.is_online else None,
        "onu.tx_power": lambda onu: read_optics(onu, at=0.0).tx_dbm if onu.is_online else None,
    }
)


class Always:
    """The right to send."""

    def check(self) -> None:
        """Allow every packet."""


@dataclass(frozen=True, slots=True)
class Scene:
    """One simulated OLT and a session with it."""

    olt: SimulatedOlt
    session: Session

    def columns(self, keys: Sequence[str]) -> list[Oid]:
        return [self.olt.definition.column(key).oid for key in keys]

    def true_rows(self, key: str) -> list[Row]:
        """Encode what the world says, as the definition would have it on the wire."""
        column = self.olt.definition.column(key)
        rows = [(column.index.encode(onu.place), *column.encode(TRUTH[key](onu))) for onu in self.olt.world.onus]
        return sorted(rows)


@asynccontextmanager
async def playing(config: SimulatorConfig, *, in_flight: int = 1) -> AsyncIterator[Scene]:
    """Play one OLT, and have a session with it that keeps to a bound."""
    async with Simulation.start(config) as simulation, Network() as network:
        [olt] = simulation.olts
        target = Target(olt.host, Community(olt.community.encode()), port=olt.port)
        yield Scene(olt, network.open(target, Always(), Limits(max_in_flight=in_flight)))
