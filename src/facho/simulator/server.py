"""Starts a fleet of simulated OLTs in the running event loop, each on its own UDP port."""

from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import cycle
from random import Random
from typing import Any

from facho.polling.vendors.definition import Definition
from facho.polling.vendors.loader import load_definitions
from facho.polling.vendors.recognition import GENERIC_KEY
from facho.simulator.agent import Agent
from facho.simulator.clock import WorldClock
from facho.simulator.config import MIXED, ConfigError, SimulatorConfig
from facho.simulator.counters import Counters
from facho.simulator.customers import CustomerMaker
from facho.simulator.endpoint import Endpoint
from facho.simulator.faults import FaultInjector, Faults
from facho.simulator.identity import identity_of
from facho.simulator.journal import JournalEntry
from facho.simulator.life import LifeDriver
from facho.simulator.numbering import shape_for
from facho.simulator.onu import Onu
from facho.simulator.optics import drift_step
from facho.simulator.personality import Personality
from facho.simulator.readings import Moment
from facho.simulator.responder import Responder
from facho.simulator.shape import spread_onus
from facho.simulator.world import OltWorld

# ONUs that wait get their serials as if they were customers of OLTs that are never simulated.
STRANGERS = 1 << 15
# As often as agents bring their counters up to date.
COUNT_STEP_SECONDS = 5.0


class SimulatedOlt:
    """One OLT: where it listens, what it is, the world behind it and what it counted."""

    def __init__(self, config: SimulatorConfig, definition: Definition, number: int, clock: WorldClock) -> None:
        self.name = f"{config.name_prefix}-{number + 1:03d}"
        self.vendor = definition.key
        self.definition = definition
        self.community = config.community
        self.world = build_world(self.name, config, definition, number)
        LifeDriver(self.world, config.life, seed=config.seed).start()
        self._clock = clock
        self._step = self._count = 0
        self._personality = self._take_on(config, number)
        self._injector = FaultInjector(_faults_of(config), seed=config.seed, name=self.name)
        self._note_silence(self._injector.current)
        responder = Responder(self._personality.view, max_message_bytes=config.max_message_bytes)
        self._agent = Agent(responder, self._injector, community=config.community.encode(), refresh=self.refresh)
        self.endpoint = Endpoint(config.host, config.port + number if config.port else 0)

    def _take_on(self, config: SimulatorConfig, number: int) -> Personality:
        moment = Moment(self.world, config.started_at or datetime.now(UTC))
        identity = identity_of(self.definition, number)
        standard = load_definitions()[GENERIC_KEY]
        personality = Personality(self.world, self.definition, identity, moment, standard=standard)
        strangers = CustomerMaker(seed=config.seed, olt_number=STRANGERS + number)
        for _, place in zip(range(config.waiting), cycle(self.world.ports), strict=False):
            personality.let_wait(strangers.make(place, at=self.world.now))
        return personality

    @property
    def host(self) -> str:
        return self.endpoint.host

    @property
    def port(self) -> int:
        return self.endpoint.port

    @property
    def waiting(self) -> tuple[Onu, ...]:
        """Who waits to be authorised."""
        return tuple(self._personality.waiting.onus)

    def authorise(self, serial: str) -> None:
        """Serve an ONU that waits; KeyError when nobody with this serial does."""
        self.refresh()
        self._personality.authorise({onu.serial: onu for onu in self.waiting}[serial])

    @property
    def counters(self) -> Counters:
        return self._agent.counters

    def reset_counters(self) -> None:
        """Count from zero, for the next measurement."""
        self._agent.counters = Counters()

    @property
    def faults(self) -> Faults:
        return self._injector.current

    @faults.setter
    def faults(self, faults: Faults) -> None:
        self.refresh()
        self._note_silence(faults)
        self._agent.behave(faults)

    def _note_silence(self, faults: Faults) -> None:
        if faults.is_silent:
            self.world.fall_silent()
        else:
            self.world.speak()

    @property
    def journal(self) -> tuple[JournalEntry, ...]:
        """What has happened up to now."""
        self.refresh()
        return tuple(self.world.journal)

    @property
    def line(self) -> str:
        return f"{self.name} {self.host} {self.port} {self.vendor} {self.community}"

    def refresh(self) -> None:
        """Bring the world and its values up to now."""
        now = self._clock.now()
        self.world.advance(now)
        self._personality.refresh_uptime()
        step, count = drift_step(now), int(now // COUNT_STEP_SECONDS)
        if step != self._step:
            self._step = step
            self._personality.view.forget_drifting()
        if count != self._count:
            self._count = count
            self._personality.view.forget_counters()

    def open(self) -> None:
        self._agent.open(self.endpoint)

    def close(self) -> None:
        self._agent.close()


@dataclass(slots=True)
class Simulation:
    """A running fleet."""

    olts: list[SimulatedOlt]
    clock: WorldClock

    @classmethod
    @asynccontextmanager
    async def start(cls, config: SimulatorConfig) -> AsyncIterator["Simulation"]:
        """Serve until the block is left; PortTaken when an OLT cannot have its port."""
        definitions = choose_definitions(config.vendor)
        clock = WorldClock(speed=config.speed)
        with ExitStack() as closing:
            olts = []
            for number in range(config.olts):
                olt = SimulatedOlt(config, definitions[number % len(definitions)], number, clock)
                closing.callback(olt.close)
                olt.open()
                olts.append(olt)
            yield cls(olts, clock)

    def counters_as_json(self) -> dict[str, Any]:
        return {olt.name: olt.counters.as_json() for olt in self.olts}


def build_world(name: str, config: SimulatorConfig, definition: Definition, number: int) -> OltWorld:
    """Make the world of one OLT of the fleet; the same configuration makes the same world."""
    shape = shape_for(definition, config.onus, config.chassis)
    customers = CustomerMaker(seed=config.seed, olt_number=number, offline_share=config.offline_share)
    spread = spread_onus(shape, config.onus, Random(f"ports/{config.seed}/{number}"))
    return OltWorld(name, shape, customers, spread)


def choose_definitions(vendor: str) -> list[Definition]:
    """Return the families whose keys a name begins, or for a mixed fleet all that tell where ONUs hang.

    Those that tell most come first, since a small fleet shows the first ones only.
    """
    known = load_definitions()
    if vendor == MIXED:
        return sorted(filter(_tells_ports, known.values()), key=lambda each: -len(each.columns))
    if vendor in known:
        return [known[vendor]]
    matches = [definition for key, definition in known.items() if vendor and key.startswith(vendor.lower())]
    if not matches:
        raise ConfigError(f"{vendor!r} is not one of {', '.join([*known, MIXED])}")
    return matches


def _tells_ports(definition: Definition) -> bool:
    return any("port" in index.fields for index in definition.onu_indexes.values())


def _faults_of(config: SimulatorConfig) -> Faults:
    return replace(
        config.faults,
        latency_seconds=config.faults.latency_seconds + config.latency_ms / 1000,
        loss=max(config.faults.loss, config.loss),
    )
