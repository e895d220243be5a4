"""Sessions of v3 against an agent that misbehaves: what it does is seen, bounded, counted and named."""

import asyncio
import gc
import os
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

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
    silent_above,
    too_big_above,
    with_status,
)
from snmp_v3_agent import DISCOVERY, USER, V3Agent

from facho.polling.domain.execution_state import FailureKind
from facho.polling.snmp.batch import BatchOptions, get_batched
from facho.polling.snmp.ber import Oid, Pdu, PduKind, SnmpMessage, Tag, encode_message
from facho.polling.snmp.errors import (
    AccessDenied,
    AgentError,
    AgentRefused,
    AgentTimeout,
    BudgetSpent,
    OwnershipLost,
    SessionClosed,
    TooBig,
    WalkLoop,
)
from facho.polling.snmp.network import Network
from facho.polling.snmp.oid import SYS_DESCR, SYS_NAME, SYS_UP_TIME
from facho.polling.snmp.target import CHEAP, Patience, SnmpVersion, Target, UserCredential
from facho.polling.snmp.walk import WalkOptions, walk_columns

TABLE: Oid = (1, 3, 6, 1, 4, 1, 99_999, 1)
SYSTEM: Table = {
    SYS_DESCR: (Tag.OCTET_STRING, b"Integrated Access Software"),
    SYS_UP_TIME: (Tag.TIMETICKS, 4_000_000_000),
}


def columns(count: int, rows: int) -> Table:
    return {(*TABLE, column, row): (Tag.INTEGER, row) for column in range(1, count + 1) for row in range(1, rows + 1)}


async def test_values_come_in_the_order_of_the_question(start_agent: AgentStarter, open_v3: SessionOpener) -> None:
    session = open_v3(await start_agent(SYSTEM, kind=V3Agent))

    varbinds = await session.get([SYS_UP_TIME, SYS_NAME, SYS_DESCR, SYS_UP_TIME])

    assert varbinds == [
        (SYS_UP_TIME, Tag.TIMETICKS, 4_000_000_000),
        (SYS_NAME, Tag.NO_SUCH_INSTANCE, None),
        (SYS_DESCR, Tag.OCTET_STRING, b"Integrated Access Software"),
        (SYS_UP_TIME, Tag.TIMETICKS, 4_000_000_000),
    ]
    assert await session.get([]) == []


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
async def test_both_address_families_are_asked(start_agent: AgentStarter, open_v3: SessionOpener, host: str) -> None:
    session = open_v3(await start_agent(SYSTEM, host=host, kind=V3Agent))

    assert (await session.get([SYS_DESCR]))[0][1] == Tag.OCTET_STRING


async def test_questions_leave_from_the_source_address(start_agent: AgentStarter, network: Network) -> None:
    agent = await start_agent(SYSTEM, kind=V3Agent)
    target = Target("127.0.0.1", UserCredential(USER), SnmpVersion.V3, agent.port, source_address="127.0.0.9")

    assert (await network.open(target, Allowed()).get([SYS_DESCR]))[0][1] == Tag.OCTET_STRING


async def test_several_columns_are_walked_to_their_ends(start_agent: AgentStarter, open_v3: SessionOpener) -> None:
    table = columns(3, 57) | {(*TABLE, 2, row): (Tag.INTEGER, row) for row in range(58, 71)}
    agent = await start_agent(table, kind=V3Agent)

    result = await walk_columns(open_v3(agent), [(*TABLE, n) for n in (1, 2, 3)], WalkOptions(max_repetitions=10))

    assert result.complete
    found = {(*TABLE, n, *suffix): (tag, value) for n, rows in enumerate(result.rows, 1) for suffix, tag, value in rows}
    assert found == table


async def test_a_column_that_gives_less_shortens_the_page_of_all(
    start_agent: AgentStarter, open_v3: SessionOpener
) -> None:
    agent = await start_agent(columns(2, 40), kind=V3Agent, max_answer_varbinds=7)

    page = await open_v3(agent).next_page([(*TABLE, 1), (*TABLE, 2)], 25)

    assert [oid for oid, _, _ in page] == [(*TABLE, column, row) for row in range(1, 8) for column in (1, 2)]
    assert [question.repetitions for question in agent.questions] == [25, 7]


async def test_the_end_of_one_column_does_not_shorten_the_others(
    start_agent: AgentStarter, open_v3: SessionOpener
) -> None:
    agent = await start_agent(columns(2, 9), kind=V3Agent)

    page = await open_v3(agent).next_page([(*TABLE, 2, 8), (*TABLE, 1)], 5)

    assert [tag for _, tag, _ in page[::2]] == [Tag.INTEGER, *[Tag.END_OF_MIB_VIEW] * 4]
    assert [oid for oid, _, _ in page[1::2]] == [(*TABLE, 1, row) for row in range(1, 6)]


async def test_an_empty_page_is_empty_for_all(start_agent: AgentStarter, open_v3: SessionOpener) -> None:
    agent = await start_agent(columns(2, 9), kind=V3Agent, max_answer_varbinds=0)

    assert await open_v3(agent).next_page([(*TABLE, 1), (*TABLE, 2)], 5) == []


@pytest.mark.parametrize(
    ("status", "error", "kind"),
    [
        (1, TooBig, FailureKind.TOO_BIG),
        (5, AgentError, FailureKind.REFUSED),
        (16, AccessDenied, FailureKind.AUTH),
    ],
)
async def test_an_error_status_never_looks_like_an_end(
    start_agent: AgentStarter, open_v3: SessionOpener, status: int, error: type[AgentError], kind: FailureKind
) -> None:
    def behave(received: Received, answer: SnmpMessage) -> Iterable[bytes]:
        if received.number < 4:
            return honest(received, answer)
        return [encode_message(with_status(received.message, status, 1))]

    agent = await start_agent(columns(1, 57), kind=V3Agent, behave=behave)

    result = await walk_columns(open_v3(agent), [(*TABLE, 1)], WalkOptions(max_repetitions=10))

    assert isinstance(result.failure, error)
    assert (result.failure.kind, result.complete, len(result.rows[0])) == (kind, False, 20)


async def test_an_agent_with_a_size_limit_is_walked_in_smaller_pages(
    start_agent: AgentStarter, open_v3: SessionOpener
) -> None:
    for limit in (too_big_above(6), silent_above(6)):
        agent = await start_agent(columns(2, 30), kind=V3Agent, behave=limit)

        result = await walk_columns(open_v3(agent), [(*TABLE, 1), (*TABLE, 2)])

        assert result.complete
        assert [len(rows) for rows in result.rows] == [30, 30]


async def test_an_agent_that_goes_in_circles_is_recognised(start_agent: AgentStarter, open_v3: SessionOpener) -> None:
    def behave(received: Received, answer: SnmpMessage) -> Iterable[bytes]:
        rows = [((*TABLE, 1, 1 + n % 3), Tag.INTEGER, n) for n in range(received.repetitions)]
        return [encode_message(SnmpMessage(1, b"", Pdu(PduKind.RESPONSE, received.request_id, 0, 0, rows)))]

    agent = await start_agent(SYSTEM, kind=V3Agent, behave=behave)

    result = await walk_columns(open_v3(agent), [(*TABLE, 1)])

    assert isinstance(result.failure, WalkLoop)
    assert not result.complete


async def test_one_bad_onu_is_named_and_the_others_are_read(start_agent: AgentStarter, open_v3: SessionOpener) -> None:
    bad = (*TABLE, 1, 13)

    def behave(received: Received, answer: SnmpMessage) -> Iterable[bytes]:
        if bad in received.asked:
            return [encode_message(with_status(received.message, 5, 1 + received.asked.index(bad)))]
        return honest(received, answer)

    agent = await start_agent(columns(2, 40), kind=V3Agent, behave=behave)
    onus = [[(*TABLE, 1, row), (*TABLE, 2, row)] for row in range(1, 41)]

    result = await get_batched(open_v3(agent), onus, BatchOptions(patience=CHEAP))

    assert result.complete
    assert list(result.failures) == [12]
    assert sum(answer is not None for answer in result.answers) == 39


async def test_a_repetition_is_the_same_bytes_after_the_time_out(
    start_agent: AgentStarter, open_v3: SessionOpener
) -> None:
    agent = await start_agent(SYSTEM, kind=V3Agent, behave=drop(1, 3))
    session = open_v3(agent)

    await session.get([SYS_DESCR])

    discovery, discovery_again, question, question_again = agent.received
    assert (discovery.data, question.data) == (discovery_again.data, question_again.data)
    assert question_again.at - question.at >= CHEAP.timeout_s
    assert (session.traffic.packets, session.traffic.retransmissions) == (4, 2)


async def test_a_silent_agent_gets_as_many_packets_as_tries(start_agent: AgentStarter, open_v3: SessionOpener) -> None:
    agent = await start_agent(SYSTEM, kind=V3Agent, behave=silent)
    loop = asyncio.get_running_loop()
    started_at = loop.time()

    with pytest.raises(AgentTimeout) as caught:
        await open_v3(agent).get([SYS_DESCR])

    assert caught.value.kind is FailureKind.TIMEOUT
    assert agent.packets == CHEAP.tries
    assert loop.time() - started_at == pytest.approx(20.0, abs=0.1)


async def test_a_walk_of_a_silent_agent_sends_no_more_than_its_patience(
    start_agent: AgentStarter, open_v3: SessionOpener
) -> None:
    agent = await start_agent(SYSTEM, kind=V3Agent, behave=silent)

    result = await walk_columns(open_v3(agent), [(*TABLE, 1), (*TABLE, 2)], WalkOptions(patience=Patience(1.0, 4)))

    assert isinstance(result.failure, AgentTimeout)
    assert agent.packets <= 6


async def test_nobody_listening_is_a_refusal_at_once(start_agent: AgentStarter, open_v3: SessionOpener) -> None:
    agent = await start_agent(SYSTEM, kind=V3Agent)
    agent.transport.close()
    await asyncio.sleep(0)

    with pytest.raises(AgentRefused):
        await open_v3(agent).get([SYS_DESCR])


@pytest.mark.parametrize("lasts", [0, 1, 2, 5])
async def test_no_packet_leaves_without_the_permit(
    start_agent: AgentStarter, open_v3: SessionOpener, lasts: int
) -> None:
    agent = await start_agent(columns(2, 200), kind=V3Agent)

    result = await walk_columns(open_v3(agent, permit=Lapsing(lasts)), [(*TABLE, 1), (*TABLE, 2)])

    assert isinstance(result.failure, OwnershipLost)
    assert result.failure.kind is FailureKind.CANCELLED
    assert agent.packets == lasts


async def test_the_permit_is_asked_once_for_each_packet(
    start_agent: AgentStarter, open_v3: SessionOpener, permit: Allowed
) -> None:
    agent = await start_agent(SYSTEM, kind=V3Agent, behave=drop(1, 4))
    session = open_v3(agent)

    for _ in range(3):
        await session.get([SYS_DESCR])

    assert permit.checks == agent.packets == session.traffic.packets == 6
    # One of them in the report of its engine's id.
    assert session.traffic.varbinds == 4
    assert session.traffic.bytes_sent == sum(len(received.data) for received in agent.received)


async def test_the_deadline_ends_the_asking_and_what_was_sent_is_waited_for(
    start_agent: AgentStarter, open_v3: SessionOpener
) -> None:
    agent = await start_agent(SYSTEM, kind=V3Agent, behave=lambda received, _: [b""] if received.number == 1 else [])
    deadline = asyncio.get_running_loop().time() + 12.0

    with pytest.raises(BudgetSpent):
        await open_v3(agent).get([SYS_DESCR], deadline=deadline)

    assert agent.packets == DISCOVERY + 3
    assert asyncio.get_running_loop().time() == pytest.approx(deadline + 3.0, abs=0.1)


@pytest.mark.parametrize("limit", [1, 3])
async def test_no_more_is_in_flight_than_the_limit_says(
    start_agent: AgentStarter, open_v3: SessionOpener, limit: int
) -> None:
    agent = await start_agent(SYSTEM, kind=V3Agent, delay_s=0.5)
    session = open_v3(agent, max_in_flight=limit)

    await asyncio.gather(*(session.get([SYS_DESCR]) for _ in range(9)))

    assert agent.max_in_flight == limit
    assert agent.packets == DISCOVERY + 9


async def test_packets_keep_their_distance(start_agent: AgentStarter, open_v3: SessionOpener) -> None:
    agent = await start_agent(columns(3, 9), kind=V3Agent)

    await open_v3(agent, packets_per_second=4.0).next_page([(*TABLE, n) for n in (1, 2, 3)], 3)

    times = [received.at for received in agent.received]
    assert len(times) == 4
    assert all(later - earlier >= 0.2499 for earlier, later in pairwise(times))


async def test_a_question_that_does_not_fit_is_too_big(start_agent: AgentStarter, open_v3: SessionOpener) -> None:
    session = open_v3(await start_agent(SYSTEM, kind=V3Agent))

    with pytest.raises(TooBig):
        await session.get([(*TABLE, *[4_294_967_295] * 40, row) for row in range(100)])


async def test_closing_the_session_ends_what_is_under_way(start_agent: AgentStarter, open_v3: SessionOpener) -> None:
    agent = await start_agent(SYSTEM, kind=V3Agent, behave=drop(2))
    session = open_v3(agent)
    asking = asyncio.ensure_future(session.get([SYS_DESCR]))
    await asyncio.sleep(1.0)

    await session.close()

    with pytest.raises(SessionClosed):
        await asking
    with pytest.raises(SessionClosed):
        await session.get([SYS_DESCR])
    assert agent.packets == 2


async def test_sessions_leave_no_descriptor_behind(start_agent: AgentStarter) -> None:
    agent = await start_agent(SYSTEM, kind=V3Agent, behave=drop(1))
    gc.collect()
    open_before = len(os.listdir("/proc/self/fd"))

    async with Network() as network:
        target = Target("127.0.0.1", UserCredential(USER), SnmpVersion.V3, agent.port)
        for _ in range(20):
            session = network.open(target, Allowed())
            own: Any = network.transports[0]
            await session.get([SYS_DESCR])
            await session.close()
            assert not own._pending
            assert not own._openers

    assert len(os.listdir("/proc/self/fd")) == open_before
