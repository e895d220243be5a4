"""Lets a simulated OLT say what happens to it as SNMP notifications, and lie, repeat itself and storm.

They leave from the socket of the agent, so that their source is the address and port at which the OLT answers.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from itertools import cycle
from random import Random

from facho.polling.domain.hints import Meaning
from facho.polling.domain.onu_state import DownCause
from facho.polling.snmp.ber import Oid, PduKind, Tag, VarBind, encode_message_raw, encode_varbinds
from facho.polling.snmp.notifications import Notification, encode_notification
from facho.polling.snmp.oid import GENERIC_TRAPS, SNMP_TRAP_OID, SYS_UP_TIME
from facho.polling.snmp.target import Community, SnmpVersion
from facho.polling.vendors.definition import Definition
from facho.polling.vendors.index import Place
from facho.polling.vendors.notifications import compose
from facho.simulator.readings import Moment
from facho.simulator.world import JournalEntry, JournalKind, OltWorld

# Longest delay before a change is sent. Worlds advance only when read, so this is also how often they are read.
TICK_SECONDS = 0.2
STORM_TICK_SECONDS = 0.01
INFORM_SECONDS, INFORM_TRIES = 1.0, 3
_MAX_ID = 0x7FFF_FFFF
# Different notifications of a storm; it repeats them.
_STORM_VARIETY = 1_000


class TrapKind(StrEnum):
    """What notifications are sent as. An inform comes again until it is answered."""

    V1 = "v1"
    V2C = "v2c"
    INFORM = "inform"


class StormKind(StrEnum):
    """What a storm is made of: the truth, loss of signal of healthy ONUs, or what no OLT sent."""

    TRUE = "true"
    LIES = "lies"
    FORGED = "forged"


@dataclass(frozen=True, slots=True)
class TrapStorm:
    per_second: int
    seconds: float
    kind: StormKind = StormKind.TRUE


@dataclass(frozen=True, slots=True)
class TrapFaults:
    """How notifications fare. Shares are probabilities for each; the storm begins with the simulation."""

    loss: float = 0.0
    doubled: float = 0.0
    # Leave so much later than the ones after them.
    disorder: float = 0.0
    disorder_seconds: float = 0.3
    delay_seconds: float = 0.0
    storm: TrapStorm | None = None


NO_TRAP_FAULTS = TrapFaults()

# What is said of an entry, with the meanings to use where a family has no word for the first.
_LOST = (Meaning.ONU_LOS, Meaning.ONU_DOWN)
_WORDS: dict[JournalKind, tuple[Meaning, ...]] = {
    JournalKind.PON_CUT: (Meaning.PON_LOS, Meaning.PON_DOWN),
    JournalKind.PON_RESTORED: (Meaning.PON_UP,),
    JournalKind.ONU_UP: (Meaning.ONU_UP,),
    JournalKind.ONU_APPEARED: (Meaning.ONU_UP,),
    JournalKind.ONU_MOVED: (Meaning.ONU_UP,),
    JournalKind.CARD_FAILED: (Meaning.BOARD_DOWN,),
    JournalKind.CARD_RESTORED: (Meaning.BOARD_UP,),
}
_DOWN_WORDS: dict[DownCause | None, tuple[Meaning, ...]] = {
    DownCause.LOS: _LOST,
    DownCause.DYING_GASP: (Meaning.ONU_DYING_GASP, *_LOST),
}
_ENDS = frozenset({Meaning.PON_UP, Meaning.ONU_UP, Meaning.BOARD_UP})


@dataclass(frozen=True, slots=True)
class Utterance:
    words: tuple[Meaning, ...]
    place: Place
    serial: str = ""


def traps_of(entries: Iterable[JournalEntry]) -> list[Utterance]:
    """Return what an OLT says of what happened, in order; the ONUs of a power cut gasp before they are lost."""
    utterances: list[Utterance] = []
    lost: list[Utterance] = []
    for entry in entries:
        words = _WORDS.get(entry.kind)
        if entry.kind is JournalKind.ONU_DOWN:
            words = _DOWN_WORDS.get(entry.cause, (Meaning.ONU_DOWN, Meaning.ONU_LOS))
            if entry.cause is DownCause.DYING_GASP:
                lost.append(Utterance(_LOST, entry.place, entry.serial))
        if words is not None:
            utterances.append(Utterance(words, entry.place, entry.serial))
    return utterances + lost


def tail_of(definition: Definition, *, is_end: bool, number: int, at: datetime) -> bytes:
    """Return what the family appends to the community after an @: number, level and time of the event."""
    ends = sorted(definition.notifications.tail_ends)
    if not ends:
        return b""
    level = ends[0] if is_end else f"{ends[0].partition('=')[0]}=minor"
    return f"eventId={number}@{level}@confirm@{at:%Y%m%d%H%M%S}".encode()


def encode_trap(community: bytes, request_id: int, varbinds: bytes) -> bytes:
    """Wrap encoded varbinds, with uptime and notification first, as an SNMPv2c trap."""
    return encode_message_raw(SnmpVersion.V2C, community, PduKind.TRAP, request_id, 0, 0, varbinds)


@dataclass(frozen=True, slots=True)
class TrapTarget:
    host: str
    port: int
    community: bytes
    kind: TrapKind = TrapKind.V2C


class SimulatedTraps:
    """Sends what one world records to one receiver. `send` returns whether the datagram left."""

    def __init__(
        self,
        world: OltWorld,
        definition: Definition,
        moment: Moment,
        target: TrapTarget,
        *,
        seed: int,
        send: Callable[[bytes, tuple[object, ...]], bool],
    ) -> None:
        self.faults = NO_TRAP_FAULTS
        self.sent = 0
        self._world = world
        self._definition = definition
        self._moment = moment
        self._target = target
        self._send = send
        self._random = Random(f"traps/{seed}/{world.name}")
        self._seen = world.recorded
        self._waiting: set[asyncio.TimerHandle] = set()
        # Informs without an answer, by their request id, and how often each was sent.
        self._unanswered: dict[int, int] = {}

    @property
    def unanswered(self) -> int:
        return len(self._unanswered)

    def hear_answer(self, request_id: int) -> None:
        """Note that an inform was answered."""
        self._unanswered.pop(request_id, None)

    def start(self, refresh: Callable[[], None]) -> None:
        """Say what happens from now on; `refresh` moves the world to the present."""
        self._seen = self._world.recorded
        if self.faults.storm is not None:
            self.storm(self.faults.storm)
        self._repeat(refresh)

    def stop(self) -> None:
        for handle in self._waiting:
            handle.cancel()
        self._waiting.clear()

    def _repeat(self, refresh: Callable[[], None]) -> None:
        refresh()
        self.say_recorded()
        self._later(TICK_SECONDS, self._repeat, refresh)

    def say_recorded(self) -> None:
        """Send what the world recorded since the last time, at once."""
        entries = self._world.entries_since(self._seen)
        self._seen = self._world.recorded
        for utterance in traps_of(entries):
            self.say(utterance)

    def say(self, utterance: Utterance) -> bool:
        """Send one notification, as its faults let it; False if the family has no word for it."""
        composed = self._compose(utterance)
        if composed is None:
            return False
        oid, varbinds, is_end = composed
        tail = tail_of(self._definition, is_end=is_end, number=self.sent + 1, at=self._moment.at)
        kind, request_id = self._target.kind, self._next_id()
        version = SnmpVersion.V1 if kind is TrapKind.V1 else SnmpVersion.V2C
        message = Notification(
            version, oid, varbinds, self._moment.uptime_ticks, is_inform=kind is TrapKind.INFORM, tail=tail
        )
        data = encode_notification(message, Community(self._target.community), request_id=request_id)
        if message.is_inform:
            self._inform(data, request_id)
        else:
            self._depart(data)
        return True

    def _inform(self, data: bytes, request_id: int) -> None:
        """Send an inform, and again while it is not answered."""
        tries = self._unanswered.get(request_id, 0)
        if tries == INFORM_TRIES:
            return
        self._unanswered[request_id] = tries + 1
        self._depart(data)
        self._later(INFORM_SECONDS, self._inform_again, data, request_id)

    def _inform_again(self, data: bytes, request_id: int) -> None:
        if request_id in self._unanswered:
            self._inform(data, request_id)

    def lie(self, count: int | None = None) -> int:
        """Say loss of signal of healthy ONUs, of all unless a number is given; return of how many."""
        healthy = [onu for onu in self._world.onus if onu.is_online][:count]
        return sum(self.say(Utterance(_LOST, onu.place, onu.serial)) for onu in healthy)

    def storm(self, storm: TrapStorm) -> None:
        """Send as many in each second for a while, repeating itself; faults do not thin it out."""
        datagrams = self._storm_datagrams(storm.kind)
        if datagrams is not None:
            self._blow(storm, datagrams, asyncio.get_running_loop().time(), 0)

    def _blow(self, storm: TrapStorm, datagrams: Iterator[bytes], began: float, sent: int) -> None:
        passed = min(asyncio.get_running_loop().time() - began, storm.seconds)
        due = int(passed * storm.per_second)
        for _ in range(due - sent):
            self._leave(next(datagrams))
        if passed < storm.seconds:
            self._later(STORM_TICK_SECONDS, self._blow, storm, datagrams, began, due)

    def _storm_datagrams(self, kind: StormKind) -> Iterator[bytes] | None:
        """Return endless datagrams of a kind; None if the family has no words for it."""
        onus = [onu for onu in self._world.onus if onu.is_online or kind is StormKind.TRUE][:_STORM_VARIETY]
        words = [(Meaning.ONU_UP,) if kind is StormKind.TRUE and onu.is_online else _LOST for onu in onus]
        spoken = (self._encode(Utterance(word, onu.place, onu.serial)) for word, onu in zip(words, onus, strict=True))
        bodies = [body for body in spoken if body is not None]
        if kind is StormKind.FORGED:
            return self._forged(bodies or [encode_varbinds(self._heads((*GENERIC_TRAPS, 1)))])
        return (
            (encode_trap(self._target.community, self._next_id(), body) for body in cycle(bodies)) if bodies else None
        )

    def _forged(self, bodies: list[bytes]) -> Iterator[bytes]:
        """Return notifications with a foreign community, damaged ones and noise."""
        for body in cycle(bodies):
            real = bytearray(encode_trap(self._target.community, self._next_id(), body))
            yield encode_trap(self._random.randbytes(4).hex().encode(), self._next_id(), body)
            for _ in range(3):
                real[self._random.randrange(len(real))] = self._random.randrange(256)
            yield bytes(real)
            yield bytes(real[: self._random.randrange(len(real))])
            yield self._random.randbytes(self._random.randrange(1, 200))

    def _encode(self, utterance: Utterance) -> bytes | None:
        composed = self._compose(utterance)
        return encode_varbinds([*self._heads(composed[0]), *composed[1]]) if composed else None

    def _compose(self, utterance: Utterance) -> tuple[Oid, tuple[VarBind, ...], bool] | None:
        """Return OID, varbinds and whether it is an end, in the first word that the family has."""
        for meaning in utterance.words:
            is_end = meaning in _ENDS
            composed = compose(self._definition, meaning, utterance.place, utterance.serial, is_end=is_end)
            if composed is not None:
                return *composed, is_end
        return None

    def _heads(self, oid: Oid) -> list[VarBind]:
        return [
            (SYS_UP_TIME, int(Tag.TIMETICKS), self._moment.uptime_ticks),
            (SNMP_TRAP_OID, int(Tag.OBJECT_IDENTIFIER), oid),
        ]

    def _next_id(self) -> int:
        return self._random.randrange(_MAX_ID)

    def _depart(self, data: bytes) -> None:
        faults = self.faults
        if self._happens(faults.loss):
            return
        delay = faults.delay_seconds + (faults.disorder_seconds if self._happens(faults.disorder) else 0.0)
        for _ in range(2 if self._happens(faults.doubled) else 1):
            if delay > 0:
                self._later(delay, self._leave, data)
            else:
                self._leave(data)

    def _leave(self, data: bytes) -> None:
        self.sent += self._send(data, (self._target.host, self._target.port))

    def _happens(self, share: float) -> bool:
        return share > 0 and self._random.random() < share

    def _later(self, delay: float, act: Callable[..., None], *arguments: object) -> None:
        def happen() -> None:
            self._waiting.discard(handle)
            act(*arguments)

        handle = asyncio.get_running_loop().call_later(delay, happen)
        self._waiting.add(handle)
