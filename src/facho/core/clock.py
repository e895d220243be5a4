"""The machine's own clock."""

import time
from datetime import UTC, datetime


class SystemClock:
    """Reads wall and monotonic time."""

    def now(self) -> datetime:
        """Return the aware UTC time."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return seconds that never jump."""
        return time.monotonic()
