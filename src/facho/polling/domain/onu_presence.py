"""Which ONU is where, and which are gone, after a walk of an OLT's serials.

Nothing is concluded from what a walk did not show unless it reached the end of that port: neither that an ONU is
gone, nor that it left its place for another.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from facho.polling.domain.onu_events import EventKind, ObservedEvent, in_order
from facho.polling.domain.onu_state import OnuPlace, PortPlace

# What devices send for "none" in serials and hardware addresses: a single digit, over and over.
_ZEROS, _ONES = "0:-. ", "Ff:-. "


class OnuIdentity(NamedTuple):
    """The identity a device reports for a place; empty fields are not reported."""

    serial: str = ""
    mac: str = ""


class KnownOnu(NamedTuple):
    """An ONU with a row: its (last) place, and how many walks missed it, the latest that counted at `missed_at`."""

    onu_id: int
    place: OnuPlace
    serial: str = ""
    mac: str = ""
    is_present: bool = True
    misses: int = 0
    missed_at: datetime | None = None

    @property
    def can_be_read(self) -> bool:
        """Whether values read at its place are its own; after a miss they may be another ONU's."""
        return self.is_present and not self.misses


def clean_identity(identity: OnuIdentity) -> OnuIdentity:
    """Clear placeholder serials, which would make different ONUs look the same."""
    serial, mac = identity
    if (not serial or _is_usable(serial)) and (not mac or _is_usable(mac)):
        return identity
    return OnuIdentity(serial if _is_usable(serial) else "", mac if _is_usable(mac) else "")


def pair_onus(known: Iterable[KnownOnu], found: Mapping[OnuPlace, OnuIdentity]) -> dict[OnuPlace, KnownOnu]:
    """Match known ONUs to places; an unmatched place has a new ONU, and ambiguous equals are not matched."""
    pairing = _Pairing(known, found)
    pairing.pair_by_serial()
    pairing.pair_by_mac()
    pairing.pair_by_place()
    return pairing.pairs


class _Pairing:
    def __init__(self, known: Iterable[KnownOnu], found: Mapping[OnuPlace, OnuIdentity]) -> None:
        self.pairs: dict[OnuPlace, KnownOnu] = {}
        self._left = dict(found)
        self._free = {onu.onu_id: onu for onu in known}

    def pair_by_serial(self) -> None:
        self._pair_equal(
            ((identity.serial, place) for place, identity in self._left.items()),
            ((onu.serial, onu) for onu in self._free.values()),
        )

    def pair_by_mac(self) -> None:
        self._pair_equal(
            ((identity.mac, place) for place, identity in self._left.items() if not identity.serial),
            ((onu.mac, onu) for onu in self._free.values()),
        )
        self._pair_equal(
            ((identity.mac, place) for place, identity in self._left.items() if identity.serial),
            ((onu.mac, onu) for onu in self._free.values() if not _is_usable(onu.serial)),
        )

    def pair_by_place(self) -> None:
        """Match ONUs still at their place that do not identify as another; those without identity return to theirs."""
        there = {
            onu.place: onu
            for onu in self._free.values()
            if not onu.is_present and not (_is_usable(onu.serial) or _is_usable(onu.mac))
        }
        there |= {onu.place: onu for onu in self._free.values() if onu.is_present}
        for place, identity in list(self._left.items()):
            onu = there.get(place)
            if onu is None or not (onu.is_present or identity == OnuIdentity()):
                continue
            if identity.serial and _is_usable(onu.serial):
                is_other = onu.serial != identity.serial
            else:
                is_other = bool(identity.mac) and _is_usable(onu.mac) and onu.mac != identity.mac
            if not is_other:
                self._take(place, onu)

    def _pair_equal(self, places: Iterable[tuple[str, OnuPlace]], onus: Iterable[tuple[str, KnownOnu]]) -> None:
        places_by_key = defaultdict(list)
        onus_by_key = defaultdict(list)
        for key, place in places:
            if key:
                places_by_key[key].append(place)
        for key, onu in onus:
            if key in places_by_key:
                onus_by_key[key].append(onu)
        for key, equal in onus_by_key.items():
            self._pair_group(places_by_key[key], equal)

    def _pair_group(self, places: list[OnuPlace], onus: list[KnownOnu]) -> None:
        """Match equals: first those that stayed, then one that moved, then one that was absent."""
        if len(places) == len(onus) == 1:
            self._take(places[0], onus[0])
            return
        places, present = self._take_stayed(places, [onu for onu in onus if onu.is_present])
        if len(places) == len(present) == 1:
            self._take(places[0], present[0])
        elif places and not present:
            places, absent = self._take_stayed(places, [onu for onu in onus if not onu.is_present])
            if len(places) == 1 and absent:
                # Of several rows the youngest is the one that was there last.
                self._take(places[0], max(absent))

    def _take_stayed(self, places: list[OnuPlace], onus: list[KnownOnu]) -> tuple[list[OnuPlace], list[KnownOnu]]:
        there = {onu.place: onu for onu in onus}
        stayed = {place for place in places if place in there}
        for place in stayed:
            self._take(place, there[place])
        left = [onu for onu in onus if onu.onu_id in self._free]
        return [place for place in places if place not in stayed], left

    def _take(self, place: OnuPlace, onu: KnownOnu) -> None:
        self.pairs[place] = onu
        del self._left[place], self._free[onu.onu_id]


def _is_usable(text: str) -> bool:
    return bool(text.strip(_ZEROS) and text.strip(_ONES))


# A complete walk may still miss an ONU that is just being registered again.
MISSES_UNTIL_ABSENT = 2
# An ONU may take this long to start and register; walks closer together, such as a retry and a slot, count one miss.
MISSES_APART = timedelta(minutes=4)
# A walk that suddenly misses more than half of an OLT's ONUs, and not just a few, is more likely wrong than right.
SUSPICIOUS_LOSS = 8
SUSPICIOUS_SHARE = 0.5
# Tables without a single ONU are those of an agent that starts, or hides them, rather than of an OLT that lost all.
EMPTY_BELIEVED_AFTER = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Walk:
    """ONUs found by place, and how far the walk reached: completely, or some ports."""

    found: Mapping[OnuPlace, OnuIdentity]
    is_complete: bool
    complete_ports: frozenset[PortPlace] = frozenset()

    def covers(self, place: OnuPlace) -> bool:
        """Whether an ONU at this place would have been found."""
        return self.is_complete or place[:3] in self.complete_ports


# Its count in a summary: rows of a table of ONUs without a place, where they are more than those with one.
MISPLACED_ROWS = "misplaced_rows"


class Sign(StrEnum):
    """What shows that an OLT has ONUs though a walk listed none; the value is the name of its count in a summary."""

    # Tables of ONUs have rows, but none that can be placed.
    UNPLACED = "unplaced_rows"
    # Its PON ports count ONUs.
    COUNTED = "counted_onus"
    # ONUs of earlier walks are still present.
    KNOWN = "known_onus"


@dataclass(frozen=True, slots=True)
class OnuEvidence:
    """The strongest sign of ONUs, and how many it shows."""

    sign: Sign
    onus: int


def find_evidence(*, unplaced: int, counted: int, known: int) -> OnuEvidence | None:
    """Judge a walk that listed no ONU; None if the OLT may really have none."""
    shown = {Sign.UNPLACED: unplaced, Sign.COUNTED: counted, Sign.KNOWN: known}
    return next((OnuEvidence(sign, onus) for sign, onus in shown.items() if onus), None)


@dataclass(frozen=True, slots=True)
class PresencePlan:
    """Rows to update (only changed ones), and places of new ONUs.

    A place that is not settled waits for a walk that reaches further; the ONU there before gets a miss, since values
    read there may not be its own. A held walk is not applied: it only adds one miss to every ONU it lost, so that the
    next walk confirms it, unless it follows too closely. A held walk that found nothing changes nothing.
    """

    updated: tuple[KnownOnu, ...] = ()
    new: tuple[tuple[OnuPlace, OnuIdentity], ...] = ()
    events: tuple[ObservedEvent, ...] = ()
    is_held: bool = False


class _Name(NamedTuple):
    """The identifier of an ONU, and the event for duplicates of it."""

    kind: EventKind
    text: str


_NAMELESS = _Name(EventKind.DUPLICATE_MAC, "")


def plan_presence(
    known: Sequence[KnownOnu],
    walk: Walk,
    *,
    now: datetime,
    is_first: bool = False,
    held_since: datetime | None = None,
) -> PresencePlan:
    """Update all ONUs of one OLT, present and absent, from a walk.

    `is_first` until the OLT was walked completely once: ONUs unknown before are then not new. `held_since` is the first
    of the consecutive held walks before this one.
    """
    walk = replace(walk, found={place: clean_identity(identity) for place, identity in walk.found.items()})
    pairs = pair_onus(known, walk.found)
    settled = _settle(known, pairs, walk)
    paired = {onu.onu_id for onu in pairs.values()}
    lost = [onu for onu in known if onu.is_present and onu.onu_id not in paired and walk.covers(onu.place)]
    is_believed = held_since is not None and abs(now - held_since) >= EMPTY_BELIEVED_AFTER
    if not walk.found and len(lost) > 1 and not is_believed:
        return PresencePlan(is_held=True)
    sudden = [onu for onu in lost if not _was_missed_before(onu, now)]
    most = sum(onu.is_present for onu in known) * SUSPICIOUS_SHARE
    if len(sudden) >= SUSPICIOUS_LOSS and len(sudden) > most:
        return PresencePlan(tuple(_miss(onu, now) for onu in sudden if not onu.misses), is_held=True)
    seen = [(onu, _seen(onu, place, walk.found[place])) for place, onu in pairs.items() if place in settled]
    missed = [(onu, _missed(onu, onu.place in settled, now)) for onu in lost]
    seen_ids, unsettled = {onu.onu_id for onu, _ in seen}, walk.found.keys() - settled
    # ONUs at whose place another one was found get a miss.
    there = [onu for onu in known if onu.is_present and onu.place in unsettled and onu.onu_id not in seen_ids]
    rows = [*seen, *missed, *((onu, onu if onu.misses else _miss(onu, now)) for onu in there)]
    new = tuple((place, walk.found[place]) for place in sorted(settled - pairs.keys()))
    events = [*_events(rows, new, now, is_first=is_first), *_duplicates(known, rows, new, now)]
    return PresencePlan(
        updated=tuple(after for before, after in rows if after is not before),
        new=new,
        events=in_order(events),
    )


def _settle(known: Iterable[KnownOnu], pairs: Mapping[OnuPlace, KnownOnu], walk: Walk) -> set[OnuPlace]:
    """Return the settled places: the former ONU left, and the new one left its former place."""
    occupants = {onu.place: onu for onu in known if onu.is_present}
    settled = {place for place in walk.found if place not in pairs or _has_come(pairs[place], place, walk)}
    while True:
        staying = {onu.onu_id for place, onu in pairs.items() if place not in settled}
        moving = {onu.onu_id for place, onu in pairs.items() if place in settled}
        blocked = {
            place
            for place in settled & occupants.keys()
            if pairs.get(place) is not (onu := occupants[place])
            and (onu.onu_id in staying or (onu.onu_id not in moving and not walk.covers(place)))
        }
        if not blocked:
            return settled
        # The ONU that would move here stays at its former place, which may block the next one.
        settled -= blocked


def _has_come(onu: KnownOnu, place: OnuPlace, walk: Walk) -> bool:
    """Whether the ONU found here is known to have left its former place."""
    is_still_there = onu.is_present and not onu.misses and not walk.covers(onu.place) and onu.place not in walk.found
    return onu.place == place or not is_still_there


def _seen(onu: KnownOnu, place: OnuPlace, identity: OnuIdentity) -> KnownOnu:
    serial, mac = identity[0] or onu.serial, identity[1] or onu.mac
    after = KnownOnu(onu.onu_id, place, serial, mac, is_present=True, misses=0)
    return onu if after == onu else after


def _was_missed_before(onu: KnownOnu, now: datetime) -> bool:
    """Whether an earlier walk missed it, long enough ago for another miss to count."""
    # A clock that was set back may put the last miss into the future.
    return onu.misses > 0 and (onu.missed_at is None or abs(now - onu.missed_at) >= MISSES_APART)


def _miss(onu: KnownOnu, now: datetime) -> KnownOnu:
    return onu._replace(misses=onu.misses + 1, missed_at=now)


def _missed(onu: KnownOnu, is_replaced: bool, now: datetime) -> KnownOnu:
    if is_replaced:
        return _miss(onu, now)._replace(is_present=False)
    if onu.misses and not _was_missed_before(onu, now):
        return onu
    after = _miss(onu, now)
    return after._replace(is_present=after.misses < MISSES_UNTIL_ABSENT)


def _events(
    rows: Iterable[tuple[KnownOnu, KnownOnu]],
    new: Iterable[tuple[OnuPlace, OnuIdentity]],
    now: datetime,
    *,
    is_first: bool,
) -> list[ObservedEvent]:
    events = [] if is_first else [ObservedEvent(EventKind.NEW, now, place) for place, _ in new]
    for before, after in rows:
        source = before.place if before.place != after.place else None
        if before.is_present and not after.is_present:
            events.append(ObservedEvent(EventKind.GONE, now, before.place, before.onu_id))
        elif after.is_present and not before.is_present:
            events.append(ObservedEvent(EventKind.RETURNED, now, after.place, after.onu_id, other_place=source))
        elif source is not None:
            events.append(ObservedEvent(EventKind.MOVED, now, after.place, after.onu_id, other_place=source))
    return events


def _duplicates(
    known: Iterable[KnownOnu],
    rows: Iterable[tuple[KnownOnu, KnownOnu]],
    new: Iterable[tuple[OnuPlace, OnuIdentity]],
    now: datetime,
) -> list[ObservedEvent]:
    """Report each ONU that newly shares an identifier, once, with the other's place."""
    comers: defaultdict[_Name, list[tuple[OnuPlace, int | None]]] = defaultdict(list)
    for place, identity in new:
        comers[_name(identity)].append((place, None))
    for before, after in rows:
        if after.is_present and not (before.is_present and _name(before) == _name(after)):
            comers[_name(after)].append((after.place, after.onu_id))
    comers.pop(_NAMELESS, None)
    there = _places_by_name(known, rows) if comers else {}
    events = []
    for name, equal in comers.items():
        others = sorted(equal)
        first = there.get(name) or others.pop(0)[0]
        events += [ObservedEvent(name.kind, now, place, onu_id, other_place=first) for place, onu_id in others]
    return events


def _name(who: OnuIdentity | KnownOnu) -> _Name:
    """Return the serial, or the hardware address if there is none, as in EPON."""
    serial, mac = clean_identity(OnuIdentity(who.serial, who.mac))
    return _Name(EventKind.DUPLICATE_SERIAL, serial) if serial else _Name(EventKind.DUPLICATE_MAC, mac)


def _places_by_name(known: Iterable[KnownOnu], rows: Iterable[tuple[KnownOnu, KnownOnu]]) -> dict[_Name, OnuPlace]:
    """Return the places of former owners of an identifier; of several, the first."""
    after = {row.onu_id: row for _, row in rows}
    stayed = [(onu, after.get(onu.onu_id, onu)) for onu in known if onu.is_present]
    kept = [row for onu, row in stayed if row.is_present and _name(row) == _name(onu)]
    return {_name(row): row.place for row in sorted(kept, key=lambda row: row.place, reverse=True)}
