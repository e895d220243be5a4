"""A PON port at a glance: how its ONUs are, how much light they get, and who gets the least."""

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass

from django.db.models import Count

from facho.onus.models import Onu
from facho.onus.search import shown_onus
from facho.onus.shown_state import shown_state_column
from facho.onus.words import RunStateChoice
from facho.polling.domain.onu_state import LightBand, count_bands

WORST = 10


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


def load_worst(port_id: int) -> list[Onu]:
    """Load the ONUs with the weakest light, among those online when last read; one query."""
    lit = shown_onus().filter(pon_port_id=port_id, is_present=True, reading__run_state=RunStateChoice.ONLINE)
    return list(lit.filter(reading__rx_power_cdbm__isnull=False).order_by("reading__rx_power_cdbm", "pk")[:WORST])
