"""Lets things happen to a simulated OLT at random, so that its journal says without doubt what is to be detected.

Within an epoch an ONU is concerned by one thing at most, and on a port that is in trouble nothing else happens.
"""

from collections.abc import Callable
from random import Random

from facho.polling.domain.onu_state import DownCause
from facho.polling.vendors.index import Place
from facho.simulator.world import OltWorld, SimulatedOnu

Action = Callable[[], object]
SINGLE_KINDS = ("fail", "recover", "move", "remove", "replace", "add", "return", "bend", "describe", "double")
CHANGES_PLACES = ("move", "remove", "replace", "double")


class Fate:
    """Decides what happens on one OLT, epoch by epoch."""

    def __init__(self, world: OltWorld, rng: Random) -> None:
        self._world, self._rng = world, rng
        # Which ports are in trouble, and what ends it.
        self._troubles: list[tuple[frozenset[Place], Action]] = []
        # Repaired ports whose card still has a trouble that may be the same outage: they have no new one.
        self._mended: set[Place] = set()
        self._removed: list[SimulatedOnu] = []
        self._leaving: list[SimulatedOnu] = []
        self._doubled: set[str] = set()
        self._touched: set[str] = set()
        self._moving: set[str] = set()
        self._busy_ports: set[Place] = set()
        self._old: set[str] = set()

    def plan_disasters(self, *, also_repairs: bool) -> list[Action]:
        """Begin an epoch with what happens to many ONUs at once."""
        self._old = {onu.serial for onu in self._world.onus}
        self._removed += self._leaving
        self._leaving = []
        self._touched, self._moving = set(self._doubled), set(self._doubled)
        self._busy_ports = {place for places, _ in self._troubles for place in places}
        self._mended = {place for place in self._mended if place[:2] in {busy[:2] for busy in self._busy_ports}}
        self._busy_ports |= self._mended
        has_disasters = self._rng.random() < 0.6
        repairs = self._plan_repairs() if also_repairs or not has_disasters else []
        return repairs + (self._plan_some_disasters() if has_disasters else [])

    def plan_singles(self, *, has_lies: bool) -> list[Action]:
        """Choose what happens to single ONUs; who moves out of a table that ends early is gone by all one can see."""
        kinds = [kind for kind in SINGLE_KINDS if not (has_lies and kind in ("double", "move"))]
        actions = [
            self._plan_single(kind, port)
            for port in self._free_ports()
            for kind in self._rng.sample(kinds, k=self._rng.randrange(4))
        ]
        return [action for action in actions if action is not None]

    def pick_garbled(self) -> list[SimulatedOnu]:
        """Choose ONUs of which impossible values are reported: any that were there before and stay where they are."""
        settled = [onu for onu in self._world.onus if onu.serial in self._old - self._moving]
        return self._rng.sample(settled, k=self._rng.randrange(6))

    def _plan_repairs(self) -> list[Action]:
        ended = [trouble for trouble in self._troubles if self._rng.random() < 0.6]
        self._troubles = [trouble for trouble in self._troubles if trouble not in ended]
        self._mended |= {place for places, _ in ended for place in places}
        return [end for _, end in ended]

    def _plan_some_disasters(self) -> list[Action]:
        actions: list[Action] = []
        for _ in range(self._rng.randint(1, 3)):
            if free := self._free_ports():
                actions.append(self._plan_disaster(self._rng.choice(free)))
        return actions

    def _plan_disaster(self, port: Place) -> Action:
        world = self._world
        card = frozenset(place for place in world.ports if place[:2] == port[:2])
        kind = self._rng.choice(("cut", "street", "street", "card"))
        if kind == "card" and not card & self._busy_ports:
            board = Place(port.frame, port.slot)
            return self._begin(card, lambda: world.fail_card(board), lambda: world.restore_card(board))
        if kind == "street":
            street = self._rng.choice([onu.street for onu in world.ports[port].onus.values()])
            off, on = (lambda: world.power_off(port, street)), (lambda: world.power_on(port, street))
            return self._begin(frozenset([port]), off, on)
        return self._begin(frozenset([port]), lambda: world.cut(port), lambda: world.restore(port))

    def _begin(self, places: frozenset[Place], begin: Action, end: Action) -> Action:
        self._troubles.append((places, end))
        self._busy_ports |= places
        return begin

    def _free_ports(self) -> list[Place]:
        return [place for place, port in self._world.ports.items() if port.onus and place not in self._busy_ports]

    def _plan_single(self, kind: str, port: Place) -> Action | None:
        world = self._world
        if kind == "add":
            return lambda: world.add(port)
        if kind == "return":
            return self._plan_return(port)
        onu = self._pick(port, is_online=kind != "recover")
        if onu is None:
            return None
        self._touched.add(onu.serial)
        self._moving.update([onu.serial] if kind in CHANGES_PLACES else [])
        self._leaving += [onu] if kind in ("remove", "replace") else []
        self._doubled.update([onu.serial] if kind == "double" else [])
        return self._action(kind, onu, port)

    def _action(self, kind: str, onu: SimulatedOnu, port: Place) -> Action:
        world, rng = self._world, self._rng
        cause, target = rng.choice((DownCause.LOS, DownCause.DYING_GASP)), rng.choice(self._free_ports())
        actions: dict[str, Action] = {
            "fail": lambda: world.take_down(onu, cause),
            "recover": lambda: world.bring_up(onu),
            "move": lambda: self._move(onu, target),
            "remove": lambda: world.remove(onu),
            "replace": lambda: world.replace(onu),
            "bend": lambda: world.dim(onu, 0.0 if onu.loss_db else 6.0),
            "describe": lambda: world.describe(onu, f"{onu.description} again"),
            "double": lambda: world.add_double(onu, target),
        }
        return actions[kind]

    def _move(self, onu: SimulatedOnu, target: Place) -> None:
        """Move an ONU to where quite another light arrives."""
        onu.rx_dbm = -16.0 if onu.rx_dbm < -20.0 else -24.0
        self._world.move(onu, target)

    def _plan_return(self, port: Place) -> Action | None:
        if not self._removed:
            return None
        onu = self._removed.pop()
        self._touched.add(onu.serial)
        self._moving.add(onu.serial)
        return lambda: self._world.bring_back(onu, port)

    def _pick(self, port: Place, *, is_online: bool) -> SimulatedOnu | None:
        onus = [
            onu
            for onu in self._world.ports[port].onus.values()
            if onu.is_online is is_online and onu.serial not in self._touched
        ]
        return self._rng.choice(onus) if onus else None
