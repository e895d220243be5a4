"""The scripted agent behind SNMPv3 without keys: what it does wrong is seen as through any other security level."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from snmp_scripted_agent import Received, ScriptedAgent

from facho.polling.snmp.ber import Pdu, PduKind, SnmpMessage, Tag, decode_message, encode_varbinds
from facho.polling.snmp.ber_values import encode_integer, wrap
from facho.polling.snmp.errors import MalformedMessage
from facho.polling.snmp.oid import USM_STATS
from facho.polling.snmp.target import UserCredential
from facho.polling.snmp.user_security import Envelope, SnmpEngine, decode_envelope, read_content

SEQUENCE = 0x30
USER = "noc"
UNKNOWN_USER = 3
UNKNOWN_ENGINE = 4
# The packet that finds out the engine, before the first question.
DISCOVERY = 1


def encode_sealed(question: Envelope, engine_id: bytes, pdu: Pdu, *, flags: int = 0) -> bytes:
    """Encode an answer without digest or encryption."""
    header = encode_integer(question.message_id) + encode_integer(65_507) + octets(bytes((flags,))) + encode_integer(3)
    clock = encode_integer(7) + encode_integer(4_711)
    security = wrap(SEQUENCE, octets(engine_id) + clock + octets(question.user) + octets(b"") + octets(b""))
    scoped = wrap(SEQUENCE, octets(engine_id) + octets(b"") + encode_pdu(pdu))
    return wrap(SEQUENCE, encode_integer(3) + wrap(SEQUENCE, header) + octets(security) + scoped)


def encode_pdu(pdu: Pdu) -> bytes:
    fields = encode_integer(pdu.request_id) + encode_integer(pdu.error_status) + encode_integer(pdu.error_index)
    return wrap(pdu.kind, fields + wrap(SEQUENCE, encode_varbinds(pdu.varbinds)))


def octets(content: bytes) -> bytes:
    return wrap(Tag.OCTET_STRING, content)


def report(reason: int) -> Pdu:
    return Pdu(PduKind.REPORT, 0, 0, 0, [((*USM_STATS, reason, 0), Tag.COUNTER32, 1)])


@dataclass
class V3Agent(ScriptedAgent):
    """Knows one user, and tells its engine's id to whoever asks for another engine."""

    engine_id: bytes = b"\x80\x00\x1f\x88\x04facho"

    def datagram_received(self, data: bytes, addr: Any) -> None:
        question = decode_envelope(data)
        message = SnmpMessage(1, b"", read_content(question, UserCredential(USER), SnmpEngine(self.engine_id)))
        received = Received(len(self.received) + 1, asyncio.get_running_loop().time(), data, message)
        self.received.append(received)
        if question.engine_id != self.engine_id:
            answer = SnmpMessage(1, b"", report(UNKNOWN_ENGINE))
        elif question.user != USER.encode():
            answer = SnmpMessage(1, b"", report(UNKNOWN_USER))
        else:
            answer = self.answer(message)
        self._in_flight[received.request_id] += 1
        self.max_in_flight = max(self.max_in_flight, len(self._in_flight))
        replies = list(self._sealed(question, received, answer))
        asyncio.get_running_loop().call_later(self.delay_s, self._reply, received, replies, addr)

    def _sealed(self, question: Envelope, received: Received, answer: SnmpMessage) -> Iterable[bytes]:
        if answer.pdu.kind is PduKind.REPORT:
            # What behaviours say of the first two packets holds for them too, when it is silence.
            honest = self.behave(received, SnmpMessage(1, b"", Pdu(PduKind.RESPONSE, 0, 0, 0, [])))
            return [encode_sealed(question, self.engine_id, answer.pdu) for _ in honest]
        return [self._seal(question, reply) for reply in self.behave(received, answer)]

    def _seal(self, question: Envelope, reply: bytes) -> bytes:
        try:
            return encode_sealed(question, self.engine_id, decode_message(reply).pdu)
        except MalformedMessage:
            return reply

    @property
    def questions(self) -> list[Received]:
        """What was asked, without the packets that found out the engine."""
        return [received for received in self.received if received.message.pdu.varbinds]
