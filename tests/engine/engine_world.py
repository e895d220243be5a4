"""One simulated OLT, and a session with it."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from facho.polling.snmp.ber import Oid
from facho.polling.snmp.network import Network
from facho.polling.snmp.session import Limits, Session
from facho.polling.snmp.target import Community, Target
from facho.simulator.server import SimulatedOlt, Simulation, SimulatorConfig


class Always:
    """The right to send."""

    def check(self) -> None:
        """Allow every packet."""


@dataclass(frozen=True, slots=True)
class Scene:
    """Who asks whom."""

    olt: SimulatedOlt
    session: Session

    def columns(self, keys: Sequence[str]) -> list[Oid]:
        return [self.olt.definition.column(key).oid for key in keys]


@asynccontextmanager
async def playing(config: SimulatorConfig, *, in_flight: int = 1) -> AsyncIterator[Scene]:
    """Play one OLT, and have a session with it that keeps to a bound."""
    async with Simulation.start(config) as simulation, Network() as network:
        [olt] = simulation.olts
        target = Target(olt.host, Community(olt.community.encode()), port=olt.port)
        yield Scene(olt, network.open(target, Always(), Limits(max_in_flight=in_flight)))
