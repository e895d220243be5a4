"""Blocks of raw values: compared with what is read, merged, written, read back, and told apart from damage."""

import numpy as np
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from facho.onus.history_codec import RAW, UnreadableBlock
from facho.onus.raw_values import EMPTY, RawBlock, compare, decode_block, encode_block
from facho.polling.domain.onu_table import IS_INTEGER, MAX_TEXT, NO_VALUE, RawValues, raw_text

INTEGER, TEXT, COUNTER64, NO_SUCH_INSTANCE = 0x02, 0x04, 0x46, 0x81
Value = tuple[int, int | bytes | None]

values: st.SearchStrategy[Value] = st.one_of(
    st.tuples(st.just(INTEGER), st.integers(-3, 3) | st.integers(-(2**63), 2**63 - 1)),
    st.tuples(st.just(COUNTER64), st.integers(0, 2**64 - 1)),
    st.tuples(st.just(TEXT), st.binary(max_size=4) | st.binary(min_size=250, max_size=300)),
    st.tuples(st.just(NO_SUCH_INSTANCE), st.none()),
    st.tuples(st.just(NO_VALUE), st.none()),
)
reads = st.lists(
    st.tuples(st.dictionaries(st.integers(1, 8), values, min_size=1), st.sampled_from(("one", "other"))), max_size=8
)


def raw_values(read: list[Value]) -> RawValues:
    octets, numbers, sizes = b"", [], []
    for _, value in read:
        # Others' octets lie between those of the rows, as in a page.
        octets += b"?"
        is_text = isinstance(value, bytes)
        numbers.append(len(octets) if is_text else np.uint64(int(value or 0) & 2**64 - 1).astype(np.int64))
        sizes.append(len(value) if isinstance(value, bytes) else IS_INTEGER)
        octets += value if isinstance(value, bytes) else b""
    tags = np.array([tag for tag, _ in read], np.uint8)
    return RawValues(tags, np.array(numbers, np.int64), np.array(sizes, np.int32), octets)


def read_into(
    block: RawBlock, read: dict[int, Value], *, rule: str = "rule", now: int = 1
) -> tuple[list[int], RawBlock]:
    ids = sorted(read)
    touched, after = compare(block, np.array(ids, np.int64), raw_values([read[onu] for onu in ids]), rule=rule, now=now)
    return [onu for onu, is_touched in zip(ids, touched.tolist(), strict=True) if is_touched], after or block


@given(reads)
def test_a_block_keeps_what_a_dictionary_would(polls: list[tuple[dict[int, Value], str]]) -> None:
    """D17: the latest value of every ONU, and whom the rules have to look at again."""
    block, expected, last = EMPTY, dict[int, str](), dict[int, tuple[Value, str]]()

    for now, (read, rule) in enumerate(polls, start=1_700_000_000):
        touched, block = read_into(block, read, rule=rule, now=now)
        block = decode_block(encode_block(block))

        came = {onu: value for onu, value in read.items() if value[0] != NO_VALUE}
        is_long = {onu for onu, (_, raw) in came.items() if isinstance(raw, bytes) and len(raw) > MAX_TEXT}
        assert set(touched) == is_long | {onu for onu, value in came.items() if last.get(onu) != (value, rule)}
        last |= {onu: (value, rule) for onu, value in came.items()}
        expected |= {onu: raw_text(tag, raw) for onu, (tag, raw) in came.items() if raw is not None}

    assert {onu: reported[0] for onu in range(1, 9) if (reported := block.text_of(onu))} == expected


def test_only_what_differs_is_written_with_its_time() -> None:
    _, first = read_into(EMPTY, {1: (INTEGER, 5), 2: (TEXT, b"ana")}, now=100)

    touched, second = read_into(first, {1: (INTEGER, 5), 2: (TEXT, b"eva")}, now=200)

    assert touched == [2]
    assert (second.text_of(1), second.text_of(2), second.text_of(3)) == (("5", 100), ("eva", 200), None)


def test_an_unchanged_read_gives_no_block_to_write() -> None:
    _, block = read_into(EMPTY, {1: (INTEGER, 5), 2: (NO_SUCH_INSTANCE, None)})

    compared = compare(
        block, np.array([1, 2]), raw_values([(INTEGER, 5), (NO_SUCH_INSTANCE, None)]), rule="rule", now=2
    )

    assert compared.block is None
    assert not compared.touched.any()


def test_a_value_that_is_missing_once_is_looked_at_again_when_it_is_back() -> None:
    _, block = read_into(EMPTY, {1: (INTEGER, 5)}, now=100)
    _, without = read_into(block, {1: (NO_SUCH_INSTANCE, None)}, now=200)

    touched, back = read_into(without, {1: (INTEGER, 5)}, now=300)

    assert without.text_of(1) == back.text_of(1) == ("5", 100)
    assert touched == [1]


def test_an_onu_that_was_read_by_another_rule_stands_alone() -> None:
    everyone = {onu: (INTEGER, onu) for onu in (1, 2, 3)}
    _, block = read_into(EMPTY, everyone, rule="old")
    _, block = read_into(block, {2: (INTEGER, 2)}, rule="new")

    touched, block = read_into(block, everyone, rule="new")

    assert touched == [1, 3]
    assert block.rules == ("+new",)


def test_a_text_too_long_is_kept_as_it_is_shown() -> None:
    _, block = read_into(EMPTY, {1: (TEXT, b"a" * 60_000)}, now=100)

    touched, again = read_into(block, {1: (TEXT, b"a" * 60_000)}, now=200)

    assert again.text_of(1) == ("a" * 254 + "…", 100)
    assert touched == [1]
    assert len(encode_block(again)) < 1_000


def test_a_block_of_some_thousand_onus_is_small() -> None:
    ids = np.arange(5_000) * 3
    raw = raw_values([(INTEGER, -2_000 - number % 700) for number in range(5_000)])
    block = compare(EMPTY, ids, raw, rule="rule", now=1_700_000_000).block

    assert block
    assert len(encode_block(block)) < 2 * len(ids)


@given(st.data())
def test_a_damaged_block_is_refused_or_the_same(data: st.DataObject) -> None:
    _, block = read_into(EMPTY, {1: (INTEGER, 5), 2: (TEXT, b"ana"), 9: (COUNTER64, 2**64 - 1)})
    written = bytearray(encode_block(block))
    written[data.draw(st.integers(0, len(written) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    del written[data.draw(st.integers(1, len(written))) :]

    try:
        found = decode_block(bytes(written))
    except UnreadableBlock:
        return

    assert [found.text_of(onu) for onu in (1, 2, 9)] == [block.text_of(onu) for onu in (1, 2, 9)]


@pytest.mark.parametrize(
    "content",
    [b"", bytes(19), (2**32 - 1).to_bytes(4, "little") + bytes(16), bytes(20) + b"more"],
    ids=["nothing", "short", "count", "long"],
)
def test_a_head_that_lies_asks_for_no_memory(content: bytes) -> None:
    written = bytes([RAW]) + zstandard.ZstdCompressor(write_checksum=True).compress(content)

    with pytest.raises(UnreadableBlock):
        decode_block(written)
