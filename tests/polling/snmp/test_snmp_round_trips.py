"""How fast an agent answers: measured of questions that were sent once, in a few numbers however many there are."""

import pytest
from snmp_scripted_agent import AgentStarter, Allowed, SessionOpener, Table, drop, silent, too_big_above
from snmp_v3_agent import USER, V3Agent

from facho.polling.snmp.ber import Tag
from facho.polling.snmp.errors import AgentTimeout, TooBig
from facho.polling.snmp.network import Network
from facho.polling.snmp.oid import SYS_UP_TIME
from facho.polling.snmp.session import RoundTrips
from facho.polling.snmp.target import CHEAP, SnmpVersion, Target, UserCredential

TABLE: Table = {SYS_UP_TIME: (Tag.TIMETICKS, 1)}


async def test_the_time_from_a_question_to_its_answer_is_measured(
    start_agent: AgentStarter, open_session: SessionOpener
) -> None:
    agent = await start_agent(TABLE, delay_s=0.2)
    session = open_session(agent)

    await session.get([SYS_UP_TIME])
    agent.delay_s = 0.4
    await session.get([SYS_UP_TIME])

    trips = session.round_trips
    assert trips.count == 2
    assert trips.mean_seconds == pytest.approx(0.3, abs=0.01)
    assert trips.longest_seconds == pytest.approx(0.4, abs=0.01)


async def test_of_a_repeated_question_nobody_knows_which_copy_was_answered(
    start_agent: AgentStarter, open_session: SessionOpener
) -> None:
    session = open_session(await start_agent(TABLE, behave=drop(1)))

    await session.get([SYS_UP_TIME])

    assert session.traffic.retransmissions == 1
    assert (session.round_trips.count, session.round_trips.mean_seconds) == (0, None)


async def test_silence_is_no_round_trip(start_agent: AgentStarter, open_session: SessionOpener) -> None:
    session = open_session(await start_agent(TABLE, behave=silent))

    with pytest.raises(AgentTimeout):
        await session.get([SYS_UP_TIME], patience=CHEAP)

    assert session.round_trips == RoundTrips()


async def test_an_agent_that_says_no_has_answered(start_agent: AgentStarter, open_session: SessionOpener) -> None:
    session = open_session(await start_agent(TABLE, behave=too_big_above(0), delay_s=0.1))

    with pytest.raises(TooBig):
        await session.get([SYS_UP_TIME])

    assert session.round_trips.longest_seconds == pytest.approx(0.1, abs=0.01)


async def test_the_wait_for_a_turn_is_not_in_it(start_agent: AgentStarter, open_session: SessionOpener) -> None:
    session = open_session(await start_agent(TABLE, delay_s=0.1), packets_per_second=0.1)

    for _ in range(3):
        await session.get([SYS_UP_TIME])

    assert session.round_trips.longest_seconds == pytest.approx(0.1, abs=0.01)


async def test_each_packet_of_v3_is_one(start_agent: AgentStarter, network: Network) -> None:
    agent = await start_agent(TABLE, kind=V3Agent, delay_s=0.1)
    target = Target(agent.address, UserCredential(USER), version=SnmpVersion.V3, port=agent.port)
    session = network.open(target, Allowed())

    await session.get([SYS_UP_TIME])
    await session.close()

    assert session.round_trips.count == session.traffic.packets == 2
    assert session.round_trips.mean_seconds == pytest.approx(0.1, abs=0.01)
