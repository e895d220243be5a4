"""How fast a counter of a device grows, from two readings of it."""

from datetime import datetime


def per_second(before: int, after: int, *, read_before: datetime, now: datetime) -> float | None:
    """Return the rate per second; None if unknown.

    A counter smaller than before was reset or wrapped: its rate is unknown.
    """
    seconds = (now - read_before).total_seconds()
    if seconds <= 0 or after < before:
        return None
    return (after - before) / seconds
