"""What answers may keep: a run is bounded, all runs together are, and the largest one pays."""

import asyncio
from collections.abc import Iterable

import pytest
from snmp_scripted_agent import AgentStarter, Allowed, Received, SessionOpener, Table, silent

from facho.polling.domain.execution_state import FailureKind
from facho.polling.snmp.ber import SnmpMessage, Tag, encode_message
from facho.polling.snmp.ber_values import MAX_KEPT_OCTETS
from facho.polling.snmp.errors import TooMuchData
from facho.polling.snmp.memory import (
    BYTES_PER_RUN,
    MEGABYTE,
    PER_ROW,
    PER_SUB_ID,
    PROCESS_BYTES,
    SMALL_BYTES,
    Memory,
    Share,
)
from facho.polling.snmp.network import Network
from facho.polling.snmp.oid import SYS_DESCR
from facho.polling.snmp.target import CHEAP, Community, Target
from facho.polling.snmp.walk import WalkOptions, walk_columns

COLUMN = (1, 3, 6, 1, 4, 1, 99, 1)
ROWS = 400
TABLE: Table = {(*COLUMN, n): (Tag.OCTET_STRING, b"x" * 2_000) for n in range(1, ROWS + 1)}


def reading(memory: Memory, address: str, size: int) -> tuple[Share, list[TooMuchData]]:
    """A run under way that holds so much, and what it is reported when it has to end."""
    share, refusals = memory.open(address), list[TooMuchData]()
    share.on_refusal = refusals.append
    share.take(size)
    return share, refusals


def test_a_run_that_keeps_too_much_ends() -> None:
    memory = Memory(run_bytes=10 * MEGABYTE)
    share = memory.open("192.0.2.1")
    share.take(10 * MEGABYTE)

    with pytest.raises(TooMuchData, match=r"192\.0\.2\.1 sent more than the 10 MB that a run may keep") as caught:
        share.take(1)

    assert caught.value.kind is FailureKind.TOO_MUCH
    assert memory.used == 0


def test_when_all_is_taken_the_largest_run_ends_and_not_the_next_to_ask() -> None:
    memory = Memory(process_bytes=20 * MEGABYTE)
    _, of_largest = reading(memory, "192.0.2.1", 12 * MEGABYTE)
    small, of_small = reading(memory, "192.0.2.2", 6 * MEGABYTE)

    small.take(3 * MEGABYTE)

    assert [error.kind for error in of_largest] == [FailureKind.TOO_MUCH]
    assert of_small == []
    assert memory.used == small.used == 9 * MEGABYTE


def test_what_waits_to_be_stored_is_counted_but_cannot_be_ended() -> None:
    memory = Memory(process_bytes=20 * MEGABYTE)
    stored, refusals = reading(memory, "192.0.2.1", 15 * MEGABYTE)
    held = stored.hold()
    stored.release()
    other, _ = reading(memory, "192.0.2.2", 4 * MEGABYTE)

    with pytest.raises(TooMuchData):
        other.take(4 * MEGABYTE)
    assert (refusals, memory.used) == ([], 15 * MEGABYTE)

    held.release()
    assert memory.used == 0


def test_a_small_run_never_ends_because_of_others() -> None:
    memory = Memory(process_bytes=4 * MEGABYTE)
    reading(memory, "192.0.2.1", 4 * MEGABYTE)[0].hold()
    small = memory.open("192.0.2.2")

    small.take(SMALL_BYTES)

    assert small.used == SMALL_BYTES


def test_more_pollers_have_more_room() -> None:
    for pollers, room in ((10, PROCESS_BYTES), (500, 500 * BYTES_PER_RUN)):
        memory = Memory.for_runs(pollers)
        assert memory._process_bytes == room


async def test_a_walk_ends_where_its_room_does(start_agent: AgentStarter) -> None:
    agent = await start_agent(TABLE)
    async with Network(Memory(run_bytes=MEGABYTE)) as network:
        session = network.open(Target(agent.address, Community(b"public"), port=agent.port), Allowed())

        walk = await walk_columns(session, [COLUMN])

        assert isinstance(walk.failure, TooMuchData)
        assert 0 < len(walk.rows[0]) < ROWS
        assert network.memory.used == 0


async def test_values_are_cut_and_rows_counted(
    start_agent: AgentStarter, open_session: SessionOpener, network: Network
) -> None:
    session = open_session(await start_agent(TABLE))

    walk = await walk_columns(session, [COLUMN], WalkOptions(max_repetitions=25))

    assert walk.complete
    assert {len(value) for _, _, value in walk.rows[0] if isinstance(value, bytes)} == {MAX_KEPT_OCTETS}
    answers = 3 * session.traffic.bytes_received + 100 * session.traffic.varbinds
    kept = answers + (PER_ROW + PER_SUB_ID * 1) * ROWS
    assert network.memory.used == session.memory.used == kept

    await session.close()
    assert network.memory.used == 0


async def test_a_run_that_waits_for_an_answer_ends_at_once_when_it_holds_most(start_agent: AgentStarter) -> None:
    def answer_once(received: Received, answer: SnmpMessage) -> Iterable[bytes]:
        return [encode_message(answer)] if received.number == 1 else silent(received, answer)

    waiting = await start_agent({SYS_DESCR: (Tag.OCTET_STRING, b"x" * 60_000)}, behave=answer_once)
    asking = await start_agent(TABLE)
    async with Network(Memory(process_bytes=SMALL_BYTES + MEGABYTE)) as network:
        permit = Allowed()
        first = network.open(Target(waiting.address, Community(b"public"), port=waiting.port), permit)
        second = network.open(Target(asking.address, Community(b"public"), port=asking.port), Allowed())
        await first.get([SYS_DESCR])
        first.memory.take(SMALL_BYTES - first.memory.used + 1)
        began_at = asyncio.get_running_loop().time()

        silence = asyncio.ensure_future(first.get([SYS_DESCR]))
        await asyncio.sleep(0)
        assert (await walk_columns(second, [COLUMN])).complete

        with pytest.raises(TooMuchData):
            await silence
        with pytest.raises(TooMuchData):
            await first.get([SYS_DESCR])
        assert asyncio.get_running_loop().time() - began_at < 1.0
        # The agent works on the question all the same, so its OLT is not given to others yet.
        assert permit.kept_until == pytest.approx(began_at + CHEAP.timeout_s, abs=0.1)
