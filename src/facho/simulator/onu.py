"""What one simulated ONU is and where it hangs; plain state, changed only by its world."""

from dataclasses import dataclass

from facho.polling.domain.onu_state import DownCause, RunState
from facho.polling.vendors.index import Place

# Neighbours in a street have neighbouring ids, and one transformer.
ONUS_PER_STREET = 8


@dataclass(slots=True)
class Onu:
    """One customer device; times are seconds of world time and may be negative (before the start)."""

    serial: str
    description: str
    model: str
    place: Place
    distance_m: int
    rx_dbm: float
    tx_dbm: float
    temperature_c: float
    salt: int
    fade_db_per_day: float = 0.0
    # By a fibre that somebody bent.
    loss_db: float = 0.0
    # Whatever is told of it cannot be true.
    is_garbled: bool = False
    state: RunState = RunState.ONLINE
    last_down_cause: DownCause | None = None
    last_up_at: float | None = None
    last_down_at: float | None = None

    @property
    def street(self) -> int:
        """Which street of its port it stands in."""
        return self.place.onu // ONUS_PER_STREET

    @property
    def is_online(self) -> bool:
        return self.state is RunState.ONLINE
