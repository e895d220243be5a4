"""Which ONU is where, and who is gone, after a walk of an OLT's serials.

Nothing is concluded from what a walk did not show unless it reached the end of that port: neither that an ONU is
gone, nor that it left its place for another.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import NamedTuple

from facho.polling.domain.onu_events import EventKind, OnuEvent, in_order
from facho.polling.domain.onu_match import Identity, KnownOnu, clean_identity, pair_onus
from facho.polling.domain.onu_state import OnuPlace, PortPlace

# A complete walk may still miss an ONU that is just being registered again.
MISSES_UNTIL_ABSENT = 2
# So long an ONU may take to start and register; walks closer together, such as a retry and the next slot, miss it once.
MISSES_APART = timedelta(minutes=4)
# A walk that suddenly misses more than half of an OLT's ONUs, and not just a few, is more likely wrong than right.
SUSPICIOUS_LOSS = 8
SUSPICIOUS_SHARE = 0.5
# Tables without a single ONU are those of an agent that starts, or hides them, rather than of an OLT that lost all.
EMPTY_BELIEVED_AFTER = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Walk:
    """Who was found where, and how far the walk reached: to its end, or to the end of some ports."""

    found: Mapping[OnuPlace, Identity]
    is_complete: bool
    complete_ports: frozenset[PortPlace] = frozenset()

    def covers(self, place: OnuPlace) -> bool:
        """Tell whether an ONU at this place would have been found."""
        return self.is_complete or place[:3] in self.complete_ports


@dataclass(frozen=True, slots=True)
class PresencePlan:
    """What to write: rows as they are to be (only those that change), and places where somebody new is.

    A place whose finding is not settled waits for a walk that reaches further; who was there is marked with a miss,
    since what is read there is not its own. A held walk is not believed: all it leaves behind is one miss for everyone
    it lost, by which the next walk is the confirmation, unless it follows too closely. One that found nobody leaves
    nothing behind.
    """

    updated: tuple[KnownOnu, ...] = ()
    new: tuple[tuple[OnuPlace, Identity], ...] = ()
    events: tuple[OnuEvent, ...] = ()
    is_held: bool = False


class _Name(NamedTuple):
    """What an ONU is known by, and what it is to be told as when two have it."""

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
    """Bring all ONUs of one OLT, present and absent, in line with a walk.

    `is_first` until the OLT was walked to the end once: whom we did not know before is not new on that account.
    `held_since` is the first of the walks before this one that were held, without one that was believed in between.
    """
    walk = replace(walk, found={place: clean_identity(identity) for place, identity in walk.found.items()})
    pairs = pair_onus(known, walk.found)
    settled = _settle(known, pairs, walk)
    paired = {onu.onu_id for onu in pairs.values()}
    lost = [onu for onu in known if onu.is_present and onu.onu_id not in paired and walk.covers(onu.place)]
    if not walk.found and len(lost) > 1 and not _is_long_ago(held_since, now):
        return PresencePlan(is_held=True)
    sudden = [onu for onu in lost if not _was_missed_before(onu, now)]
    if _is_suspicious(len(sudden), present=sum(onu.is_present for onu in known)):
        return PresencePlan(tuple(_miss(onu, now) for onu in sudden if not onu.misses), is_held=True)
    seen = [(onu, _seen(onu, place, walk.found[place])) for place, onu in pairs.items() if place in settled]
    missed = [(onu, _missed(onu, onu.place in settled, now)) for onu in lost]
    unsettled = walk.found.keys() - settled
    doubted = _doubted(known, unsettled, {onu.onu_id for onu, _ in seen}, now)
    rows = [*seen, *missed, *doubted]
    new = tuple((place, walk.found[place]) for place in sorted(settled - pairs.keys()))
    events = [*_events(rows, new, now, is_first=is_first), *_duplicates(known, rows, new, now)]
    return PresencePlan(
        updated=tuple(after for before, after in rows if after is not before),
        new=new,
        events=in_order(events),
    )


def _is_suspicious(lost: int, *, present: int) -> bool:
    return lost >= SUSPICIOUS_LOSS and lost > present * SUSPICIOUS_SHARE


def _is_long_ago(held_since: datetime | None, now: datetime) -> bool:
    return held_since is not None and abs(now - held_since) >= EMPTY_BELIEVED_AFTER


def _settle(known: Iterable[KnownOnu], pairs: Mapping[OnuPlace, KnownOnu], walk: Walk) -> set[OnuPlace]:
    """Return the places whose finding can be believed: who was there has left, and who came has left where it was."""
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
        # Who was to come here stays where it is, which may block the next one.
        settled -= blocked


def _has_come(onu: KnownOnu, place: OnuPlace, walk: Walk) -> bool:
    """Tell whether the ONU found here is known not to be where it was."""
    is_still_there = onu.is_present and not onu.misses and not walk.covers(onu.place) and onu.place not in walk.found
    return onu.place == place or not is_still_there


def _seen(onu: KnownOnu, place: OnuPlace, identity: Identity) -> KnownOnu:
    serial, mac = identity[0] or onu.serial, identity[1] or onu.mac
    after = KnownOnu(onu.onu_id, place, serial, mac, is_present=True, misses=0)
    return onu if after == onu else after


def _was_missed_before(onu: KnownOnu, now: datetime) -> bool:
    """Tell whether an earlier walk missed it, long enough ago for another miss to count."""
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


def _doubted(
    known: Iterable[KnownOnu], unsettled: Set[OnuPlace], seen: Set[int], now: datetime
) -> list[tuple[KnownOnu, KnownOnu]]:
    """Mark who is said to be at a place where somebody else was found."""
    there = [onu for onu in known if onu.is_present and onu.place in unsettled and onu.onu_id not in seen]
    return [(onu, onu if onu.misses else _miss(onu, now)) for onu in there]


def _events(
    rows: Iterable[tuple[KnownOnu, KnownOnu]],
    new: Iterable[tuple[OnuPlace, Identity]],
    now: datetime,
    *,
    is_first: bool,
) -> list[OnuEvent]:
    events = [] if is_first else [OnuEvent(EventKind.NEW, now, place) for place, _ in new]
    for before, after in rows:
        source = before.place if before.place != after.place else None
        if before.is_present and not after.is_present:
            events.append(OnuEvent(EventKind.GONE, now, before.place, before.onu_id))
        elif after.is_present and not before.is_present:
            events.append(OnuEvent(EventKind.RETURNED, now, after.place, after.onu_id, other_place=source))
        elif source is not None:
            events.append(OnuEvent(EventKind.MOVED, now, after.place, after.onu_id, other_place=source))
    return events


def _duplicates(
    known: Iterable[KnownOnu],
    rows: Iterable[tuple[KnownOnu, KnownOnu]],
    new: Iterable[tuple[OnuPlace, Identity]],
    now: datetime,
) -> list[OnuEvent]:
    """Report everyone who came to a name that somebody else has, once, with the place of the other."""
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
        events += [OnuEvent(name.kind, now, place, onu_id, other_place=first) for place, onu_id in others]
    return events


def _name(who: Identity | KnownOnu) -> _Name:
    """Return the serial, or where there is none, as in EPON, the hardware address."""
    serial, mac = clean_identity(Identity(who.serial, who.mac))
    return _Name(EventKind.DUPLICATE_SERIAL, serial) if serial else _Name(EventKind.DUPLICATE_MAC, mac)


def _places_by_name(known: Iterable[KnownOnu], rows: Iterable[tuple[KnownOnu, KnownOnu]]) -> dict[_Name, OnuPlace]:
    """Return where those are that had their name before; of several the first place."""
    after = {row.onu_id: row for _, row in rows}
    stayed = [(onu, after.get(onu.onu_id, onu)) for onu in known if onu.is_present]
    kept = [row for onu, row in stayed if row.is_present and _name(row) == _name(onu)]
    return {_name(row): row.place for row in sorted(kept, key=lambda row: row.place, reverse=True)}
