"""What is to be detected of a simulated OLT, reported by its journal and its world alone."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from facho.polling.domain.onu_events import EventKind, ObservedEvent
from facho.polling.domain.onu_state import DownCause
from facho.polling.domain.outages import LIMITS, OutageCause, OutagePlace, OutageRecord, OutageScope
from facho.polling.vendors.index import Place
from facho.simulator.world import JournalEntry, JournalKind, OltWorld

# A serial, what happened to it, and the detail that makes it this fact and no other.
Fact = tuple[str, EventKind, object]
# Who went down, and why.
Losses = dict[Place, DownCause | None]
Polls = tuple[datetime, datetime]
POWER_CAUSES = (DownCause.DYING_GASP, DownCause.POWER_OFF)


class EventTruth:
    """Knows which ONUs there ever were, to tell who is new from who returns."""

    def __init__(self, world: OltWorld) -> None:
        self._present = {onu.serial for onu in world.onus}
        self._removed: set[str] = set()

    def facts(self, entry: JournalEntry) -> list[Fact]:
        """Return what one entry of the journal is to be reported as."""
        if entry.kind is JournalKind.ONU_APPEARED:
            return self._appearance(entry.serial, entry.place)
        if entry.kind is JournalKind.ONU_REMOVED:
            self._present.remove(entry.serial)
            self._removed.add(entry.serial)
        dimmed = EventKind.POWER_DROP if entry.loss_db else EventKind.POWER_RISE
        details: dict[JournalKind, tuple[EventKind, object]] = {
            JournalKind.ONU_DOWN: (EventKind.DOWN, entry.cause in POWER_CAUSES),
            JournalKind.ONU_UP: (EventKind.UP, None),
            JournalKind.ONU_MOVED: (EventKind.MOVED, (entry.moved_from, entry.place)),
            JournalKind.ONU_DIMMED: (dimmed, None),
            JournalKind.ONU_DESCRIBED: (EventKind.DESCRIPTION_CHANGED, entry.description),
            JournalKind.ONU_REMOVED: (EventKind.GONE, entry.place),
        }
        return [(entry.serial, *details[entry.kind])] if entry.kind in details else []

    def _appearance(self, serial: str, place: Place) -> list[Fact]:
        if serial in self._removed:
            self._removed.remove(serial)
            self._present.add(serial)
            return [(serial, EventKind.RETURNED, place)]
        is_double = serial in self._present
        self._present.add(serial)
        kinds = [EventKind.NEW, EventKind.DUPLICATE_SERIAL][: 1 + is_double]
        return [(serial, kind, place) for kind in kinds]


def fact_of(serial: str, event: ObservedEvent) -> Fact:
    """Say a detected event in the words of the journal."""
    detail: object = None
    if event.kind in (EventKind.NEW, EventKind.GONE, EventKind.RETURNED, EventKind.DUPLICATE_SERIAL):
        detail = event.place
    elif event.kind is EventKind.MOVED:
        detail = (event.other_place, event.place)
    elif event.kind is EventKind.DOWN:
        detail = event.cause in POWER_CAUSES
    elif event.kind is EventKind.DESCRIPTION_CHANGED:
        detail = event.after
    return (serial, event.kind, detail)


@dataclass(slots=True)
class ExpectedOutage:
    """An outage as it must be reported; the moments lie between these polls."""

    place: OutagePlace
    cause: OutageCause
    # Nobody moves while its port is in trouble, and serials may be doubled.
    onus: set[Place]
    affected: int
    starts: tuple[datetime, datetime]
    ends: tuple[datetime, datetime] | None = None

    def is_reported_by(self, outage: OutageRecord) -> bool:
        """Tell whether a detected outage is this one."""
        has_ended = outage.ended_at is not None
        return (
            (outage.place, outage.cause) == (self.place, self.cause)
            and self.affected in (0, outage.affected)
            and self.starts[0] <= outage.started_at <= self.starts[1]
            and has_ended is (self.ends is not None)
            and (self.ends is None or outage.ended_at is None or self.ends[0] <= outage.ended_at <= self.ends[1])
        )


@dataclass(slots=True)
class OutageTruth:
    """Follows who is dark together on one OLT, by its journal."""

    olt_id: int
    world: OltWorld
    outages: list[ExpectedOutage] = field(default_factory=list)

    def judge_epoch(self, entries: Sequence[JournalEntry], polls: Polls) -> None:
        """Take in what an epoch brought; `polls` are the first one after it happened and the first that saw it all."""
        for outage in self.outages:
            if outage.ends is None and self._is_over(outage):
                outage.ends = polls
        lost: defaultdict[Place, Losses] = defaultdict(dict)
        for entry in entries:
            if entry.kind is JournalKind.ONU_DOWN:
                lost[entry.place.pon][entry.place] = entry.cause
        for card in {place[:2] for place in lost}:
            ports = {place: lost[place] for place in self.world.ports if place[:2] == card}
            self._judge_card(card, ports, polls)

    def _judge_card(self, card: tuple[int, ...], ports: dict[Place, Losses], polls: tuple[datetime, datetime]) -> None:
        carried = {place: lost for place, lost in ports.items() if lost or self.world.ports[place].online_count}
        everyone = {onu: cause for lost in carried.values() for onu, cause in lost.items()}
        is_dark = all(len(lost) >= 9 * self.world.ports[place].online_count for place, lost in carried.items())
        if is_dark and len(carried) > 1 and len(everyone) >= LIMITS.min_onus:
            self._expect(OutagePlace(OutageScope.CARD, self.olt_id, *card), everyone, polls)
            return
        for place, lost in carried.items():
            if LIMITS.is_outage(len(lost), online=self.world.ports[place].online_count):
                self._expect(OutagePlace(OutageScope.PON, self.olt_id, *place[:3]), lost, polls)

    def _expect(
        self, place: OutagePlace, lost: dict[Place, DownCause | None], polls: tuple[datetime, datetime]
    ) -> None:
        gasps = Counter(cause in POWER_CAUSES for cause in lost.values())
        otherwise = OutageCause.CARD if place.scope is OutageScope.CARD else OutageCause.FIBRE
        cause = OutageCause.POWER if gasps[True] > gasps[False] else otherwise
        if place.scope is OutageScope.PON and gasps[True] == gasps[False]:
            cause = OutageCause.UNKNOWN
        self.outages.append(ExpectedOutage(place, cause, set(lost), len(lost), polls))

    def _is_over(self, outage: ExpectedOutage) -> bool:
        size = 2 if outage.place.scope is OutageScope.CARD else 3
        area = [onu for onu in self.world.onus if onu.place[:size] == outage.place[2 : 2 + size]]
        down = sum(onu.place in outage.onus and not onu.is_online for onu in area)
        online = sum(onu.is_online for onu in area)
        return 2 * down < outage.affected and not LIMITS.is_outage(down, online=online)
