"""Estimates how long a run will take from those before it: the middle of them, scaled to the ONUs there are now."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

# Enough for a steady middle, few enough to follow an OLT that changes.
RUNS_REMEMBERED = 20


@dataclass(frozen=True, slots=True)
class PastRun:
    """A successful run: how long it held its OLT, and how many ONUs it read."""

    seconds: float
    # None where it is not known.
    onus: int | None = None


def estimate_seconds(runs: Sequence[PastRun], *, onus: int | None) -> float | None:
    """Return the median duration, each run scaled to `onus`; None without runs.

    A run is not scaled if either count is unknown or 0 now; one that read no ONU is ignored for a read of some.
    """
    telling = [run for run in runs if not (onus and run.onus == 0)]
    return median(run.seconds * (onus / run.onus if onus and run.onus else 1.0) for run in telling) if telling else None
