"""Makes ONUs with serials, descriptions and light, repeatably from a seed. No real person and no real brand appears."""

import math
from random import Random

from facho.polling.domain.onu_state import DownCause, RunState
from facho.polling.vendors.index import Place
from facho.simulator.onu import Onu

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
    """Makes the customers of one OLT, one after the other; the same seed makes the same ones."""

    def __init__(self, *, seed: int, olt_number: int, offline_share: float = OFFLINE_SHARE) -> None:
        self._offline_share = offline_share
        self._random = Random(f"customers/{seed}/{olt_number}")
        self._serial_base = Random(f"serials/{seed}").getrandbits(32)
        self._olt_number = olt_number
        self._made = 0

    def make(self, place: Place, *, at: float) -> Onu:
        """Make the next customer, online since `at`."""
        rng = self._random
        serial = self._next_serial()
        distance = int(200 + 17_000 * rng.random() ** 2)
        return Onu(
            serial=serial,
            description=f"CLI-{self._made:05d} {rng.choice(AREAS)}{rng.choice(DETAILS)}",
            model=rng.choice(MODELS),
            place=place,
            distance_m=distance,
            rx_dbm=_received_power(distance, rng),
            tx_dbm=rng.uniform(1.5, 4.0),
            temperature_c=rng.uniform(38.0, 56.0),
            salt=rng.getrandbits(24),
            fade_db_per_day=rng.uniform(0.5, 3.0) if rng.random() < FADING_SHARE else 0.0,
            last_up_at=at,
        )

    def make_settled(self, place: Place) -> Onu:
        """Make a customer who was there before the world started; some of them are offline."""
        onu = self.make(place, at=-self._random.uniform(3_600, 40 * 86_400))
        if self._random.random() < self._offline_share:
            onu.state = RunState.OFFLINE
            onu.last_down_cause = self._random.choice((DownCause.LOS, DownCause.DYING_GASP))
            onu.last_down_at = -self._random.uniform(600, 3_600)
        return onu

    def _next_serial(self) -> str:
        number = self._olt_number * SERIALS_PER_OLT + self._made
        self._made += 1
        code = VENDOR_CODES[number % len(VENDOR_CODES)]
        return f"{code}{(self._serial_base + number * SERIAL_STEP) & 0xFFFFFFFF:08X}"


def _received_power(distance_m: int, rng: Random) -> float:
    launched = rng.uniform(2.5, 4.5)
    lost = SPLITTER_LOSS_DB + FIBRE_LOSS_DB_PER_KM * distance_m / 1000 + abs(rng.gauss(0.0, 1.5))
    return math.floor((launched - lost) * 100) / 100
