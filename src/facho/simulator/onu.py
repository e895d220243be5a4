"""How large a simulated OLT is, its ONUs, and a maker of customers, repeatable from a seed. No real person or brand."""

import math
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from facho.polling.domain.onu_state import DownCause, RunState
from facho.polling.vendors.index import Place

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
    for place, count in zip(used, counts, strict=True):
        last = min(count + count // 8 + 1, MAX_ONUS_PER_PORT)
        spread[place] = sorted(rng.sample(range(shape.first_onu, shape.first_onu + last), count))
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
