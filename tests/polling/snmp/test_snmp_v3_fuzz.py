"""Ten thousand damaged v3 replies: nothing crashes, nothing outlives its budget, nothing is left open."""

import asyncio
import gc
import os
import random
from dataclasses import dataclass, field
from itertools import pairwise

import pytest
from snmp_scripted_agent import AgentStarter, Allowed, Table
from snmp_v3_agent import USER, V3Agent
from test_snmp_fuzz import Vandal

from facho.polling.snmp.batch import BatchOptions, get_batched
from facho.polling.snmp.ber import Oid, Tag
from facho.polling.snmp.network import Network
from facho.polling.snmp.session import Limits, Session
from facho.polling.snmp.target import Patience, SnmpVersion, Target, UserCredential
from facho.polling.snmp.user_security import Envelope
from facho.polling.snmp.walk import WalkOptions, walk_columns

pytestmark = pytest.mark.slow

SEED = 7_041_776
MUTATIONS = 10_000
BUDGET_S = 60.0
# The last question may have been sent just before the deadline: two time-outs of a slow agent.
LAST_WAIT_S = 4.1
COLUMNS: list[Oid] = [(1, 3, 6, 1, 4, 1, 99_999, 1, n) for n in (1, 2, 3)]
ONUS = [[(*column, 4_194_304_000, onu) for column in COLUMNS] for onu in range(20)]


def table() -> Table:
    return {oid: (Tag.OCTET_STRING, b"HWTC%08d" % oid[-1]) for onu in ONUS for oid in onu}


@dataclass
class VandalAgent(V3Agent):
    """Damages most of its answers, wherever it hurts."""

    vandal: Vandal = field(default_factory=lambda: Vandal(SEED))
    rng: random.Random = field(default_factory=lambda: random.Random(SEED))  # noqa: S311 - seeded on purpose

    def _seal(self, question: Envelope, reply: bytes) -> bytes:
        sealed = super()._seal(question, reply)
        if self.rng.random() < 0.3:
            return sealed
        self.vandal.mutations += 1
        return self.vandal.damage(sealed)


def open_session(network: Network, agent: VandalAgent) -> Session:
    target = Target("127.0.0.1", UserCredential(USER), SnmpVersion.V3, agent.port)
    return network.open(target, Allowed(), Limits(max_in_flight=2))


async def walk_once(network: Network, agent: VandalAgent) -> None:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + BUDGET_S
    session = open_session(network, agent)

    options = WalkOptions(max_repetitions=4, patience=Patience(2.0, 3), deadline=deadline, max_rows=200)
    result = await walk_columns(session, COLUMNS, options)
    await session.close()

    assert loop.time() <= deadline + LAST_WAIT_S
    assert result.complete is (result.failure is None)
    for rows in result.rows:
        assert all(earlier[0] < later[0] for earlier, later in pairwise(rows))


async def get_once(network: Network, agent: VandalAgent) -> None:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + BUDGET_S
    session = open_session(network, agent)

    result = await get_batched(
        session, ONUS, BatchOptions(max_varbinds=12, patience=Patience(2.0, 2), deadline=deadline)
    )
    await session.close()

    assert loop.time() <= deadline + LAST_WAIT_S
    for onu, answer in zip(ONUS, result.answers, strict=True):
        assert answer is None or [oid for oid, _, _ in answer] == onu


async def test_damaged_replies_crash_nothing_hang_nothing_and_leak_nothing(start_agent: AgentStarter) -> None:
    agent = await start_agent(table(), kind=VandalAgent)
    assert isinstance(agent, VandalAgent)
    # Sessions that other tests left to the collector are not counted as ours.
    gc.collect()
    open_before = len(os.listdir("/proc/self/fd"))

    async with Network() as network:
        while agent.vandal.mutations < MUTATIONS:
            await asyncio.gather(
                *(walk_once(network, agent) for _ in range(40)), *(get_once(network, agent) for _ in range(10))
            )
        assert not any(transport._pending for transport in network.transports)

    assert len(os.listdir("/proc/self/fd")) == open_before
