"""What a v3 agent says of its engine and of users, and answers that nobody should believe."""

import os
from collections.abc import Iterable
from typing import Any

import pytest
from snmp_scripted_agent import (
    AgentStarter,
    Allowed,
    Received,
    SessionOpener,
    Table,
    honest,
    with_request_id,
)
from snmp_v3_agent import DISCOVERY, UNKNOWN_ENGINE, USER, V3Agent, encode_sealed, report

from facho.polling.domain.execution_state import FailureKind
from facho.polling.snmp.ber import Oid, Pdu, PduKind, SnmpMessage, Tag, encode_message
from facho.polling.snmp.errors import (
    AccessDenied,
    AgentError,
    ForgedAnswer,
    MalformedMessage,
    UnexpectedAnswer,
)
from facho.polling.snmp.network import Network
from facho.polling.snmp.oid import SYS_DESCR, SYS_NAME, SYS_UP_TIME
from facho.polling.snmp.target import CHEAP, AuthProtocol, SnmpVersion, Target, UserCredential
from facho.polling.snmp.user_security import decode_envelope

TABLE: Oid = (1, 3, 6, 1, 4, 1, 99_999, 1)
SYSTEM: Table = {
    SYS_DESCR: (Tag.OCTET_STRING, b"Integrated Access Software"),
    SYS_UP_TIME: (Tag.TIMETICKS, 4_000_000_000),
}
KEY = b"s3cr3t-passphrase"


async def test_an_engine_is_found_out_once_for_all_sessions(start_agent: AgentStarter, open_v3: SessionOpener) -> None:
    agent = await start_agent(SYSTEM, kind=V3Agent)

    for _ in range(5):
        session = open_v3(agent)
        await session.get([SYS_DESCR])
        await session.close()

    assert agent.packets == DISCOVERY + 5


async def test_a_device_with_another_engine_is_found_out_again(
    start_agent: AgentStarter, open_v3: SessionOpener
) -> None:
    agent = await start_agent(SYSTEM, kind=V3Agent)
    session = open_v3(agent)
    await session.get([SYS_DESCR])

    agent.engine_id = b"\x80\x00\x1f\x88\x04other"
    varbinds = await session.get([SYS_UP_TIME])

    assert varbinds[0][2] == 4_000_000_000
    # The question that is not taken, another discovery, and the question again.
    assert agent.packets == DISCOVERY + 1 + 3


async def test_an_agent_that_is_another_every_time_is_given_up(
    start_agent: AgentStarter, open_v3: SessionOpener
) -> None:
    class Shifting(V3Agent):
        def datagram_received(self, data: bytes, addr: Any) -> None:
            self.engine_id = os.urandom(12)
            super().datagram_received(data, addr)

    agent = await start_agent(SYSTEM, kind=Shifting)

    with pytest.raises(AgentError, match="keeps saying"):
        await open_v3(agent).get([SYS_DESCR])

    assert agent.packets == 6


async def test_a_user_that_the_agent_does_not_know_is_denied(start_agent: AgentStarter, open_v3: SessionOpener) -> None:
    agent = await start_agent(SYSTEM, kind=V3Agent)

    with pytest.raises(AccessDenied, match="does not know the user") as caught:
        await open_v3(agent, user="guest").get([SYS_DESCR])

    assert caught.value.kind is FailureKind.AUTH
    assert agent.packets == 2


async def test_an_answer_without_digest_to_a_user_with_a_key_counts_as_none(
    start_agent: AgentStarter, network: Network
) -> None:
    class Careless(V3Agent):
        """Answers everyone about everything, without a signature."""

        def datagram_received(self, data: bytes, addr: Any) -> None:
            question = decode_envelope(data)
            pdu = Pdu(PduKind.RESPONSE, 1, 0, 0, [])
            answer = report(UNKNOWN_ENGINE) if not question.engine_id else pdu
            self.received.append(Received(0, 0.0, data, SnmpMessage(1, b"", pdu)))
            self.transport.sendto(encode_sealed(question, self.engine_id, answer), addr)

    agent = await start_agent(SYSTEM, kind=Careless)
    credential = UserCredential(USER, AuthProtocol.SHA, KEY)
    session = network.open(Target("127.0.0.1", credential, SnmpVersion.V3, agent.port), Allowed())

    with pytest.raises(ForgedAnswer) as caught:
        await session.get([SYS_DESCR])

    assert caught.value.kind is FailureKind.MALFORMED
    assert agent.packets == DISCOVERY + CHEAP.tries
    assert network.transports[0].strays.forged == CHEAP.tries
    assert "s3cr3t" not in str(caught.value)


async def test_answers_to_other_questions_are_ignored(start_agent: AgentStarter, open_v3: SessionOpener) -> None:
    def behave(received: Received, answer: SnmpMessage) -> Iterable[bytes]:
        return [encode_message(with_request_id(answer, received.request_id ^ 1)), *honest(received, answer)] * 2

    agent = await start_agent(SYSTEM, kind=V3Agent, behave=behave)
    session = open_v3(agent)

    assert (await session.get([SYS_DESCR]))[0][1] == Tag.OCTET_STRING
    assert (await session.get([SYS_UP_TIME]))[0][2] == 4_000_000_000
    assert session.traffic.packets == 3


async def test_garbage_is_named_after_the_time_out(start_agent: AgentStarter, open_v3: SessionOpener) -> None:
    agent = await start_agent(SYSTEM, kind=V3Agent, behave=lambda *_: [b"\x00garbage"])

    with pytest.raises(MalformedMessage):
        await open_v3(agent).get([SYS_DESCR])

    assert agent.packets == DISCOVERY + CHEAP.tries


@pytest.mark.parametrize("rows", [[], [(SYS_NAME, Tag.OCTET_STRING, b"y")]])
async def test_other_oids_than_asked_are_unexpected(
    start_agent: AgentStarter, open_v3: SessionOpener, rows: list[tuple[Oid, int, bytes]]
) -> None:
    def behave(received: Received, _: SnmpMessage) -> Iterable[bytes]:
        return [encode_message(SnmpMessage(1, b"", Pdu(PduKind.RESPONSE, received.request_id, 0, 0, rows)))]

    with pytest.raises(UnexpectedAnswer):
        await open_v3(await start_agent(SYSTEM, kind=V3Agent, behave=behave)).get([SYS_DESCR])


async def test_more_rows_than_asked_are_unexpected(start_agent: AgentStarter, open_v3: SessionOpener) -> None:
    def behave(received: Received, _: SnmpMessage) -> Iterable[bytes]:
        rows = [((*TABLE, 1, row), Tag.INTEGER, row) for row in range(9)]
        return [encode_message(SnmpMessage(1, b"", Pdu(PduKind.RESPONSE, received.request_id, 0, 0, rows)))]

    with pytest.raises(UnexpectedAnswer):
        await open_v3(await start_agent(SYSTEM, kind=V3Agent, behave=behave)).next_page([TABLE], 8)
