"""What reading costs a real OLT, so that strategies can be compared in seconds instead of minutes.

The figures follow a public benchmark of a small chassis with 817 ONUs on 22 of 32 ports: a live row costs about
100 ms whatever the number of columns, configuration is cheap, and work in parallel takes longer than in sequence.
An empty port is dear by itself: a bulk read of live columns there runs on into the rows of the next port.
"""

from dataclasses import dataclass

from facho.simulator.responder import Work


@dataclass(frozen=True, slots=True)
class CostModel:
    """Seconds of the device's one processor per request. `time_scale` 0.01 plays it a hundred times faster."""

    time_scale: float = 1.0
    request_seconds: float = 0.045
    column_seconds: float = 0.0064
    cell_seconds: float = 0.00025
    live_page_seconds: float = 0.4
    live_row_seconds: float = 0.1
    # What two and three requests at once cost in all, against one after the other; each further one adds as much.
    two_at_once: float = 1.05
    three_at_once: float = 1.35
    further_at_once: float = 0.3

    def seconds(self, work: Work, *, in_flight: int) -> float:
        """How long the processor is busy with a reply, in scaled time."""
        plain = self.request_seconds + self.column_seconds * work.columns + self.cell_seconds * work.cells
        live = self.live_page_seconds + self.live_row_seconds * work.live_rows if work.live_rows else 0.0
        return (plain + live) * self._slowdown(in_flight) * self.time_scale

    def _slowdown(self, in_flight: int) -> float:
        if in_flight <= 2:
            return self.two_at_once if in_flight == 2 else 1.0
        return self.three_at_once + self.further_at_once * (in_flight - 3)


class Processor:
    """The one processor of an OLT: a request begins when the one before it has ended."""

    def __init__(self) -> None:
        self._free_at = 0.0

    def take(self, seconds: float, *, now: float) -> float:
        """Queue work and return after how many seconds it is done."""
        self._free_at = max(self._free_at, now) + seconds
        return self._free_at - now

    def reset(self) -> None:
        self._free_at = 0.0
