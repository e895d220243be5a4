"""How fast a counter of a device grows, from two readings of it."""

from datetime import datetime


def per_second(before: int, after: int, *, read_before: datetime, now: datetime) -> float | None:
    """Return the growth a second; None where nothing can be said of it.

    A counter that is smaller than before was cleared, or came around: its growth is not known.
    """
    seconds = (now - read_before).total_seconds()
    if seconds <= 0 or after < before:
        return None
    return (after - before) / seconds
