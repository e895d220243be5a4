"""Counts what one simulated agent was asked and answered; above all, how many requests were in flight at once."""

from collections import OrderedDict
from dataclasses import asdict, dataclass
from typing import Any

# A request id that comes again within so many others is a retransmission.
REMEMBERED_REQUESTS = 1_024

RequestKey = tuple[object, int]


@dataclass(slots=True)
class Counters:
    """Totals of one agent. Requests are counted once; the same id again is a retransmission."""

    requests: int = 0
    retransmissions: int = 0
    responses: int = 0
    varbinds: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    max_in_flight: int = 0
    dropped: int = 0
    malformed: int = 0
    wrong_community: int = 0
    crashes: int = 0
    # What the answers cost the OLT's processor by the cost model, in its scaled time.
    busy_seconds: float = 0.0
    shortest_retry_ms: float | None = None
    shortest_live_retry_ms: float | None = None

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    def count_retry(self, waited_ms: float, *, is_live: bool) -> None:
        """Count a retransmission and keep the shortest wait of its cost class."""
        self.retransmissions += 1
        if is_live:
            self.shortest_live_retry_ms = min(waited_ms, self.shortest_live_retry_ms or waited_ms)
        else:
            self.shortest_retry_ms = min(waited_ms, self.shortest_retry_ms or waited_ms)


class Flight:
    """Tells new requests from repeated ones, and how many different ones are being worked on without an answer yet."""

    def __init__(self) -> None:
        self._working: dict[RequestKey, int] = {}
        self._seen: OrderedDict[RequestKey, float] = OrderedDict()

    @property
    def distinct(self) -> int:
        return len(self._working)

    def arrive(self, key: RequestKey, *, now: float) -> float | None:
        """Note a request; return how long ago the same one came, None for a new one."""
        before = self._seen.pop(key, None)
        self._seen[key] = now
        if len(self._seen) > REMEMBERED_REQUESTS:
            self._seen.popitem(last=False)
        self._working[key] = self._working.get(key, 0) + 1
        return None if before is None else now - before

    def leave(self, key: RequestKey) -> int:
        """Note that work on a request has ended, answered or not; return how many such requests were known, 0 or 1."""
        working = self._working.get(key, 0)
        if working > 1:
            self._working[key] = working - 1
        else:
            self._working.pop(key, None)
        return min(working, 1)

    def answer(self, key: RequestKey) -> None:
        """Note that a reply left: what is still worked on under this id are repeats, of no use to the manager."""
        self._working.pop(key, None)

    def forget(self) -> int:
        """Drop all work, as a crash does, and return how much; request ids are still remembered."""
        dropped = sum(self._working.values())
        self._working.clear()
        return dropped
