"""Which reads follow from what OLTs say by themselves."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facho.polling.domain.hints import (
    MANY_PORTS,
    HintedRead,
    HintOutcome,
    HintPlace,
    Meaning,
    ReadScope,
    Said,
    judge_hint,
    may_start_at,
    plan_hinted_reads,
)

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
GAP = timedelta(seconds=10)
PORT = ReadScope.PORT


def said(meaning: Meaning, *place: int) -> Said:
    return Said("x", meaning, HintPlace(*place))


def test_the_dying_gasp_of_one_onu_asks_for_its_state() -> None:
    assert plan_hinted_reads([said(Meaning.ONU_DYING_GASP, 0, 1, 6, 54)]) == (HintedRead(PORT, 0, 1, 6, 54),)


def test_the_same_onu_twice_is_one_read_of_it() -> None:
    gasp, loss = said(Meaning.ONU_DYING_GASP, 0, 1, 6, 54), said(Meaning.ONU_LOS, 0, 1, 6, 54)

    assert plan_hinted_reads([gasp, loss, gasp]) == (HintedRead(PORT, 0, 1, 6, 54),)


def test_several_onus_of_a_port_are_one_read_of_the_port() -> None:
    hints = [said(Meaning.ONU_LOS, 0, 1, 6, onu) for onu in range(64)]

    assert plan_hinted_reads(hints) == (HintedRead(PORT, 0, 1, 6),)


def test_a_port_is_read_whole_whatever_its_onus_say() -> None:
    hints = [said(Meaning.PON_LOS, 0, 1, 6), said(Meaning.ONU_LOS, 0, 1, 6, 3)]

    assert plan_hinted_reads(hints) == (HintedRead(PORT, 0, 1, 6),)


def test_many_ports_become_one_walk_of_the_states() -> None:
    ports = [said(Meaning.PON_LOS, 0, 1, port) for port in range(MANY_PORTS + 1)]

    assert plan_hinted_reads(ports) == (HintedRead(ReadScope.STATES),)
    assert len(plan_hinted_reads(ports[:-1])) == MANY_PORTS


def test_an_onu_without_a_place_asks_for_all_states() -> None:
    assert plan_hinted_reads([said(Meaning.ONU_DOWN)]) == (HintedRead(ReadScope.STATES),)


def test_a_card_or_a_restart_asks_for_a_discovery() -> None:
    for meaning in (Meaning.BOARD_DOWN, Meaning.BOARD_UP, Meaning.DEVICE_RESTART):
        scopes = {read.scope for read in plan_hinted_reads([said(meaning, 0, 3)])}

        assert scopes == {ReadScope.DISCOVERY, ReadScope.STATES}


def test_an_onu_that_was_found_asks_for_the_waiting_list() -> None:
    assert plan_hinted_reads([said(Meaning.ONU_DISCOVERED, 0, 1, 6)]) == (HintedRead(ReadScope.WAITING),)


def test_what_no_read_would_find_asks_for_none() -> None:
    others = [Meaning.FAN, Meaning.POWER, Meaning.TEMPERATURE, Meaning.OPTICAL_WARNING, Meaning.OTHER]

    assert plan_hinted_reads([said(meaning, 0, 1) for meaning in others]) == ()


places = st.builds(HintPlace, *[st.none() | st.integers(0, 20)] * 4)


@given(st.lists(st.builds(Said, st.just("x"), st.sampled_from(Meaning), places), max_size=300))
def test_reads_are_few_however_much_is_said(hints: list[Said]) -> None:
    reads = plan_hinted_reads(hints)

    assert len(reads) <= MANY_PORTS + len(ReadScope) - 2
    assert len({(read.scope, read.frame, read.slot, read.port) for read in reads}) == len(reads)
    assert set(plan_hinted_reads([*hints, *reversed(hints)])) == set(reads)


def test_a_place_is_read_again_after_the_gap_only() -> None:
    assert may_start_at(NOW, last_began_at=None, gap=GAP) == NOW
    assert may_start_at(NOW, last_began_at=NOW - timedelta(seconds=3), gap=GAP) == NOW + timedelta(seconds=7)
    assert may_start_at(NOW, last_began_at=NOW - timedelta(seconds=30), gap=GAP) == NOW


def test_a_clock_that_was_set_back_closes_no_place() -> None:
    assert may_start_at(NOW, last_began_at=NOW + timedelta(hours=2), gap=GAP) == NOW


@pytest.mark.parametrize(
    ("meaning", "is_end", "is_down", "outcome"),
    [
        (Meaning.ONU_LOS, False, True, HintOutcome.CONFIRMED),
        (Meaning.ONU_LOS, False, False, HintOutcome.NOT_CONFIRMED),
        (Meaning.ONU_LOS, True, False, HintOutcome.CONFIRMED),
        (Meaning.ONU_UP, False, False, HintOutcome.CONFIRMED),
        (Meaning.ONU_UP, False, True, HintOutcome.NOT_CONFIRMED),
        (Meaning.ONU_DYING_GASP, False, None, HintOutcome.NOT_READ),
        (Meaning.FAN, False, True, HintOutcome.NOT_READ),
    ],
)
def test_what_was_said_is_held_against_what_was_read(
    meaning: Meaning, *, is_end: bool, is_down: bool | None, outcome: HintOutcome
) -> None:
    assert judge_hint(meaning, is_end=is_end, is_down=is_down) is outcome
