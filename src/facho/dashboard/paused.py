"""What is paused now, and until when."""

from dataclasses import dataclass
from datetime import datetime

from facho.hosts.pauses import active_pauses


@dataclass(frozen=True, slots=True)
class PauseView:
    """A pause that holds."""

    until: datetime
    note: str


@dataclass(frozen=True, slots=True)
class Paused:
    """The pause of everything, if any, and those of single OLTs."""

    everything: PauseView | None
    by_olt: dict[int, PauseView]

    def until(self, olt_id: int) -> datetime | None:
        """Return when the OLT may be asked again; None when nothing pauses it."""
        ends = [pause.until for pause in (self.everything, self.by_olt.get(olt_id)) if pause]
        return max(ends, default=None)


def load_paused(now: datetime) -> Paused:
    """Load the pauses that hold, the one that ends last where several do; one query."""
    rows = active_pauses(now).order_by("ends_at").values_list("olt_id", "ends_at", "note")
    views: dict[int | None, PauseView] = {olt_id: PauseView(ends_at, note) for olt_id, ends_at, note in rows}
    return Paused(views.get(None), {olt_id: view for olt_id, view in views.items() if olt_id is not None})
