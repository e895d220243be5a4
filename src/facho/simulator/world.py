"""One simulated OLT as a world: ports, ONUs, what is done to them and a journal of it.

The world never reads a clock: `advance` moves it to a moment, and everything happens at the moment it was due.
"""

import heapq
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Protocol

from facho.polling.domain.onu_state import DownCause, RunState
from facho.polling.vendors.index import Place
from facho.simulator.customers import CustomerMaker
from facho.simulator.journal import JournalEntry, JournalKind
from facho.simulator.onu import Onu
from facho.simulator.shape import MAX_ONUS_PER_PORT, Shape

Action = Callable[[], None]


class WorldListener(Protocol):
    """Hears about every change, so that only what changed is encoded again."""

    def onu_changed(self, onu: Onu) -> None: ...

    def onu_added(self, onu: Onu) -> None: ...

    def onu_removed(self, onu: Onu) -> None: ...

    def port_changed(self, port: "PonPort") -> None: ...


@dataclass(slots=True)
class PonPort:
    """A PON port and the ONUs on it, by their id; `returning` come back when its fibre is mended."""

    place: Place
    onus: dict[int, Onu] = field(default_factory=dict)
    is_cut: bool = False
    returning: list[Onu] = field(default_factory=list)

    @property
    def online_count(self) -> int:
        return sum(onu.is_online for onu in self.onus.values())


class OltWorld:
    """The truth about one OLT. Commands act at `now`; `schedule` lets them act later."""

    def __init__(
        self, name: str, shape: Shape, customers: CustomerMaker, spread: Mapping[Place, Sequence[int]]
    ) -> None:
        self.name = name
        self.shape = shape
        self.now = 0.0
        self.journal: list[JournalEntry] = []
        self.listeners: list[WorldListener] = []
        self._customers = customers
        self._due: list[tuple[float, int, Action]] = []
        self._order = count()
        self._is_silent = False
        # Streets without power, and who comes back with it.
        self._dark: dict[tuple[Place, int], list[Onu]] = {}
        self.ports = {place: self._settle(place, ids) for place, ids in spread.items()}

    def _settle(self, place: Place, ids: Sequence[int]) -> PonPort:
        return PonPort(place, {onu: self._customers.make_settled(place._replace(onu=onu)) for onu in ids})

    @property
    def onus(self) -> Iterator[Onu]:
        """All ONUs in the order of ports and ids."""
        for port in self.ports.values():
            for _, onu in sorted(port.onus.items()):
                yield onu

    def port_of(self, onu: Onu) -> PonPort:
        return self.ports[onu.place.pon]

    def find(self, serial: str) -> Onu:
        """Return the ONU with a serial; KeyError when this OLT has none."""
        for onu in self.onus:
            if onu.serial == serial:
                return onu
        raise KeyError(serial)

    def schedule(self, at: float, action: Action) -> None:
        """Let an action happen when the world reaches second `at`."""
        heapq.heappush(self._due, (at, next(self._order), action))

    def advance(self, now: float) -> None:
        """Move to second `now`; whatever was due before happens in order, at its own time."""
        while self._due and self._due[0][0] <= now:
            at, _, action = heapq.heappop(self._due)
            self.now = max(self.now, at)
            action()
        self.now = max(self.now, now)

    def take_down(self, onu: Onu, cause: DownCause) -> None:
        """Take an ONU offline; one that is offline already keeps its cause."""
        if not onu.is_online:
            return
        onu.state = RunState.OFFLINE
        onu.last_down_cause = cause
        onu.last_down_at = self.now
        self._record(JournalKind.ONU_DOWN, onu, cause=cause)
        self._tell_changed(onu)

    def bring_up(self, onu: Onu) -> None:
        """Bring an ONU back; without fibre or power it waits for them, and one that was removed stays away."""
        port = self.port_of(onu)
        if onu.is_online or port.onus.get(onu.place.onu) is not onu or self._waits_in_the_dark(onu):
            return
        onu.state = RunState.ONLINE
        onu.last_up_at = self.now
        self._record(JournalKind.ONU_UP, onu)
        self._tell_changed(onu)

    def cut(self, place: Place) -> list[Onu]:
        """Cut the fibre of a port: every ONU on it loses its signal. Return those it took down."""
        port = self.ports[place]
        if port.is_cut:
            return []
        port.is_cut = True
        self._record_place(JournalKind.PON_CUT, place)
        lost = [onu for onu in port.onus.values() if onu.is_online]
        for onu in lost:
            self.take_down(onu, DownCause.LOS)
        port.returning = list(lost)
        # Told here as well, for a port without anybody online.
        self._tell_port(port)
        return lost

    def restore(self, place: Place) -> None:
        """Mend the fibre of a port: the ONUs that the cut took down come back."""
        port = self.ports[place]
        if not port.is_cut:
            return
        port.is_cut = False
        self._record_place(JournalKind.PON_RESTORED, place)
        for onu in port.returning:
            self.bring_up(onu)
        port.returning = []
        self._tell_port(port)

    def move(self, onu: Onu, place: Place) -> None:
        """Move an ONU to another port, where it takes the first free id."""
        source, target = onu.place, place._replace(onu=self.free_id(place))
        self._detach(onu)
        onu.last_up_at = self.now if onu.is_online else onu.last_up_at
        onu.place = target
        self._attach(onu)
        self._record(JournalKind.ONU_MOVED, onu, moved_from=source)
        if onu.is_online and self._waits_in_the_dark(onu):
            self.take_down(onu, self._darkness_of(onu))

    def add(self, place: Place) -> Onu:
        """Let a new customer appear on a port."""
        return self._appear(self._customers.make(place._replace(onu=self.free_id(place)), at=self.now))

    def add_double(self, onu: Onu, place: Place) -> Onu:
        """Let somebody appear on a port whose device has the serial of another one."""
        double = self._customers.make(place._replace(onu=self.free_id(place)), at=self.now)
        double.serial = onu.serial
        return self._appear(double)

    def bring_back(self, onu: Onu, place: Place) -> None:
        """Register an ONU again that was removed before."""
        onu.place = place._replace(onu=self.free_id(place))
        onu.state, onu.last_up_at = RunState.ONLINE, self.now
        self._appear(onu)

    def _appear(self, onu: Onu) -> Onu:
        self._attach(onu)
        self._record(JournalKind.ONU_APPEARED, onu)
        if self._waits_in_the_dark(onu):
            self.take_down(onu, self._darkness_of(onu))
        return onu

    def remove(self, onu: Onu) -> None:
        """Delete an ONU from the OLT's configuration."""
        self._detach(onu)
        self._record(JournalKind.ONU_REMOVED, onu)

    def replace(self, onu: Onu) -> Onu:
        """Put another device in the place of one that is taken away."""
        self.remove(onu)
        return self._appear(self._customers.make(onu.place, at=self.now))

    def power_off(self, place: Place, street: int) -> list[Onu]:
        """Take the power from a street of a port: every ONU in it gasps and is gone. Return those it took down."""
        if (place, street) in self._dark:
            return []
        self._record_place(JournalKind.POWER_LOST, place, street=street)
        lost = [onu for onu in self.ports[place].onus.values() if onu.street == street and onu.is_online]
        for onu in lost:
            self.take_down(onu, DownCause.DYING_GASP)
        self._dark[place, street] = list(lost)
        return lost

    def power_on(self, place: Place, street: int) -> None:
        """Give a street its power back: whoever is there because of it comes back."""
        returning = self._dark.pop((place, street), None)
        if returning is None:
            return
        self._record_place(JournalKind.POWER_BACK, place, street=street)
        for onu in returning:
            self.bring_up(onu)

    def fail_card(self, board: Place) -> list[Onu]:
        """Let a card die: all its ports go dark. Return the ONUs it took down."""
        self._record_place(JournalKind.CARD_FAILED, board)
        return [onu for place in self._ports_on(board) for onu in self.cut(place)]

    def restore_card(self, board: Place) -> None:
        """Replace a card that died."""
        self._record_place(JournalKind.CARD_RESTORED, board)
        for place in self._ports_on(board):
            self.restore(place)

    def dim(self, onu: Onu, loss_db: float) -> None:
        """Let an ONU's light lose so much, in all, from now on; 0 is a repair."""
        onu.loss_db = loss_db
        self._record(JournalKind.ONU_DIMMED, onu, loss_db=loss_db)
        self._tell_changed(onu)

    def describe(self, onu: Onu, description: str) -> None:
        """Let the provider write another description."""
        onu.description = description
        self._record(JournalKind.ONU_DESCRIBED, onu, description=description)
        self._tell_changed(onu)

    def garble(self, onu: Onu) -> None:
        """Tell impossible values of an ONU from now on."""
        if not onu.is_garbled:
            onu.is_garbled = True
            self._record(JournalKind.ONU_GARBLED, onu)
            self._tell_changed(onu)

    def clear(self, onu: Onu) -> None:
        """Tell the truth about an ONU again."""
        if onu.is_garbled:
            onu.is_garbled = False
            self._record(JournalKind.ONU_CLEAR, onu)
            self._tell_changed(onu)

    def fall_silent(self) -> None:
        """Write down that the OLT answers nobody from now on."""
        if not self._is_silent:
            self._is_silent = True
            self._record_place(JournalKind.OLT_SILENT, Place())

    def speak(self) -> None:
        """Write down that the OLT answers again."""
        if self._is_silent:
            self._is_silent = False
            self._record_place(JournalKind.OLT_HEARD, Place())

    def free_id(self, place: Place) -> int:
        """Return the lowest free ONU id of a port; ValueError when it is full."""
        taken = self.ports[place].onus
        for onu_id in range(self.shape.first_onu, self.shape.first_onu + MAX_ONUS_PER_PORT):
            if onu_id not in taken:
                return onu_id
        raise ValueError(f"PON port {place} is full")

    def _ports_on(self, board: Place) -> list[Place]:
        return [place for place in self.ports if place[:2] == board[:2]]

    def _darkness_of(self, onu: Onu) -> DownCause:
        return DownCause.LOS if self.port_of(onu).is_cut else DownCause.DYING_GASP

    def _waits_in_the_dark(self, onu: Onu) -> bool:
        """Put an ONU that has no fibre or no power among those that come back with it."""
        street = self._dark.get((onu.place.pon, onu.street))
        port = self.port_of(onu)
        waiting = port.returning if port.is_cut else street
        if waiting is None:
            return False
        waiting.append(onu)
        return True

    def _attach(self, onu: Onu) -> None:
        port = self.port_of(onu)
        port.onus[onu.place.onu] = onu
        for listener in self.listeners:
            listener.onu_added(onu)
        self._tell_port(port)

    def _detach(self, onu: Onu) -> None:
        port = self.port_of(onu)
        for listener in self.listeners:
            listener.onu_removed(onu)
        del port.onus[onu.place.onu]
        self._tell_port(port)

    def _tell_changed(self, onu: Onu) -> None:
        for listener in self.listeners:
            listener.onu_changed(onu)
        self._tell_port(self.port_of(onu))

    def _tell_port(self, port: PonPort) -> None:
        for listener in self.listeners:
            listener.port_changed(port)

    def _record(self, kind: JournalKind, onu: Onu, **details: Any) -> None:
        self.journal.append(JournalEntry(self.now, kind, self.name, onu.place, onu.serial, **details))

    def _record_place(self, kind: JournalKind, place: Place, *, street: int | None = None) -> None:
        self.journal.append(JournalEntry(self.now, kind, self.name, place, street=street))
