"""The grid of due times: slot k of a node stands at k x interval + offset since the epoch.

So a late or long run never moves the runs after it, and a node's hour always holds the same number of slots.
"""

from datetime import UTC, datetime, timedelta
from zlib import crc32

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

# Enabling a node gives the operator a minute to think again, and spreads a batch of nodes over five.
FIRST_RUN_DELAY_SECONDS = 60
MAX_SPREAD_SECONDS = 300


def slot_at_or_before(moment: datetime, *, interval_seconds: int, offset_seconds: int) -> datetime:
    """Return the latest slot that is not after `moment`."""
    interval, offset = timedelta(seconds=interval_seconds), timedelta(seconds=offset_seconds)
    return EPOCH + offset + ((moment - EPOCH - offset) // interval) * interval


def next_slot_after(moment: datetime, *, interval_seconds: int, offset_seconds: int) -> datetime:
    """Return the first slot that is after `moment`, never `moment` itself."""
    latest = slot_at_or_before(moment, interval_seconds=interval_seconds, offset_seconds=offset_seconds)
    return latest + timedelta(seconds=interval_seconds)


def count_slots(after: datetime, until: datetime, *, interval_seconds: int, offset_seconds: int) -> int:
    """Count the slots in the half-open span (after, until]; 0 when the span is empty."""
    first = slot_at_or_before(after, interval_seconds=interval_seconds, offset_seconds=offset_seconds)
    last = slot_at_or_before(until, interval_seconds=interval_seconds, offset_seconds=offset_seconds)
    return max((last - first) // timedelta(seconds=interval_seconds), 0)


def first_offset(node_id: int, *, interval_seconds: int, now: datetime) -> int:
    """Choose the offset of a node that is enabled now, so that many enabled at once do not start at once."""
    spread = crc32(str(node_id).encode()) % min(interval_seconds, MAX_SPREAD_SECONDS)
    return (int((now - EPOCH).total_seconds()) + FIRST_RUN_DELAY_SECONDS + spread) % interval_seconds
