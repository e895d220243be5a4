"""Pairs the places of a walk with the ONUs that are known: by serial, else by hardware address, else by place."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import NamedTuple

from facho.polling.domain.onu_state import OnuPlace

# What devices send for "none" in serials and hardware addresses: a single digit, over and over.
_ZEROS, _ONES = "0:-. ", "Ff:-. "


class Identity(NamedTuple):
    """What a device says of who is at a place; empty for what it does not say."""

    serial: str = ""
    mac: str = ""


class KnownOnu(NamedTuple):
    """An ONU that has a row: where it is, or was when it was last seen, and how many walks showed that it is not.

    `missed_at` is the latest of those walks that was counted.
    """

    onu_id: int
    place: OnuPlace
    serial: str = ""
    mac: str = ""
    is_present: bool = True
    misses: int = 0
    missed_at: datetime | None = None

    @property
    def can_be_read(self) -> bool:
        """Tell whether what is read at its place is its own; since the last walk it may be somebody else's."""
        return self.is_present and not self.misses


def clean_identity(identity: Identity) -> Identity:
    """Empty whatever would make all ONUs without a serial one and the same."""
    serial, mac = identity
    if (not serial or _tells(serial)) and (not mac or _tells(mac)):
        return identity
    return Identity(serial if _tells(serial) else "", mac if _tells(mac) else "")


def pair_onus(known: Iterable[KnownOnu], found: Mapping[OnuPlace, Identity]) -> dict[OnuPlace, KnownOnu]:
    """Say which known ONU is at each place, given clean identities; a place without an entry has somebody else.

    Several ONUs with one serial are told apart by their places. Where that leaves it open who is who, nobody is paired.
    """
    pairing = _Pairing(known, found)
    pairing.pair_by_serial()
    pairing.pair_by_mac()
    pairing.pair_by_place()
    return pairing.pairs


class _Pairing:
    def __init__(self, known: Iterable[KnownOnu], found: Mapping[OnuPlace, Identity]) -> None:
        self.pairs: dict[OnuPlace, KnownOnu] = {}
        self._left = dict(found)
        self._free = {onu.onu_id: onu for onu in known}

    def pair_by_serial(self) -> None:
        self._pair_equal(
            ((identity.serial, place) for place, identity in self._left.items()),
            ((onu.serial, onu) for onu in self._free.values()),
        )

    def pair_by_mac(self) -> None:
        """Pair where one side has no serial to compare."""
        self._pair_equal(
            ((identity.mac, place) for place, identity in self._left.items() if not identity.serial),
            ((onu.mac, onu) for onu in self._free.values()),
        )
        self._pair_equal(
            ((identity.mac, place) for place, identity in self._left.items() if identity.serial),
            ((onu.mac, onu) for onu in self._free.values() if not _tells(onu.serial)),
        )

    def pair_by_place(self) -> None:
        """Pair whoever is still at its place and does not say to be another; nameless ONUs return to theirs."""
        there = {onu.place: onu for onu in self._free.values() if not onu.is_present and not _has_name(onu)}
        there |= {onu.place: onu for onu in self._free.values() if onu.is_present}
        for place, identity in list(self._left.items()):
            onu = there.get(place)
            if onu is not None and (onu.is_present or identity == Identity()) and not _contradict(onu, identity):
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
        """Pair equals: those that stayed, then one that moved, and only then one that was absent."""
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


def _tells(text: str) -> bool:
    return bool(text.strip(_ZEROS) and text.strip(_ONES))


def _has_name(onu: KnownOnu) -> bool:
    return _tells(onu.serial) or _tells(onu.mac)


def _contradict(onu: KnownOnu, identity: Identity) -> bool:
    if identity.serial and _tells(onu.serial):
        return onu.serial != identity.serial
    return bool(identity.mac) and _tells(onu.mac) and onu.mac != identity.mac
