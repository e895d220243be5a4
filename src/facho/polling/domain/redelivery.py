"""When a message that did not arrive is tried again, and when it is given up."""

from datetime import datetime, timedelta

FIRST_PAUSE = timedelta(seconds=30)
# A channel that works again is found within this time.
LONGEST_PAUSE = timedelta(minutes=15)
GIVE_UP_AFTER = timedelta(days=1)
# Channels of one broken server are not all tried at one moment.
SPREAD = 0.2


def next_try_at(tries: int, *, written_at: datetime, now: datetime, chance: float) -> datetime | None:
    """Return when to try again after so many tries, or None to give up; `chance` is a random number from 0 to 1."""
    if now - written_at >= GIVE_UP_AFTER:
        return None
    # Beyond some doublings the pause is the longest anyway, and numbers stay small.
    doublings = min(tries - 1, 10)
    pause = min(FIRST_PAUSE * (1 << doublings), LONGEST_PAUSE)
    return now + pause * (1 + SPREAD * (2 * chance - 1))
