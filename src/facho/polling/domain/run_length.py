"""Estimates how long a run will take from those before it: the middle of them, scaled to the ONUs there are now."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

# Enough for a steady middle, few enough to follow an OLT that changes.
RUNS_REMEMBERED = 20


@dataclass(frozen=True, slots=True)
class PastRun:
    """A run that ended well: how long it held its OLT, and how many ONUs it read."""

    seconds: float
    onus: int = 0


def estimate_seconds(runs: Sequence[PastRun], *, onus: int | None) -> float | None:
    """Return the median of the runs, each scaled to `onus`; None when there was none.

    Where the count of then or of now is unknown or zero, a run counts as it was.
    """
    return median(run.seconds * _growth(run.onus, onus) for run in runs) if runs else None


def _growth(before: int, now: int | None) -> float:
    return now / before if now and before > 0 else 1.0
