"""Turns ONUs that went down together into outages of PON ports and cards, and follows them to their end.

Judged from the rows of one OLT after each poll that changed a state: which ONU is down since when, and of which
outage it already is a part. Nothing else is remembered, so a restart continues where it was.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from math import ceil
from types import MappingProxyType
from typing import NamedTuple

from facho.polling.domain.onu_state import CardPlace, DownCause, OnuPlace, PortPlace, RunState


class OutageScope(StrEnum):
    """Scope of an outage; each includes the ones before it."""

    PON = "pon"
    CARD = "card"
    OLT = "olt"
    NETWORK = "network"


class OutageCause(StrEnum):
    POWER = "power"
    FIBRE = "fibre"
    CARD = "card"
    OLT = "olt"
    NETWORK = "network"
    UNKNOWN = "unknown"


class OutagePlace(NamedTuple):
    """What is down; at most one open outage per place. Numbers outside the scope are 0."""

    scope: OutageScope
    olt_id: int = 0
    frame: int = 0
    slot: int = 0
    port: int = 0


class OutageBreak(NamedTuple):
    """A time in which a recurring outage was over: from its end to its return."""

    ended_at: datetime
    resumed_at: datetime


# The latest breaks are kept: an outage that returns every few minutes for a day would fill its row.
MAX_BREAKS = 20


@dataclass(frozen=True, slots=True)
class OutageRecord:
    """An outage as stored; `outage_id` is None until it has a row.

    `started_at` is the first start; an outage that returns soon after its end continues, since `resumed_at`. ONUs
    behind an OLT that does not answer count as affected, though their state is unknown.
    """

    place: OutagePlace
    started_at: datetime
    resumed_at: datetime
    cause: OutageCause
    affected: int
    down: int
    affected_olts: int = 0
    ended_at: datetime | None = None
    outage_id: int | None = None
    # Set on an outage that turned out to be a part of a larger one.
    part_of: int | None = None
    breaks: tuple[OutageBreak, ...] = ()

    @property
    def is_open(self) -> bool:
        return self.ended_at is None

    def reopen(self, at: datetime) -> "OutageRecord":
        """Continue an outage that was over; a clock that was set back leaves no break."""
        breaks = self.breaks
        if self.ended_at is not None and self.ended_at < at:
            breaks = (*breaks, OutageBreak(self.ended_at, at))[-MAX_BREAKS:]
        return replace(self, ended_at=None, resumed_at=at, breaks=breaks)


@dataclass(frozen=True, slots=True)
class OutageChange:
    """An outage to store, ONUs to link to it, outages that become parts of it, and parts that outlast it."""

    outage: OutageRecord
    joined: tuple[int, ...] = ()
    absorbed: tuple[OutagePlace, ...] = ()
    released: tuple[OutagePlace, ...] = ()


@dataclass(frozen=True, slots=True)
class OutageLimits:
    """All thresholds. Counts and shares must both be reached."""

    # A single ONU is never an outage of its port; a street is, though it is a small part of a large port.
    min_onus: int = 3
    min_share: float = 0.1
    # A port is dark when it lost this share of its ONUs; a card is out when all its ports are dark.
    dark_share: float = 0.9
    min_ports: int = 2
    min_olts: int = 2
    olts_share: float = 0.5
    # Of polls, one after the other: what the poll before saw belongs to the same cycle, also if this one is late.
    cycles: float = 1.5
    # What comes back within this time after its end is the same outage: it flaps.
    reopens_within: timedelta = timedelta(minutes=30)

    def is_outage(self, lost: int, *, online: int) -> bool:
        """Whether that many lost ONUs, compared with those online, are more than single faults."""
        return lost >= self.min_onus and lost >= self.min_share * (lost + online)


LIMITS = OutageLimits()

POWER_LOST = frozenset({DownCause.DYING_GASP, DownCause.POWER_OFF})
SIGNAL_LOST = frozenset(
    {DownCause.LOS, DownCause.LOF, DownCause.SIGNAL_FAIL, DownCause.LOSS_OF_ACK, DownCause.LOSS_OF_PLOAM}
)


def probable_cause(scope: OutageScope, causes: Iterable[DownCause | None]) -> OutageCause:
    """Judge by the cause most ONUs report; only customers without power send a dying gasp."""
    known = list(causes)
    if _is_most(sum(cause in POWER_LOST for cause in known), of=len(known)):
        return OutageCause.POWER
    if scope is OutageScope.CARD:
        return OutageCause.CARD
    return OutageCause.FIBRE if _is_most(sum(c in SIGNAL_LOST for c in known), of=len(known)) else OutageCause.UNKNOWN


def is_recent(outage: OutageRecord, now: datetime, limits: OutageLimits = LIMITS) -> bool:
    """Whether an outage is open, or ended so recently that it may continue."""
    # A clock that was set back may put the end into the future: what comes then is no continuation.
    return outage.ended_at is None or abs(now - outage.ended_at) < limits.reopens_within


def _is_most(part: int, *, of: int) -> bool:
    return 2 * part > of


class Departure(NamedTuple):
    """An ONU that went down: when a poll showed it, and the cause it reported."""

    onu_id: int
    at: datetime
    cause: DownCause


# A dying gasp comes before the read that finds the ONU down, or soon after it: a queue of traps may be slow.
GASP_BEFORE, GASP_AFTER = timedelta(minutes=10), timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Evidence:
    """ONUs by reported cause; `together` of them went down within `spread`, the shortest time that holds nearly all."""

    total: int
    power: int
    signal: int
    other: int
    together: int
    spread: timedelta
    # Those that a trap said a dying gasp of, while the read brought no power failure as the cause.
    announced: int = 0

    @property
    def without_cause(self) -> int:
        return self.total - self.power - self.signal - self.other

    @property
    def hints_at_power(self) -> bool:
        """Whether most lost their power, if the traps of those that no read brought are right."""
        return bool(self.announced) and _is_most(self.power + self.announced, of=self.total)


def weigh_departures(
    departures: Iterable[Departure], gasps: Mapping[int, Sequence[datetime]] = MappingProxyType({})
) -> Evidence:
    """Count each ONU once, by its first departure: later causes are not the outage's.

    `gasps` are the times at which traps said a dying gasp, by ONU. They never change what was read.
    """
    first: dict[int, Departure] = {}
    for departure in sorted(departures, key=lambda each: each.at):
        first.setdefault(departure.onu_id, departure)
    together, spread = _burst([departure.at for departure in first.values()])
    causes = [departure.cause for departure in first.values()]
    power, signal = _count(causes, POWER_LOST), _count(causes, SIGNAL_LOST)
    other = len(causes) - power - signal - _count(causes, {DownCause.UNKNOWN})
    announced = sum(_is_announced(each, gasps.get(each.onu_id, ())) for each in first.values())
    return Evidence(len(causes), power, signal, other, together, spread, announced)


def _is_announced(departure: Departure, gasps: Iterable[datetime]) -> bool:
    earliest, latest = departure.at - GASP_BEFORE, departure.at + GASP_AFTER
    return departure.cause not in POWER_LOST and any(earliest <= at <= latest for at in gasps)


def _count(causes: Iterable[DownCause], wanted: Collection[DownCause]) -> int:
    return sum(cause in wanted for cause in causes)


def _burst(moments: Sequence[datetime]) -> tuple[int, timedelta]:
    """Find the shortest time that holds nearly all of these sorted times; that of all if it is not much longer."""
    if not moments:
        return 0, timedelta(0)
    size = ceil(LIMITS.dark_share * len(moments))
    begin = min(range(len(moments) - size + 1), key=lambda number: moments[number + size - 1] - moments[number])
    spread = moments[begin + size - 1] - moments[begin]
    if moments[-1] - moments[0] <= 2 * spread:
        return len(moments), moments[-1] - moments[0]
    return sum(moments[begin] <= moment <= moments[begin] + spread for moment in moments), spread


class OutageMember(NamedTuple):
    """A present ONU after the last poll, with its latest outage; some OLTs do not report ports."""

    onu_id: int
    place: OnuPlace
    state: RunState
    state_since: datetime | None
    cause: DownCause | None
    outage_id: int | None = None
    is_port_known: bool = True


@dataclass(frozen=True, slots=True)
class Cycle:
    now: datetime
    interval: timedelta
    limits: OutageLimits = LIMITS

    @property
    def window(self) -> timedelta:
        """How long changes count as one cycle."""
        return self.interval * self.limits.cycles

    def is_fresh(self, member: OutageMember) -> bool:
        """Whether an ONU went down in this cycle; one already down at first sight did not."""
        if member.state is not RunState.OFFLINE or member.state_since is None:
            return False
        return timedelta(0) <= self.now - member.state_since < self.window


def judge_ports(
    olt_id: int, members: Iterable[OutageMember], outages: Iterable[OutageRecord], cycle: Cycle
) -> list[OutageChange]:
    """Open, extend and end port and card outages of one OLT, given all its present ONUs and recent outages."""
    of_ports = (OutageScope.PON, OutageScope.CARD)
    here = [each for each in outages if each.place.olt_id == olt_id and each.place.scope in of_ports]
    known = [each for each in here if each.part_of is None and is_recent(each, cycle.now, cycle.limits)]
    cards: defaultdict[CardPlace, defaultdict[PortPlace, list[OutageMember]]] = defaultdict(lambda: defaultdict(list))
    for member in members:
        if member.is_port_known:
            cards[member.place[:2]][member.place[:3]].append(member)
    # A port may have no ONU left and still have an outage to end.
    for place in (outage.place for outage in known):
        ports = cards[place.frame, place.slot]
        if place.scope is OutageScope.PON:
            ports.setdefault((place.frame, place.slot, place.port), [])
    judgement = _Judgement(olt_id, known, cycle)
    for card in sorted(cards):
        judgement.judge_card(card, cards[card])
    return judgement.changes


class _Judgement:
    """One pass over the cards of an OLT; an ONU belongs to one outage at a time, a card's before a port's."""

    def __init__(self, olt_id: int, known: Sequence[OutageRecord], cycle: Cycle) -> None:
        self.changes: list[OutageChange] = []
        self._olt_id = olt_id
        self._known = {outage.place: outage for outage in known}
        self._open_ids = {outage.outage_id for outage in known if outage.is_open}
        self._joined: set[int] = set()
        self._cycle = cycle

    def judge_card(self, card: CardPlace, ports: Mapping[PortPlace, Sequence[OutageMember]]) -> None:
        place = OutagePlace(OutageScope.CARD, self._olt_id, *card)
        members = [member for port in sorted(ports) for member in ports[port]]
        outage = self._known.get(place)
        parts: list[OutageRecord] = []
        if outage is not None and outage.is_open:
            self._follow(outage, members)
        elif self._is_card_dark(ports.values(), beginnings := self._beginnings(ports)):
            parts = beginnings
            of_parts = {part.outage_id for part in parts}
            older = [m for m in members if m.outage_id in of_parts and not self._cycle.is_fresh(m)]
            self._open(place, members, [*self._fresh(members, parts), *older], absorbed=parts)
            self.changes += [OutageChange(replace(part, ended_at=part.ended_at or self._cycle.now)) for part in parts]
        for port in sorted(ports):
            place = OutagePlace(OutageScope.PON, self._olt_id, *port)
            outage = self._known.get(place)
            if outage in parts:
                continue
            if outage is not None and outage.is_open:
                self._follow(outage, ports[port])
            elif self._is_burst(fresh := self._fresh(ports[port]), ports[port]):
                self._open(place, ports[port], fresh)

    def _beginnings(self, ports: Iterable[PortPlace]) -> list[OutageRecord]:
        """Return port outages that began in this cycle; they may be the start of a card outage."""
        places = [OutagePlace(OutageScope.PON, self._olt_id, *port) for port in sorted(ports)]
        outages = [self._known[place] for place in places if place in self._known]
        return [outage for outage in outages if self._cycle.now - outage.resumed_at < self._cycle.window]

    def _is_card_dark(self, ports: Iterable[Sequence[OutageMember]], beginnings: Sequence[OutageRecord]) -> bool:
        """Whether every port with service lost nearly all of it in this cycle."""
        limits = self._cycle.limits
        counts = [(len(self._fresh(members, beginnings)), _count_online(members)) for members in ports]
        carried = [(lost, online) for lost, online in counts if lost + online]
        is_dark = all(lost >= limits.dark_share * (lost + online) for lost, online in carried)
        return is_dark and len(carried) >= limits.min_ports and sum(lost for lost, _ in carried) >= limits.min_onus

    def _open(
        self,
        place: OutagePlace,
        members: Sequence[OutageMember],
        lost: Sequence[OutageMember],
        *,
        absorbed: Sequence[OutageRecord] = (),
    ) -> None:
        """Open an outage of the ONUs lost in this cycle; a recently ended one continues."""
        began_at = min(m.state_since for m in lost if m.state_since is not None and self._cycle.is_fresh(m))
        started_at = min([began_at, *(part.resumed_at for part in absorbed)])
        former = self._known.get(place)
        if former is None:
            outage = OutageRecord(place, started_at, began_at, OutageCause.UNKNOWN, affected=0, down=0)
        else:
            outage = former.reopen(began_at)
        joined = [member for member in lost if not _is_of(member, outage)]
        self._change(_extend(outage, members, joined), joined, absorbed)

    def _follow(self, outage: OutageRecord, members: Sequence[OutageMember]) -> None:
        """Add late ONUs, and others if they are many again; end the outage when it is over."""
        fresh = self._fresh(members)
        latest = outage.resumed_at + self._cycle.window
        late = [member for member in fresh if member.state_since is not None and member.state_since < latest]
        joined = fresh if self._is_burst(fresh, members) else late
        after = _extend(outage, members, joined)
        most_are_back = 2 * after.down < after.affected
        if most_are_back and not self._cycle.limits.is_outage(after.down, online=_count_online(members)):
            after = replace(after, ended_at=self._cycle.now)
        if after != outage:
            self._change(after, joined)

    def _change(
        self, outage: OutageRecord, joined: Sequence[OutageMember], absorbed: Sequence[OutageRecord] = ()
    ) -> None:
        ids = tuple(member.onu_id for member in joined)
        self._joined.update(ids)
        self.changes.append(OutageChange(outage, ids, tuple(part.place for part in absorbed)))

    def _fresh(self, members: Iterable[OutageMember], parts: Iterable[OutageRecord] = ()) -> list[OutageMember]:
        """Return the ONUs that went down in this cycle and belong to no other open outage than these parts."""
        taken = self._open_ids - {part.outage_id for part in parts}
        fresh = filter(self._cycle.is_fresh, members)
        return [member for member in fresh if member.outage_id not in taken and member.onu_id not in self._joined]

    def _is_burst(self, fresh: Sequence[OutageMember], members: Iterable[OutageMember]) -> bool:
        return self._cycle.limits.is_outage(len(fresh), online=_count_online(members))


def _extend(outage: OutageRecord, members: Iterable[OutageMember], joined: Sequence[OutageMember]) -> OutageRecord:
    """Recount an outage with the joining ONUs; ONUs that left the port no longer count as down."""
    everyone = [*(member for member in members if _is_of(member, outage)), *joined]
    cause = probable_cause(outage.place.scope, [member.cause for member in everyone]) if everyone else outage.cause
    down = sum(member.state is RunState.OFFLINE for member in everyone)
    return replace(outage, affected=outage.affected + len(joined), down=down, cause=cause)


def _is_of(member: OutageMember, outage: OutageRecord) -> bool:
    return outage.outage_id is not None and member.outage_id == outage.outage_id


def _count_online(members: Iterable[OutageMember]) -> int:
    return sum(member.state is RunState.ONLINE for member in members)


NETWORK = OutagePlace(OutageScope.NETWORK)


class OltVoice(NamedTuple):
    """A polled OLT: since when it does not answer (None: it answers), and its ONUs online before."""

    olt_id: int
    silent_since: datetime | None
    answered_at: datetime | None
    online_onus: int


def judge_silence(olts: Sequence[OltVoice], outages: Iterable[OutageRecord], cycle: Cycle) -> list[OutageChange]:
    """Open and end OLT and network outages, given all polled OLTs.

    An OLT no longer polled has no outage. OLTs of a lost network keep their outages as parts of it, and as their own
    again if they stay silent when the network is back.
    """
    known = {outage.place: outage for outage in outages if is_recent(outage, cycle.now, cycle.limits)}
    former = known.get(NETWORK)
    of_olts = {place: outage for place, outage in known.items() if place.scope is OutageScope.OLT}
    changed = _judge_olts(olts, of_olts, former if former and former.is_open else None, cycle)
    silent = [outage for outage in (of_olts | changed).values() if outage.is_open]
    changes = [OutageChange(outage) for _, outage in sorted(changed.items())]
    if former is not None and former.is_open:
        return [*changes, *_follow_network(former, silent, cycle)]
    return [*changes, *_open_network(former, silent, len(olts), cycle)]


def _judge_olts(
    olts: Iterable[OltVoice], known: dict[OutagePlace, OutageRecord], network: OutageRecord | None, cycle: Cycle
) -> dict[OutagePlace, OutageRecord]:
    voices = {OutagePlace(OutageScope.OLT, olt.olt_id): olt for olt in olts}
    changed = {}
    for place, olt in voices.items():
        after = _judge_olt(place, olt, known.get(place), network, cycle)
        if after is not None and after != known.get(place):
            changed[place] = after
    for place, outage in known.items():
        if outage.is_open and place not in voices:
            changed[place] = replace(outage, ended_at=cycle.now, down=0)
    return changed


def _judge_olt(
    place: OutagePlace, olt: OltVoice, outage: OutageRecord | None, network: OutageRecord | None, cycle: Cycle
) -> OutageRecord | None:
    if olt.silent_since is None:
        is_over = outage is not None and outage.is_open
        return replace(outage, ended_at=olt.answered_at or cycle.now, down=0) if outage and is_over else outage
    if outage is not None and outage.is_open:
        return outage
    if outage is not None:
        # An OLT that briefly answered during a network outage is already counted in it.
        part_of = outage.part_of if network and outage.part_of == network.outage_id else None
        return replace(outage.reopen(olt.silent_since), down=olt.online_onus, part_of=part_of)
    since, onus = olt.silent_since, olt.online_onus
    return OutageRecord(place, since, since, OutageCause.OLT, affected=onus, down=onus, affected_olts=1)


def _open_network(
    former: OutageRecord | None, silent: Sequence[OutageRecord], polled: int, cycle: Cycle
) -> list[OutageChange]:
    """Open a network outage if most OLTs that answered before went silent in one cycle."""
    at_once = [outage for outage in silent if cycle.now - outage.resumed_at < cycle.window]
    others = polled - len(silent)
    limits = cycle.limits
    if len(at_once) < limits.min_olts or len(at_once) <= limits.olts_share * (len(at_once) + others):
        return []
    began_at = min(outage.resumed_at for outage in at_once)
    base = former or OutageRecord(NETWORK, began_at, began_at, OutageCause.NETWORK, affected=0, down=0)
    network = replace(base.reopen(began_at), affected=0, affected_olts=0)
    return [_take(network, [], at_once)]


def _follow_network(network: OutageRecord, silent: Sequence[OutageRecord], cycle: Cycle) -> list[OutageChange]:
    parts = [outage for outage in silent if outage.part_of is not None and outage.part_of == network.outage_id]
    # Some are polled rarely; an OLT that stopped answering before the network did has its own cause.
    late = [outage for outage in silent if outage.part_of is None and outage.resumed_at >= network.resumed_at]
    change = _take(network, parts, late)
    if 2 * (len(parts) + len(late)) < change.outage.affected_olts:
        over = replace(network, ended_at=cycle.now, down=0)
        return [OutageChange(over, released=tuple(sorted(part.place for part in parts)))]
    return [change] if change.outage != network or change.absorbed else []


def _take(network: OutageRecord, parts: Sequence[OutageRecord], late: Sequence[OutageRecord]) -> OutageChange:
    after = replace(
        network,
        affected=network.affected + sum(outage.affected for outage in late),
        affected_olts=network.affected_olts + len(late),
        down=sum(outage.down for outage in [*parts, *late]),
    )
    return OutageChange(after, absorbed=tuple(sorted(outage.place for outage in late)))
