"""Which ONU is where, and who is gone, after a walk of an OLT's serials.

Nothing is concluded from what a walk did not show unless it reached the end of that port: neither that an ONU is
gone, nor that it left its place for another.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from facho.polling.domain.onu_events import EventKind, OnuEvent, in_order
from facho.polling.domain.onu_match import Identity, KnownOnu, clean_identity, pair_onus
from facho.polling.domain.onu_state import OnuPlace, PortPlace

# A complete walk may still miss an ONU that is just being registered again.
MISSES_UNTIL_ABSENT = 2
# A walk that suddenly misses more than half of an OLT's ONUs, and not just a few, is more likely wrong than right.
SUSPICIOUS_LOSS = 8
SUSPICIOUS_SHARE = 0.5


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

    Places in `unsettled` wait for a walk that reaches further. A held walk is not believed: all it leaves behind is
    one miss for everyone it lost, by which the next walk is the confirmation.
    """

    updated: tuple[KnownOnu, ...] = ()
    new: tuple[tuple[OnuPlace, Identity], ...] = ()
    events: tuple[OnuEvent, ...] = ()
    unsettled: tuple[OnuPlace, ...] = ()
    is_held: bool = False


def plan_presence(
    known: Sequence[KnownOnu],
    walk: Walk,
    *,
    now: datetime,
    is_first: bool = False,
    misses_until_absent: int = MISSES_UNTIL_ABSENT,
) -> PresencePlan:
    """Bring all ONUs of one OLT, present and absent, in line with a walk.

    `is_first` until the OLT was walked to the end once: whom we did not know before is not new on that account.
    """
    pairs = pair_onus(known, walk.found)
    settled = _settle(known, pairs, walk)
    paired = {onu.onu_id for onu in pairs.values()}
    lost = [onu for onu in known if onu.is_present and onu.onu_id not in paired and walk.covers(onu.place)]
    sudden = [onu for onu in lost if not onu.misses]
    if _is_suspicious(len(sudden), present=sum(onu.is_present for onu in known)):
        return PresencePlan(tuple(onu._replace(misses=1) for onu in sudden), is_held=True)
    seen = [(onu, _seen(onu, place, walk.found[place])) for place, onu in pairs.items() if place in settled]
    missed = [(onu, _missed(onu, onu.place in settled, misses_until_absent)) for onu in lost]
    new = tuple((place, clean_identity(walk.found[place])) for place in sorted(settled - pairs.keys()))
    events = _events([*seen, *missed], new, now, is_first=is_first)
    return PresencePlan(
        updated=tuple(after for before, after in [*seen, *missed] if after != before),
        new=new,
        events=in_order([*events, *_duplicates(known, [*seen, *missed], new, now)]),
        unsettled=tuple(sorted(walk.found.keys() - settled)),
    )


def _is_suspicious(lost: int, *, present: int) -> bool:
    return lost >= SUSPICIOUS_LOSS and lost > present * SUSPICIOUS_SHARE


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
    serial, mac = clean_identity(identity)
    return KnownOnu(onu.onu_id, place, serial or onu.serial, mac or onu.mac, is_present=True, misses=0)


def _missed(onu: KnownOnu, is_replaced: bool, misses_until_absent: int) -> KnownOnu:
    misses = onu.misses + 1
    return onu._replace(misses=misses, is_present=not is_replaced and misses < misses_until_absent)


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
    """Report everyone who came to a serial that somebody else has, once, with the place of the other."""
    before = {onu.onu_id: onu for onu in known}
    current = before | {after.onu_id: after for _, after in rows}
    holders: defaultdict[str, list[tuple[bool, OnuPlace, int | None]]] = defaultdict(list)
    for onu_id, onu in current.items():
        if onu.is_present and onu.serial:
            had_it = before[onu_id].is_present and before[onu_id].serial == onu.serial
            holders[onu.serial].append((not had_it, onu.place, onu_id))
    for place, identity in new:
        if identity.serial:
            holders[identity.serial].append((True, place, None))
    events = []
    for equal in holders.values():
        (_, first, _), *others = sorted(equal, key=lambda holder: holder[:2])
        events += [
            OnuEvent(EventKind.DUPLICATE_SERIAL, now, place, onu_id, other_place=first)
            for came, place, onu_id in others
            if came
        ]
    return events
