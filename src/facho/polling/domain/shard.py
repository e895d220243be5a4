"""Which engine of several serves an OLT, and with which pollers: each number belongs to exactly one of them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass


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
        """Keep, of the pollers of each group, those of this engine."""
        return {group: [number for number in own if self.holds(number)] for group, own in numbers.items()}

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"


# A single engine, the distributed mode's scheduler, and commands.
WHOLE = Shard(1, 1)


def all_shards(count: int) -> tuple[Shard, ...]:
    return tuple(Shard(number, count) for number in range(1, count + 1))


def shard_of(olt_id: int, shards: Iterable[Shard]) -> Shard:
    return next(shard for shard in shards if shard.holds(olt_id))
