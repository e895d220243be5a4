"""What an OLT says in a notification, and which reads follow from it.

A notification is a hint: it names a place to read. The state is what the read brings.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

# Hints for more ports than this become one walk over the states of the OLT: fewer packets, and no later.
MANY_PORTS = 4
# A read of one port again and again would take the OLT for itself; settable for reads of ports.
NODE_GAP = timedelta(seconds=60)


class Meaning(StrEnum):
    ONU_DOWN = "onu_down"
    ONU_UP = "onu_up"
    ONU_LOS = "onu_los"
    ONU_DYING_GASP = "onu_dying_gasp"
    ONU_DISCOVERED = "onu_discovered"
    PON_LOS = "pon_los"
    PON_DOWN = "pon_down"
    PON_UP = "pon_up"
    BOARD_DOWN = "board_down"
    BOARD_UP = "board_up"
    DEVICE_RESTART = "device_restart"
    OPTICAL_WARNING = "optical_warning"
    POWER = "power"
    FAN = "fan"
    TEMPERATURE = "temperature"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class HintPlace:
    """The place that a notification names; None for the parts that it leaves out."""

    frame: int | None = None
    slot: int | None = None
    port: int | None = None
    onu: int | None = None


@dataclass(frozen=True, slots=True)
class Said:
    """What a notification means in a vendor definition; `is_end` when it ends what another one began."""

    name: str
    meaning: Meaning
    place: HintPlace = HintPlace()
    serial: str = ""
    is_end: bool = False


class ReadScope(StrEnum):
    """How much of an OLT a hinted read asks for."""

    PORT = "port"
    STATES = "states"
    DISCOVERY = "discovery"
    WAITING = "waiting"


@dataclass(frozen=True, slots=True)
class HintedRead:
    """A read that hints ask for: states of a PON port or of all ONUs, a discovery, or the list of waiting ONUs."""

    scope: ReadScope
    frame: int = 0
    slot: int = 0
    port: int = 0
    # None: every ONU of the port.
    onu: int | None = None


_OF_ONUS = frozenset({Meaning.ONU_DOWN, Meaning.ONU_UP, Meaning.ONU_LOS, Meaning.ONU_DYING_GASP})
_OF_PORTS = frozenset({Meaning.PON_LOS, Meaning.PON_DOWN, Meaning.PON_UP})
_OF_CARDS = frozenset({Meaning.BOARD_DOWN, Meaning.BOARD_UP, Meaning.DEVICE_RESTART})
ENDS_DOWN = frozenset({Meaning.ONU_DOWN, Meaning.ONU_LOS, Meaning.ONU_DYING_GASP})


def plan_hinted_reads(hints: Iterable[Said], *, many_ports: int = MANY_PORTS) -> tuple[HintedRead, ...]:
    """Turn the hints of one OLT, heard within a second, into as few reads as find what they are about."""
    ports: dict[tuple[int, int, int], set[int | None]] = defaultdict(set)
    scopes: set[ReadScope] = set()
    for said in hints:
        place = said.place
        if said.meaning is Meaning.ONU_DISCOVERED:
            scopes.add(ReadScope.WAITING)
        elif said.meaning in _OF_CARDS:
            scopes |= {ReadScope.DISCOVERY, ReadScope.STATES}
        elif said.meaning in _OF_ONUS or said.meaning in _OF_PORTS:
            if place.port is None:
                scopes.add(ReadScope.STATES)
            else:
                onu = place.onu if said.meaning in _OF_ONUS else None
                ports[place.frame or 0, place.slot or 0, place.port].add(onu)
    if len(ports) > many_ports:
        scopes.add(ReadScope.STATES)
    reads = [HintedRead(scope) for scope in ReadScope if scope in scopes]
    if ReadScope.STATES not in scopes:
        # Two ONUs of a port are often the first of many.
        reads += [
            HintedRead(ReadScope.PORT, *port, next(iter(onus)) if len(onus) == 1 else None)
            for port, onus in sorted(ports.items())
        ]
    return tuple(reads)


def may_start_at(now: datetime, *, last_began_at: datetime | None, gap: timedelta) -> datetime:
    """Return when a hinted read may begin: now, or when the gap after the last one of its place is over."""
    if last_began_at is None or last_began_at > now:
        # A last read in the future is a clock that was set back.
        return now
    return max(now, last_began_at + gap)


class HintOutcome(StrEnum):
    """What the reads after a notification found."""

    OPEN = ""
    CONFIRMED = "confirmed"
    NOT_CONFIRMED = "not_confirmed"
    NOT_READ = "not_read"


def judge_hint(said: Meaning, *, is_end: bool, is_down: bool | None) -> HintOutcome:
    """Compare what an OLT said of an ONU with the state that was read afterwards; None: the state is unknown."""
    if is_down is None or said not in _OF_ONUS:
        return HintOutcome.NOT_READ
    says_down = said in ENDS_DOWN and not is_end
    return HintOutcome.CONFIRMED if says_down == is_down else HintOutcome.NOT_CONFIRMED
