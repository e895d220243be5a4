"""Turns OLTs that do not answer into outages, and most of them at once into one: the poller lost its network."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

from facho.polling.domain.outage import Outage, OutageCause, OutageChange, OutagePlace, OutageScope, is_recent
from facho.polling.domain.outages import Cycle

NETWORK = OutagePlace(OutageScope.NETWORK)


class OltVoice(NamedTuple):
    """An OLT that is polled: since when it is silent (None: it answers), and its ONUs that were online before."""

    olt_id: int
    silent_since: datetime | None
    answered_at: datetime | None
    online_onus: int


def judge_silence(olts: Sequence[OltVoice], outages: Iterable[Outage], cycle: Cycle) -> list[OutageChange]:
    """Open and end the outages of silent OLTs and of the network, given all OLTs that are polled.

    An OLT that nobody asks any more is no outage. The OLTs of a lost network keep their outages, as parts of it,
    and have them for themselves again when the network is back and they are not.
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
    olts: Iterable[OltVoice], known: dict[OutagePlace, Outage], network: Outage | None, cycle: Cycle
) -> dict[OutagePlace, Outage]:
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
    place: OutagePlace, olt: OltVoice, outage: Outage | None, network: Outage | None, cycle: Cycle
) -> Outage | None:
    if olt.silent_since is None:
        is_over = outage is not None and outage.is_open
        return replace(outage, ended_at=olt.answered_at or cycle.now, down=0) if outage and is_over else outage
    if outage is not None and outage.is_open:
        return outage
    if outage is not None:
        # Who came back for a moment while the network is lost was counted when it was lost.
        part_of = outage.part_of if network and outage.part_of == network.outage_id else None
        return replace(outage, ended_at=None, resumed_at=olt.silent_since, down=olt.online_onus, part_of=part_of)
    since, onus = olt.silent_since, olt.online_onus
    return Outage(place, since, since, OutageCause.OLT, affected=onus, down=onus, affected_olts=1)


def _open_network(former: Outage | None, silent: Sequence[Outage], polled: int, cycle: Cycle) -> list[OutageChange]:
    """Most OLTs that were not silent long before fell silent in one cycle."""
    at_once = [outage for outage in silent if cycle.now - outage.resumed_at < cycle.window]
    others = polled - len(silent)
    limits = cycle.limits
    if len(at_once) < limits.min_olts or len(at_once) <= limits.olts_share * (len(at_once) + others):
        return []
    began_at = min(outage.resumed_at for outage in at_once)
    base = former or Outage(NETWORK, began_at, began_at, OutageCause.NETWORK, affected=0, down=0)
    network = replace(base, ended_at=None, resumed_at=began_at, affected=0, affected_olts=0)
    return [_take(network, [], at_once)]


def _follow_network(network: Outage, silent: Sequence[Outage], cycle: Cycle) -> list[OutageChange]:
    parts = [outage for outage in silent if outage.part_of is not None and outage.part_of == network.outage_id]
    # Some are asked seldom; who fell silent before the network did has a reason of its own.
    late = [outage for outage in silent if outage.part_of is None and outage.resumed_at >= network.resumed_at]
    change = _take(network, parts, late)
    if 2 * (len(parts) + len(late)) < change.outage.affected_olts:
        over = replace(network, ended_at=cycle.now, down=0)
        return [OutageChange(over, released=tuple(sorted(part.place for part in parts)))]
    return [change] if change.outage != network or change.absorbed else []


def _take(network: Outage, parts: Sequence[Outage], late: Sequence[Outage]) -> OutageChange:
    after = replace(
        network,
        affected=network.affected + sum(outage.affected for outage in late),
        affected_olts=network.affected_olts + len(late),
        down=sum(outage.down for outage in [*parts, *late]),
    )
    return OutageChange(after, absorbed=tuple(sorted(outage.place for outage in late)))
