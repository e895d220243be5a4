"""What follows a failed try, and when a suspended node is probed."""

from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facho.polling.domain.execution_state import FailureKind
from facho.polling.domain.planning import busy_percentage, is_saturated, lateness_histogram
from facho.polling.domain.retry import AfterFailure, RetryPolicy, decide_after_failure, next_probe_at, should_yield
from facho.polling.domain.schedule import Window, next_slot_after, next_slot_in, slot_at_or_before
from factories import NOW

BOGOTA = ZoneInfo("America/Bogota")


def decide(
    kind: FailureKind = FailureKind.TIMEOUT, *, failures_before: int = 0, next_slot_in: int | None = 300
) -> AfterFailure:
    next_slot_at = None if next_slot_in is None else NOW + timedelta(seconds=next_slot_in)
    return decide_after_failure(
        kind,
        failures_before=failures_before,
        policy=RetryPolicy(max_attempts=3, delay_seconds=120),
        next_slot_at=next_slot_at,
        now=NOW,
    )


def test_a_first_failure_is_tried_again_after_two_minutes() -> None:
    """S3-15, S3-19."""
    assert decide() == AfterFailure(1, resume_at=NOW + timedelta(seconds=120))


def test_the_third_failure_in_a_row_suspends_the_node() -> None:
    """S3-16, S3-18, S3-20."""
    assert decide(failures_before=2) == AfterFailure(3, suspends=True)


def test_a_slot_that_comes_before_the_retry_takes_its_place_and_the_count_goes_on() -> None:
    assert decide(next_slot_in=60) == AfterFailure(1)
    assert decide(next_slot_in=60, failures_before=2).suspends


@pytest.mark.parametrize("kind", [FailureKind.AUTH, FailureKind.MISSING, FailureKind.HIDDEN_ONUS])
def test_what_only_a_person_can_mend_is_not_tried_again_in_two_minutes(kind: FailureKind) -> None:
    assert decide(kind) == AfterFailure(1)


def test_a_cancelled_run_is_no_failure_of_its_node() -> None:
    assert decide(FailureKind.CANCELLED, failures_before=1) == AfterFailure(1)


@given(st.sampled_from(FailureKind), st.integers(0, 10), st.one_of(st.none(), st.integers(0, 7_200)))
def test_no_retry_ever_comes_after_the_next_slot(kind: FailureKind, failures: int, slot: int | None) -> None:
    after = decide(kind, failures_before=failures, next_slot_in=slot)

    if after.resume_at is not None and slot is not None:
        assert after.resume_at < NOW + timedelta(seconds=slot)
    assert not (after.resume_at and after.suspends)


def test_probes_come_at_growing_pauses_of_at_most_five_minutes() -> None:
    """D8."""
    pauses = [(next_probe_at(done, now=NOW) - NOW).total_seconds() / 60 for done in range(6)]

    assert pauses == [1, 2, 4, 5, 5, 5]


def test_busy_is_measured_over_the_last_minute_not_at_a_moment() -> None:
    half = (NOW - timedelta(seconds=30), None)
    before = (NOW - timedelta(seconds=300), NOW - timedelta(seconds=61))

    assert busy_percentage([half, before], pollers=1, now=NOW) == 50
    assert busy_percentage([half], pollers=2, now=NOW) == 25
    assert busy_percentage([], pollers=0, now=NOW) == 0


def test_saturation_begins_above_75_and_ends_below_65() -> None:
    """S0-14: with a memory, so that it does not flicker."""
    assert [is_saturated(p, was_saturated=False) for p in (75, 75.1)] == [False, True]
    assert [is_saturated(p, was_saturated=True) for p in (65, 64.9)] == [True, False]


def test_a_long_read_gives_way_only_when_it_is_long_and_someone_waits() -> None:
    """D22."""
    assert should_yield(running_seconds=60, another_is_due=True)
    assert not should_yield(running_seconds=59, another_is_due=True)
    assert not should_yield(running_seconds=600, another_is_due=False)


def test_lateness_is_counted_in_zabbix_buckets() -> None:
    delays = [timedelta(seconds=seconds) for seconds in (0, 5, 31, 700)]

    assert lateness_histogram(delays) == {5: 3, 10: 2, 30: 2, 60: 1, 300: 1, 600: 1}


NIGHT = Window(time(1), time(5), BOGOTA)
OVER_MIDNIGHT = Window(time(22), time(4), BOGOTA)
moments = st.datetimes(datetime(2020, 1, 1), datetime(2035, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 hypothesis wants naive bounds


def test_a_night_job_due_at_noon_runs_at_its_first_slot_of_the_night() -> None:
    slot = next_slot_in(NIGHT, NOW, interval_seconds=3_600, offset_seconds=0)

    assert slot == datetime(2026, 3, 2, 6, tzinfo=UTC)


@given(moments, st.sampled_from([300, 900, 3_600]), st.sampled_from([NIGHT, OVER_MIDNIGHT]))
def test_a_slot_of_a_window_is_on_the_grid_and_inside(moment: datetime, interval: int, window: Window) -> None:
    slot = next_slot_in(window, moment, interval_seconds=interval, offset_seconds=7)

    assert window.contains(slot)
    assert moment < slot <= moment + timedelta(days=1, hours=2)
    assert slot_at_or_before(slot, interval_seconds=interval, offset_seconds=7) == slot


def test_a_grid_that_never_meets_its_window_still_runs() -> None:
    noon_grid = {"interval_seconds": 86_400, "offset_seconds": 17 * 3_600}

    assert next_slot_in(NIGHT, NOW, **noon_grid) == next_slot_after(NOW, **noon_grid)


def test_a_window_of_equal_hours_is_the_whole_day() -> None:
    always = Window(time(3), time(3), BOGOTA)

    assert next_slot_in(always, NOW, interval_seconds=60, offset_seconds=0) == NOW + timedelta(seconds=60)
