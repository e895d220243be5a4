"""How the light of a PON port's ONUs is spread: counted in bands of one dB."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

BAND_CDBM = 100
# What class B+ and C+ optics of customers' devices are rated for; below, errors begin.
WEAKEST_CDBM = -2700


@dataclass(frozen=True, slots=True)
class LightBand:
    """ONUs that receive at least `from_dbm` and less than `to_dbm`."""

    from_dbm: int
    to_dbm: int
    onus: int


def count_bands(powers_cdbm: Iterable[int]) -> tuple[LightBand, ...]:
    """Count powers in 0.01 dBm, from the weakest band to the strongest; bands in between may be empty."""
    counts = Counter(power // BAND_CDBM for power in powers_cdbm)
    if not counts:
        return ()
    return tuple(LightBand(dbm, dbm + 1, counts[dbm]) for dbm in range(min(counts), max(counts) + 1))
