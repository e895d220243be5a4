"""Asking single questions: values, silence, strays, refusals, permits, limits."""

import asyncio
import os
from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise

import pytest
from snmp_scripted_agent import (
    AgentStarter,
    Allowed,
    Lapsing,
    Received,
    SessionOpener,
    Table,
    drop,
    honest,
    silent,
    too_big_above,
    with_request_id,
    with_status,
)

from facho.polling.domain.execution_state import FailureKind
from facho.polling.snmp.ber import Pdu, PduKind, SnmpMessage, Tag, encode_message
from facho.polling.snmp.errors import (
    AccessDenied,
    AgentError,
    AgentRefused,
    AgentTimeout,
    BudgetSpent,
    ForgedAnswer,
    MalformedMessage,
    OwnershipLost,
    SessionClosed,
    TooBig,
    UnexpectedAnswer,
)
from facho.polling.snmp.network import Network
from facho.polling.snmp.oid import SYS_DESCR, SYS_NAME, SYS_OBJECT_ID, SYS_UP_TIME
from facho.polling.snmp.session import Limits
from facho.polling.snmp.target import CHEAP, LIVE, Community, Patience, SnmpVersion, Target
from facho.polling.snmp.transport import Strays

SYSTEM: Table = {
    SYS_DESCR: (Tag.OCTET_STRING, b"Integrated Access Software"),
    SYS_OBJECT_ID: (Tag.OBJECT_IDENTIFIER, (1, 3, 6, 1, 4, 1, 2011, 2, 248)),
    SYS_UP_TIME: (Tag.TIMETICKS, 4_000_000_000),
}


async def test_values_come_in_the_order_of_the_question(start_agent: AgentStarter, open_session: SessionOpener) -> None:
    session = open_session(await start_agent(SYSTEM))

    varbinds = await session.get([SYS_UP_TIME, SYS_DESCR])

    assert varbinds == [
        (SYS_UP_TIME, Tag.TIMETICKS, 4_000_000_000),
        (SYS_DESCR, Tag.OCTET_STRING, b"Integrated Access Software"),
    ]


@pytest.mark.parametrize("version", [SnmpVersion.V1, SnmpVersion.V2C])
async def test_what_is_missing_is_said_beside_what_is_there(
    start_agent: AgentStarter, open_session: SessionOpener, version: SnmpVersion
) -> None:
    session = open_session(await start_agent(SYSTEM), version=version)

    varbinds = await session.get([SYS_NAME, SYS_DESCR])

    assert [tag for _, tag, _ in varbinds] == [Tag.NO_SUCH_INSTANCE, Tag.OCTET_STRING]


async def test_the_next_page_is_read_row_by_row(start_agent: AgentStarter, open_session: SessionOpener) -> None:
    session = open_session(await start_agent(SYSTEM))

    varbinds = await session.next_page([SYS_DESCR, SYS_OBJECT_ID], 2)

    assert [oid for oid, _, _ in varbinds] == [SYS_OBJECT_ID, SYS_UP_TIME, SYS_UP_TIME, SYS_UP_TIME]
    assert varbinds[-1][1] == Tag.END_OF_MIB_VIEW


async def test_ipv6_agents_are_asked_too(start_agent: AgentStarter, open_session: SessionOpener) -> None:
    session = open_session(await start_agent(SYSTEM, host="::1"))

    assert (await session.get([SYS_DESCR]))[0][1] == Tag.OCTET_STRING


async def test_questions_leave_from_the_source_address(start_agent: AgentStarter, network: Network) -> None:
    agent = await start_agent(SYSTEM)
    target = Target(agent.address, Community(b"public"), port=agent.port, source_address="127.0.0.9")

    varbinds = await network.open(target, Allowed()).get([SYS_DESCR])

    assert varbinds[0][1] == Tag.OCTET_STRING


async def test_a_source_address_that_is_not_ours_is_refused(network: Network) -> None:
    target = Target("127.0.0.1", Community(b"public"), source_address="192.0.2.1")

    with pytest.raises(AgentRefused):
        network.open(target, Allowed())


async def test_a_repetition_is_the_same_bytes_after_the_time_out(
    start_agent: AgentStarter, open_session: SessionOpener
) -> None:
    agent = await start_agent(SYSTEM, behave=drop(1))
    session = open_session(agent)

    await session.get([SYS_DESCR], patience=LIVE)

    first, second = agent.received
    assert first.data == second.data
    assert second.at - first.at >= LIVE.timeout_s
    assert (session.traffic.packets, session.traffic.retransmissions) == (2, 1)


async def test_an_agent_that_stays_silent_times_out_after_all_tries(
    start_agent: AgentStarter, open_session: SessionOpener
) -> None:
    agent = await start_agent(SYSTEM, behave=silent)
    loop = asyncio.get_running_loop()
    started_at = loop.time()

    with pytest.raises(AgentTimeout) as caught:
        await open_session(agent).get([SYS_DESCR])

    assert caught.value.kind is FailureKind.TIMEOUT
    assert agent.packets == CHEAP.tries
    assert loop.time() - started_at == pytest.approx(20.0, abs=0.1)


async def test_nobody_listening_is_a_refusal_at_once(start_agent: AgentStarter, open_session: SessionOpener) -> None:
    agent = await start_agent(SYSTEM)
    agent.transport.close()
    await asyncio.sleep(0)
    started_at = asyncio.get_running_loop().time()

    with pytest.raises(AgentRefused) as caught:
        await open_session(agent).get([SYS_DESCR])

    assert caught.value.kind is FailureKind.REFUSED
    assert asyncio.get_running_loop().time() - started_at < 1.0


async def test_a_refusal_of_one_agent_does_not_touch_another(
    start_agent: AgentStarter, open_session: SessionOpener
) -> None:
    gone, well = await start_agent(SYSTEM), await start_agent(SYSTEM)
    gone.transport.close()
    await asyncio.sleep(0)

    outcomes = await asyncio.gather(
        *(open_session(agent).get([SYS_DESCR]) for agent in (gone, well, gone, well)), return_exceptions=True
    )

    assert [isinstance(outcome, AgentRefused) for outcome in outcomes] == [True, False, True, False]


async def test_strays_are_counted_and_ignored(
    start_agent: AgentStarter, open_session: SessionOpener, network: Network
) -> None:
    def behave(received: Received, answer: SnmpMessage) -> Iterable[bytes]:
        wrong = with_request_id(answer, received.request_id ^ 1)
        echo = received.data
        return [b"\x00garbage", encode_message(wrong), echo, *honest(received, answer), *honest(received, answer)]

    agent = await start_agent(SYSTEM, behave=behave)
    session = open_session(agent)

    assert (await session.get([SYS_DESCR]))[0][1] == Tag.OCTET_STRING
    assert (await session.get([SYS_UP_TIME]))[0][2] == 4_000_000_000

    # The last copy of the second answer was not read yet when it had its first.
    await asyncio.sleep(0)
    assert session.strays == Strays(late=2, forged=4, malformed=2)


async def test_a_late_answer_is_not_called_forged(start_agent: AgentStarter, open_session: SessionOpener) -> None:
    agent = await start_agent(SYSTEM, delay_s=CHEAP.timeout_s * 1.5)
    session = open_session(agent)

    await session.get([SYS_DESCR])
    agent.delay_s = 0.0
    await session.get([SYS_DESCR])
    await asyncio.sleep(CHEAP.timeout_s * 2)

    assert session.strays == Strays(late=1)


async def test_an_answer_with_another_community_is_not_believed(
    start_agent: AgentStarter, open_session: SessionOpener
) -> None:
    def behave(received: Received, answer: SnmpMessage) -> Iterable[bytes]:
        return [encode_message(replace(answer, community=b"Public"))]

    session = open_session(await start_agent(SYSTEM, behave=behave))

    with pytest.raises(ForgedAnswer, match="another community") as caught:
        await session.get([SYS_DESCR])

    assert session.strays == Strays(forged=CHEAP.tries)
    assert "ublic" not in str(caught.value)


async def test_an_honest_answer_after_a_forged_one_counts(
    start_agent: AgentStarter, open_session: SessionOpener
) -> None:
    def behave(received: Received, answer: SnmpMessage) -> Iterable[bytes]:
        row = (SYS_DESCR, Tag.OCTET_STRING, b"forged")
        lie = replace(answer, community=b"private", pdu=replace(answer.pdu, varbinds=[row]))
        return [encode_message(lie), encode_message(answer)]

    session = open_session(await start_agent(SYSTEM, behave=behave))

    assert (await session.get([SYS_DESCR]))[0][2] == SYSTEM[SYS_DESCR][1]


async def test_an_answer_from_another_address_is_ignored(
    start_agent: AgentStarter, open_session: SessionOpener, network: Network
) -> None:
    impostor = await start_agent(SYSTEM)

    def behave(received: Received, answer: SnmpMessage) -> Iterable[bytes]:
        impostor.transport.sendto(encode_message(answer), agent_peer(received))
        return []

    agent = await start_agent(SYSTEM, behave=behave)
    session = open_session(agent)

    def agent_peer(_received: Received) -> tuple[str, int]:
        port: int = network.transports[0]._socket.getsockname()[1]
        return ("127.0.0.1", port)

    with pytest.raises(AgentTimeout):
        await session.get([SYS_DESCR])
    # The kernel has dropped them.
    assert session.strays == Strays()


@pytest.mark.parametrize(
    ("status", "error", "kind"),
    [
        (1, TooBig, FailureKind.TOO_BIG),
        (5, AgentError, FailureKind.REFUSED),
        (6, AccessDenied, FailureKind.AUTH),
        (16, AccessDenied, FailureKind.AUTH),
        (77, AgentError, FailureKind.REFUSED),
    ],
)
async def test_an_error_status_is_an_error(
    start_agent: AgentStarter, open_session: SessionOpener, status: int, error: type[AgentError], kind: FailureKind
) -> None:
    agent = await start_agent(
        SYSTEM, behave=lambda received, _: [encode_message(with_status(received.message, status, 1))]
    )

    with pytest.raises(error) as caught:
        await open_session(agent).get([SYS_DESCR])

    assert caught.value.kind is kind
    assert "1.3.6.1.2.1.1.1.0" in str(caught.value)


async def test_a_truncated_answer_is_malformed_at_once(start_agent: AgentStarter, open_session: SessionOpener) -> None:
    agent = await start_agent(SYSTEM, behave=lambda _, answer: [encode_message(answer)[:-5]])

    with pytest.raises(MalformedMessage):
        await open_session(agent).get([SYS_DESCR])

    assert agent.packets == 1


async def test_garbage_without_a_request_id_is_named_after_the_time_out(
    start_agent: AgentStarter, open_session: SessionOpener
) -> None:
    agent = await start_agent(SYSTEM, behave=lambda *_: [b"\x00garbage"])

    with pytest.raises(MalformedMessage):
        await open_session(agent).get([SYS_DESCR])

    assert agent.packets == CHEAP.tries


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [(SYS_DESCR, Tag.OCTET_STRING, b"x"), (SYS_NAME, Tag.OCTET_STRING, b"y")],
        [(SYS_NAME, Tag.OCTET_STRING, b"y")],
    ],
)
async def test_other_oids_than_asked_are_unexpected(
    start_agent: AgentStarter, open_session: SessionOpener, rows: list[tuple[tuple[int, ...], int, bytes]]
) -> None:
    def behave(received: Received, _: SnmpMessage) -> Iterable[bytes]:
        pdu = Pdu(PduKind.RESPONSE, received.request_id, 0, 0, rows)
        return [encode_message(SnmpMessage(1, b"public", pdu))]

    with pytest.raises(UnexpectedAnswer):
        await open_session(await start_agent(SYSTEM, behave=behave)).get([SYS_DESCR])


async def test_answers_of_nearly_64_kilobytes_arrive(start_agent: AgentStarter, open_session: SessionOpener) -> None:
    table: Table = {(1, 3, 6, 1, 9, n): (Tag.OCTET_STRING, os.urandom(230)) for n in range(260)}
    session = open_session(await start_agent(table))

    varbinds = await session.next_page([(1, 3, 6, 1, 9)], 260)

    assert {oid: (tag, value) for oid, tag, value in varbinds} == table
    assert session.traffic.bytes_received > 60_000


@pytest.mark.parametrize("lasts", [0, 1, 3])
async def test_no_packet_leaves_without_the_permit(
    start_agent: AgentStarter, open_session: SessionOpener, lasts: int
) -> None:
    agent = await start_agent(SYSTEM, behave=silent)

    with pytest.raises(OwnershipLost) as caught:
        await open_session(agent, permit=Lapsing(lasts)).get([SYS_DESCR])

    assert caught.value.kind is FailureKind.CANCELLED
    assert agent.packets == lasts


async def test_the_permit_is_asked_once_for_each_packet(
    start_agent: AgentStarter, open_session: SessionOpener, permit: Allowed
) -> None:
    agent = await start_agent(SYSTEM, behave=drop(1, 2, 5))
    session = open_session(agent)

    for _ in range(3):
        await session.get([SYS_DESCR])

    assert permit.checks == agent.packets == session.traffic.packets == 6


async def test_the_deadline_ends_the_asking_and_what_was_sent_is_waited_for(
    start_agent: AgentStarter, open_session: SessionOpener
) -> None:
    agent = await start_agent(SYSTEM, behave=silent)
    loop = asyncio.get_running_loop()
    deadline = loop.time() + 12.0

    with pytest.raises(BudgetSpent) as caught:
        await open_session(agent).get([SYS_DESCR], deadline=deadline)

    assert caught.value.kind is FailureKind.TIMEOUT
    assert agent.packets == 3
    assert loop.time() == pytest.approx(deadline + 3.0, abs=0.1)


async def test_one_session_never_has_more_in_flight_than_its_limit(
    start_agent: AgentStarter, open_session: SessionOpener
) -> None:
    for limit in (1, 3):
        agent = await start_agent(SYSTEM, delay_s=0.5)
        session = open_session(agent, max_in_flight=limit)

        await asyncio.gather(*(session.get([SYS_DESCR]) for _ in range(9)))

        assert agent.max_in_flight == limit


async def test_packets_keep_their_distance(start_agent: AgentStarter, open_session: SessionOpener) -> None:
    agent = await start_agent(SYSTEM, behave=drop(2))
    session = open_session(agent, packets_per_second=4.0)

    for _ in range(4):
        await session.get([SYS_DESCR], patience=Patience(0.1, 3))

    times = [received.at for received in agent.received]
    assert all(later - earlier >= 0.2499 for earlier, later in pairwise(times))


async def test_closing_the_session_ends_what_is_under_way(
    start_agent: AgentStarter, open_session: SessionOpener
) -> None:
    agent = await start_agent(SYSTEM, behave=silent)
    session = open_session(agent)
    asking = asyncio.ensure_future(session.get([SYS_DESCR]))
    await asyncio.sleep(1.0)

    await session.close()

    with pytest.raises(SessionClosed):
        await asking
    with pytest.raises(SessionClosed):
        await session.get([SYS_DESCR])
    assert agent.packets == 1


async def test_too_big_is_told_apart(start_agent: AgentStarter, open_session: SessionOpener) -> None:
    session = open_session(await start_agent(SYSTEM, behave=too_big_above(2)))

    with pytest.raises(TooBig):
        await session.next_page([(1, 3)], 3)


def test_limits_are_positive() -> None:
    for wrong in ({"max_in_flight": 0}, {"packets_per_second": 0.0}):
        with pytest.raises(ValueError, match="positive"):
            Limits(**wrong)
