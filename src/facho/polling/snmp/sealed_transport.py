"""Carries messages of v3: matched by their message id, and believed only when the asking session could open them."""

from collections.abc import Callable

from facho.polling.snmp.envelope import Envelope, decode_envelope
from facho.polling.snmp.errors import ForgedAnswer, MalformedMessage
from facho.polling.snmp.sealing import LibraryWire
from facho.polling.snmp.target import SnmpVersion
from facho.polling.snmp.transport import Peer, Pending, Received, UdpTransport
from facho.polling.snmp.user_security import Opened

# Verifies and decodes an answer; MalformedMessage when it cannot.
Opener = Callable[[Envelope], Opened]


class SealedTransport(UdpTransport[Opened]):
    """A socket for many v3 agents."""

    def __init__(self, *, ipv6: bool, source_address: str | None) -> None:
        super().__init__(ipv6=ipv6, source_address=source_address)
        self.wire = LibraryWire()
        self._openers: dict[int, Opener] = {}

    def is_free(self, message_id: int) -> bool:
        """Tell whether no open question has this id; ids are random and may meet."""
        return message_id not in self._pending

    def open_request(self, peer: Peer, message_id: int, opener: Opener) -> Pending[Opened]:
        """Expect an answer to the question of this id."""
        pending = self._register(peer, message_id, SnmpVersion.V3)
        self._openers[message_id] = opener
        return pending

    def close_request(self, pending: Pending[Opened]) -> None:
        """Forget a question and the way to open its answer."""
        super().close_request(pending)
        self._openers.pop(pending.request_id, None)

    def close(self) -> None:
        """Close the socket and the wire to the library."""
        super().close()
        self.wire.close()

    def _read(self, data: bytes, peer: Peer, received_at: float) -> None:
        envelope = decode_envelope(data)
        pending = self._pending.get(envelope.message_id)
        if pending is None or pending.outcome.done() or pending.peer != peer:
            self.strays.unknown_request += 1
            return
        try:
            opened = self._openers[envelope.message_id](envelope)
            pending.settle(Received(opened, len(data), received_at))
        except ForgedAnswer as error:
            # Anyone may have sent it: the agent's own answer is still waited for.
            self.strays.malformed += 1
            pending.garbage = error
        except MalformedMessage as error:
            self.strays.malformed += 1
            pending.settle(error)
