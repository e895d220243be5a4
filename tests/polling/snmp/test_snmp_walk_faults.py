"""Walks of agents that lose, repeat, shorten, refuse and lie: still exact, or honestly incomplete."""

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
    honest,
    silent_above,
    too_big_above,
    with_request_id,
    with_status,
)
from snmp_walk_tables import COLUMNS, PORT, assert_exact, assert_honest, onu_table, pages_needed

from facho.polling.domain.execution_state import FailureKind
from facho.polling.snmp.ber import Oid, SnmpMessage, Tag, VarBind, encode_message
from facho.polling.snmp.target import CHEAP
from facho.polling.snmp.walk import WalkOptions, walk_columns


def wrong_id_first(received: Received, answer: SnmpMessage) -> Iterable[bytes]:
    return [encode_message(with_request_id(answer, received.request_id + 1)), *honest(received, answer)]


def twice(received: Received, answer: SnmpMessage) -> Iterable[bytes]:
    return [*honest(received, answer), *honest(received, answer)]


def late_and_again(received: Received, answer: SnmpMessage) -> Iterable[bytes]:
    """Lose the first answer of some pages, then answer twice."""
    return [] if received.number % 5 == 2 else twice(received, answer)


def cut_off_above(size: int) -> Behaviour:
    return lambda _, answer: [encode_message(answer)[:size]]


def gen_err_above(varbinds: int) -> Behaviour:
    def behave(received: Received, answer: SnmpMessage) -> Iterable[bytes]:
        if len(answer.pdu.varbinds) > varbinds:
            return [encode_message(with_status(received.message, 5))]
        return honest(received, answer)

    return behave


def empty_now_and_then(received: Received, answer: SnmpMessage) -> Iterable[bytes]:
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

    def behave(received: Received, answer: SnmpMessage) -> Iterable[bytes]:
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
    def behave(received: Received, _: SnmpMessage) -> Iterable[bytes]:
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
    def behave(received: Received, answer: SnmpMessage) -> Iterable[bytes]:
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

    def behave(received: Received, answer: SnmpMessage) -> Iterable[bytes]:
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
    def behave(_: Received, answer: SnmpMessage) -> Iterable[bytes]:
        return [encode_message(replace(answer, pdu=replace(answer.pdu, varbinds=[*answer.pdu.varbinds] * 2)))]

    result = await walk_columns(open_session(await start_agent(onu_table(100), behave=behave)), COLUMNS)

    assert result.failure is not None
    assert result.failure.kind is FailureKind.MALFORMED


async def test_empty_pages_at_every_size_are_an_honest_failure(
    start_agent: AgentStarter, open_session: SessionOpener
) -> None:
    def behave(received: Received, answer: SnmpMessage) -> Iterable[bytes]:
        rows = answer.pdu.varbinds if received.number <= 2 else []
        return [encode_message(replace(answer, pdu=replace(answer.pdu, varbinds=rows)))]

    table = onu_table(100)
    agent = await start_agent(table, behave=behave)

    result = await walk_columns(open_session(agent), COLUMNS, WalkOptions(max_repetitions=24))

    assert_honest(result, table, COLUMNS)
    assert agent.packets <= 8
