"""The clock as a role, so that decisions take time as a value and tests bring their own."""

from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    """Wall time for what people read and for the grid; monotonic time for leases."""

    def now(self) -> datetime:
        """Return the aware UTC time."""

    def monotonic(self) -> float:
        """Return seconds that never jump; only differences mean something."""
