"""Many sessions over few sockets: what they share, and what they leave behind."""

import asyncio
from typing import Any

import pytest
from snmp_scripted_agent import (
    AgentStarter,
    Allowed,
    SessionOpener,
    Table,
    silent,
)

from facho.polling.snmp import network as network_module
from facho.polling.snmp import transport
from facho.polling.snmp.ber import Tag
from facho.polling.snmp.errors import (
    SessionClosed,
)
from facho.polling.snmp.network import MAX_SOCKETS, Network
from facho.polling.snmp.oid import SYS_DESCR, SYS_NAME
from facho.polling.snmp.target import Community, Target

SYSTEM: Table = {SYS_DESCR: (Tag.OCTET_STRING, b"Integrated Access Software")}


async def test_many_agents_share_one_socket(
    start_agent: AgentStarter, open_session: SessionOpener, network: Network
) -> None:
    agents = [await start_agent({SYS_NAME: (Tag.INTEGER, n)}) for n in range(30)]

    answers = await asyncio.gather(*(open_session(agent).get([SYS_NAME]) for agent in agents))

    assert [varbinds[0][2] for varbinds in answers] == list(range(30))
    assert len(network.transports) <= MAX_SOCKETS


async def test_small_receive_buffers_are_made_up_for_by_more_sockets(
    start_agent: AgentStarter, open_session: SessionOpener, network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "RECEIVE_BUFFER_BYTES", 200_000)
    agents = [await start_agent(SYSTEM) for _ in range(40)]

    await asyncio.gather(*(open_session(agent).get([SYS_DESCR]) for agent in agents))

    assert len(network.transports) == MAX_SOCKETS
    assert all(agent.packets == 1 for agent in agents)


async def test_a_large_receive_buffer_is_shared_by_all(
    start_agent: AgentStarter, open_session: SessionOpener, network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(network_module, "RECEIVE_BUFFER_BYTES", 1_000)

    for _ in range(5):
        open_session(await start_agent(SYSTEM))

    assert len(network.transports) == 1


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
    assert not network.transports[0]._pending


async def test_request_ids_in_flight_are_never_given_twice(network: Network) -> None:
    network.open(Target("127.0.0.1", Community(b"public")), Allowed())
    shared: Any = network.transports[0]
    shared._last_request_id = 0x7FFF_FFFE

    def take() -> int:
        return shared.open_request(("127.0.0.1", 161), shared.next_request_id(), 1).request_id

    ids = [take() for _ in range(3)]
    shared._last_request_id = 0x7FFF_FFFE
    ids += [take() for _ in range(3)]

    assert ids == [0x7FFF_FFFF, 1, 2, 3, 4, 5]
