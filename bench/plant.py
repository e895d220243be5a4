"""A simulated fibre plant: the splitters behind a PON port, weather, ageing and faults, and the light that ONUs report.

It plays weeks of one port at once, as arrays, for measuring what the rules of light find. Everything is repeatable
from a seed, and the truth (which fault hit whom, and when) is returned with what a poller would have read.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Members = NDArray[np.bool_]

DAY_SECONDS = 86_400
FIBRE_LOSS_DB_PER_KM = 0.35
# What a splitter takes, by its ways, with its connectors.
SPLITTER_LOSS_DB = {2: 3.7, 4: 7.2, 8: 10.5, 16: 13.8}
# Below this an ONU loses the signal and is offline.
SENSITIVITY_DBM = -31.0


class PlantFault(StrEnum):
    """What can happen to the plant."""

    BRANCH_STEP = "branch_step"
    ONU_STEP = "onu_step"
    CUT = "cut"
    POWER_CUT = "power_cut"
    AGEING = "ageing"
    WATER = "water"
    BAD_CONNECTOR = "bad_connector"
    SWAPPED_ONU = "swapped_onu"
    WEAK_LASER = "weak_laser"


@dataclass(frozen=True, slots=True)
class FaultRates:
    """How often each fault happens, per port and 90 days."""

    branch_steps: float = 1.6
    onu_steps: float = 2.0
    cuts: float = 1.6
    power_cuts: float = 1.5
    ageing: float = 0.5
    water: float = 0.25
    bad_connectors: float = 0.5
    swapped_onus: float = 0.8
    weak_lasers: float = 0.3


HEALTHY = FaultRates(0, 0, 0, 0, 0, 0, 0, 0, 0)


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
class TrueFault:
    """A fault as it was: polls are indexes of the port's times, `until` is when a visit ended it, or the last poll."""

    kind: PlantFault
    since: int
    until: int
    members: Members
    # dB lost at once, or dB per day of a decay.
    size: float


@dataclass(frozen=True, slots=True, eq=False)
class PlantPort:
    """What a poller reads of a port, and the truth. Rows are ONUs, columns polls; NaN is a missing reading."""

    at: NDArray[np.int64]
    rx_dbm: Floats
    olt_rx_dbm: Floats
    distance_m: Floats
    # Offline without a dying gasp: the fibre is dark.
    is_dark: Members
    # The box of each ONU.
    box: NDArray[np.int64]
    # Light without noise and quantisation.
    true_rx_dbm: Floats
    faults: tuple[TrueFault, ...]


@dataclass(frozen=True, slots=True, eq=False)
class _Layout:
    """The tree of a port: each branch is the set of ONUs behind one piece of fibre, boxes last."""

    branches: Sequence[Members]
    box: NDArray[np.int64]
    distance_m: Floats
    loss_db: Floats


def simulate_port(seed: object, settings: PlantSettings) -> PlantPort:
    """Play one PON port from `seed`."""
    rng = np.random.default_rng(np.frombuffer(str(seed).encode(), dtype=np.uint8).astype(np.uint32))
    layout = _lay_out(rng)
    count, polls = len(layout.box), settings.polls
    at = np.arange(polls, dtype=np.int64) * settings.poll_seconds
    down_loss, up_loss = np.zeros((count, polls)), np.zeros((count, polls))
    is_dark, is_off = np.zeros((count, polls), dtype=bool), np.zeros((count, polls), dtype=bool)
    faults = _Faults(rng, settings, layout, down_loss, up_loss, is_dark, is_off)
    faults.play()
    warmth = _weather(rng, at)
    # Boxes stand in the sun or in the shade, and what is in them moves with it.
    by_box = rng.normal(0.0, 0.008, layout.box.max() + 1)[layout.box]
    sensitivity = 0.004 + by_box + rng.normal(0.0, 0.006, count)
    launched = rng.uniform(3.0, 5.0)
    true_rx = (launched - layout.loss_db)[:, np.newaxis] - sensitivity[:, np.newaxis] * warmth - down_loss
    true_up = rng.uniform(1.8, 3.5, count)[:, np.newaxis] - layout.loss_db[:, np.newaxis]
    true_up = true_up - 0.7 * sensitivity[:, np.newaxis] * warmth - up_loss
    is_read = _answers(rng, count, polls) & ~is_dark & ~is_off & (true_rx > SENSITIVITY_DBM)
    # One meter in twenty knows half decibels only.
    rx = _measured(rng, true_rx, noise=(0.03, 0.15), steps=(0.01, 0.1, 0.5), shares=(0.5, 0.45, 0.05))
    up = _measured(rng, true_up, noise=(0.10, 0.35), steps=(0.01, 0.1, 0.5), shares=(0.5, 0.45, 0.05))
    rx[~is_read], up[~is_read] = np.nan, np.nan
    distance = np.rint(layout.distance_m + rng.normal(0.0, 3.0, count))
    is_dark |= (true_rx <= SENSITIVITY_DBM) & ~is_off
    return PlantPort(at, rx, up, distance, is_dark, layout.box, true_rx, tuple(faults.happened))


def _lay_out(rng: np.random.Generator) -> _Layout:
    """Lay a feeder, a first splitter, a fibre to each box with a second one, and a drop to each customer."""
    feeder_m = rng.uniform(300, 9_000)
    ways = int(rng.choice([4, 8], p=[0.5, 0.5]))
    box_ways = 16 if ways == 4 else 8
    # The street from the first splitter to the boxes; two boxes may well be equally far.
    box_m = feeder_m + rng.uniform(30, 1_800, ways)
    used = np.maximum(rng.binomial(box_ways, rng.uniform(0.45, 0.9), ways), 1)
    box = np.repeat(np.arange(ways), used)
    drop_m = 15 + rng.gamma(2.0, 25.0, len(box))
    distance = box_m[box] + drop_m
    box_loss = rng.normal(0.6, 0.3, ways)[box]
    loss = (
        FIBRE_LOSS_DB_PER_KM * distance / 1000
        + SPLITTER_LOSS_DB[ways]
        + SPLITTER_LOSS_DB[box_ways]
        + np.abs(box_loss)
        + np.abs(rng.normal(0.4, 0.7, len(box)))
    )
    # Two boxes often share a cable from the first splitter on.
    pairs = [np.isin(box, (first, first + 1)) for first in range(0, ways - 1, 2) if rng.random() < 0.5]
    branches = [np.ones(len(box), dtype=bool), *pairs, *(box == number for number in range(ways))]
    return _Layout(branches, box, distance, loss)


def _weather(rng: np.random.Generator, at: NDArray[np.int64]) -> Floats:
    """Return degrees above the average: seasons, days, and fronts of some days."""
    days = at / DAY_SECONDS
    season = 8.0 * np.sin(2 * np.pi * (days / 365 + rng.random()))
    daily = 6.0 * np.sin(2 * np.pi * (days + rng.random() * 0.1)) * (1 + 0.3 * np.sin(2 * np.pi * days / 9.3))
    fronts = np.cumsum(rng.normal(0.0, 2.0, int(days[-1]) + 2))
    fronts -= np.linspace(fronts[0], fronts[-1], len(fronts))
    slow = np.interp(days, np.arange(len(fronts)), np.clip(fronts, -8, 8))
    return np.asarray(season + daily + slow)


def _answers(rng: np.random.Generator, count: int, polls: int) -> Members:
    """Tell which readings come: some customers switch their ONU off, single readings fail."""
    answers = rng.random((count, polls)) > 0.003
    for onu in np.flatnonzero(rng.random(count) < 0.1):
        for _ in range(rng.poisson(6)):
            start = int(rng.integers(0, polls))
            answers[onu, start : start + int(rng.integers(6, 200))] = False
    return answers


def _measured(
    rng: np.random.Generator,
    true: Floats,
    *,
    noise: tuple[float, float],
    steps: tuple[float, ...],
    shares: tuple[float, ...],
) -> Floats:
    """Add what each ONU's meter adds: noise of its own, and its resolution."""
    count = len(true)
    sigma = rng.uniform(*noise, count)[:, np.newaxis]
    step = rng.choice(steps, count, p=shares)[:, np.newaxis]
    return np.asarray(np.rint((true + rng.normal(0.0, 1.0, true.shape) * sigma) / step) * step)


@dataclass(slots=True, eq=False)
class _Faults:
    """Plays the faults of a port into its arrays of loss and darkness."""

    rng: np.random.Generator
    settings: PlantSettings
    layout: _Layout
    down_loss: Floats
    up_loss: Floats
    is_dark: Members
    is_off: Members
    happened: list[TrueFault] = field(default_factory=list)

    def play(self) -> None:
        rates, share = self.settings.rates, self.settings.days / 90
        for rate, act in (
            (rates.branch_steps, self._bend_branch),
            (rates.onu_steps, self._bend_drop),
            (rates.cuts, self._cut),
            (rates.power_cuts, self._cut_power),
            (rates.ageing, self._age),
            (rates.water, self._flood),
            (rates.bad_connectors, self._loosen),
            (rates.swapped_onus, self._swap),
            (rates.weak_lasers, self._weaken),
        ):
            for _ in range(self.rng.poisson(rate * share)):
                act()

    @property
    def _polls(self) -> int:
        return int(self.down_loss.shape[1])

    @property
    def _polls_per_day(self) -> int:
        return DAY_SECONDS // self.settings.poll_seconds

    def _when(self, days: tuple[float, float]) -> tuple[int, int]:
        """Draw a beginning, and the visit that ends it after so many days."""
        since = int(self.rng.integers(self._polls_per_day, self._polls - 2))
        lasts = int(self.rng.uniform(*days) * self._polls_per_day)
        return since, min(since + max(lasts, 1), self._polls)

    def _branch(self) -> Members:
        """Draw a branch that is not the whole port, with several ONUs."""
        candidates = [each for each in self.layout.branches[1:] if each.sum() >= 3]
        return candidates[int(self.rng.integers(len(candidates)))] if candidates else self.layout.branches[0]

    def _onu(self) -> Members:
        members = np.zeros(len(self.layout.box), dtype=bool)
        members[int(self.rng.integers(len(members)))] = True
        return members

    def _lose(self, members: Members, since: int, until: int, size: float, upstream: float) -> None:
        own = size * self.rng.normal(1.0, 0.03, int(members.sum()))[:, np.newaxis]
        self.down_loss[members, since:until] += own
        self.up_loss[members, since:until] += own * upstream

    def _remember(self, kind: PlantFault, since: int, until: int, members: Members, size: float) -> None:
        self.happened.append(TrueFault(kind, since, until, members, size))

    def _bend_branch(self) -> None:
        members, (since, until) = self._branch(), self._when((0.1, 6.0))
        size = float(self.rng.uniform(0.8, 6.0))
        # A bend takes more of 1490 nm than of 1310 nm; a bad splice takes the same of both.
        self._lose(members, since, until, size, float(self.rng.choice([0.5, 1.0])))
        self._remember(PlantFault.BRANCH_STEP, since, until, members, size)

    def _bend_drop(self) -> None:
        members, (since, until) = self._onu(), self._when((0.1, 20.0))
        size = float(self.rng.uniform(1.0, 6.0))
        self._lose(members, since, until, size, float(self.rng.choice([0.5, 1.0])))
        self._remember(PlantFault.ONU_STEP, since, until, members, size)

    def _cut(self) -> None:
        members, (since, until) = self._branch(), self._when((0.03, 0.6))
        self.is_dark[members, since:until] = True
        self._remember(PlantFault.CUT, since, until, members, 0.0)

    def _cut_power(self) -> None:
        # A street without power is not a branch: it takes a part of one or two boxes.
        boxes = self.rng.choice(self.layout.box.max() + 1, 2)
        members = np.isin(self.layout.box, boxes) & (self.rng.random(len(self.layout.box)) < 0.6)
        since, until = self._when((0.02, 0.3))
        self.is_off[members, since:until] = True
        self._remember(PlantFault.POWER_CUT, since, until, members, 0.0)

    def _age(self) -> None:
        """Corrode one connector: a steady loss that a visit ends, if it comes before the end."""
        members, rate = self._onu(), float(self.rng.uniform(0.04, 0.35))
        self._decay(PlantFault.AGEING, members, rate, noise=0.0)

    def _flood(self) -> None:
        """Let water into a box: all its ONUs decay, and their light becomes unsteady."""
        boxes = self.layout.branches[-int(self.layout.box.max()) - 1 :]
        members = boxes[int(self.rng.integers(len(boxes)))]
        self._decay(PlantFault.WATER, members, float(self.rng.uniform(0.06, 0.3)), noise=0.15)

    def _decay(self, kind: PlantFault, members: Members, rate: float, *, noise: float) -> None:
        since, until = self._when((15.0, 60.0))
        days = np.arange(until - since) / self._polls_per_day
        own = rate * self.rng.normal(1.0, 0.1, int(members.sum()))[:, np.newaxis]
        loss = own * days + noise * np.abs(self.rng.normal(0.0, 1.0, (len(own), len(days)))) * np.minimum(days / 5, 1)
        self.down_loss[members, since:until] += loss
        self.up_loss[members, since:until] += loss
        self._remember(kind, since, until, members, rate)

    def _loosen(self) -> None:
        """Loosen a connector: the light jumps between two levels, many times."""
        members, (since, until) = self._onu(), self._when((2.0, 15.0))
        bursts = np.repeat(self.rng.random((until - since) // 7 + 1) < 0.25, 7)[: until - since]
        self.down_loss[members, since:until] += bursts * self.rng.uniform(1.0, 4.0)
        self.up_loss[members, since:until] += bursts * self.rng.uniform(1.0, 4.0)
        self._remember(PlantFault.BAD_CONNECTOR, since, until, members, 0.0)

    def _swap(self) -> None:
        """Give a customer another ONU, whose meter shows another level."""
        members, (since, _) = self._onu(), self._when((1.0, 1.0))
        size = float(self.rng.normal(0.0, 1.2))
        self.down_loss[members, since:] += size
        self._remember(PlantFault.SWAPPED_ONU, since, self._polls, members, size)

    def _weaken(self) -> None:
        """Let the laser of an ONU age: the OLT receives less of it, and it receives as before."""
        members, rate, (since, until) = self._onu(), float(self.rng.uniform(0.05, 0.3)), self._when((15.0, 60.0))
        self.up_loss[members, since:until] += rate * np.arange(until - since) / self._polls_per_day
        self._remember(PlantFault.WEAK_LASER, since, until, members, rate)
