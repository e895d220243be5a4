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
# Of four parts of an OLT's time, hinted reads of one place take one.
SHARE_OF_POLLS = 4


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
_DOWN = frozenset({Meaning.ONU_DOWN, Meaning.ONU_LOS, Meaning.ONU_DYING_GASP, Meaning.PON_LOS, Meaning.PON_DOWN})
# What a read of states can confirm.
READABLE = _OF_ONUS | _OF_PORTS


def plan_hinted_reads(hints: Iterable[Said]) -> tuple[HintedRead, ...]:
    """Turn the hints of one OLT, heard within a second, into as few reads as find what they are about."""
    ports: dict[tuple[int, int, int], set[int | None]] = defaultdict(set)
    scopes: set[ReadScope] = set()
    for message in hints:
        place = message.place
        if message.meaning is Meaning.ONU_DISCOVERED:
            scopes.add(ReadScope.WAITING)
        elif message.meaning in _OF_CARDS:
            scopes |= {ReadScope.DISCOVERY, ReadScope.STATES}
        elif message.meaning in _OF_ONUS or message.meaning in _OF_PORTS:
            if place.port is None:
                scopes.add(ReadScope.STATES)
            else:
                onu = place.onu if message.meaning in _OF_ONUS else None
                ports[place.frame or 0, place.slot or 0, place.port].add(onu)
    if len(ports) > MANY_PORTS:
        scopes.add(ReadScope.STATES)
    reads = [HintedRead(scope) for scope in ReadScope if scope in scopes]
    if ReadScope.STATES not in scopes:
        # Two ONUs of a port are often the first of many.
        reads += [
            HintedRead(ReadScope.PORT, *port, next(iter(onus)) if len(onus) == 1 else None)
            for port, onus in sorted(ports.items())
        ]
    return tuple(reads)


def may_start_at(
    now: datetime, *, last_began_at: datetime | None, gap: timedelta, took: timedelta = timedelta(0)
) -> datetime:
    """Return when a hinted read may begin: now, or when the gap after the last one of its place is over.

    After one that `took` long the gap is longer: hints go before nodes, and polls need the OLT too.
    """
    if last_began_at is None or last_began_at > now:
        # A last read in the future is a clock that was set back.
        return now
    return max(now, last_began_at + max(gap, took * SHARE_OF_POLLS))


class HintOutcome(StrEnum):
    """What the reads after a notification found."""

    OPEN = ""
    CONFIRMED = "confirmed"
    NOT_CONFIRMED = "not_confirmed"
    NOT_READ = "not_read"


def judge_hint(said: Meaning, *, is_end: bool, is_down: bool | None) -> HintOutcome:
    """Compare what an OLT said of an ONU or a port with what was read afterwards; None: the state is unknown."""
    if is_down is None or said not in READABLE:
        return HintOutcome.NOT_READ
    says_down = said in _DOWN and not is_end
    return HintOutcome.CONFIRMED if says_down == is_down else HintOutcome.NOT_CONFIRMED


def is_port_down(*, online: int, offline: int) -> bool | None:
    """Judge a port by the states of its ONUs: dark when none is online; None if no state is known."""
    return online == 0 if online or offline else None
