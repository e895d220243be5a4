"""What may go wrong between a simulated agent and its manager, as values, and the fate of each single reply."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from random import Random

from facho.polling.snmp.ber import (
    Oid,
    Tag,
    decode_head,
    decode_message,
    encode_message,
    encode_message_raw,
    encode_varbinds,
)
from facho.polling.snmp.errors import MalformedMessage
from facho.simulator.responder import LoopKind, ReplyWork


@dataclass(frozen=True, slots=True)
class CostModel:
    """CPU seconds of the device per request. `time_scale` 0.01 runs it a hundred times faster."""

    time_scale: float = 1.0
    request_seconds: float = 0.045
    column_seconds: float = 0.0064
    cell_seconds: float = 0.00025
    live_page_seconds: float = 0.4
    live_row_seconds: float = 0.1
    # What two and three requests at once cost in all, against one after the other; each further one adds as much.
    two_at_once: float = 1.05
    three_at_once: float = 1.35
    further_at_once: float = 0.3

    def seconds(self, work: ReplyWork, *, in_flight: int) -> float:
        plain = self.request_seconds + self.column_seconds * work.columns + self.cell_seconds * work.cells
        live = self.live_page_seconds + self.live_row_seconds * work.live_rows if work.live_rows else 0.0
        slowdown = self.three_at_once + self.further_at_once * (in_flight - 3)
        if in_flight <= 2:
            slowdown = self.two_at_once if in_flight == 2 else 1.0
        return (plain + live) * slowdown * self.time_scale


class Processor:
    """The single processor of an OLT: requests are processed one after the other."""

    def __init__(self) -> None:
        self._free_at = 0.0

    def take(self, seconds: float, *, now: float) -> float:
        """Queue work and return in how many seconds it is done."""
        self._free_at = max(self._free_at, now) + seconds
        return self._free_at - now

    def reset(self) -> None:
        self._free_at = 0.0


@dataclass(frozen=True, slots=True)
class Faults:
    """How an agent misbehaves. Shares are probabilities per reply, sizes are bytes."""

    latency_seconds: float = 0.0
    live_row_seconds: float = 0.0
    cost: CostModel | None = None

    loss: float = 0.0
    lost_above: int | None = None
    duplicates: float = 0.0
    late: float = 0.0
    late_seconds: float = 0.05

    truncation: float = 0.0
    garbage: float = 0.0
    wrong_request_id: float = 0.0
    general_error: float = 0.0
    too_big_above: int | None = None
    loop: LoopKind | None = None
    # Tables end after so many rows, as if there were no more.
    max_rows: int | None = None
    # What the SNMP view of the manager does not contain; columns below these OIDs are not there for it.
    closed: tuple[Oid, ...] = ()

    is_silent: bool = False
    # Answers so many requests, then stays silent for a while, once.
    silent_after: int | None = None
    silent_seconds: float = float("inf")
    # More requests than this in flight crash the agent, which then stays silent for a while.
    crash_above: int | None = None
    crash_seconds: float = 5.0

    # Each value has so many octets; each OID of a walk has as many numbers as an OID may have.
    value_bytes: int = 0
    has_deep_oids: bool = False
    ignores_repetitions: bool = False
    # Forged answers of every kind before each reply.
    forgeries: int = 0
    # After each reply, so many answers to nothing.
    flood: int = 0


NO_FAULTS = Faults()

# Agents that attack their manager.
HOSTILE: Mapping[str, Faults] = {
    "endless": Faults(loop=LoopKind.ENDLESS),
    # As much as fits into the largest datagram, of a page of 25 rows.
    "bloated": Faults(loop=LoopKind.ENDLESS, value_bytes=2_500),
    "huge": Faults(loop=LoopKind.ENDLESS, value_bytes=64_000),
    "deep": Faults(loop=LoopKind.ENDLESS, has_deep_oids=True),
    "crowded": Faults(value_bytes=250),
    "overflowing": Faults(loop=LoopKind.ENDLESS, ignores_repetitions=True),
    "forger": Faults(forgeries=8),
    "flood": Faults(flood=200),
}
ALL_HOSTILE = "all"
# What a forged answer says instead of the truth.
FORGED_VALUE = b"FORGED"

_MAX_ID = 0x7FFF_FFFF

# A datagram and after how many further seconds it leaves.
Departure = tuple[float, bytes]


class FaultInjector:
    """Decides what happens to each reply, repeatably from a seed; `current` may be replaced at any time."""

    def __init__(self, faults: Faults, *, seed: int, name: str) -> None:
        self.current = faults
        self._random = Random(f"faults/{seed}/{name}")
        self._processor = Processor()

    def busy_seconds(self, work: ReplyWork, *, in_flight: int) -> float:
        cost = self.current.cost
        return cost.seconds(work, in_flight=in_flight) if cost is not None else 0.0

    def wait_seconds(self, work: ReplyWork, *, busy_seconds: float, now: float) -> float:
        """Seconds until a reply leaves: its latency, plus the work queued before it."""
        latency = self.current.latency_seconds + self.current.live_row_seconds * work.live_rows
        return latency + (self._processor.take(busy_seconds, now=now) if busy_seconds else 0.0)

    def restart(self) -> None:
        self._processor.reset()

    def fails_generally(self) -> bool:
        return self._happens(self.current.general_error)

    def departures(self, reply: bytes) -> list[Departure]:
        faults = self.current
        if self._happens(faults.loss) or (faults.lost_above is not None and len(reply) > faults.lost_above):
            return []
        data = self._spoil(reply)
        delay = faults.late_seconds if self._happens(faults.late) else 0.0
        copies = 2 if self._happens(faults.duplicates) else 1
        return [(delay, data)] * copies

    def forgeries(self, reply: bytes) -> list[bytes]:
        """Answers from an attacker without the request id or the community, with other values."""
        forged: list[bytes] = []
        for _ in range(self.current.forgeries):
            near = decode_head(reply).request_id + self._random.choice((-2, -1, 1, 2))
            forged.append(forge(reply, request_id=near & _MAX_ID))
            forged.append(forge(reply, request_id=self._random.randrange(_MAX_ID)))
            forged.append(forge(reply, community=self._random.randbytes(6).hex().encode()))
        return forged

    def flood(self, reply: bytes) -> list[bytes]:
        head = decode_head(reply)
        return [
            encode_message_raw(head.version, head.community, head.kind, self._random.randrange(_MAX_ID), 0, 0, b"")
            for _ in range(self.current.flood)
        ]

    def _spoil(self, reply: bytes) -> bytes:
        faults = self.current
        if self._happens(faults.truncation):
            return reply[: self._random.randrange(1, len(reply))]
        if self._happens(faults.garbage):
            # Change bytes until it no longer decodes: a decodable change would be a false value.
            spoilt = bytearray(reply)
            while _is_message(bytes(spoilt)):
                spoilt[self._random.randrange(len(spoilt))] = self._random.randrange(256)
            return bytes(spoilt)
        if self._happens(faults.wrong_request_id):
            message = decode_message(reply)
            other = (message.pdu.request_id + 1) & _MAX_ID
            return encode_message(replace(message, pdu=replace(message.pdu, request_id=other)))
        return reply

    def _happens(self, share: float) -> bool:
        return share > 0 and self._random.random() < share


def _is_message(data: bytes) -> bool:
    try:
        decode_message(data)
    except MalformedMessage:
        return False
    return True


def forge(reply: bytes, *, request_id: int | None = None, community: bytes | None = None) -> bytes:
    """Make an answer with false values; with the right id and community unless others are given."""
    message = decode_message(reply)
    values = encode_varbinds((oid, Tag.OCTET_STRING, FORGED_VALUE) for oid, _, _ in message.pdu.varbinds)
    number = message.pdu.request_id if request_id is None else request_id
    return encode_message_raw(message.version, community or message.community, message.pdu.kind, number, 0, 0, values)
