"""How many ONUs are online, offline or unknown: per OLT, and in all."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from django.db.models import Count

from facho.onus.models import Onu, RunState


@dataclass(frozen=True, slots=True)
class OnuCounts:
    """ONUs that are present, by state."""

    online: int = 0
    offline: int = 0
    unknown: int = 0

    @property
    def total(self) -> int:
        """All that are present."""
        return self.online + self.offline + self.unknown

    def __add__(self, other: "OnuCounts") -> "OnuCounts":
        return OnuCounts(self.online + other.online, self.offline + other.offline, self.unknown + other.unknown)


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of a bar, in percent of its length."""

    state: str
    start: float
    length: float


def load_onu_counts() -> dict[int, OnuCounts]:
    """Count the present ONUs of every OLT that has any; one query."""
    rows = Onu.objects.filter(is_present=True).order_by().values_list("olt_id", "reading__run_state")
    counts: dict[int, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for olt_id, state, number in rows.annotate(number=Count("id")):
        counts[olt_id][state or RunState.UNKNOWN.value] += number
    return {olt_id: OnuCounts(**states) for olt_id, states in counts.items()}


def add_up(counts: Iterable[OnuCounts]) -> OnuCounts:
    """Add the counts of several OLTs."""
    return sum(counts, OnuCounts())


def segments(counts: OnuCounts) -> Iterator[Segment]:
    """Cut a bar into the shares of the states; nothing when there are no ONUs."""
    start = 0.0
    for state in (RunState.ONLINE, RunState.OFFLINE, RunState.UNKNOWN):
        length = 100 * getattr(counts, state.value) / counts.total if counts.total else 0.0
        if length:
            yield Segment(state.value, round(start, 2), round(length, 2))
        start += length
