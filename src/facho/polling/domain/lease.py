"""Leases as counters, so that no stored time decides which process acts.

The owner raises a counter. A watcher declares it dead after seeing it stand still for long enough on its own monotonic
clock, which may stand still too: then it waits longer, and does no harm. The owner must never hold it for too long, so
it asks every clock there is.

Of several engines each OLT and each poller belongs to exactly one: its Shard.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from facho.polling.domain.ports import ClockReading

Key = TypeVar("Key", int, str)

# Of a lease: how far another clock may run ahead of the monotonic one before the machine may have been frozen. A clock
# that is being disciplined gains a thousandth of it.
MAX_LEAD = 0.05


@dataclass(slots=True)
class HeldLease:
    """The owner's side: valid for `length_seconds` from the start of the last successful renewal."""

    length_seconds: float
    renewed_at: ClockReading

    def is_certain(self, now: ClockReading) -> bool:
        """Whether the owner may act without asking the database.

        Not if any clock says that the lease may be over, nor if one ran ahead of the monotonic clock: the machine may
        have been suspended, and the monotonic clock stopped.
        """
        since = self.renewed_at
        monotonic = now.monotonic - since.monotonic
        others = max(now.boot - since.boot, now.wall - since.wall)
        return max(monotonic, others) < self.length_seconds and others - monotonic <= self.length_seconds * MAX_LEAD

    def renew(self, began_at: ClockReading) -> None:
        """Extend from when the renewal was sent, not from when it was answered."""
        if began_at.monotonic >= self.renewed_at.monotonic:
            self.renewed_at = began_at


class LeaseWatch(Generic[Key]):
    """The other side: tracks how long each counter has not changed, on this process's clock."""

    def __init__(self) -> None:
        self._seen: dict[Key, tuple[int, float]] = {}

    def observe(self, counters: Mapping[Key, int], *, monotonic: float) -> None:
        """Record the counters of all current leases; others are forgotten."""
        still = {key: seen for key, seen in self._seen.items() if counters.get(key) == seen[0]}
        self._seen = {key: still.get(key, (counter, monotonic)) for key, counter in counters.items()}

    def dead(self, keys: Iterable[Key], *, after_seconds: float, monotonic: float) -> list[Key]:
        """Return leases whose counter has not changed for `after_seconds`."""
        return [key for key in keys if key in self._seen and monotonic - self._seen[key][1] >= after_seconds]


@dataclass(frozen=True, slots=True)
class Shard:
    """The OLTs and pollers of one engine, counted from 1."""

    number: int
    count: int

    @property
    def is_whole(self) -> bool:
        return self.count == 1

    @property
    def remainder(self) -> int:
        """What the ids of its OLTs and the numbers of its pollers leave when they are divided by the count."""
        return self.number - 1

    def holds(self, number: int) -> bool:
        """Return whether an OLT or a poller is this engine's."""
        return number % self.count == self.remainder

    def share(self, numbers: Mapping[str, Sequence[int]]) -> dict[str, list[int]]:
        return {group: [number for number in own if self.holds(number)] for group, own in numbers.items()}

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"


# A single engine, the distributed mode's scheduler, and commands.
WHOLE = Shard(1, 1)


def all_shards(count: int) -> tuple[Shard, ...]:
    return tuple(Shard(number, count) for number in range(1, count + 1))


def shard_of(olt_id: int, shards: Iterable[Shard]) -> Shard:
    return next(shard for shard in shards if shard.holds(olt_id))
