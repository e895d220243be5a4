"""One simulated OLT as a world: ports, ONUs, what is done to them or happens by itself, and a journal of it.

The world never reads a clock: `advance` moves it to a moment, and everything happens at the moment it was due.
Its size and its customers are repeatable from a seed. No real person or brand.
"""

import heapq
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import count
from random import Random
from typing import Any, NamedTuple, Protocol

from facho.polling.domain.onu_state import DownCause, RunState
from facho.polling.vendors.index import Place
from facho.simulator.plant import TrueFault

USED_PORT_SHARE = 0.7
TYPICAL_ONUS_PER_PORT = 32
DENSE_ONUS_PER_PORT = 96
MAX_ONUS_PER_PORT = 128


@dataclass(frozen=True, slots=True)
class Shape:
    """The chassis of one OLT; the first numbers are those the brand counts from."""

    cards: int
    ports_per_card: int
    used_ports: int
    frame: int = 0
    first_slot: int = 1
    first_port: int = 0
    first_onu: int = 0

    @property
    def places(self) -> list[Place]:
        return [
            Place(self.frame, self.first_slot + card, self.first_port + port)
            for card in range(self.cards)
            for port in range(self.ports_per_card)
        ]

    @property
    def boards(self) -> list[Place]:
        return [Place(self.frame, self.first_slot + card) for card in range(self.cards)]


class Chassis(NamedTuple):
    cards: int
    ports_per_card: int
    used_ports: int

    def holds(self, onus: int) -> bool:
        """Whether that many ONUs fit on its used ports, and these on its cards."""
        return 0 < self.used_ports <= self.cards * self.ports_per_card and onus <= self.used_ports * MAX_ONUS_PER_PORT


def plan_chassis(onus: int) -> Chassis:
    """Choose a size for a number of ONUs, with room left as in the field."""
    used = max(math.ceil(onus / TYPICAL_ONUS_PER_PORT), 1)
    ports = math.ceil(used / USED_PORT_SHARE)
    ports_per_card = 8 if ports <= 8 else 16
    return Chassis(math.ceil(ports / ports_per_card), ports_per_card, used)


def plan_single_card(onus: int) -> Chassis:
    """Choose a size for a device without slots: more ONUs per port before more ports."""
    usual = plan_chassis(onus)
    ports = max(usual.ports_per_card, math.ceil(onus / DENSE_ONUS_PER_PORT))
    return Chassis(1, ports, min(usual.used_ports, ports))


def spread_onus(shape: Shape, onus: int, rng: Random) -> dict[Place, list[int]]:
    """Give every ONU a port and an id, unevenly and with gaps, as years of moves leave them."""
    places = shape.places
    used = sorted(rng.sample(places, shape.used_ports))
    ports = len(used)
    weights = [rng.uniform(0.4, 1.6) for _ in range(ports)]
    scale = onus / sum(weights)
    counts = [min(int(weight * scale), MAX_ONUS_PER_PORT) for weight in weights]
    left = onus - sum(counts)
    while left:
        port = rng.randrange(ports)
        if counts[port] < MAX_ONUS_PER_PORT:
            counts[port] += 1
            left -= 1
    spread: dict[Place, list[int]] = {place: [] for place in places}
    for place, share in zip(used, counts, strict=True):
        last = min(share + share // 8 + 1, MAX_ONUS_PER_PORT)
        spread[place] = sorted(rng.sample(range(shape.first_onu, shape.first_onu + last), share))
    return spread


# Neighbours in a street have neighbouring ids, and one transformer.
ONUS_PER_STREET = 8


@dataclass(slots=True)
class SimulatedOnu:
    """One ONU; times are seconds of world time and may be negative (before the start)."""

    serial: str
    description: str
    model: str
    place: Place
    distance_m: int
    rx_dbm: float
    tx_dbm: float
    temperature_c: float
    salt: int
    fade_db_per_day: float = 0.0
    # By a fibre that somebody bent.
    loss_db: float = 0.0
    # What the fibre plant takes from its light, each with the number that it has among the members.
    plant_faults: list[tuple[TrueFault, int]] = field(default_factory=list)
    # All its values are impossible.
    is_garbled: bool = False
    # Which sentinel it sends where it is measured, counted from 0; None while it sends readings.
    sentinel: int | None = None
    state: RunState = RunState.ONLINE
    last_down_cause: DownCause | None = None
    last_up_at: float | None = None
    last_down_at: float | None = None

    @property
    def street(self) -> int:
        return self.place.onu // ONUS_PER_STREET

    @property
    def is_online(self) -> bool:
        return self.state is RunState.ONLINE


VENDOR_CODES = ("FCHO", "SIMU", "DEMO", "LABX")
MODELS = ("ONT-1GE", "ONT-2GE-V1", "ONT-4GE-WIFI5", "ONT-4GE-WIFI6", "ONT-1XG-WIFI6")
AREAS = (
    "Barrio Norte", "Barrio Sur", "Villa del Sol", "El Mirador", "La Cañada", "Los Álamos", "Las Lomas", "Puerto Viejo",
    "Valle Verde", "Cerro Alto", "El Molino", "La Pradera", "Los Pinos", "Las Acacias", "Río Claro", "Altos del Lago",
    "Zona Industrial", "La Estación", "El Rosedal", "Loma Linda", "Monte Bello", "La Ribera", "Los Olivos", "El Arenal",
)  # fmt: skip
DETAILS = ("", "", "", " casa 2", " depto B", " local 4", " piso 3", " manzana 7")

SERIALS_PER_OLT = 1 << 16
SERIAL_STEP = 0x9E3779B1  # odd, so that counting in these steps visits every 32-bit number once
OFFLINE_SHARE = 0.06
FADING_SHARE = 0.01
SPLITTER_LOSS_DB = 17.5
FIBRE_LOSS_DB_PER_KM = 0.35


class CustomerMaker:
    """Generates the customers of one OLT; the same seed gives the same ones."""

    def __init__(self, *, seed: int, olt_number: int, offline_share: float = OFFLINE_SHARE) -> None:
        self._offline_share = offline_share
        self._random = Random(f"customers/{seed}/{olt_number}")
        self._serial_base = Random(f"serials/{seed}").getrandbits(32)
        self._olt_number = olt_number
        self._made = 0

    def make(self, place: Place, *, at: float) -> SimulatedOnu:
        rng = self._random
        number = self._olt_number * SERIALS_PER_OLT + self._made
        self._made += 1
        code = VENDOR_CODES[number % len(VENDOR_CODES)]
        serial = f"{code}{(self._serial_base + number * SERIAL_STEP) & 0xFFFFFFFF:08X}"
        distance = int(200 + 17_000 * rng.random() ** 2)
        description = f"CLI-{self._made:05d} {rng.choice(AREAS)}{rng.choice(DETAILS)}"
        model = rng.choice(MODELS)
        launched = rng.uniform(2.5, 4.5)
        lost = SPLITTER_LOSS_DB + FIBRE_LOSS_DB_PER_KM * distance / 1000 + abs(rng.gauss(0.0, 1.5))
        return SimulatedOnu(
            serial=serial,
            description=description,
            model=model,
            place=place,
            distance_m=distance,
            rx_dbm=math.floor((launched - lost) * 100) / 100,
            tx_dbm=rng.uniform(1.5, 4.0),
            temperature_c=rng.uniform(38.0, 56.0),
            salt=rng.getrandbits(24),
            fade_db_per_day=rng.uniform(0.5, 3.0) if rng.random() < FADING_SHARE else 0.0,
            last_up_at=at,
        )

    def make_settled(self, place: Place) -> SimulatedOnu:
        """Make a customer from before the start of the world; some are offline."""
        onu = self.make(place, at=-self._random.uniform(3_600, 40 * 86_400))
        if self._random.random() < self._offline_share:
            onu.state = RunState.OFFLINE
            onu.last_down_cause = self._random.choice((DownCause.LOS, DownCause.DYING_GASP))
            onu.last_down_at = -self._random.uniform(600, 3_600)
        return onu


class JournalKind(StrEnum):
    ONU_DOWN = "onu_down"
    ONU_UP = "onu_up"
    PON_CUT = "pon_cut"
    PON_RESTORED = "pon_restored"
    ONU_MOVED = "onu_moved"
    ONU_APPEARED = "onu_appeared"
    ONU_REMOVED = "onu_removed"
    ONU_DIMMED = "onu_dimmed"
    ONU_DESCRIBED = "onu_described"
    ONU_GARBLED = "onu_garbled"
    ONU_CLEAR = "onu_clear"
    POWER_LOST = "power_lost"
    POWER_BACK = "power_back"
    CARD_FAILED = "card_failed"
    CARD_RESTORED = "card_restored"
    OLT_SILENT = "olt_silent"
    OLT_HEARD = "olt_heard"


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """One event; `at` is in seconds of world time. For a port, card or OLT the rest of the place is 0."""

    at: float
    kind: JournalKind
    olt: str
    place: Place
    serial: str = ""
    cause: DownCause | None = None
    moved_from: Place | None = None
    # Which street of the port lost its power.
    street: int | None = None
    # What the ONU's light has lost now, in all.
    loss_db: float | None = None
    description: str | None = None


# Entries kept at least: about a week of an OLT.
JOURNAL_ENTRIES = 5_000

Action = Callable[[], None]


class WorldListener(Protocol):
    """Receives every change, so that only changed rows are encoded again."""

    def onu_changed(self, onu: SimulatedOnu) -> None: ...

    def onu_added(self, onu: SimulatedOnu) -> None: ...

    def onu_removed(self, onu: SimulatedOnu) -> None: ...

    def port_changed(self, port: "SimulatedPort") -> None: ...


@dataclass(slots=True)
class SimulatedPort:
    """A PON port and its ONUs by id; `returning` come back when its fibre is repaired."""

    place: Place
    onus: dict[int, SimulatedOnu] = field(default_factory=dict)
    is_cut: bool = False
    returning: list[SimulatedOnu] = field(default_factory=list)

    @property
    def online_count(self) -> int:
        return sum(onu.is_online for onu in self.onus.values())


class OltWorld:
    """The true state of one OLT. Commands act at `now`; `schedule` runs them later."""

    def __init__(
        self, name: str, shape: Shape, customers: CustomerMaker, spread: Mapping[Place, Sequence[int]]
    ) -> None:
        self.name = name
        self.shape = shape
        self.now = 0.0
        self.journal: list[JournalEntry] = []
        # How many entries there were in all, the dropped ones included.
        self.recorded = 0
        self.listeners: list[WorldListener] = []
        self._customers = customers
        self._due: list[tuple[float, int, Action]] = []
        self._order = count()
        self._is_silent = False
        # Streets without power, and the ONUs that return with it.
        self._dark: dict[tuple[Place, int], list[SimulatedOnu]] = {}
        self.ports = {
            place: SimulatedPort(place, {onu: self._customers.make_settled(place._replace(onu=onu)) for onu in ids})
            for place, ids in spread.items()
        }

    @property
    def onus(self) -> Iterator[SimulatedOnu]:
        for port in self.ports.values():
            for _, onu in sorted(port.onus.items()):
                yield onu

    def port_of(self, onu: SimulatedOnu) -> SimulatedPort:
        return self.ports[onu.place.pon]

    def find(self, serial: str) -> SimulatedOnu:
        """KeyError if this OLT has no such serial."""
        for onu in self.onus:
            if onu.serial == serial:
                return onu
        raise KeyError(serial)

    def schedule(self, at: float, action: Action) -> None:
        heapq.heappush(self._due, (at, next(self._order), action))

    def advance(self, now: float) -> None:
        """Move to second `now`; scheduled actions run in order, each at its own time."""
        while self._due and self._due[0][0] <= now:
            at, _, action = heapq.heappop(self._due)
            self.now = max(self.now, at)
            action()
        self.now = max(self.now, now)

    def take_down(self, onu: SimulatedOnu, cause: DownCause) -> None:
        """Take an ONU offline; one already offline keeps its cause."""
        if not onu.is_online:
            return
        onu.state = RunState.OFFLINE
        onu.last_down_cause = cause
        onu.last_down_at = self.now
        self._record(JournalKind.ONU_DOWN, onu, cause=cause)
        self._announce_change(onu)

    def bring_up(self, onu: SimulatedOnu) -> None:
        """Bring an ONU back; without fibre or power it waits, and a removed one stays away."""
        port = self.port_of(onu)
        if onu.is_online or port.onus.get(onu.place.onu) is not onu or self._waits_in_the_dark(onu):
            return
        onu.state = RunState.ONLINE
        onu.last_up_at = self.now
        self._record(JournalKind.ONU_UP, onu)
        self._announce_change(onu)

    def cut(self, place: Place) -> list[SimulatedOnu]:
        """Cut the fibre of a port: all its ONUs lose signal. Return those taken down."""
        port = self.ports[place]
        if port.is_cut:
            return []
        port.is_cut = True
        self._record_place(JournalKind.PON_CUT, place)
        lost = [onu for onu in port.onus.values() if onu.is_online]
        for onu in lost:
            self.take_down(onu, DownCause.LOS)
        port.returning = list(lost)
        # Announced here too: no ONU of the port may be online.
        self._announce_port(port)
        return lost

    def restore(self, place: Place) -> None:
        """Repair the fibre of a port: the ONUs the cut took down come back."""
        port = self.ports[place]
        if not port.is_cut:
            return
        port.is_cut = False
        self._record_place(JournalKind.PON_RESTORED, place)
        for onu in port.returning:
            self.bring_up(onu)
        port.returning = []
        self._announce_port(port)

    def move(self, onu: SimulatedOnu, place: Place) -> None:
        source, target = onu.place, place._replace(onu=self.free_id(place))
        self._detach(onu)
        onu.last_up_at = self.now if onu.is_online else onu.last_up_at
        onu.place = target
        self._attach(onu)
        self._record(JournalKind.ONU_MOVED, onu, moved_from=source)
        if onu.is_online and self._waits_in_the_dark(onu):
            self.take_down(onu, self._darkness_of(onu))

    def add(self, place: Place) -> SimulatedOnu:
        return self._appear(self._customers.make(place._replace(onu=self.free_id(place)), at=self.now))

    def add_double(self, onu: SimulatedOnu, place: Place) -> SimulatedOnu:
        double = self._customers.make(place._replace(onu=self.free_id(place)), at=self.now)
        double.serial = onu.serial
        return self._appear(double)

    def bring_back(self, onu: SimulatedOnu, place: Place) -> None:
        onu.place = place._replace(onu=self.free_id(place))
        onu.state, onu.last_up_at = RunState.ONLINE, self.now
        self._appear(onu)

    def _appear(self, onu: SimulatedOnu) -> SimulatedOnu:
        self._attach(onu)
        self._record(JournalKind.ONU_APPEARED, onu)
        if self._waits_in_the_dark(onu):
            self.take_down(onu, self._darkness_of(onu))
        return onu

    def remove(self, onu: SimulatedOnu) -> None:
        self._detach(onu)
        self._record(JournalKind.ONU_REMOVED, onu)

    def replace(self, onu: SimulatedOnu) -> SimulatedOnu:
        self.remove(onu)
        return self._appear(self._customers.make(onu.place, at=self.now))

    def power_off(self, place: Place, street: int) -> list[SimulatedOnu]:
        """Cut the power of a street: all its ONUs send a dying gasp. Return those taken down."""
        if (place, street) in self._dark:
            return []
        self._record_place(JournalKind.POWER_LOST, place, street=street)
        lost = [onu for onu in self.ports[place].onus.values() if onu.street == street and onu.is_online]
        for onu in lost:
            self.take_down(onu, DownCause.DYING_GASP)
        self._dark[place, street] = list(lost)
        return lost

    def power_on(self, place: Place, street: int) -> None:
        """Restore the power of a street: the ONUs it took down come back."""
        returning = self._dark.pop((place, street), None)
        if returning is None:
            return
        self._record_place(JournalKind.POWER_BACK, place, street=street)
        for onu in returning:
            self.bring_up(onu)

    def fail_card(self, board: Place) -> list[SimulatedOnu]:
        """Fail a card: all its ports go dark. Return the ONUs taken down."""
        self._record_place(JournalKind.CARD_FAILED, board)
        return [onu for place in self._ports_on(board) for onu in self.cut(place)]

    def restore_card(self, board: Place) -> None:
        self._record_place(JournalKind.CARD_RESTORED, board)
        for place in self._ports_on(board):
            self.restore(place)

    def dim(self, onu: SimulatedOnu, loss_db: float) -> None:
        """Set the extra loss of an ONU's light in dB; 0 is a repair."""
        onu.loss_db = loss_db
        self._record(JournalKind.ONU_DIMMED, onu, loss_db=loss_db)
        self._announce_change(onu)

    def describe(self, onu: SimulatedOnu, description: str) -> None:
        onu.description = description
        self._record(JournalKind.ONU_DESCRIBED, onu, description=description)
        self._announce_change(onu)

    def garble(self, onu: SimulatedOnu) -> None:
        if not onu.is_garbled:
            onu.is_garbled = True
            self._record(JournalKind.ONU_GARBLED, onu)
            self._announce_change(onu)

    def clear(self, onu: SimulatedOnu) -> None:
        if onu.is_garbled:
            onu.is_garbled = False
            self._record(JournalKind.ONU_CLEAR, onu)
            self._announce_change(onu)

    def stop_measuring(self, onu: SimulatedOnu, sentinel: int) -> None:
        """Let an ONU send a sentinel of each measured column, by its number in the list of the definition."""
        onu.sentinel = sentinel
        self._announce_change(onu)

    def fall_silent(self) -> None:
        if not self._is_silent:
            self._is_silent = True
            self._record_place(JournalKind.OLT_SILENT, Place())

    def speak(self) -> None:
        if self._is_silent:
            self._is_silent = False
            self._record_place(JournalKind.OLT_HEARD, Place())

    def free_id(self, place: Place) -> int:
        """Return the lowest free ONU id of a port; ValueError if it is full."""
        taken = self.ports[place].onus
        for onu_id in range(self.shape.first_onu, self.shape.first_onu + MAX_ONUS_PER_PORT):
            if onu_id not in taken:
                return onu_id
        raise ValueError(f"PON port {place} is full")

    def entries_since(self, recorded: int) -> list[JournalEntry]:
        """Return the entries after the first `recorded` ones, if they are still kept."""
        missing = self.recorded - recorded
        return self.journal[-missing:] if missing > 0 else []

    def _ports_on(self, board: Place) -> list[Place]:
        return [place for place in self.ports if place[:2] == board[:2]]

    def _darkness_of(self, onu: SimulatedOnu) -> DownCause:
        return DownCause.LOS if self.port_of(onu).is_cut else DownCause.DYING_GASP

    def _waits_in_the_dark(self, onu: SimulatedOnu) -> bool:
        """Add an ONU without fibre or power to those that come back with it."""
        street = self._dark.get((onu.place.pon, onu.street))
        port = self.port_of(onu)
        waiting = port.returning if port.is_cut else street
        if waiting is None:
            return False
        waiting.append(onu)
        return True

    def _attach(self, onu: SimulatedOnu) -> None:
        port = self.port_of(onu)
        port.onus[onu.place.onu] = onu
        for listener in self.listeners:
            listener.onu_added(onu)
        self._announce_port(port)

    def _detach(self, onu: SimulatedOnu) -> None:
        port = self.port_of(onu)
        for listener in self.listeners:
            listener.onu_removed(onu)
        del port.onus[onu.place.onu]
        self._announce_port(port)

    def _announce_change(self, onu: SimulatedOnu) -> None:
        for listener in self.listeners:
            listener.onu_changed(onu)
        self._announce_port(self.port_of(onu))

    def _announce_port(self, port: SimulatedPort) -> None:
        for listener in self.listeners:
            listener.port_changed(port)

    def _record(self, kind: JournalKind, onu: SimulatedOnu, **details: Any) -> None:
        self._keep(JournalEntry(self.now, kind, self.name, onu.place, onu.serial, **details))

    def _record_place(self, kind: JournalKind, place: Place, *, street: int | None = None) -> None:
        self._keep(JournalEntry(self.now, kind, self.name, place, street=street))

    def _keep(self, entry: JournalEntry) -> None:
        """Append an entry, and sometimes drop the oldest: a demo may run for weeks."""
        self.journal.append(entry)
        self.recorded += 1
        if len(self.journal) > 2 * JOURNAL_ENTRIES:
            del self.journal[:-JOURNAL_ENTRIES]


HOUR_SECONDS = 3_600.0


@dataclass(frozen=True, slots=True)
class Life:
    """Event rates of one OLT per hour of world time, and average durations."""

    failures: float = 10.0
    cuts: float = 0.25
    moves: float = 0.2
    arrivals: float = 0.5
    power_cuts: float = 0.1
    bends: float = 0.2
    failure_seconds: float = 420.0
    cut_seconds: float = 900.0
    power_cut_seconds: float = 1_800.0
    bend_seconds: float = 7_200.0
    dying_gasp_share: float = 0.6


NATURAL = Life()
STILL = Life(failures=0.0, cuts=0.0, moves=0.0, arrivals=0.0, power_cuts=0.0, bends=0.0)


class LifeDriver:
    """Schedules each kind of event on its own random stream, so that kinds do not affect each other."""

    def __init__(self, world: OltWorld, life: Life, *, seed: int) -> None:
        self._world = world
        self._life = life
        self._seed = seed

    def start(self) -> None:
        """Schedule the first event of each kind; every event schedules the next."""
        self._repeat("failures", self._life.failures, self._fail_one)
        self._repeat("cuts", self._life.cuts, self._cut_one)
        self._repeat("moves", self._life.moves, self._move_one)
        self._repeat("arrivals", self._life.arrivals, self._add_one)
        self._repeat("power cuts", self._life.power_cuts, self._darken_one)
        self._repeat("bends", self._life.bends, self._bend_one)

    def _repeat(self, name: str, per_hour: float, act: Callable[[Random], None]) -> None:
        if per_hour <= 0:
            return
        rng = Random(f"{name}/{self._seed}/{self._world.name}")

        def happen() -> None:
            act(rng)
            plan_next()

        def plan_next() -> None:
            self._world.schedule(self._world.now + rng.expovariate(per_hour / HOUR_SECONDS), happen)

        plan_next()

    def _fail_one(self, rng: Random) -> None:
        onu = self._pick_onu(rng)
        gasped = rng.random() < self._life.dying_gasp_share
        lasts = rng.expovariate(1 / self._life.failure_seconds)
        if onu is None or not onu.is_online:
            return
        self._world.take_down(onu, DownCause.DYING_GASP if gasped else DownCause.LOS)
        self._world.schedule(self._world.now + lasts, lambda: self._world.bring_up(onu))

    def _cut_one(self, rng: Random) -> None:
        port = self._pick_port(rng)
        lasts = rng.expovariate(1 / self._life.cut_seconds)
        if port is None or port.is_cut:
            return
        self._world.cut(port.place)
        self._world.schedule(self._world.now + lasts, lambda: self._world.restore(port.place))

    def _move_one(self, rng: Random) -> None:
        onu, target = self._pick_onu(rng), self._pick_port(rng)
        if onu is None or target is None or target.is_cut or not onu.is_online:
            return
        if onu.place.pon != target.place and len(target.onus) < MAX_ONUS_PER_PORT:
            self._world.move(onu, target.place)

    def _add_one(self, rng: Random) -> None:
        port = self._pick_port(rng)
        if port is not None and not port.is_cut and len(port.onus) < MAX_ONUS_PER_PORT:
            self._world.add(port.place)

    def _darken_one(self, rng: Random) -> None:
        onu = self._pick_onu(rng)
        lasts = rng.expovariate(1 / self._life.power_cut_seconds)
        if onu is not None:
            port, street = onu.place.pon, onu.street
            self._world.power_off(port, street)
            self._world.schedule(self._world.now + lasts, lambda: self._world.power_on(port, street))

    def _bend_one(self, rng: Random) -> None:
        onu = self._pick_onu(rng)
        loss_db, lasts = rng.uniform(3.5, 7.0), rng.expovariate(1 / self._life.bend_seconds)
        if onu is None or onu.loss_db:
            return
        self._world.dim(onu, loss_db)
        self._world.schedule(self._world.now + lasts, lambda: self._world.dim(onu, 0.0))

    def _pick_port(self, rng: Random) -> SimulatedPort | None:
        used = [port for port in self._world.ports.values() if port.onus]
        return rng.choice(used) if used else None

    def _pick_onu(self, rng: Random) -> SimulatedOnu | None:
        port = self._pick_port(rng)
        return port.onus[rng.choice(sorted(port.onus))] if port else None
