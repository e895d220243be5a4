"""One agent over real UDP: what it counts, when it is silent, and how it breaks."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from raw_manager import RawManager

from facho.polling.snmp.ber import PduKind, Tag
from facho.polling.snmp.oid import SYS_DESCR, SYS_NAME
from facho.simulator.agent import NO_FAULTS, Faults
from facho.simulator.responder import GENERAL_ERROR, TOO_BIG, LoopKind
from facho.simulator.server import SimulatedOlt, Simulation, SimulatorConfig
from facho.simulator.world import STILL

CONFIG = SimulatorConfig(vendor="huawei_smartax", olts=2, onus=60, life=STILL)
SOON = 0.05


@pytest.fixture
async def olts() -> AsyncIterator[list[SimulatedOlt]]:
    async with Simulation.start(CONFIG) as simulation:
        yield simulation.olts


@pytest.fixture
def olt(olts: list[SimulatedOlt]) -> SimulatedOlt:
    return olts[0]


async def let_it_arrive(neighbour: SimulatedOlt) -> None:
    """A whole exchange with another agent of the same loop: what was sent before it has been received."""
    bystander = RawManager()
    await bystander.get(neighbour, SYS_NAME)
    bystander.close()


async def hears_nothing(manager: RawManager, *, seconds: float = SOON) -> bool:
    try:
        await asyncio.wait_for(manager.receive_bytes(), seconds)
    except TimeoutError:
        return True
    return False


async def test_requests_replies_varbinds_and_bytes_are_counted(manager: RawManager, olt: SimulatedOlt) -> None:
    await manager.get(olt, SYS_DESCR, SYS_NAME)
    await manager.get_bulk(olt, SYS_DESCR[:-2], repetitions=3)

    counted = olt.counters
    assert (counted.requests, counted.responses, counted.varbinds, counted.retransmissions) == (2, 2, 5, 0)
    assert counted.bytes_in > 80
    assert counted.bytes_out > 100
    assert counted.max_in_flight == 1


async def test_a_burst_is_seen_in_flight_even_when_answers_take_no_time(manager: RawManager, olt: SimulatedOlt) -> None:
    for _ in range(12):
        await manager.send(olt, PduKind.GET, (SYS_NAME,))
    for _ in range(12):
        await manager.receive()

    assert olt.counters.max_in_flight == 12


async def test_requests_that_wait_for_a_slow_answer_are_in_flight(
    manager: RawManager, olts: list[SimulatedOlt]
) -> None:
    olt, neighbour = olts
    olt.faults = Faults(latency_seconds=SOON)

    first = await manager.send(olt, PduKind.GET, (SYS_NAME,))
    await let_it_arrive(neighbour)
    assert olt.counters.max_in_flight == 1
    second = await manager.send(olt, PduKind.GET, (SYS_NAME,))
    answered = {(await manager.receive()).request_id, (await manager.receive()).request_id}

    assert answered == {first, second}
    assert olt.counters.max_in_flight == 2


async def test_the_same_id_again_is_a_retransmission_and_not_more_in_flight(
    manager: RawManager, olt: SimulatedOlt
) -> None:
    olt.faults = Faults(latency_seconds=SOON)

    for _ in range(3):
        await manager.send(olt, PduKind.GET, (SYS_NAME,), request_id=4_711)
    replies = [await manager.receive() for _ in range(3)]

    assert {reply.request_id for reply in replies} == {4_711}
    assert (olt.counters.requests, olt.counters.retransmissions, olt.counters.max_in_flight) == (1, 2, 1)
    assert olt.counters.shortest_retry_ms is not None


async def test_retransmissions_of_live_columns_are_timed_apart(manager: RawManager, olt: SimulatedOlt) -> None:
    live = olt.definition.column("onu.rx_power").oid

    for _ in range(2):
        await manager.send(olt, PduKind.GET_NEXT, (live,), request_id=4_711)
        await manager.receive()

    assert olt.counters.shortest_retry_ms is None
    assert olt.counters.shortest_live_retry_ms is not None


async def test_a_wrong_community_is_met_with_silence(manager: RawManager, olt: SimulatedOlt) -> None:
    await manager.send(olt, PduKind.GET, (SYS_NAME,), community="guess")

    assert await hears_nothing(manager)
    assert (olt.counters.wrong_community, olt.counters.requests) == (1, 0)


async def test_what_is_no_message_is_ignored_and_the_next_question_answered(
    manager: RawManager, olt: SimulatedOlt
) -> None:
    manager.send_bytes(olt, b"")
    manager.send_bytes(olt, b"\x30\x82\xff\xff hello")
    await manager.get(olt, SYS_NAME)

    assert (olt.counters.malformed, olt.counters.responses) == (2, 1)


async def test_a_silent_agent_counts_and_says_nothing_until_it_may_speak_again(
    manager: RawManager, olt: SimulatedOlt
) -> None:
    olt.faults = Faults(is_silent=True)
    await manager.send(olt, PduKind.GET, (SYS_NAME,))
    assert await hears_nothing(manager)
    assert (olt.counters.requests, olt.counters.dropped, olt.counters.responses) == (1, 1, 0)

    olt.faults = NO_FAULTS
    await manager.get(olt, SYS_NAME)


async def test_an_agent_falls_silent_after_so_many_answers(manager: RawManager, olt: SimulatedOlt) -> None:
    olt.faults = Faults(silent_after=2, silent_seconds=SOON)

    await manager.get(olt, SYS_NAME)
    await manager.get(olt, SYS_NAME)
    await manager.send(olt, PduKind.GET, (SYS_NAME,))
    assert await hears_nothing(manager, seconds=2 * SOON)

    await manager.get(olt, SYS_NAME)


async def test_too_many_in_flight_crash_the_agent_which_comes_back_later(
    manager: RawManager, olt: SimulatedOlt
) -> None:
    olt.faults = Faults(latency_seconds=0.01, crash_above=2, crash_seconds=2 * SOON)

    for _ in range(3):
        await manager.send(olt, PduKind.GET, (SYS_NAME,))
    assert await hears_nothing(manager)
    assert (olt.counters.crashes, olt.counters.dropped) == (1, 3)
    assert await hears_nothing(manager, seconds=2 * SOON)

    await manager.get(olt, SYS_NAME)
    assert olt.counters.crashes == 1


async def test_as_many_in_flight_as_it_bears_do_not_crash_the_agent(manager: RawManager, olt: SimulatedOlt) -> None:
    olt.faults = Faults(latency_seconds=0.01, crash_above=2)

    for _ in range(2):
        await manager.send(olt, PduKind.GET, (SYS_NAME,))
    for _ in range(2):
        await manager.receive()

    assert olt.counters.crashes == 0


async def test_lost_replies_were_asked_for_and_never_arrive(manager: RawManager, olt: SimulatedOlt) -> None:
    olt.faults = Faults(loss=1.0)

    await manager.send(olt, PduKind.GET, (SYS_NAME,))

    assert await hears_nothing(manager)
    assert (olt.counters.requests, olt.counters.dropped) == (1, 1)


async def test_a_late_reply_is_overtaken(manager: RawManager, olts: list[SimulatedOlt]) -> None:
    olt, neighbour = olts
    olt.faults = Faults(late=1.0, late_seconds=SOON)
    first = await manager.send(olt, PduKind.GET, (SYS_NAME,))
    await let_it_arrive(neighbour)
    olt.faults = NO_FAULTS
    second = await manager.send(olt, PduKind.GET, (SYS_NAME,))

    assert [(await manager.receive()).request_id for _ in range(2)] == [second, first]


async def test_error_statuses_reach_the_manager(manager: RawManager, olt: SimulatedOlt) -> None:
    serials = olt.definition.column("onu.serial").oid

    olt.faults = Faults(general_error=1.0)
    failed = await manager.get(olt, SYS_NAME)
    olt.faults = Faults(too_big_above=300)
    refused = await manager.get_bulk(olt, serials, repetitions=25)
    answered = await manager.get_bulk(olt, serials, repetitions=5)

    assert (failed.error_status, refused.error_status, len(answered.varbinds)) == (GENERAL_ERROR, TOO_BIG, 5)


async def test_a_looping_agent_never_reaches_the_end(manager: RawManager, olt: SimulatedOlt) -> None:
    serials = olt.definition.column("onu.serial").oid
    olt.faults = Faults(loop=LoopKind.WRAP)

    last = serials
    for _ in range(10):
        rows = (await manager.get_bulk(olt, last, repetitions=25)).varbinds
        assert all(oid[: len(serials)] == serials for oid, _, _ in rows)
        last = rows[-1][0]


async def test_a_walk_after_all_faults_are_gone_is_complete(manager: RawManager, olt: SimulatedOlt) -> None:
    olt.faults = Faults(loop=LoopKind.STUCK, too_big_above=100, is_silent=True)
    olt.faults = NO_FAULTS

    rows = await manager.walk(olt, olt.definition.column("onu.serial").oid)

    assert len(rows) == CONFIG.onus
    assert all(tag == Tag.OCTET_STRING for _, tag, _ in rows)


async def test_a_closed_agent_sends_nothing_any_more(manager: RawManager) -> None:
    async with Simulation.start(CONFIG) as simulation:
        olt, neighbour = simulation.olts
        olt.faults = Faults(latency_seconds=0.01)
        await manager.send(olt, PduKind.GET, (SYS_NAME,))
        await let_it_arrive(neighbour)
        assert olt.counters.requests == 1

    assert await hears_nothing(manager)


async def test_version_1_walks_all_that_it_can_see(manager: RawManager, olt: SimulatedOlt) -> None:
    column = olt.definition.column("onu.run_state").oid

    last, rows = column, []
    while last[: len(column)] == column:
        ((last, tag, value),) = (await manager.get_next(olt, last, version=0)).varbinds
        rows.append((last, tag, value))

    assert rows[:-1] == await manager.walk(olt, column)


async def test_hundreds_of_values_fit_one_datagram(manager: RawManager, olt: SimulatedOlt) -> None:
    columns = [olt.definition.column(key) for key in ("onu.serial", "onu.description", "onu.rx_power")]
    oids = [column.instance(onu.place) for onu in olt.world.onus for column in columns]

    reply = await manager.get(olt, *oids * 5)

    assert [oid for oid, _, _ in reply.varbinds] == oids * 5
    assert olt.counters.bytes_out > 30_000


async def test_an_agent_with_small_messages_still_gives_all_rows(manager: RawManager) -> None:
    async with Simulation.start(replace(CONFIG, max_message_bytes=484)) as simulation:
        olt = simulation.olts[0]

        rows = await manager.walk(olt, olt.definition.column("onu.description").oid, repetitions=50)

        assert len(rows) == CONFIG.onus
        assert olt.counters.bytes_out / olt.counters.responses <= 484
        assert olt.counters.requests > 5


@pytest.mark.parametrize(
    "faults",
    [
        Faults(truncation=1.0),
        Faults(garbage=1.0),
        Faults(wrong_request_id=1.0),
        Faults(lost_above=60),
        Faults(duplicates=1.0),
    ],
    ids=lambda faults: ",".join(name for name in Faults.__slots__ if getattr(faults, name) != getattr(NO_FAULTS, name)),
)
async def test_spoilt_replies_differ_from_the_true_one(faults: Faults, manager: RawManager, olt: SimulatedOlt) -> None:
    await manager.send(olt, PduKind.GET, (SYS_DESCR,), request_id=7)
    true = await manager.receive_bytes()
    olt.faults = faults

    await manager.send(olt, PduKind.GET, (SYS_DESCR,), request_id=7)
    heard = [] if faults.lost_above else [await manager.receive_bytes()]
    if faults.duplicates:
        heard.append(await manager.receive_bytes())

    assert heard != [true]
    assert await hears_nothing(manager)
