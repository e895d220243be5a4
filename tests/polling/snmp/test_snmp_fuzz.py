"""Ten thousand damaged replies: nothing crashes, nothing outlives its budget, no socket is left open."""

import asyncio
import os
import random
from collections.abc import Iterable
from itertools import pairwise

import pytest
from snmp_scripted_agent import AgentStarter, Allowed, Received, ScriptedAgent, Table

from facho.polling.snmp.batch import BatchOptions, get_batched
from facho.polling.snmp.ber import Oid, SnmpMessage, Tag, encode_message
from facho.polling.snmp.network import Network
from facho.polling.snmp.session import Limits
from facho.polling.snmp.target import Community, Patience, Target
from facho.polling.snmp.walk import WalkOptions, walk_columns

pytestmark = pytest.mark.slow

SEED = 7_041_776
MUTATIONS = 10_000
BUDGET_S = 60.0
# The last question may have been sent just before the deadline: two time-outs of a slow agent.
LAST_WAIT_S = 4.1
COLUMNS: list[Oid] = [(1, 3, 6, 1, 4, 1, 99_999, 1, n) for n in (1, 2, 3)]
ONUS = [[(*column, 4_194_304_000, onu) for column in COLUMNS] for onu in range(40)]


def table() -> Table:
    return {oid: (Tag.OCTET_STRING, b"HWTC%08d" % oid[-1]) for onu in ONUS for oid in onu}


class Vandal:
    """Answers, mostly with one of many kinds of damage."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)  # noqa: S311 - seeded on purpose
        self.mutations = 0

    def __call__(self, _received: Received, answer: SnmpMessage) -> Iterable[bytes]:
        data = encode_message(answer)
        if self.rng.random() < 0.3:
            return [data]
        self.mutations += 1
        return [self.damage(data)]

    def damage(self, data: bytes) -> bytes:
        rng, spoiled = self.rng, bytearray(data)
        kind = rng.randrange(5)
        at = rng.randrange(len(spoiled))
        if kind == 0:
            spoiled[at] = rng.randrange(256)
        elif kind == 1:
            spoiled[at] ^= 1 << rng.randrange(8)
        elif kind == 2:
            del spoiled[at:]
        elif kind == 3:
            del spoiled[at : at + rng.randrange(1, 9)]
        else:
            spoiled[at:at] = rng.randbytes(rng.randrange(1, 9))
        return bytes(spoiled)


async def walk_once(network: Network, agent: ScriptedAgent) -> None:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + BUDGET_S
    session = network.open(Target("127.0.0.1", Community(b"public"), port=agent.port), Allowed())

    options = WalkOptions(max_repetitions=4, patience=Patience(2.0, 3), deadline=deadline, max_rows=200)
    result = await walk_columns(session, COLUMNS, options)
    await session.close()

    assert loop.time() <= deadline + LAST_WAIT_S
    assert result.complete is (result.failure is None)
    for rows in result.rows:
        assert all(earlier[0] < later[0] for earlier, later in pairwise(rows))


async def get_once(network: Network, agent: ScriptedAgent) -> None:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + BUDGET_S
    target = Target("127.0.0.1", Community(b"public"), port=agent.port)
    session = network.open(target, Allowed(), Limits(max_in_flight=2))

    options = BatchOptions(max_varbinds=12, patience=Patience(2.0, 2), deadline=deadline)
    result = await get_batched(session, ONUS, options)
    await session.close()

    assert loop.time() <= deadline + LAST_WAIT_S
    for onu, answer in zip(ONUS, result.answers, strict=True):
        assert answer is None or [oid for oid, _, _ in answer] == onu


async def test_damaged_replies_crash_nothing_hang_nothing_and_leak_nothing(start_agent: AgentStarter) -> None:
    vandal = Vandal(SEED)
    agent = await start_agent(table(), behave=vandal)
    open_before = len(os.listdir("/proc/self/fd"))

    async with Network() as network:
        while vandal.mutations < MUTATIONS:
            await asyncio.gather(
                *(walk_once(network, agent) for _ in range(100)), *(get_once(network, agent) for _ in range(20))
            )
        assert not any(transport._pending for transport in network.transports)

    assert len(os.listdir("/proc/self/fd")) == open_before
