"""What a poller reads of a simulated plant: readings one after the other, meters with noise and steps, and gaps.

It plays weeks of one port at once, as arrays, next to the truth that no poller knows.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from facho.simulator.plant import DAY_SECONDS, SENSITIVITY_DBM, FaultRates, PlantFault, PlantPort, TrueFault

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

# A pass over an OLT reaches a port at any time of its first minute, and then reads four ONUs a second.
PASS_SECONDS, ONU_SECONDS = 60.0, 0.25
# The shares of single readings, and of polls of the whole OLT, that are missing.
MISSING_READINGS, MISSED_POLLS = 0.003, 0.004
# How often an OLT is silent in 90 days, and for how many polls.
SILENCES, SILENT_POLLS = 2.0, (2, 70)
# Of ten customers one switches the ONU off now and then.
OFF_SHARE, OFF_TIMES, OFF_POLLS = 0.1, 6.0, (6, 200)
# Meters: their noise, and their steps with the share of ONUs that has them. One in twenty knows half decibels only.
ONU_NOISE_DB, OLT_NOISE_DB = (0.03, 0.15), (0.10, 0.35)
METER_STEPS_DB, METER_SHARES = (0.01, 0.1, 0.5), (0.5, 0.45, 0.05)

# No fault of the fibre that several customers share, or that grows: the ups and downs of single customers stay.
HEALTHY = FaultRates(branch_steps=0, cuts=0, ageing=0, water=0)


@dataclass(frozen=True, slots=True)
class PlantSettings:
    """How long and how often the plant is read."""

    days: int = 90
    poll_seconds: int = 300
    rates: FaultRates = field(default_factory=FaultRates)

    @property
    def polls(self) -> int:
        return self.days * DAY_SECONDS // self.poll_seconds


@dataclass(frozen=True, slots=True, eq=False)
class PortReadings:
    """What a poller reads of a port, and the truth. Rows are ONUs, columns polls; NaN is a missing reading."""

    # When each ONU was read in each poll, in seconds.
    at: Floats
    rx_dbm: Floats
    olt_rx_dbm: Floats
    distance_m: Floats
    # Offline without a dying gasp: the fibre is dark.
    is_dark: Mask
    # The box of each ONU.
    box: NDArray[np.int64]
    # Light without noise and quantisation.
    true_rx_dbm: Floats
    faults: tuple[TrueFault, ...]

    def first_poll(self, fault: TrueFault) -> int:
        """The first poll in which an ONU was read after a fault came; one past the last if there is none."""
        after = (self.at >= fault.since) & fault.members[:, np.newaxis]
        return int(np.argmax(after.any(axis=0))) if after.any() else self.at.shape[1]


def simulate_port(seed: object, settings: PlantSettings) -> PortReadings:
    """Play one PON port from `seed`, and read it."""
    rng = np.random.default_rng(np.frombuffer(str(seed).encode(), dtype=np.uint8).astype(np.uint32))
    plant = PlantPort.draw(rng, days=settings.days, rates=settings.rates)
    count, polls = len(plant.layout.box), settings.polls
    started = np.arange(polls) * float(settings.poll_seconds) + rng.uniform(0.0, PASS_SECONDS)
    at = started + (ONU_SECONDS * np.arange(count))[:, np.newaxis]
    true_rx, true_up = plant.light(at)
    is_off = plant.without((PlantFault.POWER_CUT,), at)
    is_dark = (plant.without((PlantFault.CUT,), at) | (true_rx <= SENSITIVITY_DBM)) & ~is_off
    is_read = _answers(rng, count, settings) & ~is_dark & ~is_off
    rx, up = _measured(rng, true_rx, ONU_NOISE_DB), _measured(rng, true_up, OLT_NOISE_DB)
    rx[~is_read], up[~is_read] = np.nan, np.nan
    distance = np.rint(plant.layout.distance_m + rng.normal(0.0, 3.0, count))
    return PortReadings(at, rx, up, distance, is_dark, plant.layout.box, true_rx, plant.faults)


def _answers(rng: np.random.Generator, count: int, settings: PlantSettings) -> Mask:
    """Tell which readings come: customers switch their ONU off, single readings fail, and OLTs do not answer."""
    polls = settings.polls
    answers = (rng.random((count, polls)) > MISSING_READINGS) & (rng.random(polls) > MISSED_POLLS)
    for onu in np.flatnonzero(rng.random(count) < OFF_SHARE):
        for _ in range(rng.poisson(OFF_TIMES)):
            start = int(rng.integers(0, polls))
            answers[onu, start : start + int(rng.integers(*OFF_POLLS))] = False
    for _ in range(rng.poisson(SILENCES * settings.days / 90)):
        start = int(rng.integers(0, polls))
        answers[:, start : start + int(rng.integers(*SILENT_POLLS))] = False
    return np.asarray(answers)


def _measured(rng: np.random.Generator, true: Floats, noise: tuple[float, float]) -> Floats:
    """Add what each meter adds: noise of its own, and its resolution."""
    count = len(true)
    sigma = rng.uniform(*noise, count)[:, np.newaxis]
    step = rng.choice(METER_STEPS_DB, count, p=METER_SHARES)[:, np.newaxis]
    return np.asarray(np.rint((true + rng.normal(0.0, 1.0, true.shape) * sigma) / step) * step)
