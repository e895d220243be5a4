"""Faulty simulated OLTs are read exactly or with an honest failure, for hardly more packets than an oracle sends.

The oracle knows what the agent can answer and never asks for more; what gets lost or damaged, it loses too.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from bench.truth import true_rows
from engine_world import Scene, playing

from facho.polling.domain.execution_state import FailureKind
from facho.polling.snmp.batch import BatchOptions, get_batched
from facho.polling.snmp.ber import Pdu, PduKind, SnmpMessage, encode_message
from facho.polling.snmp.target import CHEAP, LIVE
from facho.polling.snmp.walk import Row, WalkOptions, WalkResult, walk_columns
from facho.simulator.agent import NO_FAULTS, Faults
from facho.simulator.responder import LoopKind
from facho.simulator.server import MAX_UDP_PAYLOAD_BYTES, SimulatorConfig
from facho.simulator.world import STILL

SEED = 1
ONUS = 1_500
KEYS = ("onu.serial", "onu.description", "onu.run_state", "onu.distance")
LIGHT = ("onu.rx_power", "onu.tx_power")
REPETITIONS = 25
# Above the rows that exist, and low enough to see an endless agent left.
MAX_ROWS = 2_000
AT_MOST = 1.25
LONGEST_REQUEST_ID = 0x7FFF_FFFF


@dataclass(frozen=True, slots=True)
class Profile:
    """How an agent misbehaves, and what an oracle makes of that."""

    faults: Faults
    # Bytes of the longest answer that arrives.
    longest: int | None = None
    # Share of answers that are of no use whatever was asked.
    wasted: float = 0.0
    # Packets after which an oracle would have given up, for agents that cannot be read to the end.
    hopeless_after: int | None = None
    failure: FailureKind | None = None
    # Where a real agent cuts a page short instead of refusing it.
    max_message_bytes: int = MAX_UDP_PAYLOAD_BYTES


PROFILES: dict[str, Profile] = {
    "healthy": Profile(NO_FAULTS),
    "loses 2 %": Profile(Faults(loss=0.02), wasted=0.02),
    "loses 5 %": Profile(Faults(loss=0.05), wasted=0.05),
    "loses 20 %": Profile(Faults(loss=0.2), wasted=0.2),
    "answers twice": Profile(Faults(duplicates=1.0)),
    "answers late, but in time": Profile(Faults(late=0.1, late_seconds=3.0)),
    "answers after the repeat was sent, out of order": Profile(Faults(late=0.05, late_seconds=7.0), wasted=0.05),
    "damages 5 % by cutting them off": Profile(Faults(truncation=0.05), wasted=0.05),
    "turns 5 % into garbage": Profile(Faults(garbage=0.05), wasted=0.05),
    "answers 5 % to other questions": Profile(Faults(wrong_request_id=0.05), wasted=0.05),
    "fails now and then": Profile(Faults(general_error=0.03), wasted=0.03),
    "tooBig above 1400 bytes": Profile(Faults(too_big_above=1_400), longest=1_400),
    "tooBig above 484 bytes": Profile(Faults(too_big_above=484), longest=484),
    "cuts pages short at 1400 bytes": Profile(NO_FAULTS, longest=1_400, max_message_bytes=1_400),
    "cuts pages short at 484 bytes": Profile(NO_FAULTS, longest=484, max_message_bytes=484),
    "loses fragments": Profile(Faults(lost_above=1_472), longest=1_472),
    "loses all above 484 bytes": Profile(Faults(lost_above=484), longest=484),
    "is slow": Profile(Faults(latency_seconds=1.0)),
    "is slower than the time-out": Profile(Faults(latency_seconds=7.0)),
    "pauses for a while": Profile(Faults(silent_after=20, silent_seconds=12.0)),
    "crashes above one in flight": Profile(Faults(crash_above=1, latency_seconds=0.1)),
    "loses 5 %, tooBig above 1400 bytes": Profile(Faults(loss=0.05, too_big_above=1_400), longest=1_400, wasted=0.05),
    "loses 5 % and fragments": Profile(Faults(loss=0.05, lost_above=1_472), longest=1_472, wasted=0.05),
    "loses 5 % and crashes": Profile(Faults(loss=0.05, crash_above=1, latency_seconds=0.1), wasted=0.05),
    "everything a little": Profile(
        Faults(
            loss=0.02,
            duplicates=0.1,
            late=0.02,
            late_seconds=7.0,
            truncation=0.01,
            garbage=0.01,
            wrong_request_id=0.01,
            general_error=0.01,
        ),
        wasted=0.08,
    ),
    "garbage and tiny answers": Profile(Faults(garbage=0.05, too_big_above=484), longest=484, wasted=0.05),
    "is talked over by forgers": Profile(Faults(forgeries=8)),
    "floods with answers to nothing": Profile(Faults(flood=50)),
    "forgers, floods and loss": Profile(Faults(forgeries=3, flood=20, loss=0.05, duplicates=0.1), wasted=0.05),
    # All tries of its patience tell an oracle that nobody is there.
    "is silent": Profile(Faults(is_silent=True), hopeless_after=CHEAP.tries, failure=FailureKind.TIMEOUT),
    "falls silent": Profile(Faults(silent_after=30), hopeless_after=30 + CHEAP.tries, failure=FailureKind.TIMEOUT),
    "repeats a row for ever": Profile(Faults(loop=LoopKind.STUCK), hopeless_after=1, failure=FailureKind.LOOP),
    "begins anew at the end": Profile(Faults(loop=LoopKind.WRAP), failure=FailureKind.LOOP),
    "never ends": Profile(
        Faults(loop=LoopKind.ENDLESS), hopeless_after=MAX_ROWS // REPETITIONS + 1, failure=FailureKind.LOOP
    ),
}


def config_of(profile: Profile) -> SimulatorConfig:
    return SimulatorConfig(
        vendor="huawei_smartax",
        onus=ONUS,
        life=STILL,
        seed=SEED,
        faults=profile.faults,
        max_message_bytes=profile.max_message_bytes,
    )


def oracle_packets(profile: Profile, tables: Sequence[Sequence[Row]], scene: Scene) -> float:
    """Ask for the largest page of which every one arrives, up to the row behind the end, and waste what is wasted."""
    if profile.hopeless_after is not None:
        return profile.hopeless_after
    rows = len(tables[0])
    per_page = REPETITIONS
    if profile.longest is not None:
        prefixes = scene.columns(KEYS)
        while any(answer_bytes(tables, prefixes, at, per_page) > profile.longest for at in range(rows)):
            per_page -= 1
    return math.ceil((rows + 1) / per_page) / (1 - profile.wasted)


def answer_bytes(tables: Sequence[Sequence[Row]], prefixes: Sequence[tuple[int, ...]], at: int, per_page: int) -> int:
    varbinds = [
        (prefix + suffix, tag, value)
        for prefix, table in zip(prefixes, tables, strict=True)
        for suffix, tag, value in table[at : at + per_page]
    ]
    return len(encode_message(SnmpMessage(1, b"public", Pdu(PduKind.RESPONSE, LONGEST_REQUEST_ID, 0, 0, varbinds))))


def assert_true(result: WalkResult, tables: Sequence[Sequence[Row]], failure: FailureKind | None) -> None:
    """All rows, or rows without a gap and a reason; an agent that invents rows gets no further than the limit."""
    if failure is None:
        assert result.failure is None
        assert list(map(list, result.rows)) == tables
        return
    assert result.failure is not None
    assert result.failure.kind is failure
    for rows, table in zip(result.rows, tables, strict=True):
        known = min(len(rows), len(table))
        assert list(rows)[:known] == table[:known]


@pytest.mark.parametrize("name", PROFILES)
async def test_a_faulty_agent_is_read_truly_and_gently(name: str) -> None:
    profile = PROFILES[name]
    async with playing(config_of(profile)) as scene:
        tables = [true_rows(scene.olt, key) for key in KEYS]

        options = WalkOptions(max_repetitions=REPETITIONS, max_rows=MAX_ROWS, patience=CHEAP)
        result = await walk_columns(scene.session, scene.columns(KEYS), options)

        counted = scene.olt.counters
        assert_true(result, tables, profile.failure)
        assert result.stats.packets <= AT_MOST * oracle_packets(profile, tables, scene)
        assert counted.max_in_flight == 1
        assert counted.crashes == 0
        assert counted.requests + counted.retransmissions == result.stats.packets
        assert counted.retransmissions == result.stats.traffic.retransmissions
        assert (counted.shortest_retry_ms or math.inf) >= CHEAP.timeout_s * 1000


async def test_a_broken_walk_goes_on_from_its_last_good_row() -> None:
    async with playing(config_of(PROFILES["falls silent"])) as scene:
        columns, tables = scene.columns(KEYS), [true_rows(scene.olt, key) for key in KEYS]
        broken = await walk_columns(scene.session, columns, WalkOptions(max_repetitions=REPETITIONS))
        scene.olt.faults = NO_FAULTS

        rest = await walk_columns(
            scene.session, columns, WalkOptions(max_repetitions=REPETITIONS), resume=broken.cursors
        )

        assert rest.complete
        assert [[*a, *b] for a, b in zip(broken.rows, rest.rows, strict=True)] == tables
        assert rest.stats.packets == math.ceil((ONUS - 30 * REPETITIONS + 1) / REPETITIONS)


async def test_live_columns_are_repeated_only_after_the_time_out_of_their_class() -> None:
    async with playing(config_of(PROFILES["loses 5 %"])) as scene:
        tables = [true_rows(scene.olt, key) for key in LIGHT]

        options = WalkOptions(max_repetitions=REPETITIONS, patience=LIVE)
        result = await walk_columns(scene.session, scene.columns(LIGHT), options)

        assert_true(result, tables, None)
        assert scene.olt.counters.retransmissions > 0
        assert (scene.olt.counters.shortest_live_retry_ms or 0) >= LIVE.timeout_s * 1000
        assert scene.olt.counters.shortest_retry_ms is None


@pytest.mark.parametrize("bound", [1, 2, 5])
async def test_batches_keep_to_their_bound_on_an_agent_that_crashes_above_it(bound: int) -> None:
    faults = Faults(crash_above=bound, loss=0.05, latency_seconds=0.2, live_row_seconds=0.01)
    async with playing(config_of(Profile(faults)), in_flight=bound) as scene:
        columns = [scene.olt.definition.column(key) for key in LIGHT]
        places = [onu.place for onu in scene.olt.world.onus]

        batch = await get_batched(
            scene.session, [[column.instance(place) for column in columns] for place in places], BatchOptions()
        )

        assert batch.complete
        assert not batch.failures
        for at, key in enumerate(LIGHT):
            suffix_at = len(columns[at].oid)
            got = [(answer[at][0][suffix_at:], *answer[at][1:]) for answer in batch.answers if answer]
            assert sorted(got) == true_rows(scene.olt, key)
        assert scene.olt.counters.max_in_flight == bound
        assert scene.olt.counters.crashes == 0
        assert (scene.olt.counters.shortest_live_retry_ms or 0) >= LIVE.timeout_s * 1000
