"""Lets things happen to a world by themselves: ONUs fail and return, fibres are cut, customers move and arrive."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from facho.polling.domain.onu_state import DownCause
from facho.simulator.onu import SimulatedOnu
from facho.simulator.shape import MAX_ONUS_PER_PORT
from facho.simulator.world import OltWorld, SimulatedPort

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
