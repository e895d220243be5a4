"""Walks: exactly the right rows, or an honest incomplete result, for hardly more packets than needed."""

import asyncio
import math
import random
from collections.abc import Iterable
from dataclasses import replace

import pytest
from snmp_scripted_agent import (
    AgentStarter,
    Behaviour,
    Received,
    ScriptedAgent,
    SessionOpener,
    Table,
    drop,
    honest,
    silent,
    silent_above,
    too_big_above,
    with_request_id,
    with_status,
)

from facho.polling.domain.failure import FailureKind
from facho.polling.snmp.ber import Message, Oid, Tag, VarBind, encode_message
from facho.polling.snmp.errors import OwnershipLost
from facho.polling.snmp.target import CHEAP, LIVE, Patience, SnmpVersion
from facho.polling.snmp.walk import Cursor, Row, WalkOptions, WalkResult, walk_columns

TABLE = (1, 3, 6, 1, 4, 1, 99_999, 1, 1)
COLUMNS = [(*TABLE, n) for n in (2, 3, 5)]
PORT = 4_194_304_000


def onu_table(rows: int, columns: Iterable[Oid] = COLUMNS, *, per_port: int = 64) -> Table:
    """A table like an OLT's, with something before and something after it."""
    table: Table = {(1, 3, 6, 1, 2, 1, 1, 1, 0): (Tag.OCTET_STRING, b"x"), (1, 3, 6, 1, 6, 0): (Tag.INTEGER, 1)}
    for place, column in enumerate(columns):
        for n in range(rows):
            table[(*column, PORT + n // per_port * 256, n % per_port)] = (Tag.INTEGER, n * 10 + place)
    return table


def expected_rows(table: Table, column: Oid) -> list[Row]:
    size = len(column)
    return sorted((oid[size:], tag, value) for oid, (tag, value) in table.items() if oid[:size] == column)


def assert_exact(result: WalkResult, table: Table, columns: list[Oid]) -> None:
    assert result.failure is None
    assert result.complete
    assert list(result.rows) == [expected_rows(table, column) for column in columns]


def assert_honest(result: WalkResult, table: Table, columns: list[Oid]) -> None:
    """Incomplete, with every row true and none left out before the cursor."""
    assert not result.complete
    for rows, cursor, column in zip(result.rows, result.cursors, columns, strict=True):
        assert rows == [row for row in expected_rows(table, column) if row[0] <= cursor.after]


def pages_needed(rows: int, per_page: int) -> int:
    """What an oracle sends: every page as large as the agent answers, and one row more to see the end."""
    return math.ceil((rows + 1) / per_page)


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
    assert result.rows == ([],)


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
    assert [received.repetitions for received in agent.received] == [50, 50, 25, 12, 1, 1]
    assert asyncio.get_running_loop().time() - started_at == pytest.approx(6 * CHEAP.timeout_s, abs=0.1)
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
    assert [a + b for a, b in zip(broken.rows, rest.rows, strict=True)] == [expected_rows(table, c) for c in COLUMNS]


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


def wrong_id_first(received: Received, answer: Message) -> Iterable[bytes]:
    return [encode_message(with_request_id(answer, received.request_id + 1)), *honest(received, answer)]


def twice(received: Received, answer: Message) -> Iterable[bytes]:
    return [*honest(received, answer), *honest(received, answer)]


def late_and_again(received: Received, answer: Message) -> Iterable[bytes]:
    """Lose the first answer of some pages, then answer twice."""
    return [] if received.number % 5 == 2 else twice(received, answer)


def cut_off_above(size: int) -> Behaviour:
    return lambda _, answer: [encode_message(answer)[:size]]


def gen_err_above(varbinds: int) -> Behaviour:
    def behave(received: Received, answer: Message) -> Iterable[bytes]:
        if len(answer.pdu.varbinds) > varbinds:
            return [encode_message(with_status(received.message, 5))]
        return honest(received, answer)

    return behave


def empty_now_and_then(received: Received, answer: Message) -> Iterable[bytes]:
    if received.number % 20 == 3:
        answer = replace(answer, pdu=replace(answer.pdu, varbinds=[]))
    return honest(received, answer)


def losing(share: float, seed: int) -> Behaviour:
    rng = random.Random(seed)  # noqa: S311 - seeded on purpose
    return lambda received, answer: [] if rng.random() < share else honest(received, answer)


def both(first: Behaviour, second: Behaviour) -> Behaviour:
    return lambda received, answer: list(second(received, answer)) if list(first(received, answer)) else []


# Behaviour, rows of a page that an oracle would ask for, share of answers that vanish.
PROFILES: dict[str, tuple[Behaviour, int, float]] = {
    "healthy": (honest, 25, 0.0),
    "wrong request id before each answer": (wrong_id_first, 25, 0.0),
    "every answer twice": (twice, 25, 0.0),
    "lost answers, then duplicates": (late_and_again, 25, 0.2),
    "loses 2 %": (losing(0.02, 1), 25, 0.02),
    "loses 5 %": (losing(0.05, 2), 25, 0.05),
    "loses 8 %": (losing(0.08, 3), 25, 0.08),
    "tooBig above 20 rows": (too_big_above(60), 20, 0.0),
    "tooBig above 10 rows": (too_big_above(30), 10, 0.0),
    "tooBig above 3 rows": (too_big_above(9), 3, 0.0),
    "tooBig above 1 row": (too_big_above(3), 1, 0.0),
    "silent above 20 rows": (silent_above(60), 20, 0.0),
    "silent above 12 rows": (silent_above(36), 12, 0.0),
    "silent above 4 rows": (silent_above(12), 4, 0.0),
    "genErr above 10 rows": (gen_err_above(30), 10, 0.0),
    "cut off after 1000 bytes": (cut_off_above(1000), 12, 0.0),
    "an empty page now and then": (empty_now_and_then, 25, 0.0),
    "tooBig above 10 rows, loses 5 %": (both(losing(0.05, 5), too_big_above(30)), 10, 0.05),
    "silent above 12 rows, loses 5 %": (both(losing(0.05, 6), silent_above(36)), 12, 0.05),
}


@pytest.mark.parametrize("profile", PROFILES)
async def test_a_faulty_agent_is_read_exactly_and_gently(
    start_agent: AgentStarter, open_session: SessionOpener, profile: str
) -> None:
    behave, per_page, share_lost = PROFILES[profile]
    table = onu_table(1500)
    agent = await start_agent(table, behave=behave)

    result = await walk_columns(open_session(agent), COLUMNS, WalkOptions(max_repetitions=25))

    assert_exact(result, table, COLUMNS)
    oracle = pages_needed(1500, per_page) / (1 - share_lost)
    assert agent.packets <= 1.25 * oracle
    assert agent.max_in_flight == 1
    assert_repeats_waited(agent, CHEAP.timeout_s)


def assert_repeats_waited(agent: ScriptedAgent, timeout_s: float) -> None:
    last: dict[bytes, float] = {}
    for received in agent.received:
        if received.data in last:
            assert received.at - last[received.data] >= timeout_s
        last[received.data] = received.at


def swap_in(place: int, varbind: VarBind) -> Behaviour:
    """Put a false row into the third answer."""

    def behave(received: Received, answer: Message) -> Iterable[bytes]:
        if received.number == 3:
            rows = list(answer.pdu.varbinds)
            rows[place] = varbind
            answer = replace(answer, pdu=replace(answer.pdu, varbinds=rows))
        return honest(received, answer)

    return behave


@pytest.mark.parametrize(
    "false_oid",
    [
        (*COLUMNS[0], PORT, 20),
        (*COLUMNS[0], PORT, 28),
        COLUMNS[0],
        (1, 3, 6, 1, 2, 1, 1, 1, 0),
    ],
)
async def test_an_oid_that_does_not_increase_ends_the_walk(
    start_agent: AgentStarter, open_session: SessionOpener, false_oid: Oid
) -> None:
    table = onu_table(100)
    agent = await start_agent(table, behave=swap_in(9 * 3, (false_oid, Tag.INTEGER, 1)))

    result = await walk_columns(open_session(agent), COLUMNS, WalkOptions(max_repetitions=10))

    assert_honest(result, table, COLUMNS)
    assert result.failure is not None
    assert result.failure.kind is FailureKind.LOOP
    assert len(result.rows[0]) == 29


async def test_an_agent_that_repeats_the_same_page_forever_is_left(
    start_agent: AgentStarter, open_session: SessionOpener
) -> None:
    def behave(received: Received, _: Message) -> Iterable[bytes]:
        looping = replace(agent.received[0].message, pdu=replace(received.message.pdu))
        page = agent.answer(replace(looping, pdu=replace(agent.received[0].message.pdu)))
        return [encode_message(with_request_id(page, received.request_id))]

    agent = await start_agent(onu_table(100), behave=behave)

    result = await walk_columns(open_session(agent), COLUMNS, WalkOptions(max_repetitions=10))

    assert result.failure is not None
    assert result.failure.kind is FailureKind.LOOP
    assert agent.packets == 2


async def test_an_agent_that_makes_rows_up_without_end_is_left(
    start_agent: AgentStarter, open_session: SessionOpener
) -> None:
    class Endless(ScriptedAgent):
        def successor(self, oid: Oid) -> VarBind:
            return ((*oid[: len(COLUMNS[0])], oid[-1] + 1 if len(oid) > len(COLUMNS[0]) else 1), Tag.INTEGER, 1)

    agent = await start_agent({}, kind=Endless)

    result = await walk_columns(open_session(agent), COLUMNS[:1], WalkOptions(max_repetitions=50, max_rows=1000))

    assert result.failure is not None
    assert result.failure.kind is FailureKind.LOOP
    assert agent.packets <= 21


@pytest.mark.parametrize("tag", [Tag.NO_SUCH_OBJECT, Tag.NO_SUCH_INSTANCE])
async def test_an_exception_that_is_no_end_does_not_look_like_one(
    start_agent: AgentStarter, open_session: SessionOpener, tag: Tag
) -> None:
    table = onu_table(100)
    agent = await start_agent(table, behave=swap_in(0, ((*COLUMNS[0], PORT, 20), tag, None)))

    result = await walk_columns(open_session(agent), COLUMNS, WalkOptions(max_repetitions=10))

    assert_honest(result, table, COLUMNS)


@pytest.mark.parametrize("status", [1, 2, 3, 5, 6, 13, 16])
async def test_an_error_at_every_size_is_an_honest_failure(
    start_agent: AgentStarter, open_session: SessionOpener, status: int
) -> None:
    def behave(received: Received, answer: Message) -> Iterable[bytes]:
        if received.number > 2:
            return [encode_message(with_status(received.message, status))]
        return honest(received, answer)

    table = onu_table(100)
    agent = await start_agent(table, behave=behave)

    result = await walk_columns(open_session(agent), COLUMNS, WalkOptions(max_repetitions=24))

    assert_honest(result, table, COLUMNS)
    assert len(result.rows[0]) == 48
    # Two good pages, 24 halved down to 1, and for tooBig three columns halved to one.
    assert agent.packets <= 2 + 5 + 2


async def test_rows_before_a_row_that_the_agent_cannot_give_are_kept(
    start_agent: AgentStarter, open_session: SessionOpener
) -> None:
    bad = (*COLUMNS[1], PORT, 41)

    def behave(received: Received, answer: Message) -> Iterable[bytes]:
        if bad in [oid for oid, _, _ in answer.pdu.varbinds]:
            return [encode_message(with_status(received.message, 5, 2))]
        return honest(received, answer)

    table = onu_table(100)
    agent = await start_agent(table, behave=behave)

    result = await walk_columns(open_session(agent), COLUMNS, WalkOptions(max_repetitions=24))

    assert_honest(result, table, COLUMNS)
    assert len(result.rows[1]) == 41
    assert "genErr" in str(result.failure)


async def test_more_rows_than_asked_are_not_believed(start_agent: AgentStarter, open_session: SessionOpener) -> None:
    def behave(_: Received, answer: Message) -> Iterable[bytes]:
        return [encode_message(replace(answer, pdu=replace(answer.pdu, varbinds=[*answer.pdu.varbinds] * 2)))]

    result = await walk_columns(open_session(await start_agent(onu_table(100), behave=behave)), COLUMNS)

    assert result.failure is not None
    assert result.failure.kind is FailureKind.MALFORMED


async def test_empty_pages_at_every_size_are_an_honest_failure(
    start_agent: AgentStarter, open_session: SessionOpener
) -> None:
    def behave(received: Received, answer: Message) -> Iterable[bytes]:
        rows = answer.pdu.varbinds if received.number <= 2 else []
        return [encode_message(replace(answer, pdu=replace(answer.pdu, varbinds=rows)))]

    table = onu_table(100)
    agent = await start_agent(table, behave=behave)

    result = await walk_columns(open_session(agent), COLUMNS, WalkOptions(max_repetitions=24))

    assert_honest(result, table, COLUMNS)
    assert agent.packets <= 8


class LapsingPermit:
    def __init__(self, lasts: int) -> None:
        self.left = lasts

    def check(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise OwnershipLost("the claim is gone")


async def test_a_lost_claim_stops_the_walk_before_the_next_packet(
    start_agent: AgentStarter, open_session: SessionOpener
) -> None:
    table = onu_table(100)
    agent = await start_agent(table)

    result = await walk_columns(open_session(agent, permit=LapsingPermit(3)), COLUMNS, WalkOptions(max_repetitions=10))

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
    assert len(result.rows[0]) == 30
    assert asyncio.get_running_loop().time() == pytest.approx(deadline, abs=0.1)


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
