"""What a run asks of a collector and what it gets back: the protocol between the two."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from facho.polling.domain.failure import FailureKind
from facho.polling.domain.onu_state import OnuPlace
from facho.polling.domain.task_type import QueryType

# What was sent was sent, whatever became of it. Round trips are those of questions that were sent once.
TRAFFIC = ("packets", "retransmissions", "round_trips", "round_trips_ms", "longest_round_trip_ms")
_LONGEST = "longest_round_trip_ms"
Summary = Mapping[str, int | str]


class SendPermit(Protocol):
    """The right to speak to one OLT."""

    def check(self) -> None:
        """Raise unless this process may send right now; asked in the same breath as every send, must not block."""


class RunControl(SendPermit, Protocol):
    """What a collector may ask about its own run."""

    async def should_yield(self) -> bool:
        """Tell whether a long read gives way now; asked where it can stop and go on later."""


@dataclass(frozen=True, slots=True)
class FreeOid:
    """An OID of an operator's own, as written, with the name and unit under which its values are shown."""

    oid: str
    name: str = ""
    unit: str = ""


@dataclass(frozen=True, slots=True)
class CollectRequest:
    """One node's question to its OLT, at the address that the claim holds."""

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


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a try ended without all its data, in words that hold no secret."""

    kind: FailureKind
    message: str


def _save_nothing(now: datetime) -> None:
    """Keep nothing: the run brought nothing worth storing."""


@dataclass(frozen=True, slots=True)
class Collected:
    """The outcome of one try. `save` writes the rows and is called inside the finishing transaction only.

    `was_heard` says whether the device answered at all: a run may end well without a question to ask.
    """

    summary: Summary = field(default_factory=dict)
    failure: Failure | None = None
    was_heard: bool = False
    # Set when the run gave way: where it goes on. Such a slice is neither a success nor a failure.
    cursor: Mapping[str, int] | None = None
    save: Callable[[datetime], None] = _save_nothing


def join_summaries(before: Summary, after: Summary, *, goes_on: bool) -> dict[str, int | str]:
    """Add what a slice or try brought to what came before it in its run; of what is longest, the longer stays.

    A read that goes on where the last one stopped counts on; one that begins anew only keeps what was sent.
    """
    joined = {key: value for key, value in before.items() if goes_on or key in TRAFFIC}
    for key, value in after.items():
        earlier = joined.get(key)
        if isinstance(earlier, int) and isinstance(value, int):
            joined[key] = max(earlier, value) if key == _LONGEST else earlier + value
        else:
            joined[key] = value
    return joined


class Collector(Protocol):
    """Reads from one OLT; failures of the device are part of the answer, not exceptions."""

    async def collect(self, request: CollectRequest, control: RunControl) -> Collected:
        """Read what is asked, sending only while the right to do so holds."""
