"""What a start, an end and a return do to a node's place on its grid."""

from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facho.polling.domain.schedule import Grid, Move, Start, Window, is_outside_hours, plan_end, plan_rejoin, plan_start
from factories import NOW

FIVE_MINUTES = Grid(300)
NIGHT = Grid(3_600, window=Window(time(1), time(5), ZoneInfo("America/Bogota")))
ONE_AT_NIGHT = datetime(2026, 3, 1, 6, tzinfo=UTC)
# Their clocks go forward and back within the moments below.
ZONES = ("America/Bogota", "America/Santiago", "America/New_York", "Europe/Madrid")


def later(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def start(grid: Grid, next_run_at: datetime | None, *, now: datetime = NOW, asked: bool = False) -> Start | None:
    return plan_start(grid, next_run_at, is_asked_for=asked, now=now)


def test_a_late_node_serves_the_latest_slot_and_skips_those_before() -> None:
    assert start(FIVE_MINUTES, later(-3_600), now=later(10)) == Start(NOW, later(300), slots_skipped=12)


def test_a_node_that_is_not_due_starts_only_when_asked_for_and_keeps_its_slot() -> None:
    assert start(FIVE_MINUTES, later(100)) is None
    assert start(FIVE_MINUTES, later(100), asked=True) == Start(None, later(100))
    assert start(FIVE_MINUTES, None, asked=True) == Start(None, None)


def test_a_due_time_that_a_changed_offset_left_off_the_grid_is_served() -> None:
    assert start(FIVE_MINUTES, later(20), now=later(30)) == Start(later(20), later(300))


def test_a_late_fixed_delay_counts_from_its_due_time() -> None:
    delayed = Grid(100, is_fixed_delay=True)

    assert start(delayed, NOW, now=later(250)) == Start(later(200), later(350), slots_skipped=2)
    assert plan_end(delayed, later(350), now=later(260)) == Move(later(360))


def test_the_end_of_a_run_passes_only_what_went_by() -> None:
    assert plan_end(FIVE_MINUTES, later(300), now=later(299)) == Move(later(300))
    assert plan_end(FIVE_MINUTES, later(300), now=later(601)) == Move(later(900), slots_skipped=2)


@pytest.mark.parametrize(("clock", "skipped"), [(3_605, 12), (-3_595, 0)])
def test_a_node_rejoins_its_grid_after_a_jump_of_the_clock(clock: int, skipped: int) -> None:
    assert plan_rejoin(FIVE_MINUTES, later(300), now=later(clock)) == Move(later(clock + 295), skipped)


def test_a_due_time_off_the_grid_that_has_not_come_is_not_passed_by_a_return() -> None:
    """Found by a million executions: an interval was changed, and then the node came back from its suspension."""
    assert plan_rejoin(FIVE_MINUTES, later(20), now=later(10)) == Move(later(20))
    assert plan_rejoin(Grid(100, is_fixed_delay=True), later(20), now=later(10)) == Move(later(20))
    assert plan_rejoin(NIGHT, later(20), now=later(10)) == Move(NIGHT.next_after(later(10)))


def test_what_was_due_at_night_does_not_start_in_the_morning() -> None:
    morning = ONE_AT_NIGHT + timedelta(hours=8)

    assert start(NIGHT, ONE_AT_NIGHT + timedelta(hours=2), now=morning) == Start(
        None, ONE_AT_NIGHT + timedelta(days=1), slots_skipped=2, is_run=False
    )


def test_a_person_may_start_in_the_morning_what_was_due_at_night() -> None:
    asked = start(NIGHT, ONE_AT_NIGHT, now=ONE_AT_NIGHT + timedelta(hours=8), asked=True)

    assert asked == Start(None, ONE_AT_NIGHT + timedelta(days=1), slots_skipped=4)


def test_a_node_that_is_late_from_last_night_waits_for_its_slot_of_tonight() -> None:
    half_past = Grid(3_600, 1_800, NIGHT.window)
    tonight = ONE_AT_NIGHT + timedelta(days=1, minutes=10)

    late = start(half_past, ONE_AT_NIGHT + timedelta(hours=3, minutes=30), now=tonight)

    assert late == Start(None, tonight + timedelta(minutes=20), slots_skipped=1, is_run=False)


def test_a_grid_that_never_meets_its_hours_runs_outside_of_them() -> None:
    noon = Grid(86_400, 12 * 3_600, NIGHT.window)

    assert start(noon, NOW) == Start(NOW, NOW + timedelta(days=1))
    assert not is_outside_hours(NIGHT.window, NOW, NOW)
    assert is_outside_hours(NIGHT.window, ONE_AT_NIGHT, NOW)


moments = st.datetimes(datetime(2026, 1, 1), datetime(2026, 12, 31), timezones=st.just(UTC))  # noqa: DTZ001 hypothesis wants naive bounds
hours = st.builds(time, st.integers(0, 23), st.sampled_from((0, 30)))


@given(moments, st.integers(0, 5 * 86_400), st.sampled_from(ZONES), st.tuples(hours, hours), st.integers(0, 3_599))
def test_skipped_slots_are_those_inside_of_the_hours_also_when_clocks_change(
    now: datetime, wait: int, zone: str, hours: tuple[time, time], offset: int
) -> None:
    grid = Grid(1_800, offset, Window(*hours, ZoneInfo(zone)))
    due_at = grid.next_after(now - timedelta(seconds=wait))

    move = plan_rejoin(grid, due_at, now=now)

    slots = [due_at + number * grid.interval for number in range(500) if due_at + number * grid.interval <= now]
    assert grid.window is not None
    assert move.slots_skipped == len([slot for slot in slots if grid.window.contains(slot)])
    assert move.next_run_at == grid.next_after(now)
