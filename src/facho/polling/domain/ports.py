"""The clock as a role, so that decisions take time as a value and tests bring their own."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import NamedTuple, ParamSpec, Protocol, TypeVar

# Differences between clocks, or readings of one, above this mean that a clock was set.
CLOCK_TOLERANCE = timedelta(seconds=5)


class ClockReading(NamedTuple):
    """All clocks of the machine at one moment, in seconds; only differences matter.

    They diverge when the machine was suspended: monotonic time stops in suspend and in a paused guest, boot time
    includes suspend, and wall time is corrected once the guest resumes.
    """

    monotonic: float
    boot: float
    wall: float


class Clock(Protocol):
    """Wall time for people and the grid, monotonic time for waiting, all of them for leases."""

    def now(self) -> datetime:
        """Return the aware UTC time."""

    def monotonic(self) -> float:
        """Return seconds that never jump; only differences matter."""

    def reading(self) -> ClockReading:
        """Read all clocks at once."""


P = ParamSpec("P")
T = TypeVar("T")


class DatabaseGateway(Protocol):
    """Runs a synchronous store function off the event loop; each call is one unit of work."""

    async def run(self, call: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Return or raise what `call` does."""

    async def run_long(self, call: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Do the same for a call that takes long, such as one that stores many rows; short calls go first."""


# Longer than any run.
LONG_IDLE = timedelta(minutes=20)
# The broker serves the longest waiting worker first: this many rounds without a turn are not chance.
ROUNDS = 20


def stands_still(idle: timedelta, *, workers: int, completed_by_others: int) -> bool:
    """Whether a worker idle for that long no longer takes its share of its groups' work."""
    return idle > LONG_IDLE and workers > 1 and completed_by_others >= ROUNDS * workers
