"""Moments as people read them on a clock, in local time."""

from datetime import datetime

from django.utils.timezone import localtime


def clock(moment: datetime) -> str:
    """Write the time of the day to the second."""
    return f"{localtime(moment):%H:%M:%S}"


def clock_span(starts_at: datetime, ends_at: datetime) -> str:
    """Write from when to when, as one time when both are the same."""
    begin, end = clock(starts_at), clock(ends_at)
    return begin if begin == end else f"{begin}-{end}"
