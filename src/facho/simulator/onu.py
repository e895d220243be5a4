"""Simulated ONUs, and a maker of customers, repeatable from a seed. No real person and no real brand appears."""

import math
from dataclasses import dataclass
from random import Random

from facho.polling.domain.onu_state import DownCause, RunState
from facho.polling.vendors.index import Place

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
