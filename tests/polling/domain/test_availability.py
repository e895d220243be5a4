"""Where the time of a month went: shares that add up, clocks that change, lives that begin and end inside of it."""

import itertools
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from facho.polling.domain.availability import (
    Month,
    MonthTimes,
    Span,
    account,
    add_times,
    availability,
    clip,
    covered,
    daily_medians,
    find_rises,
    length,
    local_days,
    merge,
    percent_shares,
)

NAN = float("nan")
MINUTE, HOUR, DAY = 60, 3_600, 86_400
BERLIN, SANTIAGO = ZoneInfo("Europe/Berlin"), ZoneInfo("America/Santiago")
moments = st.integers(0, 40 * HOUR).map(float)
spans = st.lists(st.tuples(moments, moments), max_size=6)


def one(at: list[int], share: list[float], life: Span, planned: list[Span] | None = None) -> MonthTimes:
    return account(np.array(at, dtype=np.int64), np.array([share]), np.array([life]), planned or [])


def hourly_polls(states: str) -> tuple[list[int], list[float]]:
    """A poll every five minutes; a letter for each: u up, d down, - not read."""
    share = {"u": 1.0, "d": 0.0, "-": NAN}
    return [number * 5 * MINUTE for number in range(len(states))], [share[letter] for letter in states]


def minutes_of(times: MonthTimes) -> tuple[float, float, float, float]:
    up, down, unknown, planned = (float(each[0]) / 60 for each in (times.up, times.down, times.unknown, times.planned))
    return up, down, unknown, planned


def test_a_state_lasts_until_the_next_poll() -> None:
    times = one(*hourly_polls("uuudduuu"), (0, 40 * MINUTE))

    assert minutes_of(times) == (30, 10, 0, 0)
    assert (times.interruptions[0], times.longest_down[0]) == (1, 10 * MINUTE)


def test_one_missed_poll_is_bridged_and_two_are_unknown() -> None:
    bridged, gap = one(*hourly_polls("uu-uuuuu"), (0, 40 * MINUTE)), one(*hourly_polls("uu--uuuu"), (0, 40 * MINUTE))

    assert minutes_of(bridged) == (40, 0, 0, 0)
    assert minutes_of(gap) == (30, 0, 10, 0)


def test_an_olt_that_stops_answering_leaves_unknown_and_not_up() -> None:
    times = one(*hourly_polls("uuuuuuuuuuuu"), (0, 10 * HOUR))

    assert minutes_of(times) == (60, 0, 540, 0)


def test_polls_that_come_once_an_hour_from_some_day_on_are_a_rhythm() -> None:
    often = list(range(0, 48 * HOUR, 5 * MINUTE))
    seldom = list(range(48 * HOUR, 60 * HOUR, HOUR))

    times = one([*often, *seldom], [1.0] * (len(often) + len(seldom)), (0, 60 * HOUR))

    assert minutes_of(times) == (60 * 60, 0, 0, 0)


def test_answers_now_and_then_of_a_silent_olt_are_no_rhythm() -> None:
    often = list(range(0, 24 * HOUR, 5 * MINUTE))
    rare = [27 * HOUR, 30 * HOUR]

    times = one([*often, *rare], [1.0] * (len(often) + 2), (0, 33 * HOUR))

    assert minutes_of(times)[2] == 9 * 60 - 2 * 5


def test_planned_time_is_apart_whatever_was_read_in_it() -> None:
    times = one(*hourly_polls("uuddduuu"), (0, 40 * MINUTE), [(5 * MINUTE, 20 * MINUTE)])

    assert minutes_of(times) == (20, 5, 0, 15)
    assert times.interruptions[0] == 1


def test_an_interruption_within_maintenance_is_none() -> None:
    times = one(*hourly_polls("uuddduuu"), (0, 40 * MINUTE), [(5 * MINUTE, 30 * MINUTE)])

    assert minutes_of(times) == (15, 0, 0, 25)
    assert times.interruptions[0] == 0


def test_unknown_time_does_not_cut_an_interruption_in_two() -> None:
    times = one(*hourly_polls("udd----ddu"), (0, 50 * MINUTE))

    assert times.interruptions[0] == 1
    assert minutes_of(times) == (10, 20, 20, 0)


def test_an_outage_open_over_the_border_counts_in_both_months_and_once_in_all() -> None:
    at, share = hourly_polls("uuuuddddddddduuuuuuu")

    first, second = one(at, share, (0, 40 * MINUTE)), one(at, share, (40 * MINUTE, 100 * MINUTE))

    assert (first.down[0], second.down[0]) == (20 * MINUTE, 25 * MINUTE)
    assert (first.interruptions[0], second.interruptions[0]) == (1, 1)


@given(
    st.lists(st.sampled_from([1.0, 0.0, NAN]), min_size=1, max_size=60),
    st.lists(st.integers(0, 6 * HOUR).map(float), min_size=2, max_size=5),
)
def test_parts_of_a_month_join_to_what_it_is_at_once(share: list[float], edges: list[float]) -> None:
    at = [number * 5 * MINUTE for number in range(len(share))]
    cuts = sorted(edges)

    joined = add_times([one(at, share, life) for life in itertools.pairwise(cuts)])

    whole = one(at, share, (cuts[0], cuts[-1]))
    for name in ("up", "down", "unknown", "planned", "interruptions", "longest_down", "first_down", "last_down"):
        assert getattr(joined, name) == pytest.approx(getattr(whole, name)), name


def test_who_came_or_left_inside_the_month_is_judged_by_its_own_time() -> None:
    at, share = hourly_polls("uuuuuuuuuuuu")

    both = account(np.array(at), np.array([share, share]), np.array([[20 * MINUTE, 60 * MINUTE], [0, 15 * MINUTE]]), [])

    assert both.up.tolist() == [40 * MINUTE, 15 * MINUTE]
    assert both.unknown.tolist() == [0, 0]


def test_hours_of_the_history_are_shares() -> None:
    at = np.arange(4) * HOUR

    times = account(at, np.array([[1.0, 0.5, NAN, 1.0]]), np.array([[0.0, 4 * HOUR]]), [], hours=True)

    assert minutes_of(times) == (150, 30, 60, 0)


def test_nothing_read_at_all_is_unknown() -> None:
    empty = account(np.zeros(0, dtype=np.int64), np.zeros((1, 0)), np.array([[0.0, HOUR]]), [(0, 600)])

    assert minutes_of(empty) == (0, 0, 50, 10)


@given(
    st.lists(st.sampled_from([1.0, 0.0, NAN]), min_size=1, max_size=60),
    st.lists(st.integers(1, 40), min_size=60, max_size=60),
    moments,
    moments,
    spans,
)
def test_shares_add_up_to_the_whole_life(
    share: list[float], gaps: list[int], one_edge: float, other_edge: float, planned: list[Span]
) -> None:
    at = (np.cumsum(gaps)[: len(share)] * MINUTE).tolist()
    life = min(one_edge, other_edge), max(one_edge, other_edge)

    times = one(at, share, life, planned)

    parts = [float(each[0]) for each in (times.up, times.down, times.unknown, times.planned)]
    assert min(parts) >= 0
    assert sum(parts) == pytest.approx(life[1] - life[0])
    assert parts[3] == pytest.approx(length(clip(planned, *life)))


@given(
    st.lists(st.sampled_from([1.0, 0.0, NAN]), min_size=2, max_size=40),
    moments,
    moments,
    st.lists(st.tuples(moments, moments), max_size=3),
)
def test_it_is_what_a_count_minute_by_minute_gives(
    share: list[float], one_edge: float, other_edge: float, planned: list[Span]
) -> None:
    at = [number * 5 * MINUTE for number in range(len(share))]
    start, end = sorted(int(edge // MINUTE) * MINUTE for edge in (one_edge, other_edge))
    whole = [(a // MINUTE * MINUTE, b // MINUTE * MINUTE) for a, b in planned]
    counted = {"up": 0, "down": 0, "unknown": 0, "planned": 0}
    known = [number for number, value in enumerate(share) if value == value]
    for moment in range(start, end, MINUTE):
        last = max((number for number in known if at[number] <= moment), default=None)
        following = next((number for number in known if at[number] > moment), None)
        state = "unknown"
        if last is not None:
            is_bridged = following is not None and following - last <= 2
            state = "up" if share[last] else "down"
            if not is_bridged and moment >= at[last] + 5 * MINUTE:
                state = "unknown"
        counted["planned" if any(a <= moment < b for a, b in whole) else state] += MINUTE

    times = one(at, share, (start, end), whole)

    assert {name: round(float(getattr(times, name)[0])) for name in counted} == counted


@given(spans, st.randoms())
def test_the_order_of_spans_does_not_matter_and_overlaps_count_once(given_spans: list[Span], chance: object) -> None:
    shuffled = list(given_spans)
    chance.shuffle(shuffled)  # type: ignore[attr-defined]
    seconds = np.zeros(41 * HOUR, dtype=bool)
    for start, end in given_spans:
        seconds[int(start) : int(end)] = True

    assert merge(shuffled) == merge(given_spans) == merge([*given_spans, *given_spans])
    assert length(shuffled) == seconds.sum()
    assert covered(shuffled, np.array([20.0 * HOUR]))[0] == seconds[: 20 * HOUR].sum()
    assert length(given_spans, without=given_spans) == 0


def test_outages_of_port_and_olt_at_once_count_once_without_what_was_planned() -> None:
    port, olt, maintenance = (0.0, 3.0 * HOUR), (2.0 * HOUR, 5.0 * HOUR), (4.0 * HOUR, 9.0 * HOUR)

    assert length([olt, port], without=[maintenance]) == 4 * HOUR


@pytest.mark.parametrize(
    ("month", "zone", "hours"),
    [
        ("2026-03", BERLIN, 31 * 24 - 1),
        ("2026-10", BERLIN, 31 * 24 + 1),
        ("2026-04", SANTIAGO, 30 * 24 + 1),
        ("2026-09", SANTIAGO, 30 * 24 - 1),
        ("2024-02", ZoneInfo("UTC"), 29 * 24),
    ],
)
def test_a_month_has_the_hours_of_the_operators_clock(month: str, zone: ZoneInfo, hours: int) -> None:
    start, end = Month.parse(month).bounds(zone)

    # Of two times in one zone Python subtracts the clocks.
    assert end.astimezone(UTC) - start.astimezone(UTC) == timedelta(hours=hours)
    assert Month.of(start, zone) == Month.parse(month)
    assert Month.of(end - timedelta(seconds=1), zone) == Month.parse(month)
    assert str(Month.parse(month)) == month


def test_months_follow_each_other_over_new_year() -> None:
    assert str(Month(2026, 1).shifted(-1)) == "2025-12"
    assert str(Month(2026, 12).shifted(1)) == "2027-01"


@pytest.mark.parametrize("text", ["", "2026", "2026-13", "2026-00", "26-10", "2026-1", "٢٠٢٦-10", "9999-12", "2026/10"])
def test_other_text_is_no_month(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 the text is all that it says
        Month.parse(text)


def test_days_are_those_of_the_operators_clock() -> None:
    start, end = Month.parse("2026-10").bounds(BERLIN)

    days = local_days(start, end, BERLIN)

    lengths = [(b.astimezone(UTC) - a.astimezone(UTC)) / timedelta(hours=1) for a, b in itertools.pairwise(days)]
    assert len(lengths) == 31
    assert [number + 1 for number, hours in enumerate(lengths) if hours == 25] == [25]


@given(st.lists(st.floats(0, 1e7), min_size=1, max_size=6))
def test_percentages_add_up_to_a_hundred_as_shown(seconds: list[float]) -> None:
    shares = percent_shares(seconds)

    assert round(sum(shares), 6) == (100 if sum(seconds) > 0 else 0)
    assert all(share == round(share, 2) for share in shares)


def test_a_second_down_never_shows_as_all_of_the_time() -> None:
    assert availability(30 * DAY - 1, 1) == 99.999
    assert availability(30 * DAY, 0) == 100
    assert availability(0, 0) is None


def days_of(*levels: tuple[float, int]) -> list[float]:
    """So many days of each level, with a meter that is never quite still."""
    values = [level for level, count in levels for _ in range(count)]
    return [round(value + 0.04 * (number % 3 - 1), 2) for number, value in enumerate(values)]


def test_a_lasting_rise_has_its_first_day_and_both_levels() -> None:
    rises = find_rises(np.array([days_of((-25.0, 10), (-20.8, 20))]))

    assert rises.day[0] == 10
    assert (round(rises.before_dbm[0], 1), round(rises.after_dbm[0], 1)) == (-25.0, -20.8)


def test_a_visit_in_the_evening_counts_on_the_first_day_that_is_new() -> None:
    values = days_of((-25.0, 9), (-23.9, 1), (-20.8, 20))

    assert find_rises(np.array([values])).day[0] == 10


@pytest.mark.parametrize(
    "values",
    [
        pytest.param(days_of((-22.0, 30)), id="nothing happened"),
        pytest.param(days_of((-25.0, 10), (-21.0, 2), (-25.0, 18)), id="it did not last"),
        pytest.param(days_of((-22.0, 10), (-21.4, 20)), id="as little as weather does"),
        pytest.param(days_of((-21.0, 10), (-25.0, 20)), id="it fell"),
        pytest.param(days_of((-25.0, 28), (-21.0, 2)), id="two days are not lasting"),
        pytest.param([-25.0 + 3 * (number % 2) for number in range(30)], id="it swings"),
        pytest.param([NAN] * 30, id="never read"),
        pytest.param([NAN] * 10 + days_of((-21.0, 20)), id="no level of its own before"),
    ],
)
def test_other_light_is_no_repair(values: list[float]) -> None:
    assert find_rises(np.array([values])).day[0] == -1


def test_days_without_a_reading_do_not_hide_a_repair() -> None:
    values = days_of((-25.0, 10), (-20.8, 20))
    values[9] = values[11] = NAN

    assert find_rises(np.array([values])).day[0] == 10


def test_daily_medians_leave_days_without_values_out() -> None:
    start = datetime(2026, 3, 1, tzinfo=UTC)
    at = np.array([int(start.timestamp()) + hours * HOUR for hours in (1, 5, 9, 50)])

    medians = daily_medians(
        at, np.array([[-20.0, -21.0, -30.0, -22.0]]), local_days(start, start + timedelta(days=3), ZoneInfo("UTC"))
    )

    assert medians[0].tolist()[::2] == [-21.0, -22.0]
    assert np.isnan(medians[0][1])
