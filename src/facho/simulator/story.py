"""The story of the demo: what its worlds have besides chance, before they begin and after, the same at every start.

Weak and decaying light, ONUs that flap, a street that loses its power after some minutes, faults of the plant, and 30
days of a past.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import numpy as np
from numpy.typing import NDArray

from facho.polling.domain.onu_state import DownCause
from facho.polling.vendors.index import Place
from facho.simulator.plant import PlantFault, TrueFault, noise_of
from facho.simulator.readings import DAY_SECONDS, DRIFT_STEP_SECONDS, FLOOR_DBM, NOISE_DB, WAVE_DB, lost_by_plant
from facho.simulator.world import ONUS_PER_STREET, OltWorld, SimulatedOnu

PAST_DAYS = 30
HOUR = 3_600.0
# Every n-th ONU, in order of place.
WEAK_EVERY, DECAYING_EVERY, FLAPPING_EVERY = 61, 83, 149
DECAY_DB_PER_DAY = 0.22
# Where the decay has led to: a technician should go before it is too late.
DECAYED_DBM = -26.2
FLAP_SECONDS, FLAP_DOWN_SECONDS = 240.0, 45.0
# The last times before a flapping ONU was called so.
FLAPPED_MINUTES_AGO = (58, 50)
POWER_CUT_AT, POWER_CUT_SECONDS = 300.0, 900.0
LONG = 3_650.0
# Kind, dB (a day where it grows), begin and end in days before the beginning, and ONUs of one street at most: a street
# whose fibre was bent just now, one whose box is wet, a customer with a bad drop until a visit, a loose connector, an
# ageing laser.
PLANT_FAULTS = (
    (PlantFault.BRANCH_STEP, 3.1, 0.05, -0.5, None),
    (PlantFault.WATER, 0.09, 14.0, -LONG, None),
    (PlantFault.ONU_STEP, 4.2, 24.0, 12.0, 1),
    (PlantFault.BAD_CONNECTOR, 2.5, 4.0, -LONG, 1),
    (PlantFault.WEAK_LASER, 0.12, 20.0, -LONG, 1),
)
# Single failures a day on each OLT.
FAILURES_A_DAY = 3.0


@dataclass(frozen=True, slots=True)
class PastFault:
    """ONUs that were down, in seconds of world time, which are negative; a place for a fault of a whole port."""

    began_at: float
    ended_at: float
    onus: tuple[SimulatedOnu, ...]
    cause: DownCause
    place: Place | None = None


def play_story(world: OltWorld, number: int) -> None:
    """Change some ONUs of a world, and plan what happens to it; `number` counts the OLTs from 0."""
    for position, onu in enumerate(world.onus, start=1):
        # Of chance alone some lose decibels a day, which no past of a month can have.
        onu.fade_db_per_day = min(onu.fade_db_per_day, 0.1)
        if position % WEAK_EVERY == 0:
            onu.rx_dbm = -27.6 - onu.salt % 18 / 10
        if position % DECAYING_EVERY == 0:
            onu.rx_dbm, onu.fade_db_per_day = DECAYED_DBM, DECAY_DB_PER_DAY
        if position % FLAPPING_EVERY == 0 and onu.is_online:
            _flap(world, onu, at=FLAP_SECONDS * (0.2 + number / 10))
    _hurt_plant(world)
    if number == 1:
        port, street = _largest_street(world)

        def darken() -> None:
            world.power_off(port, street)
            world.schedule(world.now + POWER_CUT_SECONDS, lambda: world.power_on(port, street))

        world.schedule(POWER_CUT_AT, darken)


def _hurt_plant(world: OltWorld) -> None:
    """Let the fibre of some streets and customers have faults that began before the world."""
    streets: dict[tuple[Place, int], list[SimulatedOnu]] = {}
    for onu in world.onus:
        if onu.is_online:
            streets.setdefault((onu.place.pon, onu.street), []).append(onu)
    # The largest one may lose its power. A small OLT has the first faults only.
    hurt = sorted(streets.values(), key=len, reverse=True)[1:]
    for (kind, size, since, until, most), street in zip(PLANT_FAULTS, hurt, strict=False):
        _hurt(kind, street[:most], size, since, until)


def _hurt(kind: PlantFault, onus: Sequence[SimulatedOnu], size: float, since: float, until: float) -> None:
    """Give ONUs a fault that began and ends so many days before the world."""
    # A bend takes less of the light that the ONUs send, which has a shorter wave.
    upstream = 0.5 if kind is PlantFault.BRANCH_STEP else 1.0
    fault = TrueFault(
        kind, -since * DAY_SECONDS, -until * DAY_SECONDS, np.ones(len(onus), dtype=bool), size, upstream, len(onus)
    )
    for number, onu in enumerate(onus):
        onu.plant_faults.append((fault, number))


def flapping(world: OltWorld) -> list[SimulatedOnu]:
    return [onu for position, onu in enumerate(world.onus, start=1) if position % FLAPPING_EVERY == 0]


def past_faults(world: OltWorld, number: int) -> list[PastFault]:
    """Tell what happened before the world began, the oldest first: fibre cuts, power cuts, failures of single ONUs."""
    rng = Random(f"past/{world.name}/{number}")
    used = [port for port in world.ports.values() if len(port.onus) >= ONUS_PER_STREET]
    faults = []
    if used:
        cut = used[number % len(used)]
        began_at = -(4 + 5 * number % 21) * DAY_SECONDS - rng.uniform(2, 9) * HOUR
        lost = tuple(onu for onu in cut.onus.values() if onu.is_online)
        faults.append(PastFault(began_at, began_at + rng.uniform(1.5, 4) * HOUR, lost, DownCause.LOS, cut.place))
        port = used[(number + 1) % len(used)]
        # Yesterday evening, in all OLTs at once: the transformer of a quarter.
        began_at = -1.1 * DAY_SECONDS + 60 * (number % 3)
        dark = tuple(onu for onu in port.onus.values() if onu.is_online)
        faults.append(PastFault(began_at, began_at + 47 * 60, dark, DownCause.DYING_GASP, port.place))
    onus = [onu for onu in world.onus if onu.is_online]
    for _ in range(int(FAILURES_A_DAY * PAST_DAYS) if onus else 0):
        began_at = -rng.uniform(0.1, PAST_DAYS) * DAY_SECONDS
        cause = rng.choice((DownCause.DYING_GASP, DownCause.DYING_GASP, DownCause.LOS))
        faults.append(PastFault(began_at, began_at + rng.expovariate(1 / 2_400), (rng.choice(onus),), cause))
    for onu in flapping(world):
        faults += [
            PastFault(-minutes * 60.0, -minutes * 60.0 + FLAP_DOWN_SECONDS, (onu,), DownCause.LOS)
            for minutes in FLAPPED_MINUTES_AGO
        ]
    return sorted(faults, key=lambda fault: fault.began_at)


def light_of(onus: Sequence[SimulatedOnu], at: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the receive power of ONUs (rows) at moments (columns), as `read_optics` tells it of one."""
    step = np.floor(at / DRIFT_STEP_SECONDS)[np.newaxis, :]
    moment = step * DRIFT_STEP_SECONDS
    salt = np.array([onu.salt for onu in onus], dtype=np.int64)[:, np.newaxis]
    base, fade, loss = (
        np.array([getattr(onu, name) for onu in onus])[:, np.newaxis]
        for name in ("rx_dbm", "fade_db_per_day", "loss_db")
    )
    wave = np.sin(moment / HOUR * (0.3 + (salt & 7) / 8.0) + salt)
    light = (
        base + WAVE_DB * wave + NOISE_DB * noise_of(salt, step.astype(np.int64)) - fade * moment / DAY_SECONDS - loss
    )
    light = light - lost_by_plant(onus, moment[0])[0]
    return np.asarray(np.round(np.maximum(light, FLOOR_DBM), 2))


def _flap(world: OltWorld, onu: SimulatedOnu, *, at: float) -> None:
    def down() -> None:
        world.take_down(onu, DownCause.LOS)
        world.schedule(world.now + FLAP_DOWN_SECONDS, lambda: world.bring_up(onu))
        world.schedule(world.now + FLAP_SECONDS, down)

    world.schedule(at, down)


def _largest_street(world: OltWorld) -> tuple[Place, int]:
    """Find the street with most ONUs online, on the port with most."""
    port = max(world.ports.values(), key=lambda port: port.online_count)
    streets = [onu.street for onu in port.onus.values() if onu.is_online]
    return port.place, max(sorted(set(streets)), key=streets.count, default=0)
