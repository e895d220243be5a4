"""What a simulated network consists of. The repr of a workload is the program that replays it."""

from dataclasses import dataclass
from datetime import UTC, datetime

from facho.polling.domain.execution_state import RANK, FailureKind, QueryType
from facho.polling.domain.schedule import Grid, Window

START = datetime(2026, 3, 1, tzinfo=UTC)

# Times in a workload are real seconds since its start; they pass whatever the wall clock shows.
Span = tuple[int, int]


@dataclass(frozen=True)
class NodeSpec:
    """A master with its chain: when it is due, and how long and how well the OLT answers it.

    With more than one port it is a long read that may give way between two of them.
    """

    interval_seconds: int
    seconds: float
    offset_seconds: int = 0
    query_type: QueryType = QueryType.GET
    priority: int = 50
    ports: int = 1
    varies: float = 0.0
    failing: float = 0.0
    failure: FailureKind = FailureKind.MALFORMED
    is_fixed_delay: bool = False
    window: Window | None = None

    @property
    def grid(self) -> Grid:
        return Grid(self.interval_seconds, self.offset_seconds, self.window, is_fixed_delay=self.is_fixed_delay)

    @property
    def rank(self) -> int:
        return RANK[self.query_type]


@dataclass(frozen=True)
class OltSpec:
    """An OLT and its nodes; during `silent` it answers nothing."""

    nodes: tuple[NodeSpec, ...]
    silent: tuple[Span, ...] = ()

    def is_silent(self, seconds: float) -> bool:
        return any(begin <= seconds < end for begin, end in self.silent)


@dataclass(frozen=True)
class Workload:
    """A network and what happens to it."""

    olts: tuple[OltSpec, ...]
    pollers: int
    hours: float
    seed: int = 0
    # From when to when the engine is dead.
    downtimes: tuple[Span, ...] = ()
    # When, and which node (counted over all OLTs), a person asks for.
    wishes: tuple[tuple[int, int], ...] = ()
    # When, and by how many seconds, the wall clock jumps.
    jumps: tuple[tuple[int, int], ...] = ()
