"""What speaks for the probable cause of an outage: what its ONUs said before they went, and how close together."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import ceil
from typing import NamedTuple

from facho.polling.domain.onu_state import DownCause
from facho.polling.domain.outage import LIMITS, POWER_LOST, SIGNAL_LOST


class Departure(NamedTuple):
    """An ONU that went down: when a poll showed it, and what it said."""

    onu_id: int
    at: datetime
    cause: DownCause


@dataclass(frozen=True, slots=True)
class Evidence:
    """ONUs by what they said; `together` of them went within `spread`, the shortest time that holds nearly all."""

    total: int
    power: int
    signal: int
    other: int
    together: int
    spread: timedelta

    @property
    def untold(self) -> int:
        """How many gave no reason."""
        return self.total - self.power - self.signal - self.other


def weigh_departures(departures: Iterable[Departure]) -> Evidence:
    """Count each ONU once, by its first departure: what it says later is no cause of the outage."""
    first: dict[int, Departure] = {}
    for departure in sorted(departures, key=lambda each: each.at):
        first.setdefault(departure.onu_id, departure)
    together, spread = _burst([departure.at for departure in first.values()])
    causes = [departure.cause for departure in first.values()]
    power, signal = _count(causes, POWER_LOST), _count(causes, SIGNAL_LOST)
    other = len(causes) - power - signal - _count(causes, {DownCause.UNKNOWN})
    return Evidence(len(causes), power, signal, other, together, spread)


def _count(causes: Iterable[DownCause], wanted: Collection[DownCause]) -> int:
    return sum(cause in wanted for cause in causes)


def _burst(moments: Sequence[datetime]) -> tuple[int, timedelta]:
    """Find the shortest time that holds nearly all of these, which are in order, and how many it holds.

    It is the time of all when that is not much longer: then nobody is a straggler.
    """
    if not moments:
        return 0, timedelta(0)
    size = ceil(LIMITS.dark_share * len(moments))
    begin = min(range(len(moments) - size + 1), key=lambda number: moments[number + size - 1] - moments[number])
    spread = moments[begin + size - 1] - moments[begin]
    if moments[-1] - moments[0] <= 2 * spread:
        return len(moments), moments[-1] - moments[0]
    return sum(moments[begin] <= moment <= moments[begin] + spread for moment in moments), spread
