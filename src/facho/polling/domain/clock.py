"""The clock as a role, so that decisions take time as a value and tests bring their own."""

from datetime import datetime, timedelta
from typing import Protocol

# How far clocks of two machines, or two looks at one, may be apart before anybody believes that one was set.
CLOCK_TOLERANCE = timedelta(seconds=5)


class Clock(Protocol):
    """Wall time for what people read and for the grid; monotonic time for leases."""

    def now(self) -> datetime:
        """Return the aware UTC time."""

    def monotonic(self) -> float:
        """Return seconds that never jump; only differences mean something."""
