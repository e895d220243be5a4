"""What a run asks of a collector and what it gets back: the protocol between the two."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple, Protocol

from facho.polling.domain.execution_state import FailureKind, QueryType
from facho.polling.domain.hints import HintedRead
from facho.polling.domain.onu_presence import Walk
from facho.polling.domain.onu_state import OnuPlace
from facho.polling.domain.onu_table import OnuTable

# What was sent was sent, whatever became of it. Round trips are those of questions that were sent once.
TRAFFIC = (
    "packets",
    "retransmissions",
    "round_trips",
    "round_trips_ms",
    "longest_round_trip_ms",
    "late_answers",
    "forged_answers",
    "malformed_answers",
)
_LONGEST = "longest_round_trip_ms"
Summary = Mapping[str, int | str]


class SendPermit(Protocol):
    def check(self) -> None:
        """Raise unless this process may send now, right before every send; OwnershipUnproven: `confirm` first."""

    async def confirm(self) -> None:
        """Wait until the database confirms the permission; OwnershipLost if it does not."""

    def keep_until(self, loop_time: float) -> None:
        """Keep the OLT reserved until this time on the loop's clock: the device is still working."""


@dataclass(frozen=True, slots=True)
class RunProgress:
    """How far a read has come: rows, and PON ports read to their end; 0 in all is not known."""

    rows: int
    rows_in_all: int = 0
    ports: int = 0
    ports_in_all: int = 0


class RunControl(SendPermit, Protocol):
    async def should_yield(self) -> bool:
        """Whether a long read should pause now; called where it can stop and resume."""

    def show(self, progress: RunProgress) -> None:
        """Remember how far the read has come; written every few seconds, for all runs of the process together."""

    def wants_rows(self) -> bool:
        """Whether the read takes so long that what is finished should be handed over now."""

    async def hand_over(self, *rows: "Rows") -> None:
        """Store rows before the end of the run, all or nothing; OwnershipLost if the claim is gone."""


@dataclass(frozen=True, slots=True)
class FreeOid:
    """A custom OID as written, with the name and unit its values are shown with."""

    oid: str
    name: str = ""
    unit: str = ""


@dataclass(frozen=True, slots=True)
class CollectRequest:
    olt_id: int
    address: str
    port: int
    vendor: str
    query_type: QueryType
    columns: tuple[str, ...]
    # Where an earlier slice of the same run stopped, in the collector's own words.
    cursor: Mapping[str, int] | None = None
    # What no column of the vendor definition stands for.
    oids: tuple[FreeOid, ...] = ()
    # The one ONU whose state and light a person wants to know; the columns follow from that.
    onu: OnuPlace | None = None
    # What a notification of the OLT asks for; the columns follow from that, too.
    hint: HintedRead | None = None
    # Whether its node never finished a run, so that nothing of what it reads is there yet.
    is_first: bool = False


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an attempt ended without all its data; contains no secrets."""

    kind: FailureKind
    message: str


@dataclass(frozen=True, slots=True)
class OltIdentity:
    """What an OLT says of itself, and what the vendor definitions make of it."""

    sys_name: str
    sys_descr: str
    sys_object_id: str
    vendor: str
    brand: str
    model: str


@dataclass(frozen=True, slots=True)
class OltValue:
    """One value: `value` in its unit, `raw` as it came; a counter says so, for its growth is what people ask for."""

    oid: str
    index: str
    name: str
    place: str
    value: str
    unit: str
    raw: str
    is_counter: bool = False


class UnauthorisedOnu(NamedTuple):
    """An ONU that waits to be authorised: where, by which serial, of which model if the OLT reports it."""

    frame: int
    slot: int
    port: int
    serial: str
    model: str = ""


@dataclass(frozen=True, slots=True)
class Rows:
    """What one way of reading brought to be stored; None for what it did not ask for."""

    identity: OltIdentity | None = None
    walk: Walk | None = None
    table: OnuTable | None = None
    # Not so where single ONUs were read: the cycle of polls does not start again with them.
    is_poll: bool = True
    unauthorised: Sequence[UnauthorisedOnu] | None = None
    # Only a complete list says of an ONU that it does not wait any more.
    is_list_complete: bool = True
    olt_values: Sequence[OltValue] | None = None
    # Read to their end: stored rows of these OIDs that did not come are deleted.
    whole_oids: Collection[str] = ()
    # The history of these OIDs is kept, of the OLT and of ONUs.
    kept_oids: Collection[str] = ()
    # Sizes of requests that worked, by what was asked for.
    learned_sizes: Mapping[str, int] = field(default_factory=dict)


def _release_nothing() -> None:
    """Nothing to release."""


@dataclass(frozen=True, slots=True)
class Collected:
    """The outcome of one try. Its rows are stored in the finishing transaction only, in their order.

    `was_heard` says whether the device answered at all; `is_empty` that there was nothing to ask: no ONU is known.
    """

    summary: Summary = field(default_factory=dict)
    failure: Failure | None = None
    was_heard: bool = False
    is_empty: bool = False
    # Set when the run paused: where it continues. Such a slice is neither a success nor a failure.
    cursor: Mapping[str, int] | None = None
    rows: tuple[Rows, ...] = ()
    # Gives back the memory that was set aside for the rows, once they are stored or refused.
    release: Callable[[], None] = _release_nothing


def join_summaries(before: Summary, after: Summary, *, goes_on: bool) -> dict[str, int | str]:
    """Add a later summary of the same run; a read that starts over keeps only the traffic of those before."""
    joined = {key: value for key, value in before.items() if goes_on or key in TRAFFIC}
    for key, value in after.items():
        earlier = joined.get(key)
        if isinstance(earlier, int) and isinstance(value, int):
            joined[key] = max(earlier, value) if key == _LONGEST else earlier + value
        else:
            joined[key] = value
    return joined


class Collector(Protocol):
    """Reads from one OLT; device failures are part of the result, not exceptions."""

    async def collect(self, request: CollectRequest, control: RunControl) -> Collected:
        """Read what is requested, sending only while permitted."""


def per_second(before: int, after: int, *, read_before: datetime, now: datetime) -> float | None:
    """Return the rate; None if unknown, as when a counter was reset or wrapped."""
    seconds = (now - read_before).total_seconds()
    if seconds <= 0 or after < before:
        return None
    return (after - before) / seconds
