"""The state shown for an ONU, by one rule for a row, a condition and a column; and a PON port at a glance.

An ONU that has left is absent. Behind an OLT that does not answer or is disabled the state is unknown, not down.
"""

from collections import Counter, defaultdict
from collections.abc import Collection
from dataclasses import dataclass

from django.db.models import Case, CharField, Count, F, Q, Value, When
from django.db.models.functions import Coalesce

from facho.hosts.models import Reachability
from facho.onus.models import Onu
from facho.onus.words import RunStateChoice, ShownState
from facho.polling.domain import onu_state
from facho.polling.domain.onu_state import LightBand, count_bands


@dataclass(frozen=True, slots=True)
class PortCounts:
    online: int = 0
    offline: int = 0
    unknown: int = 0
    absent: int = 0

    @property
    def total(self) -> int:
        return self.online + self.offline + self.unknown

    @property
    def is_known(self) -> bool:
        """Whether the state of any present ONU is known."""
        return bool(self.online or self.offline)


@dataclass(frozen=True, slots=True)
class PortLight:
    """Receive power of the ONUs that were online when last read."""

    lowest_dbm: float | None
    average_dbm: float | None
    highest_dbm: float | None
    bands: tuple[LightBand, ...]


def shown_state(onu: Onu) -> ShownState:
    """Return the shown state of an ONU loaded with its reading and OLT."""
    if not onu.is_present:
        return ShownState.ABSENT
    can_be_asked = onu.olt.enabled and onu.olt.reachability != Reachability.DOWN
    return ShownState(onu_state.shown_state(onu_state.RunState(last_known_state(onu)), can_be_asked=can_be_asked))


def last_known_state(onu: Onu) -> RunStateChoice:
    """Return the state the OLT last reported, however long ago."""
    reading = getattr(onu, "reading", None)
    return RunStateChoice(reading.run_state) if reading else RunStateChoice.UNKNOWN


def is_unasked(path: str = "") -> Q:
    """Match OLTs whose ONUs have an unknown state; `path` leads to the OLT, as in `olt__`."""
    return Q(**{f"{path}reachability": Reachability.DOWN}) | Q(**{f"{path}enabled": False})


def in_state(state: str, path: str = "") -> Q:
    """Match ONUs by shown state; `path` leads to the ONU, as in `onus__`."""
    present, is_silent = Q(**{f"{path}is_present": True}), is_unasked(f"{path}olt__")
    known = f"{path}reading__run_state"
    if state == ShownState.ABSENT:
        return Q(**{f"{path}is_present": False})
    if state == ShownState.UNKNOWN:
        return present & (is_silent | Q(**{known: RunStateChoice.UNKNOWN}) | Q(**{f"{known}__isnull": True}))
    return present & ~is_silent & Q(**{known: state})


def shown_state_column(path: str = "") -> Case:
    return Case(
        When(in_state(ShownState.ABSENT, path), then=Value(ShownState.ABSENT.value)),
        When(is_unasked(f"{path}olt__"), then=Value(ShownState.UNKNOWN.value)),
        default=Coalesce(F(f"{path}reading__run_state"), Value(RunStateChoice.UNKNOWN.value)),
        output_field=CharField(),
    )


def count_present(olt_id: int | None = None) -> Counter[tuple[int, str]]:
    """Count present ONUs by OLT and shown state; one query."""
    present = Onu.objects.filter(is_present=True).order_by().annotate(shown=shown_state_column())
    if olt_id is not None:
        present = present.filter(olt_id=olt_id)
    counted = present.values_list("olt_id", "shown").annotate(Count("id"))
    return Counter({(olt_id, state): number for olt_id, state, number in counted})


def load_port_counts(port_ids: Collection[int]) -> dict[int, PortCounts]:
    """Count the ONUs of each port; one query."""
    onus = Onu.objects.filter(pon_port_id__in=port_ids).order_by()
    rows = onus.values_list("pon_port_id", shown_state_column()).annotate(Count("pk"))
    counts: dict[int, dict[str, int]] = defaultdict(dict)
    for port_id, state, number in rows:
        counts[port_id][state] = number
    return {port_id: PortCounts(**counts[port_id]) for port_id in port_ids}


def load_port_light(port_id: int) -> PortLight:
    """Load the distribution of receive power; one query."""
    lit = Onu.objects.filter(pon_port_id=port_id, is_present=True, reading__run_state=RunStateChoice.ONLINE)
    known = lit.order_by().values_list("reading__rx_power_cdbm", flat=True)
    powers = [power for power in known if power is not None]
    if not powers:
        return PortLight(None, None, None, ())
    average = round(sum(powers) / len(powers)) / 100
    return PortLight(min(powers) / 100, average, max(powers) / 100, count_bands(powers))
