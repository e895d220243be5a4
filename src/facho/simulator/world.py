"""One simulated OLT as a world: ports, ONUs, what is done to them and a journal of it.

The world never reads a clock: `advance` moves it to a moment, and everything happens at the moment it was due.
"""

import heapq
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Protocol

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
        self.ports = {place: self._settle(place, ids) for place, ids in spread.items()}

    def _settle(self, place: Place, ids: Sequence[int]) -> PonPort:
        return PonPort(place, {onu: self._customers.make_settled(place._replace(onu=onu)) for onu in ids})

    @property
    def onus(self) -> Iterator[Onu]:
        """All ONUs in the order of ports and ids."""
        for port in self.ports.values():
            for _, onu in sorted(port.onus.items()):
                yield onu

    @property
    def next_due_at(self) -> float:
        return self._due[0][0] if self._due else float("inf")

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
        """Bring an ONU back; on a cut fibre it waits for the repair, and one that was removed stays away."""
        port = self.port_of(onu)
        if onu.is_online or port.onus.get(onu.place.onu) is not onu:
            return
        if port.is_cut:
            port.returning.append(onu)
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
        self._record_port(JournalKind.PON_CUT, place)
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
        self._record_port(JournalKind.PON_RESTORED, place)
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

    def add(self, place: Place) -> Onu:
        """Let a new customer appear on a port."""
        onu = self._customers.make(place._replace(onu=self.free_id(place)), at=self.now)
        if self.ports[place].is_cut:
            onu.state = RunState.OFFLINE
            self.ports[place].returning.append(onu)
        self._attach(onu)
        self._record(JournalKind.ONU_APPEARED, onu)
        return onu

    def remove(self, onu: Onu) -> None:
        """Delete an ONU from the OLT's configuration."""
        self._detach(onu)
        self._record(JournalKind.ONU_REMOVED, onu)

    def free_id(self, place: Place) -> int:
        """Return the lowest free ONU id of a port; ValueError when it is full."""
        taken = self.ports[place].onus
        for onu_id in range(self.shape.first_onu, self.shape.first_onu + MAX_ONUS_PER_PORT):
            if onu_id not in taken:
                return onu_id
        raise ValueError(f"PON port {place} is full")

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

    def _record(
        self, kind: JournalKind, onu: Onu, *, cause: DownCause | None = None, moved_from: Place | None = None
    ) -> None:
        self.journal.append(JournalEntry(self.now, kind, self.name, onu.place, onu.serial, cause, moved_from))

    def _record_port(self, kind: JournalKind, place: Place) -> None:
        self.journal.append(JournalEntry(self.now, kind, self.name, place))
