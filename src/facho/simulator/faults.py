"""What may go wrong between a simulated agent and its manager, as values; the agent asks what to do with each reply."""

from dataclasses import dataclass
from random import Random

from facho.simulator.responder import Work


@dataclass(frozen=True, slots=True)
class Faults:
    """How badly an agent behaves. Shares are probabilities per reply."""

    latency_seconds: float = 0.0
    live_row_seconds: float = 0.0
    loss: float = 0.0
    is_silent: bool = False
    crash_above: int | None = None
    crash_seconds: float = 5.0


NO_FAULTS = Faults()


class FaultInjector:
    """Decides the fate of each reply, repeatably from a seed; `current` may be replaced at any time."""

    def __init__(self, faults: Faults, *, seed: int, name: str) -> None:
        self.current = faults
        self._random = Random(f"faults/{seed}/{name}")

    def delay_seconds(self, work: Work) -> float:
        """How long the agent works on a reply."""
        return self.current.latency_seconds + self.current.live_row_seconds * work.live_rows

    @property
    def is_silent(self) -> bool:
        return self.current.is_silent

    def is_lost(self) -> bool:
        return self.current.loss > 0 and self._random.random() < self.current.loss
