"""How busy the pollers were over the last minute, and whether that is too much."""

from collections.abc import Iterable
from datetime import datetime, timedelta

WINDOW = timedelta(seconds=60)
SATURATED_ABOVE = 75.0
# Lower than the other bound, so that a load around it does not make the light flicker.
RECOVERED_BELOW = 65.0

Span = tuple[datetime, datetime | None]


def busy_seconds(spans: Iterable[Span], *, now: datetime) -> float:
    """Sum the seconds of the window in which runs were under way; an open span lasts until now."""
    begin = now - WINDOW
    return sum(
        max((min(end or now, now) - max(start, begin)).total_seconds(), 0.0) for start, end in spans if start <= now
    )


def busy_percentage(spans: Iterable[Span], *, pollers: int, now: datetime) -> float:
    """Return the share of the pollers' time in the window that was used, 0 to 100."""
    available = pollers * WINDOW.total_seconds()
    return min(busy_seconds(spans, now=now) / available * 100, 100.0) if available else 0.0


def is_saturated(percentage: float, *, was_saturated: bool) -> bool:
    """Tell whether the pollers are saturated, given whether they were before."""
    return percentage > SATURATED_ABOVE if not was_saturated else percentage >= RECOVERED_BELOW
