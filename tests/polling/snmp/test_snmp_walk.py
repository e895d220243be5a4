"""Walks: exactly the right rows, or an honest incomplete result, for hardly more packets than needed."""

import asyncio

import pytest
from snmp_scripted_agent import (
    AgentStarter,
    Lapsing,
    SessionOpener,
    drop,
    honest,
    silent,
    too_big_above,
)
from snmp_walk_tables import COLUMNS, PORT, TABLE, assert_exact, assert_honest, expected_rows, onu_table, pages_needed

from facho.polling.domain.execution_state import FailureKind
from facho.polling.snmp.ber import Oid, Tag, Value
from facho.polling.snmp.errors import OwnershipLost
from facho.polling.snmp.target import CHEAP, LIVE, Patience, SnmpVersion
from facho.polling.snmp.walk import Cursor, WalkOptions, walk_columns


async def test_columns_are_walked_side_by_side(start_agent: AgentStarter, open_session: SessionOpener) -> None:
    table = onu_table(100)
    agent = await start_agent(table)

    result = await walk_columns(open_session(agent), COLUMNS, WalkOptions(max_repetitions=25))

    assert_exact(result, table, COLUMNS)
    assert agent.packets == result.stats.packets == pages_needed(100, 25)
    assert result.stats.learned_repetitions == 25
    assert result.stats.traffic.varbinds == 5 * 25 * 3


async def test_an_empty_column_is_complete_and_empty(start_agent: AgentStarter, open_session: SessionOpener) -> None:
    agent = await start_agent(onu_table(10))

    result = await walk_columns(open_session(agent), [(*TABLE, 4)])

    assert result.complete
    assert list(map(list, result.rows)) == [[]]


async def test_values_of_every_type_come_as_they_were_sent(
    start_agent: AgentStarter, open_session: SessionOpener
) -> None:
    values: list[tuple[int, Value]] = [
        *((Tag.INTEGER, number) for number in (0, -1, 2**31 - 1, -(2**31))),
        *((Tag.COUNTER64, number) for number in (0, 2**63 - 1, 2**63, 2**64 - 1)),
        *((tag, 2**32 - 1) for tag in (Tag.COUNTER32, Tag.GAUGE32, Tag.TIMETICKS)),
        *((tag, octets) for tag in (Tag.OCTET_STRING, Tag.OPAQUE) for octets in (b"", b"\x00\xff")),
        (Tag.IP_ADDRESS, b"\x7f\x00\x00\x01"),
        (Tag.OBJECT_IDENTIFIER, (1, 3, 6, 2**32 - 1)),
        (Tag.NULL, None),
    ]
    column = COLUMNS[0]
    table = {(*column, 2**32 - 1, n): value for n, value in enumerate(values)}

    [rows] = (await walk_columns(open_session(await start_agent(table)), [column])).rows

    assert list(rows) == [((2**32 - 1, n), *value) for n, value in enumerate(values)]
    assert [rows[n] for n in range(len(rows))] == list(rows)
    with pytest.raises(IndexError):
        rows[len(rows)]


async def test_a_neighbours_rows_are_not_taken_for_an_exhausted_column(
    start_agent: AgentStarter, open_session: SessionOpener
) -> None:
    table = onu_table(60)
    for n in range(20, 60):
        del table[(*COLUMNS[0], PORT, n)]
    for n in range(0, 60, 7):
        del table[(*COLUMNS[1], PORT, n)]

    result = await walk_columns(open_session(await start_agent(table)), COLUMNS, WalkOptions(max_repetitions=10))

    assert_exact(result, table, COLUMNS)


async def test_the_end_of_the_mib_is_an_end(start_agent: AgentStarter, open_session: SessionOpener) -> None:
    table = {oid: row for oid, row in onu_table(30).items() if oid[:7] == TABLE[:7]}

    result = await walk_columns(open_session(await start_agent(table)), COLUMNS)

    assert_exact(result, table, COLUMNS)


async def test_one_port_of_a_table_is_walked_alone(start_agent: AgentStarter, open_session: SessionOpener) -> None:
    table = onu_table(192)
    agent = await start_agent(table)
    columns = [(*column, PORT + 256) for column in COLUMNS]

    result = await walk_columns(open_session(agent), columns, WalkOptions(max_repetitions=25))

    assert_exact(result, table, columns)
    assert [row[0] for row in result.rows[0]] == [(n,) for n in range(64)]
    assert agent.packets == pages_needed(64, 25)


@pytest.mark.parametrize("columns", [COLUMNS, COLUMNS[:1]])
async def test_a_v1_agent_is_walked_row_by_row(
    start_agent: AgentStarter, open_session: SessionOpener, columns: list[Oid]
) -> None:
    table = {oid: row for oid, row in onu_table(20).items() if oid[:7] == TABLE[:7]}
    del table[(*COLUMNS[2], PORT, 19)]
    agent = await start_agent(table)

    result = await walk_columns(open_session(agent, version=SnmpVersion.V1), columns)

    assert_exact(result, table, columns)
    assert agent.packets <= 22


async def test_an_agent_that_cuts_its_answers_short_is_read_to_the_end(
    start_agent: AgentStarter, open_session: SessionOpener
) -> None:
    table = onu_table(50)
    agent = await start_agent(table, max_answer_varbinds=7)

    result = await walk_columns(open_session(agent), COLUMNS, WalkOptions(max_repetitions=25))

    assert_exact(result, table, COLUMNS)


async def test_answers_that_leave_columns_out_starve_none(
    start_agent: AgentStarter, open_session: SessionOpener
) -> None:
    table = onu_table(12)
    agent = await start_agent(table, max_answer_varbinds=2)

    result = await walk_columns(open_session(agent), COLUMNS, WalkOptions(max_repetitions=4))

    assert_exact(result, table, COLUMNS)


async def test_a_lost_page_is_asked_for_with_the_same_bytes(
    start_agent: AgentStarter, open_session: SessionOpener
) -> None:
    table = onu_table(100)
    agent = await start_agent(table, behave=drop(2))

    result = await walk_columns(open_session(agent), COLUMNS, WalkOptions(max_repetitions=25, patience=LIVE))

    assert_exact(result, table, COLUMNS)
    assert agent.received[1].data == agent.received[2].data
    assert agent.received[2].at - agent.received[1].at >= LIVE.timeout_s
    assert [received.repetitions for received in agent.received] == [25] * 6
    assert result.stats.traffic.retransmissions == 1


async def test_the_second_silence_halves_and_goes_on_from_the_last_good_row(
    start_agent: AgentStarter, open_session: SessionOpener
) -> None:
    table = onu_table(100)
    agent = await start_agent(table, behave=drop(2, 3))

    result = await walk_columns(open_session(agent), COLUMNS, WalkOptions(max_repetitions=24))

    assert_exact(result, table, COLUMNS)
    first, lost, again, halved = agent.received[:4]
    assert lost.data == again.data
    assert (halved.repetitions, halved.asked) == (12, lost.asked)
    assert halved.asked[0] == (*COLUMNS[0], PORT, 23) != first.asked[0]
    assert agent.received[-1].repetitions > 12


async def test_a_dead_agent_is_given_up_after_a_few_time_outs(
    start_agent: AgentStarter, open_session: SessionOpener
) -> None:
    agent = await start_agent(onu_table(100), behave=silent)
    started_at = asyncio.get_running_loop().time()

    result = await walk_columns(open_session(agent), COLUMNS, WalkOptions(max_repetitions=50))

    assert result.failure is not None
    assert result.failure.kind is FailureKind.TIMEOUT
    assert [received.repetitions for received in agent.received] == [50, 50, 25, 1, 1]
    assert asyncio.get_running_loop().time() - started_at == pytest.approx(5 * CHEAP.timeout_s, abs=0.1)
    assert result.stats.learned_repetitions is None


async def test_an_agent_that_dies_midway_leaves_its_rows_and_a_cursor(
    start_agent: AgentStarter, open_session: SessionOpener
) -> None:
    table = onu_table(100)
    agent = await start_agent(table, behave=drop(*range(3, 100)))
    session = open_session(agent)

    broken = await walk_columns(session, COLUMNS, WalkOptions(max_repetitions=25))
    agent.behave = honest
    rest = await walk_columns(session, COLUMNS, WalkOptions(max_repetitions=25), resume=broken.cursors)

    assert_honest(broken, table, COLUMNS)
    assert len(broken.rows[0]) == 50
    assert rest.complete
    assert [[*a, *b] for a, b in zip(broken.rows, rest.rows, strict=True)] == [expected_rows(table, c) for c in COLUMNS]


async def test_a_finished_column_is_not_asked_again_on_resume(
    start_agent: AgentStarter, open_session: SessionOpener
) -> None:
    agent = await start_agent(onu_table(10))
    cursors = [Cursor((PORT, 9), is_done=True), Cursor((PORT, 4)), Cursor((PORT, 9), is_done=True)]

    result = await walk_columns(open_session(agent), COLUMNS, resume=cursors)

    assert [len(rows) for rows in result.rows] == [0, 5, 0]
    assert agent.received[0].asked == [(*COLUMNS[1], PORT, 4)]


@pytest.mark.parametrize("version", [SnmpVersion.V1, SnmpVersion.V2C])
async def test_columns_that_do_not_fit_together_are_walked_in_turn(
    start_agent: AgentStarter, open_session: SessionOpener, version: SnmpVersion
) -> None:
    columns = [(*TABLE, n) for n in range(1, 8)]
    table = onu_table(20, columns)
    agent = await start_agent(table, behave=too_big_above(2))

    result = await walk_columns(open_session(agent, version=version), columns)

    assert_exact(result, table, columns)


async def test_a_lost_claim_stops_the_walk_before_the_next_packet(
    start_agent: AgentStarter, open_session: SessionOpener
) -> None:
    table = onu_table(100)
    agent = await start_agent(table)

    result = await walk_columns(open_session(agent, permit=Lapsing(3)), COLUMNS, WalkOptions(max_repetitions=10))

    assert_honest(result, table, COLUMNS)
    assert isinstance(result.failure, OwnershipLost)
    assert agent.packets == 3


async def test_the_budget_stops_the_walk(start_agent: AgentStarter, open_session: SessionOpener) -> None:
    table = onu_table(100)
    agent = await start_agent(table, delay_s=2.0)
    deadline = asyncio.get_running_loop().time() + 7.0

    result = await walk_columns(
        open_session(agent), COLUMNS, WalkOptions(max_repetitions=10, deadline=deadline, patience=Patience(3.0, 2))
    )

    assert_honest(result, table, COLUMNS)
    assert result.failure is not None
    assert result.failure.kind is FailureKind.TIMEOUT
    # The fourth page was asked for in time, so it is waited for.
    assert len(result.rows[0]) == 40
    assert asyncio.get_running_loop().time() == pytest.approx(deadline + 1.0, abs=0.1)


async def test_what_was_learned_spares_the_next_walk_the_trouble(
    start_agent: AgentStarter, open_session: SessionOpener
) -> None:
    agent = await start_agent(onu_table(100), behave=too_big_above(30))
    session = open_session(agent)

    first = await walk_columns(session, COLUMNS, WalkOptions(max_repetitions=50))
    second = await walk_columns(
        session, COLUMNS, WalkOptions(max_repetitions=50, learned_repetitions=first.stats.learned_repetitions)
    )

    assert first.complete
    assert second.complete
    assert second.stats.packets == pages_needed(100, 10) < first.stats.packets


async def test_cursors_have_to_fit_the_columns(start_agent: AgentStarter, open_session: SessionOpener) -> None:
    session = open_session(await start_agent(onu_table(1)))

    with pytest.raises(ValueError, match="zip"):
        await walk_columns(session, COLUMNS, resume=[Cursor()])
