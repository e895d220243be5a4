"""What an outage is: where, since when, how many ONUs, why; and the sizes from which many faults are one."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from facho.polling.domain.onu_state import DownCause


class OutageScope(StrEnum):
    """How much is out; each includes the ones before it."""

    PON = "pon"
    CARD = "card"
    OLT = "olt"
    NETWORK = "network"


class OutageCause(StrEnum):
    """What probably happened."""

    POWER = "power"
    FIBRE = "fibre"
    CARD = "card"
    OLT = "olt"
    NETWORK = "network"
    UNKNOWN = "unknown"


class OutagePlace(NamedTuple):
    """What is out; at most one open outage has this place. Numbers that the scope does not need are 0."""

    scope: OutageScope
    olt_id: int = 0
    frame: int = 0
    slot: int = 0
    port: int = 0


@dataclass(frozen=True, slots=True)
class Outage:
    """One outage as a row keeps it; `outage_id` is None until it has one.

    `started_at` is the first time; one that came back soon after its end goes on, since `resumed_at`. ONUs behind an
    OLT that is silent count as affected, though nobody knows their state.
    """

    place: OutagePlace
    started_at: datetime
    resumed_at: datetime
    cause: OutageCause
    affected: int
    down: int
    affected_olts: int = 0
    ended_at: datetime | None = None
    outage_id: int | None = None
    # Set on an outage that turned out to be a part of a larger one.
    part_of: int | None = None

    @property
    def is_open(self) -> bool:
        """Tell whether it goes on."""
        return self.ended_at is None


@dataclass(frozen=True, slots=True)
class OutageChange:
    """An outage as it is to be now; `joined` are ONUs whose row is to name it, `absorbed` become parts of it.

    `released` are no parts any more: the larger outage is over and they are not.
    """

    outage: Outage
    joined: tuple[int, ...] = ()
    absorbed: tuple[OutagePlace, ...] = ()
    released: tuple[OutagePlace, ...] = ()


@dataclass(frozen=True, slots=True)
class OutageLimits:
    """All thresholds. Counts and shares must both be reached."""

    # A single ONU is never an outage of its port; a street is, though it is a small part of a large port.
    min_onus: int = 3
    min_share: float = 0.1
    # A port is dark when it lost this share of its ONUs; a card is out when all its ports are dark.
    dark_share: float = 0.9
    min_ports: int = 2
    min_olts: int = 2
    olts_share: float = 0.5
    # Of polls, one after the other: what the poll before saw belongs to the same cycle, also if this one is late.
    cycles: float = 1.5
    # What comes back within this time after its end is the same outage: it flaps.
    reopens_within: timedelta = timedelta(minutes=30)

    def is_outage(self, lost: int, *, online: int) -> bool:
        """Tell whether so many ONUs, lost while the others stayed online, are more than single faults."""
        return lost >= self.min_onus and lost >= self.min_share * (lost + online)


LIMITS = OutageLimits()

POWER_LOST = frozenset({DownCause.DYING_GASP, DownCause.POWER_OFF})
SIGNAL_LOST = frozenset(
    {DownCause.LOS, DownCause.LOF, DownCause.SIGNAL_FAIL, DownCause.LOSS_OF_ACK, DownCause.LOSS_OF_PLOAM}
)


def probable_cause(scope: OutageScope, causes: Iterable[DownCause | None]) -> OutageCause:
    """Judge by what most ONUs of an outage say; only customers without power say so before they go."""
    told = list(causes)
    if _is_most(sum(cause in POWER_LOST for cause in told), of=len(told)):
        return OutageCause.POWER
    if scope is OutageScope.CARD:
        return OutageCause.CARD
    return OutageCause.FIBRE if _is_most(sum(c in SIGNAL_LOST for c in told), of=len(told)) else OutageCause.UNKNOWN


def is_recent(outage: Outage, now: datetime, limits: OutageLimits = LIMITS) -> bool:
    """Tell whether an outage matters to the next judgement: it is open, or may still come back as the same."""
    # A clock that was set back may put the end into the future: what comes then is no continuation.
    return outage.ended_at is None or abs(now - outage.ended_at) < limits.reopens_within


def _is_most(part: int, *, of: int) -> bool:
    return 2 * part > of
