"""Leases as counters on monotonic clocks, so that a jump of the wall clock neither ends nor keeps one.

The owner raises a counter; who waits declares it dead after watching it stand still for long enough.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

Key = TypeVar("Key", int, str)


@dataclass(slots=True)
class HeldLease:
    """The owner's side: valid for `length_seconds` from the moment its last successful renewal began."""

    length_seconds: float
    renewed_at: float

    def is_valid(self, monotonic: float) -> bool:
        """Tell whether the owner may still act."""
        return monotonic - self.renewed_at < self.length_seconds

    def renew(self, began_at: float) -> None:
        """Extend from when the renewal was sent, not from when its answer came."""
        self.renewed_at = max(self.renewed_at, began_at)


class LeaseWatch(Generic[Key]):
    """The other side: remembers since when each counter stands still on this process's own clock."""

    def __init__(self) -> None:
        self._seen: dict[Key, tuple[int, float]] = {}

    def observe(self, counters: Mapping[Key, int], *, monotonic: float) -> None:
        """Take note of the counters of all leases that exist now; those that are gone are forgotten."""
        self._seen = {key: self._first_sight(key, counter, monotonic) for key, counter in counters.items()}

    def dead(self, keys: Iterable[Key], *, after_seconds: float, monotonic: float) -> list[Key]:
        """Return those whose counter has stood still for at least `after_seconds`."""
        return [key for key in keys if key in self._seen and monotonic - self._seen[key][1] >= after_seconds]

    def _first_sight(self, key: Key, counter: int, monotonic: float) -> tuple[int, float]:
        seen = self._seen.get(key)
        return seen if seen and seen[0] == counter else (counter, monotonic)
