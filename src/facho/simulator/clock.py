"""World time: real time at a chosen speed, which a test may also move forward by hand."""

import time


class WorldClock:
    """Seconds since the worlds began. It never goes back."""

    def __init__(self, *, speed: float = 1.0) -> None:
        self._speed = speed
        self._began = time.monotonic()
        self._skipped = 0.0

    def now(self) -> float:
        return self._skipped + (time.monotonic() - self._began) * self._speed

    def skip(self, seconds: float) -> None:
        """Let world time jump ahead."""
        if seconds < 0:
            raise ValueError("world time does not go back")
        self._skipped += seconds
