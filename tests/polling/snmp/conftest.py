"""Agents on the loopback, a network of ours to ask them, and a clock that jumps."""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from types import ModuleType
from typing import Any

import pytest
from bench.virtual_loop import VirtualTimeLoop
from snmp_scripted_agent import AgentStarter, Allowed, ScriptedAgent, SessionOpener, Table
from snmp_v3_agent import USER, V3Agent

from facho.polling.snmp import _pages, pages, python_pages
from facho.polling.snmp.network import Network
from facho.polling.snmp.session import Limits, Session
from facho.polling.snmp.target import Community, SnmpVersion, Target, UserCredential


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> dict[str, type[asyncio.AbstractEventLoop]]:
    """Run the tests of this folder on the loop whose clock jumps, unless they wait for another process."""
    if "snmpd" in getattr(item, "fixturenames", ()):
        return {"real": asyncio.SelectorEventLoop}
    return {"virtual": VirtualTimeLoop}


@pytest.fixture(params=[_pages, python_pages], ids=["compiled", "python"], scope="module", autouse=True)
def decoder(request: pytest.FixtureRequest) -> Iterator[ModuleType]:
    """Run every test of this folder with both decoders of answers."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(pages, "decoder", request.param)
        yield request.param


@pytest.fixture
async def start_agent() -> AsyncIterator[AgentStarter]:
    agents: list[ScriptedAgent] = []

    async def start(
        table: Table, host: str = "127.0.0.1", kind: type[ScriptedAgent] = ScriptedAgent, **options: Any
    ) -> ScriptedAgent:
        agent = kind(table, **options)
        udp = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM)
        udp.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        udp.bind((host, 0))
        await asyncio.get_running_loop().create_datagram_endpoint(lambda: agent, sock=udp)
        agents.append(agent)
        return agent

    yield start
    for agent in agents:
        agent.transport.close()
    # A closed transport lets go of its socket in the next turn of the loop.
    await asyncio.sleep(0)


@pytest.fixture
async def network() -> AsyncIterator[Network]:
    async with Network() as network:
        yield network


@pytest.fixture
def permit() -> Allowed:
    return Allowed()


@pytest.fixture
def open_session(network: Network, permit: Allowed) -> SessionOpener:
    def open_session(
        agent: ScriptedAgent, *, version: SnmpVersion = SnmpVersion.V2C, permit: Any = permit, **limits: Any
    ) -> Session:
        target = Target(agent.address, Community(b"public"), version=version, port=agent.port)
        return network.open(target, permit, Limits(**limits))

    return open_session


@pytest.fixture
async def open_v3(network: Network, permit: Allowed) -> AsyncIterator[SessionOpener]:
    sessions: list[Session] = []

    def open_v3(agent: V3Agent, *, user: str = USER, permit: Any = permit, **limits: Any) -> Session:
        target = Target(agent.address, UserCredential(user), SnmpVersion.V3, agent.port)
        sessions.append(network.open(target, permit, Limits(**limits)))
        return sessions[-1]

    yield open_v3
    for session in sessions:
        await session.close()
