"""Samples like those of a fleet: slow waves, the noise of a cheap sensor, some ONUs dark for a while. Pure numpy."""

import numpy as np
from numpy.typing import NDArray

from facho.onus.history_models import STATE_CODES, Metric

Floats = NDArray[np.float64]

DARK_SHARE = 0.02
_LONGEST_DARK_POLLS = 40


def samples_of(onus: int, at: NDArray[np.int64], *, seed: int) -> dict[Metric, Floats]:
    """Return the value of each ONU (rows) at each time (columns, seconds of the epoch); NaN where it is dark."""
    rng = np.random.default_rng(seed)
    shape = (onus, len(at))
    wave = np.sin(at / 3_600 * rng.uniform(0.3, 1.2, (onus, 1)) + rng.uniform(0, 6, (onus, 1)))
    rx = rng.uniform(-27, -15, (onus, 1)) + 0.35 * wave + rng.normal(0, 0.08, shape)
    warmth = rng.uniform(35, 60, (onus, 1)) + 4 * np.sin(2 * np.pi * at / 86_400)
    values = {
        Metric.RX_POWER: rx,
        Metric.TX_POWER: rng.uniform(1.5, 3, (onus, 1)) + rng.normal(0, 0.03, shape),
        Metric.OLT_RX_POWER: rx - 1.7 + rng.normal(0, 0.17, shape),
        Metric.TEMPERATURE: np.rint(warmth + rng.normal(0, 0.5, shape)),
        Metric.DISTANCE: rng.integers(100, 19_000, (onus, 1)) + rng.integers(0, 2, shape) * 1.0,
    }
    is_dark = _dark(rng, shape)
    for column in values.values():
        column[is_dark] = np.nan
    return {**values, Metric.STATE: np.where(is_dark, STATE_CODES["offline"], STATE_CODES["online"]) * 1.0}


def _dark(rng: np.random.Generator, shape: tuple[int, int]) -> NDArray[np.bool_]:
    """Let some ONUs be dark for a stretch at a time."""
    is_dark = np.zeros(shape, dtype=bool)
    falls = rng.random(shape) < 2 * DARK_SHARE / _LONGEST_DARK_POLLS
    for row, first in zip(*falls.nonzero(), strict=True):
        is_dark[row, first : first + int(rng.integers(1, _LONGEST_DARK_POLLS))] = True
    return is_dark
