"""Suspended nodes and the probes that bring them back: a dead OLT is asked less and less, never more than needed."""

from datetime import datetime, timedelta

# The reason of a suspension that concerns the OLT and not one node: it did not answer at all.
UNREACHABLE = "unreachable"

# Minutes after the suspension and between probes; the last one repeats for ever (decision D8).
PROBE_PAUSES_SECONDS = (60, 120, 240, 300)


def next_probe_at(probes_done: int, *, now: datetime) -> datetime:
    """Return when to probe next, after so many probes without an answer."""
    pause = PROBE_PAUSES_SECONDS[min(probes_done, len(PROBE_PAUSES_SECONDS) - 1)]
    return now + timedelta(seconds=pause)
