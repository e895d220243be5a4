"""A simulated fibre plant: the splitters behind a PON port, weather, ageing and faults, and the light that they leave.

Everything is a function of time and repeatable from a seed: the demo plays it on its OLTs, and what the rules of light
find is measured on it. The truth (which fault hit which ONUs, and when) is part of it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Members = NDArray[np.bool_]

DAY_SECONDS: Final = 86_400
FIBRE_LOSS_DB_PER_KM: Final = 0.35
# What a splitter takes, by its ways, with its connectors.
SPLITTER_LOSS_DB: Final = {2: 3.7, 4: 7.2, 8: 10.5, 16: 13.8}
# Below this an ONU loses the signal and is offline.
SENSITIVITY_DBM: Final = -31.0
# By how much more or less than the others an ONU loses in a fault of several.
OWN_SHARE: Final = 0.06
# How long a loose connector keeps a level.
CONNECTOR_SECONDS: Final = 2_100
CONNECTOR_SHARE: Final = 0.25
# Light behind a wet splice is unsteady by as much as this, when the water has been there for some days.
WATER_NOISE_DB: Final = 0.25
WATER_DAYS: Final = 5.0


class PlantFault(StrEnum):
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


@dataclass(frozen=True, slots=True, eq=False)
class TrueFault:
    """A fault as it is, in seconds of the plant's time; `until` is when a visit ends it."""

    kind: PlantFault
    since: float
    until: float
    members: Members
    # dB lost at once, or dB a day.
    size: float
    # dB that the OLT receives less per dB that the ONU receives less; of an ageing laser only the OLT does.
    upstream: float = 1.0
    # What makes members differ a little, and the weather of a connector repeatable.
    salt: int = 0

    def lost_db(self, at: Floats, first: int = 0) -> tuple[Floats, Floats]:
        """What members and the OLT receive less; rows of moments are the members from the `first` one on."""
        days = np.maximum(at - self.since, 0.0) / DAY_SECONDS
        rows = np.arange(first, first + len(at), dtype=np.int64)[:, np.newaxis] + self.salt
        own = 1.0 + OWN_SHARE * noise_of(rows, np.zeros((1, 1), dtype=np.int64))
        match self.kind:
            case PlantFault.CUT | PlantFault.POWER_CUT:
                lost = np.zeros_like(at)
            case PlantFault.AGEING | PlantFault.WEAK_LASER:
                lost = self.size * own * days
            case PlantFault.WATER:
                unsteady = np.abs(noise_of(rows, (at // 60).astype(np.int64))) * np.minimum(days / WATER_DAYS, 1)
                lost = self.size * own * days + WATER_NOISE_DB * unsteady
            case PlantFault.BAD_CONNECTOR:
                slot = noise_of(np.array([[self.salt]]), (at // CONNECTOR_SECONDS).astype(np.int64))
                lost = np.where(slot < 2 * CONNECTOR_SHARE - 1, self.size, 0.0)
            case _:
                lost = np.broadcast_to(self.size * own, at.shape)
        lost = lost * ((at >= self.since) & (at < self.until))
        return lost * (self.kind is not PlantFault.WEAK_LASER), lost * self.upstream


def noise_of(salt: Ints, step: Ints) -> Floats:
    """Return repeatable numbers from -1 to 1."""
    mixed = (salt * 2_654_435_761 + step * 40_503 + 0x9E37) & 0xFFFFFFFF
    mixed = ((mixed ^ (mixed >> 15)) * 2_246_822_519) & 0xFFFFFFFF
    return np.asarray((mixed >> 8) / 0x7FFFFF - 1.0)


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """The tree of a port: each branch is the set of ONUs behind one fibre: the whole port first, boxes last."""

    branches: Sequence[Members]
    box: Ints
    distance_m: Floats
    loss_db: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Weather:
    """Degrees above the average by time: seasons, days, and fronts of some days."""

    season: float
    noon: float
    fronts: Floats

    @classmethod
    def draw(cls, rng: np.random.Generator, days: int) -> "Weather":
        fronts = np.cumsum(rng.normal(0.0, 2.0, days + 2))
        fronts -= np.linspace(fronts[0], fronts[-1], len(fronts))
        return cls(float(rng.random()), float(rng.random() * 0.1), np.clip(fronts, -8, 8))

    def degrees(self, at: Floats) -> Floats:
        days = at / DAY_SECONDS
        season = 8.0 * np.sin(2 * np.pi * (days / 365 + self.season))
        daily = 8.0 * np.sin(2 * np.pi * (days + self.noon)) * (1 + 0.3 * np.sin(2 * np.pi * days / 9.3))
        return np.asarray(season + daily + np.interp(days, np.arange(len(self.fronts)), self.fronts))


@dataclass(frozen=True, slots=True, eq=False)
class PlantPort:
    """One PON port with everything behind it, from second 0 on."""

    layout: Layout
    weather: Weather
    faults: tuple[TrueFault, ...]
    launched_dbm: float
    sent_dbm: Floats
    # dB a degree, of each ONU.
    sensitivity: Floats

    @classmethod
    def draw(cls, rng: np.random.Generator, *, days: int, rates: FaultRates) -> "PlantPort":
        layout = _lay_out(rng)
        count = len(layout.box)
        # Boxes stand in the sun or in the shade, and what is in them moves with it.
        by_box = rng.normal(0.0, 0.010, layout.box.max() + 1)[layout.box]
        return cls(
            layout,
            Weather.draw(rng, days),
            tuple(_FaultMaker(rng, layout, DAY_SECONDS, float(days * DAY_SECONDS)).make(rates, days / 90)),
            float(rng.uniform(3.0, 5.0)),
            rng.uniform(1.8, 3.5, count),
            0.006 + by_box + rng.normal(0.0, 0.006, count),
        )

    def light(self, at: Floats) -> tuple[Floats, Floats]:
        """What the ONUs receive and what the OLT receives of them, in dBm; rows of moments are ONUs."""
        warmth = self.sensitivity[:, np.newaxis] * self.weather.degrees(at)
        down = (self.launched_dbm - self.layout.loss_db)[:, np.newaxis] - warmth
        up = (self.sent_dbm - self.layout.loss_db)[:, np.newaxis] - 0.7 * warmth
        for fault in self.faults:
            down_db, up_db = fault.lost_db(at[fault.members])
            down[fault.members] -= down_db
            up[fault.members] -= up_db
        return down, up

    def without(self, kinds: Sequence[PlantFault], at: Floats) -> Members:
        """Return when ONUs are without what these faults took."""
        missing = np.zeros(at.shape, dtype=bool)
        for fault in self.faults:
            if fault.kind in kinds:
                missing |= fault.members[:, np.newaxis] & (at >= fault.since) & (at < fault.until)
        return missing


def _lay_out(rng: np.random.Generator) -> Layout:
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
    return Layout(branches, box, distance, loss)


@dataclass(slots=True, eq=False)
class _FaultMaker:
    """Draws what happens to a port in so many days; a visit ends each fault unless the days are over before."""

    rng: np.random.Generator
    layout: Layout
    start: float
    end: float
    faults: list[TrueFault] = field(default_factory=list)

    def make(self, rates: FaultRates, share: float) -> list[TrueFault]:
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
        return self.faults

    def _add(
        self, kind: PlantFault, members: Members, size: float, days: tuple[float, float], upstream: float = 1.0
    ) -> None:
        """Let a fault begin at any second, between two polls or in the middle of one."""
        since = float(self.rng.uniform(self.start, self.end))
        until = min(since + self.rng.uniform(*days) * DAY_SECONDS, self.end)
        salt = int(self.rng.integers(1 << 20))
        self.faults.append(TrueFault(kind, since, until, members, size, upstream, salt))

    def _branch(self) -> Members:
        """Draw a branch that is not the whole port, with several ONUs."""
        candidates = [each for each in self.layout.branches[1:] if each.sum() >= 3]
        return candidates[int(self.rng.integers(len(candidates)))] if candidates else self.layout.branches[0]

    def _onu(self) -> Members:
        members = np.zeros(len(self.layout.box), dtype=bool)
        members[int(self.rng.integers(len(members)))] = True
        return members

    def _bend_branch(self) -> None:
        # A bend takes more of 1490 nm than of 1310 nm; a bad splice takes the same of both.
        upstream = float(self.rng.choice([0.5, 1.0]))
        size = float(self.rng.uniform(0.8, 6.0))
        self._add(PlantFault.BRANCH_STEP, self._branch(), size, (0.1, 6.0), upstream)

    def _bend_drop(self) -> None:
        upstream = float(self.rng.choice([0.5, 1.0]))
        self._add(PlantFault.ONU_STEP, self._onu(), float(self.rng.uniform(1.0, 6.0)), (0.1, 20.0), upstream)

    def _cut(self) -> None:
        self._add(PlantFault.CUT, self._branch(), 0.0, (0.03, 0.6))

    def _cut_power(self) -> None:
        # A street without power is not a branch: it takes a part of one or two boxes.
        boxes = self.rng.choice(self.layout.box.max() + 1, 2)
        members = np.isin(self.layout.box, boxes) & (self.rng.random(len(self.layout.box)) < 0.6)
        self._add(PlantFault.POWER_CUT, members, 0.0, (0.02, 0.3))

    def _age(self) -> None:
        """Corrode one connector: a steady loss."""
        self._add(PlantFault.AGEING, self._onu(), float(self.rng.uniform(0.04, 0.35)), (15.0, 60.0))

    def _flood(self) -> None:
        """Let water into a box: all its ONUs decay, and their light becomes unsteady."""
        boxes = self.layout.branches[-int(self.layout.box.max()) - 1 :]
        members = boxes[int(self.rng.integers(len(boxes)))]
        self._add(PlantFault.WATER, members, float(self.rng.uniform(0.06, 0.3)), (15.0, 60.0))

    def _loosen(self) -> None:
        """Loosen a connector: the light jumps between two levels, many times."""
        size = float(self.rng.uniform(1.0, 4.0))
        self._add(PlantFault.BAD_CONNECTOR, self._onu(), size, (2.0, 15.0), float(self.rng.uniform(0.5, 1.5)))

    def _swap(self) -> None:
        """Give a customer another ONU, whose meter shows another level."""
        size = float(self.rng.normal(0.0, 1.2))
        self._add(PlantFault.SWAPPED_ONU, self._onu(), size, (1e4, 1e4), upstream=0.0)

    def _weaken(self) -> None:
        """Let the laser of an ONU age: the OLT receives less of it, and it receives as before."""
        self._add(PlantFault.WEAK_LASER, self._onu(), float(self.rng.uniform(0.05, 0.3)), (15.0, 60.0))
