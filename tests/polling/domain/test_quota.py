"""What an hour owes, what became of it, how it is judged, and what is forecast of it (decision D13)."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from facho.polling.domain.quota import (
    LossSeverity,
    OpenSlots,
    Promise,
    QuotaState,
    Record,
    Tally,
    count_hopeless,
    forecast_share,
    foresees_miss,
    is_at_risk,
    is_lost,
    judge,
    open_slots,
    severity_of,
    success_rate,
)
from facho.polling.domain.schedule import EPOCH, HOUR, Grid, Span, Window, hour_of, plan_end, plan_rejoin, plan_start
from factories import NOW

FIVE_MINUTES = Grid(300)
THIS_HOUR = hour_of(NOW)
INTERVAL = timedelta(minutes=5)


def minutes(number: float) -> timedelta:
    return timedelta(minutes=number)


def owed(promise: Promise, hour: Span = THIS_HOUR, now: datetime = NOW) -> int:
    slots = open_slots(promise, hour, now)
    return len(slots.lost) + len(slots.pending)


def promise_at(grid: Grid, moment: datetime) -> Promise:
    """Promise what a node does whose next slot is the first one from the moment on."""
    return Promise(grid, grid.next_after(moment - timedelta(microseconds=1)))


# What an hour owes


@given(st.integers(0, 299), st.datetimes(datetime(2026, 1, 1), datetime(2027, 1, 1), timezones=st.just(UTC)))  # noqa: DTZ001 hypothesis wants naive bounds
def test_five_minutes_are_twelve_slots_in_every_hour(offset: int, moment: datetime) -> None:
    hour = hour_of(moment)

    assert owed(promise_at(Grid(300, offset), hour.start), hour, hour.start) == 12


@settings(max_examples=20)
@given(st.integers(0, 7_199), st.integers(0, 1_000))
def test_odd_intervals_are_counted_and_not_divided(offset: int, hours: int) -> None:
    """Over a week of hours each slot is in one of them, and none is made up by rounding."""
    hour = hour_of(NOW + hours * HOUR)
    week = [Span(hour.start + n * HOUR, hour.end + n * HOUR) for n in range(7 * 24)]

    seven, two_hours = (promise_at(Grid(interval, offset), hour.start) for interval in (420, 7_200))

    assert {owed(seven, span, hour.start) for span in week} == {8, 9}
    assert {owed(two_hours, span, hour.start) for span in week} == {0, 1}
    assert sum(owed(seven, span, hour.start) for span in week) == 7 * 24 * 3_600 // 420
    assert sum(owed(two_hours, span, hour.start) for span in week) == 7 * 12


def test_a_node_owes_nothing_before_its_first_run() -> None:
    assert owed(Promise(FIVE_MINUTES, NOW + minutes(40))) == 4
    assert owed(Promise(FIVE_MINUTES, NOW + HOUR)) == 0


def test_slots_outside_of_a_jobs_hours_are_not_owed() -> None:
    at_night = Grid(300, window=Window(time(22), time(7, 30), ZoneInfo("America/Bogota")))

    closing = hour_of(datetime(2026, 3, 1, 12, tzinfo=UTC))

    assert owed(promise_at(at_night, closing.start), closing) == 6
    assert owed(promise_at(at_night, closing.start), Span(closing.end, closing.end + HOUR)) == 0


def test_what_was_due_in_hours_that_are_over_is_lost() -> None:
    at_night = Grid(1_800, 900, Window(time(22), time(7, 30), ZoneInfo("America/Bogota")))
    due_at = NOW + minutes(15)

    late = open_slots(Promise(at_night, due_at), THIS_HOUR, NOW + minutes(31))

    assert late == OpenSlots(lost=(due_at,))


def test_a_due_time_that_a_changed_offset_left_off_the_grid_is_owed_once() -> None:
    promise = Promise(FIVE_MINUTES, NOW + minutes(2))

    soon = open_slots(promise, THIS_HOUR, NOW + minutes(3))
    late = open_slots(promise, THIS_HOUR, NOW + minutes(6))

    assert soon.pending[:2] == (NOW + minutes(2), NOW + minutes(5))
    assert (late.lost, late.pending[0]) == ((NOW + minutes(2),), NOW + minutes(5))


def test_a_job_that_follows_its_ends_owes_no_more_than_the_next_run() -> None:
    grid = Grid(300, is_fixed_delay=True)

    assert open_slots(Promise(grid, NOW + minutes(1)), THIS_HOUR, NOW) == OpenSlots(pending=(NOW + minutes(1),))
    assert open_slots(Promise(grid, NOW + minutes(1)), THIS_HOUR, NOW + minutes(12)) == OpenSlots(
        lost=(NOW + minutes(1), NOW + minutes(6)), pending=(NOW + minutes(11),)
    )


def test_a_suspended_job_that_follows_its_ends_has_lost_what_has_come() -> None:
    promise = Promise(Grid(300, is_fixed_delay=True), NOW, is_suspended=True)

    assert open_slots(promise, THIS_HOUR, NOW + minutes(7)) == OpenSlots(
        lost=(NOW, NOW + minutes(5)), pending=(NOW + minutes(10),)
    )


def test_a_long_run_of_a_job_that_follows_its_ends_loses_nothing() -> None:
    promise = Promise(Grid(300, is_fixed_delay=True), NOW, is_under_way=True)

    assert open_slots(promise, THIS_HOUR, NOW + minutes(30)).lost == ()


# What can still be served


def test_of_a_late_node_only_the_latest_slot_can_be_served() -> None:
    late = open_slots(Promise(FIVE_MINUTES, NOW), THIS_HOUR, NOW + minutes(11))

    assert late.lost == (NOW, NOW + minutes(5))
    assert late.pending[0] == NOW + minutes(10)


@pytest.mark.parametrize("state", ["is_suspended", "is_under_way"])
def test_slots_that_come_while_a_node_is_suspended_or_running_are_lost(state: str) -> None:
    promise = Promise(FIVE_MINUTES, NOW, **{state: True})

    passing = open_slots(promise, THIS_HOUR, NOW + minutes(10))

    assert passing.lost == (NOW, NOW + minutes(5), NOW + minutes(10))
    assert passing.pending[0] == NOW + minutes(15)


def test_paused_slots_are_neither_lost_nor_pending() -> None:
    pauses = [Span(NOW, NOW + minutes(5)), Span(NOW + minutes(50), NOW + minutes(90))]

    slots = open_slots(Promise(FIVE_MINUTES, NOW), THIS_HOUR, NOW + minutes(12), paused=pauses)

    assert slots.lost == (NOW + minutes(5),)
    assert slots.pending == tuple(NOW + minutes(number) for number in range(10, 50, 5))


@dataclass
class Ledger:
    """A node that is moved by the rules of schedules, and what is written down about its slots."""

    grid: Grid
    next_run_at: datetime
    served: list[datetime] = field(default_factory=list)
    skipped: list[datetime] = field(default_factory=list)
    is_suspended: bool = False
    is_running: bool = False

    def do(self, action: str, now: datetime) -> None:
        if action == "start" and not self.is_suspended and not self.is_running:
            self._start(now)
        elif action == "end" and self.is_running:
            self.is_running = False
            self._move(plan_end(self.grid, self.next_run_at, now=now).next_run_at, now)
        elif action == "suspend" and not self.is_running:
            self.is_suspended = True
        elif action == "return" and self.is_suspended:
            self.is_suspended = False
            self._move(plan_rejoin(self.grid, self.next_run_at, now=now).next_run_at, now)

    def _start(self, now: datetime) -> None:
        start = plan_start(self.grid, self.next_run_at, is_asked_for=False, now=now)
        if start is None or start.next_run_at is None:
            return
        if start.slot_at:
            self.served.append(start.slot_at)
        self._pass(start.slot_at or now + timedelta(microseconds=1))
        self.next_run_at, self.is_running = start.next_run_at, start.is_run

    def _move(self, next_run_at: datetime, now: datetime) -> None:
        if self.next_run_at <= now and not (self.grid.is_fixed_delay and not self.is_suspended):
            self._pass(now + timedelta(microseconds=1))
        self.next_run_at = next_run_at

    def _pass(self, until: datetime) -> None:
        self.skipped += self.grid.slots(self.next_run_at, self.next_run_at, until)

    def counted(self, hour: Span, now: datetime) -> list[datetime]:
        """List every slot of the hour as often as it is counted."""
        promise = Promise(self.grid, self.next_run_at, is_suspended=self.is_suspended, is_under_way=self.is_running)
        slots = open_slots(promise, hour, now)
        written = [slot for slot in (*self.served, *self.skipped) if hour.contains(slot)]
        return [*written, *slots.lost, *slots.pending]


steps = st.lists(
    st.tuples(st.integers(0, 4_000), st.sampled_from(("start", "start", "end", "suspend", "return"))), max_size=25
)
windows = st.none() | st.builds(
    Window, st.sampled_from((time(1), time(9, 30))), st.sampled_from((time(8), time(23))), st.just(ZoneInfo("UTC"))
)
grids = st.builds(Grid, st.sampled_from((60, 300, 420, 3_600, 7_200)), st.integers(0, 7_199), windows)


@given(grids, steps, st.integers(0, 299))
def test_every_slot_is_counted_exactly_once_whatever_happens(
    grid: Grid, steps: list[tuple[int, str]], off_grid: int
) -> None:
    """Served, skipped, lost or pending; also when a changed offset left the first one off the grid.

    A return puts a node on its grid again, so then there is no such first one.
    """
    stays = grid.window is None and "return" not in [action for _, action in steps]
    first = grid.next_after(NOW) + timedelta(seconds=off_grid if stays else 0)
    ledger, now = Ledger(grid, first), NOW

    for seconds, action in steps:
        now += timedelta(seconds=seconds)
        ledger.do(action, now)
        for start in (hour_of(now).start - HOUR, hour_of(now).start):
            hour = Span(start, start + HOUR)
            assert sorted(ledger.counted(hour, now)) == true_slots(grid, first, hour)


def true_slots(grid: Grid, first: datetime, hour: Span) -> list[datetime]:
    """List the slots of an hour by the numbers of its seconds, as no rule of the domain does."""
    start = int((hour.start - EPOCH).total_seconds())
    on_grid = range(start + (grid.offset_seconds - start) % grid.interval_seconds, start + 3_600, grid.interval_seconds)
    slots = {EPOCH + timedelta(seconds=second) for second in on_grid} | {first}
    return sorted(
        slot
        for slot in slots
        if slot >= first and hour.contains(slot) and (grid.window is None or grid.window.contains(slot))
    )


@given(st.sampled_from((60, 300, 420)), steps)
def test_a_job_that_follows_its_ends_counts_no_slot_twice(interval: int, steps: list[tuple[int, str]]) -> None:
    ledger, now = Ledger(Grid(interval, is_fixed_delay=True), NOW), NOW

    for seconds, action in steps:
        now += timedelta(seconds=seconds)
        ledger.do(action, now)
        counted = ledger.counted(hour_of(now), now)
        assert len(counted) == len(set(counted))


# How an hour is judged


def state(tally: Tally, after: timedelta) -> QuotaState:
    return judge(tally, THIS_HOUR, NOW + after, met_share=0.8, patience=INTERVAL)


@pytest.mark.parametrize(
    ("tally", "after", "expected"),
    [
        (Tally(completed=2, pending=10), minutes(10), QuotaState.IN_PROGRESS),
        (Tally(completed=2, pending=10), minutes(23), QuotaState.IN_PROGRESS),
        (Tally(completed=2, skipped=1, pending=9), minutes(23), QuotaState.AT_RISK),
        (Tally(completed=12), minutes(56), QuotaState.COMPLETED),
        (Tally(), minutes(10), QuotaState.COMPLETED),
        (Tally(completed=2, failed=2), minutes(50), QuotaState.AT_RISK),
        (Tally(completed=10, skipped=2), HOUR, QuotaState.PARTIAL),
        (Tally(completed=9, skipped=3), HOUR, QuotaState.QUOTA_NOT_MET),
        (Tally(completed=9, skipped=2, pending=1), HOUR, QuotaState.AT_RISK),
        (Tally(completed=8, skipped=3, pending=1), HOUR, QuotaState.QUOTA_NOT_MET),
        (Tally(completed=9, skipped=2, pending=1), HOUR + INTERVAL, QuotaState.QUOTA_NOT_MET),
        (Tally(completed=10, skipped=1, pending=1), HOUR + INTERVAL, QuotaState.PARTIAL),
        (Tally(failed=12), HOUR, QuotaState.FAILED),
        (Tally(skipped=12), HOUR, QuotaState.QUOTA_NOT_MET),
    ],
)
def test_a_quota_is_judged_by_what_it_can_still_reach(tally: Tally, after: timedelta, expected: QuotaState) -> None:
    assert state(tally, after) == expected


@given(st.builds(Tally, *(st.integers(0, 20) for _ in range(4))), st.integers(0, 180))
def test_rules_alone_never_adjust_a_quota(tally: Tally, after: int) -> None:
    """A dead OLT is violated; adjusted is what a person did."""
    assert state(tally, minutes(after)) not in (QuotaState.ADJUSTED, QuotaState.INTERRUPTED)
    if tally.required and tally.best_share < 0.8 and after >= 60:
        assert state(tally, minutes(after)) in (QuotaState.QUOTA_NOT_MET, QuotaState.FAILED)


def test_a_quota_is_lost_when_even_its_pending_runs_cannot_save_it() -> None:
    assert is_lost(Tally(completed=8, skipped=3, pending=1), met_share=0.8)
    assert not is_lost(Tally(completed=8, skipped=2, pending=2), met_share=0.8)
    assert not is_lost(Tally(), met_share=0.8)


@pytest.mark.parametrize(("minute", "risk"), [(24, False), (25, True)])
def test_risk_is_twenty_points_behind_the_clock(minute: int, risk: bool) -> None:
    assert is_at_risk(Tally(completed=1, skipped=1, pending=3), THIS_HOUR, NOW + minutes(minute)) == risk


tallies = st.builds(Tally, *(st.integers(0, 20) for _ in range(4)))


@given(st.integers(0, 20), st.integers(1, 20), st.integers(0, 59))
def test_nothing_is_at_risk_before_a_slot_was_missed(completed: int, pending: int, minute: int) -> None:
    """The one slot of an hour may come at its end."""
    assert not is_at_risk(Tally(completed=completed, pending=pending), THIS_HOUR, NOW + minutes(minute))


@pytest.mark.parametrize(
    ("completed", "required", "severity"),
    [
        (0, 12, LossSeverity.CRITICAL),
        (2, 12, LossSeverity.CRITICAL),
        (1, 5, LossSeverity.HIGH),
        (2, 4, LossSeverity.HIGH),
        (3, 5, LossSeverity.MEDIUM),
        (4, 5, LossSeverity.MEDIUM),
        (9, 10, LossSeverity.LOW),
    ],
)
def test_severity_grows_with_the_share_that_was_lost(completed: int, required: int, severity: LossSeverity) -> None:
    assert severity_of(Tally(completed=completed, skipped=required - completed)) == severity


# What is forecast


def test_a_quota_that_goes_well_is_expected_to_be_met() -> None:
    assert forecast_share(Tally(completed=3, pending=9), hopeless=0, success_rate=1.0) == 1.0
    assert forecast_share(Tally(), hopeless=0, success_rate=0.0) == 1.0


def test_what_is_lost_or_hopeless_will_not_be_complete() -> None:
    assert forecast_share(Tally(completed=3, skipped=3, pending=6), hopeless=2, success_rate=1.0) == 7 / 12


def test_a_struggling_quota_is_granted_some_luck() -> None:
    struggling = Tally(completed=4, skipped=2, pending=6)

    assert 8 / 12 < forecast_share(struggling, hopeless=0, success_rate=2 / 3) <= 10 / 12
    assert forecast_share(struggling, hopeless=0, success_rate=0.0) == 4 / 12


def foresees(tally: Tally, *, watched_minutes: float = 30, hopeless: int = 0) -> bool:
    record = Record(tally.completed, tally.failed + tally.skipped, minutes(watched_minutes))
    return foresees_miss(tally, record, hopeless=hopeless, met_share=0.8)


def test_what_a_starting_machine_loses_is_no_forecast() -> None:
    """Two of three in the second minute of an hour with 69 slots: seen, and all 69 but these were served."""
    start = Tally(completed=1, skipped=2, pending=66)

    assert not foresees(start, watched_minutes=2)
    assert not foresees(start, watched_minutes=15)
    assert foresees(Tally(completed=4, skipped=8, pending=57), watched_minutes=15)


@given(tallies, st.integers(0, 120))
def test_without_a_lost_slot_nothing_is_foreseen(tally: Tally, watched: int) -> None:
    unharmed = Tally(completed=tally.completed, pending=tally.pending)

    assert not foresees(unharmed, watched_minutes=watched)


@given(tallies, st.integers(0, 120), st.integers(0, 20))
def test_what_can_no_longer_be_met_is_always_foreseen(tally: Tally, watched: int, hopeless: int) -> None:
    hopeless = min(hopeless, tally.pending)
    best = Tally(tally.completed, tally.failed, tally.skipped + hopeless, tally.pending - hopeless)

    if is_lost(best, met_share=0.8):
        assert foresees(tally, watched_minutes=watched, hopeless=hopeless)
    elif watched < 10:
        assert not foresees(tally, watched_minutes=watched, hopeless=hopeless)


@given(tallies, st.integers(0, 120), st.integers(1, 20))
def test_a_further_loss_never_takes_a_forecast_back(tally: Tally, watched: int, more: int) -> None:
    worse = Tally(tally.completed, tally.failed, tally.skipped + min(more, tally.pending), max(tally.pending - more, 0))

    assert foresees(worse, watched_minutes=watched) or not foresees(tally, watched_minutes=watched)


def test_a_few_failures_say_nothing_against_the_rest() -> None:
    assert success_rate(0, 2) == 1.0
    assert success_rate(1, 4) == 0.25


slots_to_come = [NOW + minutes(number) for number in range(5, 60, 5)]


def hopeless(suspended_minutes_ago: float, next_probe_minutes: float) -> int:
    return count_hopeless(
        slots_to_come,
        suspended_at=NOW - minutes(suspended_minutes_ago),
        next_probe_at=NOW + minutes(next_probe_minutes),
        now=NOW,
    )


def test_a_suspended_node_has_no_hope_before_its_next_probe() -> None:
    assert hopeless(suspended_minutes_ago=0, next_probe_minutes=1) == 0
    assert hopeless(suspended_minutes_ago=12, next_probe_minutes=4) == 0
    assert hopeless(suspended_minutes_ago=12, next_probe_minutes=5.5) == 1


def test_an_old_outage_is_expected_to_go_on_beyond_its_next_probe() -> None:
    assert hopeless(suspended_minutes_ago=33, next_probe_minutes=3) == 1
    assert hopeless(suspended_minutes_ago=102, next_probe_minutes=3) == 3
    assert hopeless(suspended_minutes_ago=600, next_probe_minutes=3) == len(slots_to_come)


def test_a_node_that_waits_for_a_person_has_no_hope() -> None:
    assert count_hopeless(slots_to_come, suspended_at=NOW, next_probe_at=None, now=NOW) == len(slots_to_come)
