"""Many sessions at once: what each has for itself, and what they leave behind."""

import asyncio
import resource
from itertools import pairwise

import pytest
from snmp_scripted_agent import (
    AgentStarter,
    SessionOpener,
    Table,
    silent,
)

from facho.polling.domain.execution_state import FailureKind
from facho.polling.snmp.ber import Tag
from facho.polling.snmp.errors import NoSocket, SessionClosed
from facho.polling.snmp.network import Network
from facho.polling.snmp.oid import SYS_DESCR, SYS_NAME

SYSTEM: Table = {SYS_DESCR: (Tag.OCTET_STRING, b"Integrated Access Software")}


async def test_every_session_has_a_port_of_its_own(
    start_agent: AgentStarter, open_session: SessionOpener, network: Network
) -> None:
    agents = [await start_agent({SYS_NAME: (Tag.INTEGER, n)}) for n in range(30)]
    sessions = [open_session(agent) for agent in agents]

    answers = await asyncio.gather(*(session.get([SYS_NAME]) for session in sessions))

    assert [varbinds[0][2] for varbinds in answers] == list(range(30))
    ports = [transport._socket.getsockname()[1] for transport in network.transports]
    assert len(set(ports)) == 30
    # Not one after the other: who knows the port of one session cannot tell the next one's.
    assert len({after - before for before, after in pairwise(ports)}) > 10


async def test_a_closed_session_leaves_no_socket(
    start_agent: AgentStarter, open_session: SessionOpener, network: Network
) -> None:
    agent = await start_agent(SYSTEM)

    for _ in range(5):
        session = open_session(agent)
        await session.get([SYS_DESCR])
        await session.close()

    assert network.transports == []


async def test_closing_the_network_ends_what_is_under_way(
    start_agent: AgentStarter, open_session: SessionOpener, network: Network
) -> None:
    session = open_session(await start_agent(SYSTEM, behave=silent))
    asking = asyncio.ensure_future(session.get([SYS_DESCR]))
    await asyncio.sleep(1.0)

    network.close()

    with pytest.raises(SessionClosed):
        await asking


async def test_a_cancelled_question_leaves_nothing_behind(
    start_agent: AgentStarter, open_session: SessionOpener, network: Network
) -> None:
    session = open_session(await start_agent(SYSTEM, behave=silent))
    asking = asyncio.ensure_future(session.get([SYS_DESCR]))
    await asyncio.sleep(1.0)

    asking.cancel()

    with pytest.raises(asyncio.CancelledError):
        await asking
    await session.close()
    assert not network.transports


async def test_request_ids_are_random_and_never_given_twice(
    start_agent: AgentStarter, open_session: SessionOpener
) -> None:
    agent = await start_agent(SYSTEM)
    session = open_session(agent)

    for _ in range(200):
        await session.get([SYS_DESCR])

    ids = [received.request_id for received in agent.received]
    assert len(set(ids)) == 200
    assert all(0 < number <= 0x7FFF_FFFF for number in ids)
    # In every eighth of the range, and with no two steps alike.
    assert {number >> 28 for number in ids} == set(range(8))
    assert len({after - before for before, after in pairwise(ids)}) == 199


async def test_no_socket_left_is_not_blamed_on_the_device(
    start_agent: AgentStarter, open_session: SessionOpener
) -> None:
    agent = await start_agent(SYSTEM)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)

    resource.setrlimit(resource.RLIMIT_NOFILE, (1, hard))
    try:
        with pytest.raises(NoSocket, match="limit of open files") as caught:
            open_session(agent)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    assert caught.value.kind is FailureKind.INTERNAL
