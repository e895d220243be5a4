"""Moments as people read them on a clock, in local time."""

from datetime import datetime, timedelta

from django.utils.timezone import localtime


def clock(moment: datetime) -> str:
    """Write the time of the day to the second."""
    return f"{localtime(moment):%H:%M:%S}"


def zone_in_short(moment: datetime) -> str:
    """Write how far the local clock is from UTC, as people write it: UTC-5, UTC+5:30, with a real minus."""
    offset = localtime(moment).utcoffset() or timedelta(0)
    hours, minutes = divmod(abs(offset) // timedelta(minutes=1), 60)
    sign = "−" if offset < timedelta(0) else "+"  # noqa: RUF001 a minus, as wide as the plus
    return f"UTC{sign}{hours}{f':{minutes:02}' if minutes else ''}" if offset else "UTC"


def clock_span(starts_at: datetime, ends_at: datetime) -> str:
    """Write from when to when, as one time when both are the same."""
    begin, end = clock(starts_at), clock(ends_at)
    return begin if begin == end else f"{begin}-{end}"
