"""Decides which wishes of people to read one ONU now are granted: before all nodes, one at a time on each OLT."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from facho.polling.domain.poller_groups import DEFAULT_GROUP

# Nobody looks at a page for longer; an answer that comes later is the next poll's.
EXPIRES_AFTER = timedelta(minutes=5)
# A person's wish goes before every node, so wishes may not take an OLT for themselves.
MAX_WAITING_PER_OLT = 5


@dataclass(frozen=True, slots=True)
class WantedRead:
    """A wish that waits, and whose pollers reach its OLT."""

    onu_id: int
    olt_id: int
    requested_at: datetime
    group: str = DEFAULT_GROUP


@dataclass(frozen=True, slots=True)
class ReadStart:
    """A wish and the poller that grants it."""

    read: WantedRead
    poller_id: int
    # The group of the poller.
    group: str = DEFAULT_GROUP


def plan_reads(
    wanted: Iterable[WantedRead], *, free_pollers: Mapping[str, Sequence[int]], busy_olts: Collection[int]
) -> tuple[ReadStart, ...]:
    """Give the oldest wish of each free OLT a poller of its group; where no groups are set up all share the pollers."""
    has_groups = not set(free_pollers) <= {DEFAULT_GROUP}
    left = {group: list(numbers) for group, numbers in free_pollers.items()}
    busy, starts = set(busy_olts), []
    for read in sorted(wanted, key=lambda read: (read.requested_at, read.onu_id)):
        group = read.group if has_groups else DEFAULT_GROUP
        if read.olt_id not in busy and left.get(group):
            busy.add(read.olt_id)
            starts.append(ReadStart(read, left[group].pop(0), group))
    return tuple(starts)
