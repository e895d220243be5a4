"""How long an agent is waited for: its time-out, and longer once it has shown to be slow."""

import pytest
from snmp_scripted_agent import AgentStarter, ScriptedAgent, SessionOpener, Table, drop

from facho.polling.snmp.ber import Tag
from facho.polling.snmp.oid import SYS_UP_TIME
from facho.polling.snmp.target import CHEAP, Patience

TABLE: Table = {SYS_UP_TIME: (Tag.TIMETICKS, 1)}


def copies(agent: ScriptedAgent) -> list[int]:
    """Count how often each question was sent."""
    ids = [received.request_id for received in agent.received]
    return [ids.count(request_id) for request_id in dict.fromkeys(ids)]


async def test_a_slow_agent_is_not_asked_twice_once_it_is_known(
    start_agent: AgentStarter, open_session: SessionOpener
) -> None:
    agent = await start_agent(TABLE, delay_s=7.0)
    session = open_session(agent)

    for _ in range(6):
        await session.get([SYS_UP_TIME], patience=CHEAP)

    assert copies(agent) == [2, 2, 1, 1, 1, 1]


async def test_an_agent_that_got_faster_has_its_plain_time_out_again(
    start_agent: AgentStarter, open_session: SessionOpener
) -> None:
    agent = await start_agent(TABLE, delay_s=7.0)
    session = open_session(agent)
    for _ in range(3):
        await session.get([SYS_UP_TIME], patience=CHEAP)

    agent.delay_s = 0.1
    await session.get([SYS_UP_TIME], patience=CHEAP)
    agent.behave = drop(len(agent.received) + 1)
    await session.get([SYS_UP_TIME], patience=CHEAP)

    lost, again = agent.received[-2:]
    assert again.at - lost.at == pytest.approx(CHEAP.timeout_s)


async def test_a_lost_answer_makes_nobody_slow(start_agent: AgentStarter, open_session: SessionOpener) -> None:
    agent = await start_agent(TABLE, behave=drop(2, 5))
    session = open_session(agent)

    for _ in range(4):
        await session.get([SYS_UP_TIME], patience=CHEAP)

    assert copies(agent) == [1, 2, 1, 2]
    assert agent.received[2].at - agent.received[1].at == pytest.approx(CHEAP.timeout_s)
    assert agent.received[5].at - agent.received[4].at == pytest.approx(CHEAP.timeout_s)


async def test_the_wait_for_a_turn_is_not_the_slowness_of_the_agent(
    start_agent: AgentStarter, open_session: SessionOpener
) -> None:
    agent = await start_agent(TABLE)
    session = open_session(agent, packets_per_second=0.1)
    patience = Patience(timeout_s=1.0, tries=2)
    for _ in range(3):
        await session.get([SYS_UP_TIME], patience=patience)

    agent.behave = drop(4)
    before = agent.received[-1].at
    await session.get([SYS_UP_TIME], patience=patience)

    assert [received.at - before for received in agent.received[-2:]] == [10.0, 20.0]
