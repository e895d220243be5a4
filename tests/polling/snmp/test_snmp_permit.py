"""The right to send: asked for each packet, confirmed when in doubt, given up when the device is done."""

import asyncio

import pytest
from snmp_scripted_agent import AgentStarter, Allowed, SessionOpener, Table

from facho.polling.snmp.ber import Tag
from facho.polling.snmp.errors import OwnershipUnproven
from facho.polling.snmp.network import Network
from facho.polling.snmp.oid import SYS_DESCR
from facho.polling.snmp.target import Community, Patience, Target

SYSTEM: Table = {SYS_DESCR: (Tag.OCTET_STRING, b"Integrated Access Software")}


@pytest.mark.parametrize(("delay_s", "closed_after_s"), [(3.0, 3.0), (60.0, 5.0)], ids=["answered", "timed out"])
async def test_a_session_closes_when_the_device_has_nothing_of_it_left_to_do(
    start_agent: AgentStarter, open_session: SessionOpener, delay_s: float, closed_after_s: float
) -> None:
    """Who asks next must not meet a question that was broken off."""
    session = open_session(await start_agent(SYSTEM, delay_s=delay_s))
    loop = asyncio.get_running_loop()
    asked_at, asking = loop.time(), asyncio.ensure_future(session.get([SYS_DESCR]))
    await asyncio.sleep(1.0)
    asking.cancel()

    await session.close()

    assert loop.time() - asked_at == pytest.approx(closed_after_s, abs=0.1)


class Doubtful(Allowed):
    """A right to send that has to be confirmed first."""

    def __init__(self) -> None:
        self.confirmations = 0

    def check(self) -> None:
        if not self.confirmations:
            raise OwnershipUnproven("the lease may be over")

    async def confirm(self) -> None:
        self.confirmations += 1


async def test_nothing_leaves_before_a_right_in_doubt_is_confirmed(start_agent: AgentStarter, network: Network) -> None:
    agent, permit = await start_agent(SYSTEM), Doubtful()
    target = Target(agent.address, Community(b"public"), port=agent.port)

    await network.open(target, permit).get([SYS_DESCR])

    assert (permit.confirmations, agent.packets) == (1, 1)


class DoubtfulLater(Allowed):
    """A right that is in doubt when a request is about to be sent again; it takes a second to confirm it."""

    def __init__(self) -> None:
        self.checks = 0
        self.is_confirmed = False

    def check(self) -> None:
        self.checks += 1
        if self.checks > 1 and not self.is_confirmed:
            raise OwnershipUnproven("the lease may be over")

    async def confirm(self) -> None:
        await asyncio.sleep(1.0)
        self.is_confirmed = True


async def test_a_request_that_was_answered_while_its_right_was_confirmed_is_not_sent_again(
    start_agent: AgentStarter, network: Network
) -> None:
    """Its copy would be worked on after the run has ended, and meet the questions of the next one."""
    agent, permit = await start_agent(SYSTEM, delay_s=1.5), DoubtfulLater()
    target = Target(agent.address, Community(b"public"), port=agent.port)

    [found] = await network.open(target, permit).get([SYS_DESCR], patience=Patience(1.0, 2))

    assert found[2] == SYSTEM[SYS_DESCR][1]
    assert (permit.is_confirmed, agent.packets) == (True, 1)


async def test_every_packet_gives_way_to_what_is_more_urgent(start_agent: AgentStarter) -> None:
    agent, packets = await start_agent(SYSTEM), list[int]()

    async def give_way() -> None:
        packets.append(agent.packets)

    async with Network(give_way=give_way) as network:
        session = network.open(Target(agent.address, Community(b"public"), port=agent.port), Allowed())
        await session.get([SYS_DESCR])
        await session.get([SYS_DESCR])

    assert packets == [0, 1]
