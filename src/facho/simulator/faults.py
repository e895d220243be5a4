"""What may go wrong between a simulated agent and its manager, as values, and the fate of each single reply."""

from dataclasses import dataclass
from random import Random

from facho.polling.snmp.ber import Message, Pdu, decode_message, encode_message
from facho.polling.snmp.errors import MalformedMessage
from facho.simulator.cost import CostModel, Processor
from facho.simulator.lies import LoopKind
from facho.simulator.responder import Work


@dataclass(frozen=True, slots=True)
class Faults:
    """How badly an agent behaves. Shares are probabilities per reply, sizes are bytes."""

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

    is_silent: bool = False
    # Answers so many requests, then stays silent for a while, once.
    silent_after: int | None = None
    silent_seconds: float = float("inf")
    # More requests than this in flight crash the agent, which then stays silent for a while.
    crash_above: int | None = None
    crash_seconds: float = 5.0


NO_FAULTS = Faults()

# A datagram and after how many further seconds it leaves.
Departure = tuple[float, bytes]


class FaultInjector:
    """Decides the fate of each reply, repeatably from a seed; `current` may be replaced at any time."""

    def __init__(self, faults: Faults, *, seed: int, name: str) -> None:
        self.current = faults
        self._random = Random(f"faults/{seed}/{name}")
        self._processor = Processor()

    def busy_seconds(self, work: Work, *, in_flight: int) -> float:
        """How long a reply keeps the OLT's processor busy."""
        cost = self.current.cost
        return cost.seconds(work, in_flight=in_flight) if cost is not None else 0.0

    def wait_seconds(self, work: Work, *, busy_seconds: float, now: float) -> float:
        """How long from now a reply takes: its own latency, and the processor after all that is queued before it."""
        latency = self.current.latency_seconds + self.current.live_row_seconds * work.live_rows
        return latency + (self._processor.take(busy_seconds, now=now) if busy_seconds else 0.0)

    def restart(self) -> None:
        """Forget queued work, as a crash does."""
        self._processor.reset()

    def fails_generally(self) -> bool:
        return self._happens(self.current.general_error)

    def departures(self, reply: bytes) -> list[Departure]:
        """What really leaves the agent for a reply: nothing, the reply, or something worse."""
        faults = self.current
        if self._happens(faults.loss) or (faults.lost_above is not None and len(reply) > faults.lost_above):
            return []
        data = self._spoil(reply)
        delay = faults.late_seconds if self._happens(faults.late) else 0.0
        copies = 2 if self._happens(faults.duplicates) else 1
        return [(delay, data)] * copies

    def _spoil(self, reply: bytes) -> bytes:
        faults = self.current
        if self._happens(faults.truncation):
            return reply[: self._random.randrange(1, len(reply))]
        if self._happens(faults.garbage):
            return self._damage(reply)
        if self._happens(faults.wrong_request_id):
            return _with_other_id(reply)
        return reply

    def _damage(self, reply: bytes) -> bytes:
        """Change bytes until it is no message any more: values changed in passing would be the network's lies."""
        spoilt = bytearray(reply)
        while _is_message(bytes(spoilt)):
            spoilt[self._random.randrange(len(spoilt))] = self._random.randrange(256)
        return bytes(spoilt)

    def _happens(self, share: float) -> bool:
        return share > 0 and self._random.random() < share


def _is_message(data: bytes) -> bool:
    try:
        decode_message(data)
    except MalformedMessage:
        return False
    return True


def _with_other_id(reply: bytes) -> bytes:
    message = decode_message(reply)
    pdu = message.pdu
    other = (pdu.request_id + 1) % 0x8000_0000
    changed = Pdu(pdu.kind, other, pdu.error_status, pdu.error_index, pdu.varbinds)
    return encode_message(Message(message.version, message.community, changed))
