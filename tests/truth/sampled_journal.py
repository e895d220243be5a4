"""The journal of a simulated OLT sampled at the polls of it, and the events that follow from nothing else.

Shares no code with the rules under test: a poll sees what the journal says up to its moment, and what differs from
what the polls before it saw is to be reported.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import NamedTuple

from facho.polling.domain.onu_events import EventKind
from facho.polling.domain.onu_state import DownCause
from facho.polling.vendors.index import Place
from facho.simulator.world import JournalEntry, JournalKind, OltWorld

POWER_CAUSES = (DownCause.DYING_GASP, DownCause.POWER_OFF)
STEP_DB = 3.0
REFERENCE_HOLDS = timedelta(hours=6)
FLAPS, FLAP_WINDOW, CALM_AFTER = 4, timedelta(hours=1), timedelta(minutes=30)
SUSPICIOUS_LOSS = 8


class Fact(NamedTuple):
    """Something that is reported about an ONU, and the detail that makes it this fact and no other."""

    at: datetime
    kind: EventKind
    place: Place
    serial: str
    detail: object = None


@dataclass(slots=True)
class Truth:
    """An ONU as the journal leaves it; the description is None until somebody writes another one."""

    serial: str
    is_online: bool = True
    cause: DownCause | None = None
    description: str | None = None
    loss_db: float = 0.0
    is_garbled: bool = False


@dataclass(slots=True)
class Seen:
    """An ONU as the polls left it."""

    serial: str
    place: Place
    is_present: bool = True
    misses: int = 0
    is_online: bool | None = None
    since: datetime | None = None
    # A tuple as soon as one was read: the first one is no change.
    description: tuple[str | None] | None = None
    reference: tuple[float, datetime] | None = None
    flaps: int = 0
    flaps_since: datetime | None = None


class SampledJournal:
    """Follows one OLT; `facts` is everything that its polls had to tell."""

    def __init__(self, world: OltWorld, *, has_serials: bool) -> None:
        self.facts: list[Fact] = []
        self._double = EventKind.DUPLICATE_SERIAL if has_serials else EventKind.DUPLICATE_MAC
        self._journal = world.journal
        self._read = len(world.journal)
        self._there = {o.place: Truth(o.serial, o.is_online, o.last_down_cause, None, o.loss_db) for o in world.onus}
        self._removed: dict[str, Truth] = {}
        self._onus: list[Seen] = []

    def look(self, task_type: str, at: datetime, seconds: float, *, rows: int | None = None) -> None:
        """Take in one poll that reached its end; with `rows` the tables ended so early and looked complete."""
        while self._read < len(self._journal) and self._journal[self._read].at <= seconds:
            self._happen(self._journal[self._read])
            self._read += 1
        shown = dict(sorted(self._there.items())[:rows])
        if task_type == "discovery":
            self._look_around(shown, at)
        if task_type in ("walk_estado", "get_potencia"):
            self._look_at_states(shown, at)
        if task_type == "get_potencia":
            self._look_at_light(shown, at)
        if task_type == "get_descripcion":
            # Asked for by name, whatever the tables show.
            self._look_at_descriptions(self._there, at)

    def _happen(self, entry: JournalEntry) -> None:
        there, place, kind = self._there, entry.place, entry.kind
        if kind is JournalKind.ONU_APPEARED:
            there[place] = replace(self._removed.pop(entry.serial, Truth(entry.serial)), is_online=True)
        elif kind is JournalKind.ONU_REMOVED:
            self._removed[entry.serial] = there.pop(place)
        elif kind is JournalKind.ONU_MOVED:
            assert entry.moved_from is not None
            there[place] = there.pop(entry.moved_from)
        elif kind in (JournalKind.ONU_DOWN, JournalKind.ONU_UP):
            is_online = kind is JournalKind.ONU_UP
            there[place] = replace(there[place], is_online=is_online, cause=entry.cause or there[place].cause)
        elif kind is JournalKind.ONU_DIMMED:
            there[place].loss_db = entry.loss_db or 0.0
        elif kind is JournalKind.ONU_DESCRIBED:
            there[place].description = entry.description
        elif kind in (JournalKind.ONU_GARBLED, JournalKind.ONU_CLEAR):
            there[place].is_garbled = kind is JournalKind.ONU_GARBLED

    def _look_around(self, shown: dict[Place, Truth], at: datetime) -> None:
        if not self._onus:
            self._onus = [Seen(truth.serial, place) for place, truth in shown.items()]
            return
        present = [onu for onu in self._onus if onu.is_present]
        found = {place: self._find(place, truth.serial, shown) for place, truth in shown.items()}
        lost = [onu for onu in present if not any(onu is other for other in found.values())]
        sudden = [onu for onu in lost if not onu.misses]
        if len(sudden) >= SUSPICIOUS_LOSS and 2 * len(sudden) > len(present):
            for onu in sudden:
                onu.misses = 1
            return
        for onu in lost:
            self._miss(onu, is_replaced=onu.place in shown, at=at)
        counts = Counter(truth.serial for truth in shown.values())
        for place, onu in found.items():
            self._meet(place, onu, shown[place].serial, is_double=counts[shown[place].serial] > 1, at=at)

    def _find(self, place: Place, serial: str, shown: dict[Place, Truth]) -> Seen | None:
        """Return who is at a place: who was there, else who left another place, else who was absent."""
        equal = [onu for onu in self._onus if onu.serial == serial]
        stayed = [onu for onu in equal if onu.is_present and onu.place == place]
        is_left = {onu.place: onu.place not in shown or shown[onu.place].serial != serial for onu in equal}
        left = [onu for onu in equal if onu.is_present and is_left[onu.place]]
        absent = [] if any(onu.is_present for onu in equal) else equal
        return next(iter([*stayed, *left, *absent[::-1]]), None)

    def _meet(self, place: Place, onu: Seen | None, serial: str, *, is_double: bool, at: datetime) -> None:
        is_comer = onu is None or not onu.is_present
        if onu is None:
            onu = Seen(serial, place)
            self._onus.append(onu)
            self._tell(at, EventKind.NEW, onu)
        source, onu.place, onu.misses = onu.place, place, 0
        if source != place:
            # Other light arrives there.
            onu.reference = None
        if not onu.is_present:
            # How it was before it went is not how it is since then.
            onu.is_present, onu.is_online, onu.since = True, None, None
            self._tell(at, EventKind.RETURNED, onu)
        elif source != place:
            self._tell(at, EventKind.MOVED, onu, source)
        if is_comer and is_double:
            self._tell(at, self._double, onu)

    def _miss(self, onu: Seen, *, is_replaced: bool, at: datetime) -> None:
        onu.misses += 1
        onu.is_present = not is_replaced and onu.misses < 2
        if not onu.is_present:
            self._tell(at, EventKind.GONE, onu)

    def _readable(self, shown: dict[Place, Truth]) -> Iterator[tuple[Seen, Truth]]:
        for onu in self._onus:
            truth = shown.get(onu.place)
            if onu.is_present and not onu.misses and truth is not None and not truth.is_garbled:
                yield onu, truth

    def _look_at_states(self, shown: dict[Place, Truth], at: datetime) -> None:
        for onu, truth in self._readable(shown):
            self._calm_down(onu, at)
            if onu.is_online is None:
                onu.is_online, onu.since = truth.is_online, at
            elif onu.is_online is not truth.is_online:
                onu.is_online, onu.since = truth.is_online, at
                self._change(onu, truth, at)

    def _change(self, onu: Seen, truth: Truth, at: datetime) -> None:
        if onu.flaps > FLAPS:
            return
        if onu.flaps_since is None or at - onu.flaps_since > FLAP_WINDOW:
            onu.flaps, onu.flaps_since = 0, at
        onu.flaps += 1
        kind = EventKind.UP if truth.is_online else EventKind.DOWN
        is_power = None if truth.is_online else truth.cause in POWER_CAUSES
        self._tell(at, EventKind.FLAPPING if onu.flaps > FLAPS else kind, onu, is_power)

    def _calm_down(self, onu: Seen, at: datetime) -> None:
        if onu.flaps > FLAPS and onu.since is not None and at - onu.since >= CALM_AFTER:
            onu.flaps, onu.flaps_since = 0, None
            self._tell(at, EventKind.CALM, onu)

    def _look_at_light(self, shown: dict[Place, Truth], at: datetime) -> None:
        for onu, truth in self._readable(shown):
            if not truth.is_online:
                continue
            if onu.reference is not None:
                before, since = onu.reference
                if abs(truth.loss_db - before) >= STEP_DB:
                    is_drop = truth.loss_db > before
                    self._tell(at, EventKind.POWER_DROP if is_drop else EventKind.POWER_RISE, onu)
                elif at - since < REFERENCE_HOLDS:
                    continue
            onu.reference = (truth.loss_db, at)

    def _look_at_descriptions(self, there: dict[Place, Truth], at: datetime) -> None:
        for onu, truth in self._readable(there):
            before, onu.description = onu.description, (truth.description,)
            if before not in (None, onu.description):
                self._tell(at, EventKind.DESCRIPTION_CHANGED, onu, truth.description)

    def _tell(self, at: datetime, kind: EventKind, onu: Seen, detail: object = None) -> None:
        self.facts.append(Fact(at, kind, onu.place, onu.serial, detail))
