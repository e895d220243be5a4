"""Turns ONUs that went down together into outages of PON ports and cards, and follows them to their end.

Judged from the rows of one OLT after each poll that changed a state: which ONU is down since when, and of which
outage it already is a part. Nothing else is remembered, so a restart goes on where it was.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import NamedTuple

from facho.polling.domain.onu_state import CardPlace, DownCause, OnuPlace, PortPlace, RunState
from facho.polling.domain.outage import (
    LIMITS,
    Outage,
    OutageCause,
    OutageChange,
    OutageLimits,
    OutagePlace,
    OutageScope,
    is_recent,
    probable_cause,
)


class Member(NamedTuple):
    """A present ONU as the last poll left it; `outage_id` is of the latest outage that it was a part of.

    Some OLTs do not tell the ports of their ONUs: then nobody knows who shares a fibre with it, or a card.
    """

    onu_id: int
    place: OnuPlace
    state: RunState
    state_since: datetime | None
    cause: DownCause | None
    outage_id: int | None = None
    is_port_known: bool = True


@dataclass(frozen=True, slots=True)
class Cycle:
    """The moment of a judgement and the time between polls of state."""

    now: datetime
    interval: timedelta
    limits: OutageLimits = LIMITS

    @property
    def window(self) -> timedelta:
        """For how long changes belong to one cycle."""
        return self.interval * self.limits.cycles

    def is_fresh(self, member: Member) -> bool:
        """Tell whether an ONU went down in this cycle; one that nobody saw go did not."""
        if member.state is not RunState.OFFLINE or member.state_since is None:
            return False
        return timedelta(0) <= self.now - member.state_since < self.window


def judge_ports(olt_id: int, members: Iterable[Member], outages: Iterable[Outage], cycle: Cycle) -> list[OutageChange]:
    """Open, extend and end the outages of one OLT's ports and cards, given all its present ONUs.

    `outages` are at least those for which `is_recent` holds. A poll that changed no state needs no judgement.
    """
    known = [outage for outage in outages if _is_judged(outage, olt_id, cycle)]
    cards: defaultdict[CardPlace, defaultdict[PortPlace, list[Member]]] = defaultdict(lambda: defaultdict(list))
    for member in members:
        if member.is_port_known:
            cards[member.place[:2]][member.place[:3]].append(member)
    # A port may have nobody left on it and still have an outage to end.
    for place in (outage.place for outage in known):
        ports = cards[place.frame, place.slot]
        if place.scope is OutageScope.PON:
            ports.setdefault((place.frame, place.slot, place.port), [])
    judgement = _Judgement(olt_id, known, cycle)
    for card in sorted(cards):
        judgement.judge_card(card, cards[card])
    return judgement.changes


def _is_judged(outage: Outage, olt_id: int, cycle: Cycle) -> bool:
    is_here = outage.place.olt_id == olt_id and outage.place.scope in (OutageScope.PON, OutageScope.CARD)
    return is_here and outage.part_of is None and is_recent(outage, cycle.now, cycle.limits)


class _Judgement:
    """One pass over the cards of an OLT; an ONU belongs to one outage at a time, and to a card before a port."""

    def __init__(self, olt_id: int, known: Sequence[Outage], cycle: Cycle) -> None:
        self.changes: list[OutageChange] = []
        self._olt_id = olt_id
        self._known = {outage.place: outage for outage in known}
        self._open_ids = {outage.outage_id for outage in known if outage.is_open}
        self._joined: set[int] = set()
        self._cycle = cycle

    def judge_card(self, card: CardPlace, ports: Mapping[PortPlace, Sequence[Member]]) -> None:
        place = OutagePlace(OutageScope.CARD, self._olt_id, *card)
        members = [member for port in sorted(ports) for member in ports[port]]
        outage = self._known.get(place)
        parts: list[Outage] = []
        if outage is not None and outage.is_open:
            self._follow(outage, members)
        elif self._is_card_dark(ports.values(), beginnings := self._beginnings(ports)):
            parts = beginnings
            self._open_card(place, members, parts)
        for port in sorted(ports):
            self._judge_port(port, ports[port], parts)

    def _judge_port(self, port: PortPlace, members: Sequence[Member], absorbed: Sequence[Outage]) -> None:
        place = OutagePlace(OutageScope.PON, self._olt_id, *port)
        outage = self._known.get(place)
        if outage in absorbed:
            return
        if outage is not None and outage.is_open:
            self._follow(outage, members)
        elif self._is_burst(fresh := self._fresh(members), members):
            self._open(place, members, fresh)

    def _beginnings(self, ports: Iterable[PortPlace]) -> list[Outage]:
        """Return the outages of ports that began in this cycle; they may have been a card's beginning."""
        places = [OutagePlace(OutageScope.PON, self._olt_id, *port) for port in sorted(ports)]
        outages = [self._known[place] for place in places if place in self._known]
        return [outage for outage in outages if self._cycle.now - outage.resumed_at < self._cycle.window]

    def _is_card_dark(self, ports: Iterable[Sequence[Member]], beginnings: Sequence[Outage]) -> bool:
        """Tell whether every port that carried service lost nearly all of it in this cycle."""
        limits = self._cycle.limits
        counts = [(len(self._fresh(members, beginnings)), _count_online(members)) for members in ports]
        carried = [(lost, online) for lost, online in counts if lost + online]
        is_dark = all(lost >= limits.dark_share * (lost + online) for lost, online in carried)
        return is_dark and len(carried) >= limits.min_ports and sum(lost for lost, _ in carried) >= limits.min_onus

    def _open_card(self, place: OutagePlace, members: Sequence[Member], parts: Sequence[Outage]) -> None:
        of_parts = {part.outage_id for part in parts}
        older = [m for m in members if m.outage_id in of_parts and not self._cycle.is_fresh(m)]
        self._open(place, members, [*self._fresh(members, parts), *older], absorbed=parts)
        self.changes += [OutageChange(replace(part, ended_at=part.ended_at or self._cycle.now)) for part in parts]

    def _open(
        self, place: OutagePlace, members: Sequence[Member], lost: Sequence[Member], *, absorbed: Sequence[Outage] = ()
    ) -> None:
        """Open an outage of those that were lost in this cycle; one that ended a short while ago goes on."""
        began_at = min(m.state_since for m in lost if m.state_since is not None and self._cycle.is_fresh(m))
        started_at = min([began_at, *(part.resumed_at for part in absorbed)])
        former = self._known.get(place)
        if former is None:
            outage = Outage(place, started_at, began_at, OutageCause.UNKNOWN, affected=0, down=0)
        else:
            outage = replace(former, resumed_at=began_at, ended_at=None)
        joined = [member for member in lost if not _is_of(member, outage)]
        self._change(_extend(outage, members, joined), joined, absorbed)

    def _follow(self, outage: Outage, members: Sequence[Member]) -> None:
        """Let late arrivals join, and others if they are many again; end the outage when it is over."""
        fresh = self._fresh(members)
        late = [member for member in fresh if self._is_late_arrival(member, outage)]
        joined = fresh if self._is_burst(fresh, members) else late
        after = _extend(outage, members, joined)
        if self._is_over(after, members):
            after = replace(after, ended_at=self._cycle.now)
        if after != outage:
            self._change(after, joined)

    def _change(self, outage: Outage, joined: Sequence[Member], absorbed: Sequence[Outage] = ()) -> None:
        ids = tuple(member.onu_id for member in joined)
        self._joined.update(ids)
        self.changes.append(OutageChange(outage, ids, tuple(part.place for part in absorbed)))

    def _fresh(self, members: Iterable[Member], parts: Iterable[Outage] = ()) -> list[Member]:
        """Return the ONUs that went down in this cycle and belong to no outage that goes on, except to these parts."""
        taken = self._open_ids - {part.outage_id for part in parts}
        fresh = filter(self._cycle.is_fresh, members)
        return [member for member in fresh if member.outage_id not in taken and member.onu_id not in self._joined]

    def _is_late_arrival(self, member: Member, outage: Outage) -> bool:
        return member.state_since is not None and member.state_since - outage.resumed_at < self._cycle.window

    def _is_burst(self, fresh: Sequence[Member], members: Iterable[Member]) -> bool:
        return self._cycle.limits.is_outage(len(fresh), online=_count_online(members))

    def _is_over(self, outage: Outage, members: Iterable[Member]) -> bool:
        """Tell whether most are back and those that are not would be no outage by themselves."""
        most_are_back = 2 * outage.down < outage.affected
        return most_are_back and not self._cycle.limits.is_outage(outage.down, online=_count_online(members))


def _extend(outage: Outage, members: Iterable[Member], joined: Sequence[Member]) -> Outage:
    """Count an outage again with those that join it; ONUs that left the port are not down there."""
    everyone = [*(member for member in members if _is_of(member, outage)), *joined]
    cause = probable_cause(outage.place.scope, [member.cause for member in everyone]) if everyone else outage.cause
    down = sum(member.state is RunState.OFFLINE for member in everyone)
    return replace(outage, affected=outage.affected + len(joined), down=down, cause=cause)


def _is_of(member: Member, outage: Outage) -> bool:
    return outage.outage_id is not None and member.outage_id == outage.outage_id


def _count_online(members: Iterable[Member]) -> int:
    return sum(member.state is RunState.ONLINE for member in members)
