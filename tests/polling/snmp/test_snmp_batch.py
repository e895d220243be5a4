"""Batches: every ONU read or named, few packets for a bad one, few time-outs for a dead OLT."""

import asyncio
import math
from collections.abc import Iterable

import pytest
from snmp_scripted_agent import (
    AgentStarter,
    Behaviour,
    Lapsing,
    Received,
    ScriptedAgent,
    SessionOpener,
    Table,
    drop,
    honest,
    silent,
    silent_above,
    too_big_above,
    with_status,
)

from facho.polling.domain.execution_state import FailureKind
from facho.polling.snmp.batch import BatchOptions, BatchResult, get_batched
from facho.polling.snmp.ber import Oid, SnmpMessage, Tag, encode_message
from facho.polling.snmp.errors import OwnershipLost
from facho.polling.snmp.oid import SYS_UP_TIME
from facho.polling.snmp.session import Session
from facho.polling.snmp.target import CHEAP, LIVE, SnmpVersion

OPTICS = (1, 3, 6, 1, 4, 1, 99_999, 51, 1)
COLUMNS = [(*OPTICS, n) for n in range(1, 8)]


def onu_oids(onu: int) -> list[Oid]:
    return [(*column, 4_194_304_000, onu) for column in COLUMNS]


def optics(onus: int) -> Table:
    table: Table = {SYS_UP_TIME: (Tag.TIMETICKS, 1)}
    for onu in range(onus):
        table |= {oid: (Tag.INTEGER, -2000 - place) for place, oid in enumerate(onu_oids(onu))}
    return table


def unreadable(*onus: int, status: int | None = 5) -> Behaviour:
    """Fail every packet that asks for one of these ONUs: with an error status, or by silence."""
    bad = {onu_oids(onu)[0] for onu in onus}

    def behave(received: Received, answer: SnmpMessage) -> Iterable[bytes]:
        if bad.isdisjoint(received.asked):
            return honest(received, answer)
        return [] if status is None else [encode_message(with_status(received.message, status))]

    return behave


def assert_read(result: BatchResult, *, except_for: Iterable[int] = ()) -> None:
    assert result.complete
    assert sorted(result.failures) == sorted(except_for)
    for onu, answer in enumerate(result.answers):
        if onu in result.failures:
            assert answer is None
        else:
            assert answer is not None
            assert [oid for oid, _, _ in answer] == onu_oids(onu)
            assert [value for _, _, value in answer] == [-2000 - place for place in range(7)]


async def test_the_columns_of_an_onu_share_a_packet_with_those_of_others(
    start_agent: AgentStarter, open_session: SessionOpener
) -> None:
    agent = await start_agent(optics(100))

    result = await get_batched(open_session(agent), [onu_oids(onu) for onu in range(100)])

    assert_read(result)
    assert agent.packets == result.traffic.packets == math.ceil(100 / (60 // 7))
    assert all(len(received.asked) <= 60 for received in agent.received)
    assert agent.max_in_flight == 1


async def test_a_packet_holds_no_more_onus_than_the_batch(
    start_agent: AgentStarter, open_session: SessionOpener
) -> None:
    agent = await start_agent(optics(20))

    result = await get_batched(
        open_session(agent), [onu_oids(onu) for onu in range(20)], BatchOptions(batch_size=4, max_varbinds=1000)
    )

    assert_read(result)
    assert agent.packets == 5


async def test_an_onu_with_more_columns_than_fit_is_asked_for_alone(
    start_agent: AgentStarter, open_session: SessionOpener
) -> None:
    agent = await start_agent(optics(3))

    result = await get_batched(open_session(agent), [onu_oids(onu) for onu in range(3)], BatchOptions(max_varbinds=5))

    assert_read(result)
    assert agent.packets == 3


async def test_no_onus_need_no_packets(start_agent: AgentStarter, open_session: SessionOpener) -> None:
    agent = await start_agent(optics(1))

    result = await get_batched(open_session(agent), [])

    assert (result.complete, result.answers, agent.packets) == (True, [], 0)


@pytest.mark.parametrize("bad", [0, 77, 127, 199])
async def test_one_bad_onu_of_two_hundred_is_named_in_few_packets(
    start_agent: AgentStarter, open_session: SessionOpener, bad: int
) -> None:
    agent = await start_agent(optics(200), behave=unreadable(bad))

    result = await get_batched(
        open_session(agent), [onu_oids(onu) for onu in range(200)], BatchOptions(max_varbinds=1400)
    )

    assert_read(result, except_for=[bad])
    assert result.failures[bad].kind is FailureKind.REFUSED
    assert agent.packets <= 1 + 2 * math.ceil(math.log2(200))


async def test_a_silent_onu_is_told_from_a_silent_olt(start_agent: AgentStarter, open_session: SessionOpener) -> None:
    agent = await start_agent(optics(64), behave=unreadable(5, 40, status=None))

    result = await get_batched(open_session(agent), [onu_oids(onu) for onu in range(64)])

    assert_read(result, except_for=[5, 40])
    assert result.failures[5].kind is FailureKind.TIMEOUT
    # A packet of 8 has 4 levels of halves: at each, 2 silences and the question whether the agent lives.
    assert agent.packets <= 8 + 2 * 4 * 4


async def test_a_dead_olt_costs_a_few_time_outs(start_agent: AgentStarter, open_session: SessionOpener) -> None:
    agent = await start_agent(optics(500), behave=silent)
    started_at = asyncio.get_running_loop().time()

    result = await get_batched(open_session(agent), [onu_oids(onu) for onu in range(500)])

    assert not result.complete
    assert result.failure is not None
    assert result.failure.kind is FailureKind.TIMEOUT
    assert agent.packets == 4
    assert asyncio.get_running_loop().time() - started_at == pytest.approx(2 * 20 + 2 * 5, abs=0.1)


async def test_an_olt_that_dies_midway_leaves_what_was_read(
    start_agent: AgentStarter, open_session: SessionOpener
) -> None:
    agent = await start_agent(optics(80), behave=drop(*range(6, 100)))

    result = await get_batched(open_session(agent), [onu_oids(onu) for onu in range(80)])

    assert not result.complete
    assert sum(answer is not None for answer in result.answers) == 5 * 8
    assert not result.failures


async def test_lost_answers_lose_no_onu(start_agent: AgentStarter, open_session: SessionOpener) -> None:
    agent = await start_agent(optics(200), behave=drop(3, 9, 10, 17, 25))

    result = await get_batched(open_session(agent), [onu_oids(onu) for onu in range(200)])

    assert_read(result)
    for earlier, later in zip(agent.received, agent.received[1:], strict=False):
        if earlier.data == later.data:
            assert later.at - earlier.at >= LIVE.timeout_s


@pytest.mark.parametrize(("limit", "onus_per_packet"), [(silent_above(30), 4), (silent_above(7), 1)])
async def test_silence_at_a_size_is_learned_like_too_big(
    start_agent: AgentStarter, open_session: SessionOpener, limit: Behaviour, onus_per_packet: int
) -> None:
    agent = await start_agent(optics(200), behave=limit)

    result = await get_batched(open_session(agent), [onu_oids(onu) for onu in range(200)])

    assert_read(result)
    assert agent.packets <= 1.25 * 200 / onus_per_packet


async def test_packets_grow_back_after_a_silent_onu(start_agent: AgentStarter, open_session: SessionOpener) -> None:
    agent = await start_agent(optics(200), behave=unreadable(3, status=None))

    result = await get_batched(open_session(agent), [onu_oids(onu) for onu in range(200)])

    assert_read(result, except_for=[3])
    assert result.learned_onus_per_packet == 7


async def test_too_big_is_learned_for_the_packets_that_follow(
    start_agent: AgentStarter, open_session: SessionOpener
) -> None:
    agent = await start_agent(optics(400), behave=too_big_above(30))
    session = open_session(agent)
    onus = [onu_oids(onu) for onu in range(400)]

    first = await get_batched(session, onus)
    second = await get_batched(session, onus, BatchOptions(learned_onus_per_packet=first.learned_onus_per_packet))

    assert_read(first)
    assert first.learned_onus_per_packet == 4
    assert first.traffic.packets <= 1.25 * 100
    assert second.traffic.packets <= first.traffic.packets


async def test_an_agent_that_refuses_everything_is_left_alone(
    start_agent: AgentStarter, open_session: SessionOpener
) -> None:
    agent = await start_agent(optics(500), behave=unreadable(*range(500)))

    result = await get_batched(open_session(agent), [onu_oids(onu) for onu in range(500)])

    assert not result.complete
    assert agent.packets <= 20


async def test_a_missing_onu_is_an_answer_and_no_failure(
    start_agent: AgentStarter, open_session: SessionOpener
) -> None:
    for version in (SnmpVersion.V1, SnmpVersion.V2C):
        agent = await start_agent(optics(3))
        session = open_session(agent, version=version)

        result = await get_batched(session, [onu_oids(2), onu_oids(3)])

        assert result.complete
        assert not result.failures
        assert result.answers[1] == [(oid, Tag.NO_SUCH_INSTANCE, None) for oid in onu_oids(3)]


@pytest.mark.parametrize("limit", [1, 3])
async def test_packets_under_way_keep_to_the_limit(
    start_agent: AgentStarter, open_session: SessionOpener, limit: int
) -> None:
    agent = await start_agent(optics(100), behave=unreadable(50), delay_s=0.1)

    result = await get_batched(open_session(agent, max_in_flight=limit), [onu_oids(onu) for onu in range(100)])

    assert_read(result, except_for=[50])
    assert agent.max_in_flight == limit


async def test_a_lost_claim_ends_the_batch(start_agent: AgentStarter, open_session: SessionOpener) -> None:
    for limit in (1, 2):
        agent = await start_agent(optics(100), delay_s=0.1)

        result = await get_batched(
            open_session(agent, permit=Lapsing(3), max_in_flight=limit), [onu_oids(onu) for onu in range(100)]
        )

        assert isinstance(result.failure, OwnershipLost)
        assert agent.packets == 3


async def test_the_budget_ends_the_batch(start_agent: AgentStarter, open_session: SessionOpener) -> None:
    agent = await start_agent(optics(100), delay_s=1.0)
    deadline = asyncio.get_running_loop().time() + 4.5

    result = await get_batched(
        open_session(agent),
        [onu_oids(onu) for onu in range(100)],
        BatchOptions(deadline=deadline, patience=CHEAP),
    )

    assert result.failure is not None
    assert result.failure.kind is FailureKind.TIMEOUT
    # The fifth packet was sent in time, so its answer is waited for.
    assert sum(answer is not None for answer in result.answers) == 5 * 8
    assert asyncio.get_running_loop().time() == pytest.approx(deadline + 0.5, abs=0.1)


async def test_packets_are_paced(start_agent: AgentStarter, open_session: SessionOpener) -> None:
    agent = await start_agent(optics(80))
    loop = asyncio.get_running_loop()
    started_at = loop.time()

    await get_batched(open_session(agent, packets_per_second=2.0), [onu_oids(onu) for onu in range(80)])

    assert loop.time() - started_at == pytest.approx(9 * 0.5, abs=0.05)


async def read_light(
    agent: ScriptedAgent, session: Session, before: BatchResult | None = None, *, onus: int = 200
) -> tuple[BatchResult, float]:
    """Read live columns as a poll does, with what the poll before has learned; return how long it took, too."""
    loop = asyncio.get_running_loop()
    started_at = loop.time()
    options = BatchOptions(
        max_varbinds=25 * len(COLUMNS),
        learned_onus_per_packet=before and before.learned_onus_per_packet,
        failing_onus_per_packet=before and before.failing_onus_per_packet,
        first_onus_per_packet=2,
        patience=LIVE,
    )
    result = await get_batched(session, [onu_oids(onu) for onu in range(onus)], options)
    return result, loop.time() - started_at


@pytest.mark.parametrize("delay_s", [0.02, 0.3])
@pytest.mark.parametrize("limit", [1, 2, 3, 5, 8, 10, 16, 24, 1_000])
async def test_first_contact_is_about_as_fast_as_the_next(
    start_agent: AgentStarter, open_session: SessionOpener, limit: int, delay_s: float
) -> None:
    """An agent that drops large live requests costs a time-out or two, and not one for each size above its limit."""
    behave = silent_above(limit * len(COLUMNS))
    agent = await start_agent(optics(200), behave=behave, delay_s=delay_s)
    session = open_session(agent)

    first, first_s = await read_light(agent, session)
    second, second_s = await read_light(agent, session, first)

    assert_read(first)
    assert_read(second)
    # Its limit is found by one size that stays without an answer, or two of the first one.
    unanswered = 0 if limit >= 25 else 2 if limit == 1 else 1
    assert first_s <= 3 * second_s + unanswered * (LIVE.timeout_s + 1)


async def test_growth_goes_on_where_the_last_batch_was_too_small_for_it(
    start_agent: AgentStarter, open_session: SessionOpener
) -> None:
    agent = await start_agent(optics(200))
    session = open_session(agent)

    first, _ = await read_light(agent, session, onus=4)
    second, _ = await read_light(agent, session, first)

    assert first.learned_onus_per_packet == 2
    assert second.learned_onus_per_packet == 25


async def test_size_that_failed_is_not_tried_again(start_agent: AgentStarter, open_session: SessionOpener) -> None:
    agent = await start_agent(optics(200), behave=silent_above(10 * len(COLUMNS)))
    session = open_session(agent)
    first, _ = await read_light(agent, session)

    second, _ = await read_light(agent, session, first, onus=64)

    assert (first.learned_onus_per_packet, first.failing_onus_per_packet) == (8, 16)
    assert second.traffic.packets == 8
    assert second.traffic.retransmissions == 0


async def test_silent_onu_is_not_taken_for_a_limit(start_agent: AgentStarter, open_session: SessionOpener) -> None:
    agent = await start_agent(optics(200), behave=unreadable(9, status=None))

    result, _ = await read_light(agent, open_session(agent))

    assert_read(result, except_for=[9])
    assert result.failing_onus_per_packet is None
    assert result.learned_onus_per_packet is not None
    assert result.learned_onus_per_packet >= 16
