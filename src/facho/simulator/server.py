"""Starts a fleet of simulated OLTs in the running event loop, each on its own UDP port."""

import asyncio
import gc
import json
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from ipaddress import ip_address
from itertools import cycle
from random import Random
from typing import Any

from facho.polling.domain.hints import Meaning
from facho.polling.snmp.ber import Oid
from facho.polling.vendors.definition import Definition
from facho.polling.vendors.index import Place
from facho.polling.vendors.loader import GENERIC_KEY, load_definitions
from facho.polling.vendors.vocabulary import Scope
from facho.simulator.agent import ALL_HOSTILE, HOSTILE, NO_FAULTS, Agent, Counters, Endpoint, FaultInjector, Faults
from facho.simulator.personality import Personality, identity_of
from facho.simulator.readings import Moment, drift_step
from facho.simulator.responder import Responder
from facho.simulator.story import play_story
from facho.simulator.traps import NO_TRAP_FAULTS, SimulatedTraps, TrapFaults, TrapKind, TrapTarget, Utterance
from facho.simulator.world import (
    NATURAL,
    OFFLINE_SHARE,
    Chassis,
    CustomerMaker,
    JournalEntry,
    Life,
    LifeDriver,
    OltWorld,
    Shape,
    SimulatedOnu,
    plan_chassis,
    plan_single_card,
    spread_onus,
)

MIXED = "mixed"
MAX_UDP_PAYLOAD_BYTES = 65_507
# What every SNMP agent has to manage.
MIN_MESSAGE_BYTES = 484
MAX_PORT = 65_535


class ConfigError(ValueError):
    """The simulation cannot be configured like this; the text says why."""


@dataclass(frozen=True, slots=True)
class SimulatorConfig:
    """A fleet of simulated OLTs. `vendor` is a definition's key, a prefix of some, or `mixed`."""

    vendor: str = MIXED
    olts: int = 1
    onus: int = 64
    host: str = "127.0.0.1"
    port: int = 0
    latency_ms: float = 0.0
    loss: float = 0.0
    seed: int = 1
    community: str = "public"
    name_prefix: str = "olt"
    chassis: Chassis | None = None
    offline_share: float = OFFLINE_SHARE
    # ONUs waiting for authorisation on each OLT.
    waiting: int = 1
    # Seconds of world time that pass in a real second.
    speed: float = 1.0
    life: Life = NATURAL
    faults: Faults = NO_FAULTS
    # An attack on the manager by name, or `all`: one after the other. Empty: none.
    hostile: str = ""
    max_message_bytes: int = MAX_UDP_PAYLOAD_BYTES
    # Where notifications go, an address of this machine and a port; none are sent unless given.
    traps: tuple[str, int] | None = None
    # Their community; that of the OLTs unless given.
    trap_community: str = ""
    trap_kind: TrapKind = TrapKind.V2C
    trap_faults: TrapFaults = NO_TRAP_FAULTS
    # Whether the worlds also play the story of the demo, not only random faults.
    has_story: bool = False
    # The moment at which world time is 0; now, unless given.
    started_at: datetime | None = None

    def __post_init__(self) -> None:
        if self.olts < 1 or self.onus < 0 or self.waiting < 0:
            raise ConfigError("a simulation needs at least one OLT and no negative number of ONUs")
        if not (0 <= self.loss <= 1 and 0 <= self.offline_share <= 1):
            raise ConfigError("loss and the share of offline ONUs are between 0 and 1")
        if self.hostile and self.hostile not in (*HOSTILE, ALL_HOSTILE):
            raise ConfigError(f"{self.hostile!r} is not one of {', '.join([*HOSTILE, ALL_HOSTILE])}")
        if self.chassis and not self.chassis.holds(self.onus):
            raise ConfigError(f"{self.onus} ONUs do not fit on {self.chassis.used_ports} used ports of this chassis")
        if not self.community or len(self.community.split()) != 1 or len(self.name_prefix.split()) != 1:
            raise ConfigError("community and name are single words, because OLTs are announced as words of a line")
        if self.latency_ms < 0 or self.speed <= 0:
            raise ConfigError("latency must not be negative and speed must be above 0")
        if not 0 <= self.port <= MAX_PORT or (self.port and self.port + self.olts - 1 > MAX_PORT):
            raise ConfigError(f"{self.olts} OLTs do not fit on ports from {self.port} to {MAX_PORT}")
        self._check_traps()
        if not MIN_MESSAGE_BYTES <= self.max_message_bytes <= MAX_UDP_PAYLOAD_BYTES:
            raise ConfigError(f"an agent's messages have between {MIN_MESSAGE_BYTES} and {MAX_UDP_PAYLOAD_BYTES} bytes")

    def _check_traps(self) -> None:
        """A simulator that storms is a weapon, so it never aims at another machine."""
        faults, storm = self.trap_faults, self.trap_faults.storm
        if not all(0 <= share <= 1 for share in (faults.loss, faults.doubled, faults.disorder)):
            raise ConfigError("the shares of lost, doubled and late notifications are between 0 and 1")
        if min(faults.delay_seconds, faults.disorder_seconds) < 0 or (
            storm and min(storm.per_second, storm.seconds) < 0
        ):
            raise ConfigError("delays and storms of notifications must not be negative")
        if self.traps is None:
            return
        host, port = self.traps
        try:
            is_ours = ip_address(host).is_loopback
        except ValueError:
            is_ours = False
        if not is_ours or (":" in host) != (":" in self.host):
            raise ConfigError(f"notifications go to a loopback address only, not to {host!r}")
        if not 1 <= port <= MAX_PORT:
            raise ConfigError(f"notifications go to a port from 1 to {MAX_PORT}")


# A family that shows no ONUs leaves the numbers to us.
FREE_CHOICE = range(128)


@dataclass(frozen=True, slots=True)
class Numbering:
    """The values that fit all ONU and PON indexes of a family; only 0 for a missing part."""

    frame: range
    slot: range
    port: range
    onu: range


def numbering_of(definition: Definition) -> Numbering:
    scopes = (Scope.ONU, Scope.PON) if definition.has_ports else (Scope.ONU,)
    indexes = [index for index in definition.indexes.values() if index.scope in scopes]
    if not indexes:
        return Numbering(*[FREE_CHOICE] * len(Place._fields))
    shared = []
    for name in Place._fields:
        ranges = [index.fields[name].values for index in indexes if name in index.fields] or [range(1)]
        shared.append(range(max(values.start for values in ranges), min(values.stop for values in ranges)))
    return Numbering(*shared)


def shape_for(definition: Definition, onus: int, chassis: Chassis | None = None) -> Shape:
    """Lay out an OLT of this family for that many ONUs; slots count from 1 unless the family says otherwise."""
    numbers = numbering_of(definition)
    if chassis is not None and not definition.has_ports:
        # Its ports are real, and its ONUs are numbered across them.
        numbers = replace(numbers, port=FREE_CHOICE)
    plan = plan_chassis if len(numbers.slot) > 1 else plan_single_card
    # A family that does not report ports has all its ONUs on one.
    size = chassis or (plan(onus) if len(numbers.port) > 1 else Chassis(1, 1, 1))
    if size.cards > len(numbers.slot) or size.ports_per_card > len(numbers.port) or not size.holds(onus):
        raise ConfigError(f"{definition.key} has no room for {size.cards} cards of {size.ports_per_card} ports")
    return Shape(
        cards=size.cards,
        ports_per_card=size.ports_per_card,
        used_ports=size.used_ports,
        frame=numbers.frame.start,
        first_slot=max(numbers.slot.start, min(1, len(numbers.slot) - size.cards)),
        first_port=numbers.port.start,
        first_onu=numbers.onu.start,
    )


class WorldClock:
    """Seconds since the worlds began; never goes back."""

    def __init__(self, *, speed: float = 1.0) -> None:
        self._speed = speed
        self._began = time.monotonic()
        self._skipped = 0.0

    def now(self) -> float:
        return self._skipped + (time.monotonic() - self._began) * self._speed

    def skip(self, seconds: float) -> None:
        if seconds < 0:
            raise ValueError("world time does not go back")
        self._skipped += seconds


# ONUs that wait get their serials as if they were customers of OLTs that are never simulated.
STRANGERS = 1 << 15
# As often as agents bring their counters up to date.
COUNT_STEP_SECONDS = 5.0


class SimulatedOlt:
    def __init__(self, config: SimulatorConfig, definition: Definition, number: int, clock: WorldClock) -> None:
        self.name = f"{config.name_prefix}-{number + 1:03d}"
        self.vendor = definition.key
        self.definition = definition
        self.community = config.community
        self.world = build_world(self.name, config, definition, number)
        LifeDriver(self.world, config.life, seed=config.seed).start()
        self._clock = clock
        self._step = self._count = 0
        moment = Moment(self.world, config.started_at or datetime.now(UTC))
        identity = identity_of(self.definition, number)
        standard = load_definitions()[GENERIC_KEY]
        personality = Personality(self.world, self.definition, identity, moment, standard=standard)
        strangers = CustomerMaker(seed=config.seed, olt_number=STRANGERS + number)
        for _, place in zip(range(config.waiting), cycle(self.world.ports), strict=False):
            personality.let_wait(strangers.make(place, at=self.world.now))
        self._personality = personality
        ways = list(HOSTILE.values()) if config.hostile == ALL_HOSTILE else [HOSTILE.get(config.hostile, config.faults)]
        faults = ways[number % len(ways)]
        faults_of = replace(
            faults,
            latency_seconds=faults.latency_seconds + config.latency_ms / 1000,
            loss=max(faults.loss, config.loss),
        )
        self._injector = FaultInjector(faults_of, seed=config.seed, name=self.name)
        self._note_silence(self._injector.current)
        responder = Responder(self._personality.view, max_message_bytes=config.max_message_bytes)
        self._agent = Agent(responder, self._injector, community=config.community.encode(), refresh=self.refresh)
        self.endpoint = Endpoint(config.host, config.port + number if config.port else 0)
        self.traps: SimulatedTraps | None = None
        if config.traps is not None:
            community = (config.trap_community or config.community).encode()
            target = TrapTarget(*config.traps, community, config.trap_kind)
            self.traps = SimulatedTraps(
                self.world, definition, moment, target, seed=config.seed, send=self._agent.notify
            )
            self.traps.faults = config.trap_faults
            self._agent.hear_answer = self.traps.hear_answer

    @property
    def host(self) -> str:
        return self.endpoint.host

    @property
    def port(self) -> int:
        return self.endpoint.port

    @property
    def waiting(self) -> tuple[SimulatedOnu, ...]:
        return tuple(self._personality.waiting.onus)

    def authorise(self, serial: str) -> None:
        """Authorise a waiting ONU; KeyError if none has this serial."""
        self.refresh()
        self._personality.authorise({onu.serial: onu for onu in self.waiting}[serial])

    @property
    def counters(self) -> Counters:
        return self._agent.counters

    def reset_counters(self) -> None:
        self._agent.counters = Counters()

    @property
    def faults(self) -> Faults:
        return self._injector.current

    @faults.setter
    def faults(self, faults: Faults) -> None:
        self.refresh()
        self._note_silence(faults)
        self._agent.behave(faults)

    def close_columns(self, keys: Collection[str]) -> None:
        """Take columns of the family out of the manager's SNMP view; none opens it again."""
        closed = tuple(dict.fromkeys(self.definition.column(key).oid for key in keys))
        self.faults = replace(self.faults, closed=closed)

    def _note_silence(self, faults: Faults) -> None:
        if faults.is_silent:
            self.world.fall_silent()
        else:
            self.world.speak()

    @property
    def journal(self) -> tuple[JournalEntry, ...]:
        self.refresh()
        return tuple(self.world.journal)

    @property
    def line(self) -> str:
        return f"{self.name} {self.host} {self.port} {self.vendor} {self.community}"

    def refresh(self) -> None:
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

    def encode_ahead(self, oids: Collection[Oid]) -> None:
        """Encode columns before they are asked for, so that answers cost as little as they can."""
        self.refresh()
        for column in self._personality.view.columns:
            if column.prefix in oids:
                column.slice(0, len(column.rows.indexes))

    def say(self, meaning: Meaning, place: Place = Place(), serial: str = "") -> bool:  # noqa: B008 - a tuple
        """Send a notification, true or not; False if nothing is sent or the family has no word for it."""
        return self.traps is not None and self.traps.say(Utterance((meaning,), place, serial))

    def open(self) -> None:
        self._agent.open(self.endpoint)
        if self.traps is not None:
            self.traps.start(self.refresh)

    def close(self) -> None:
        if self.traps is not None:
            self.traps.stop()
        self._agent.close()


@dataclass(slots=True)
class Simulation:
    olts: list[SimulatedOlt]
    clock: WorldClock

    @classmethod
    @asynccontextmanager
    async def start(cls, config: SimulatorConfig) -> AsyncIterator["Simulation"]:
        """Serve until the block ends; PortTaken if a port is in use."""
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
    shape = shape_for(definition, config.onus, config.chassis)
    customers = CustomerMaker(seed=config.seed, olt_number=number, offline_share=config.offline_share)
    spread = spread_onus(shape, config.onus, Random(f"ports/{config.seed}/{number}"))
    world = OltWorld(name, shape, customers, spread)
    if config.has_story:
        play_story(world, number)
    return world


def choose_definitions(vendor: str) -> list[Definition]:
    """Return the families of a name, or all that report ports, the most telling first."""
    known = load_definitions()
    if vendor == MIXED:
        return sorted(filter(_has_ports, known.values()), key=_detail_of, reverse=True)
    if vendor in known:
        return [known[vendor]]
    matches = [definition for key, definition in known.items() if vendor and key.startswith(vendor.lower())]
    if not matches:
        raise ConfigError(f"{vendor!r} is not one of {', '.join([*known, MIXED])}")
    return matches


def _has_ports(definition: Definition) -> bool:
    return any("port" in index.fields for index in definition.onu_indexes.values())


def _detail_of(definition: Definition) -> tuple[bool, int]:
    return definition.has_column("onu.last_down_cause"), len(definition.columns)


def run_simulator(config: SimulatorConfig, *, tells_counters: bool = True) -> int:
    """Simulate until SIGINT or SIGTERM, then print the counters; return the exit status."""
    try:
        asyncio.run(serve(config, announce=_print_line, tells_counters=tells_counters))
    except ConfigError as error:
        sys.stderr.write(f"facho: {error}\n")
        return 2
    except OSError as error:
        sys.stderr.write(f"facho: {error.strerror}\n")
        return 1
    return 0


async def serve(config: SimulatorConfig, *, announce: Callable[[str], None], tells_counters: bool = True) -> None:
    """Announce each OLT as `name host port vendor community` and serve until SIGINT or SIGTERM."""
    loop = asyncio.get_running_loop()
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    async with Simulation.start(config) as simulation:
        # A fleet is hundreds of thousands of objects that stay: looking through them again and again would stall it.
        gc.freeze()
        loop.add_signal_handler(signal.SIGUSR1, _print_counters, simulation)
        for olt in simulation.olts:
            announce(olt.line)
        await stopped.wait()
        if tells_counters:
            _print_counters(simulation)


def _print_line(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _print_counters(simulation: Simulation) -> None:
    sys.stderr.write(json.dumps(simulation.counters_as_json()) + "\n")
    sys.stderr.flush()
