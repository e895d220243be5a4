"""How many ONUs are online, offline or unknown: per OLT, and in all."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from facho.accounts.scope import EVERYTHING, OltScope
from facho.dashboard.svg import Bar, stack
from facho.onus.models import RunState
from facho.onus.shown_state import count_present


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


def load_onu_counts(scope: OltScope = EVERYTHING, *, olt_id: int | None = None) -> dict[int, OnuCounts]:
    """Count the present ONUs of every OLT in scope that has any, or of one; one query, and one for a scope."""
    counts: dict[int, dict[str, int]] = defaultdict(dict)
    for (counted, state), number in count_present(olt_id).items():
        counts[counted][state] = number
    seen = scope.visible(counts)
    return {olt_id: OnuCounts(**states) for olt_id, states in counts.items() if olt_id in seen}


def add_up(counts: Iterable[OnuCounts]) -> OnuCounts:
    """Add the counts of several OLTs."""
    return sum(counts, OnuCounts())


def draw_shares(counts: OnuCounts) -> list[Bar]:
    """Cut a bar into the shares of the states; nothing when there are no ONUs."""
    states = (RunState.ONLINE, RunState.OFFLINE, RunState.UNKNOWN)
    return stack(((state.value, getattr(counts, state.value)) for state in states), total=counts.total)
