"""The light of an ONU as a pure function of the ONU and of world time: slow waves, a little noise, some fading."""

import math
from dataclasses import dataclass

from facho.simulator.onu import Onu

# Readings change in steps, so that everything encoded in between can be reused.
DRIFT_STEP_SECONDS = 60.0
DAY_SECONDS = 86_400.0
WAVE_DB = 0.35
NOISE_DB = 0.1
FLOOR_DBM = -39.5


@dataclass(frozen=True, slots=True)
class Optics:
    """What an ONU would report about its transceiver at one moment."""

    rx_dbm: float
    tx_dbm: float
    olt_rx_dbm: float
    temperature_c: float
    voltage_v: float
    bias_ma: float


def drift_step(at: float) -> int:
    """The step that world second `at` belongs to; readings are constant within a step."""
    return int(at // DRIFT_STEP_SECONDS)


def read_optics(onu: Onu, *, at: float) -> Optics:
    """Compute the readings of an ONU that is online."""
    step = drift_step(at)
    moment = step * DRIFT_STEP_SECONDS
    wave = math.sin(moment / 3600.0 * (0.3 + (onu.salt & 7) / 8.0) + onu.salt)
    rx = max(
        onu.rx_dbm + WAVE_DB * wave + NOISE_DB * _noise(onu.salt, step) - _faded_db(onu, moment) - onu.loss_db,
        FLOOR_DBM,
    )
    temperature = onu.temperature_c + 4.0 * math.sin(2 * math.pi * moment / DAY_SECONDS) + _noise(onu.salt + 1, step)
    return Optics(
        rx_dbm=round(rx, 2),
        tx_dbm=round(onu.tx_dbm + 0.05 * _noise(onu.salt + 2, step), 2),
        olt_rx_dbm=round(rx - 1.7 + 0.3 * _noise(onu.salt + 3, step), 2),
        temperature_c=round(temperature),
        voltage_v=round(3.3 + 0.04 * _noise(onu.salt + 4, step), 3),
        bias_ma=round(12 + (onu.salt & 3) + (temperature - 45) / 10),
    )


def _faded_db(onu: Onu, moment: float) -> float:
    return onu.fade_db_per_day * moment / DAY_SECONDS


def _noise(salt: int, step: int) -> float:
    """A repeatable number between -1 and 1."""
    mixed = (salt * 2_654_435_761 + step * 40_503 + 0x9E37) & 0xFFFFFFFF
    mixed = ((mixed ^ (mixed >> 15)) * 2_246_822_519) & 0xFFFFFFFF
    return (mixed >> 8) / 0x7FFFFF - 1.0
