"""One event per fact: states with causes, flapping once, steps of light, descriptions; none without a value."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from watched_olt import relocate

from facho.polling.domain.onu_events import (
    CALM_AFTER,
    FLAP_CHANGES,
    FLAP_WINDOW,
    POWER_STEP_CDBM,
    EventKind,
    LateCause,
    ObservedEvent,
    OnuStatus,
    PollChanges,
    PolledOnu,
    compare_poll,
)
from facho.polling.domain.onu_state import DownCause, RunState, shown_state

START = datetime(2030, 1, 1, tzinfo=UTC)
CYCLE = timedelta(minutes=5)
HERE, THERE = (0, 1, 0, 1), (0, 2, 0, 1)
UP, DOWN = RunState.ONLINE, RunState.OFFLINE
NEVER_READ = OnuStatus(1, HERE)
ONLINE = OnuStatus(1, HERE, UP, START)


class Life:
    """One ONU, polled again and again."""

    def __init__(self, status: OnuStatus = ONLINE, *, cycle: timedelta = CYCLE) -> None:
        self.status, self.cycle, self.now = status, cycle, START
        self.events: list[ObservedEvent] = []
        self.late: list[LateCause] = []

    def poll(self, reported: PolledOnu) -> list[EventKind]:
        self.now += self.cycle
        changes = compare_poll([(self.status, reported)], now=self.now)
        self.status = changes.statuses[0] if changes.statuses else self.status
        self.events += changes.events
        self.late += changes.late_causes
        return [event.kind for event in changes.events]

    def poll_states(self, states: str) -> list[EventKind]:
        """Poll states written as + and -, one character a poll, and a space for one without an answer."""
        words = {"+": UP, "-": DOWN, " ": None}
        return [kind for state in states for kind in self.poll(PolledOnu(words[state]))]


def test_an_onu_goes_down_with_its_cause_and_comes_back() -> None:
    onu = Life()

    onu.poll(PolledOnu(DOWN, DownCause.DYING_GASP))
    onu.poll(PolledOnu(DOWN, DownCause.DYING_GASP))
    onu.poll(PolledOnu(UP, DownCause.DYING_GASP))

    assert [(event.kind, event.cause) for event in onu.events] == [
        (EventKind.DOWN, DownCause.DYING_GASP),
        (EventKind.UP, None),
    ]
    assert [event.at for event in onu.events] == [START + CYCLE, START + 3 * CYCLE]
    assert onu.status.state_since == START + 3 * CYCLE


@pytest.mark.parametrize(
    "nothing", [PolledOnu(), PolledOnu(RunState.UNKNOWN), PolledOnu(RunState.UNKNOWN, DownCause.LOS)]
)
def test_what_could_not_be_read_is_neither_up_nor_down(nothing: PolledOnu) -> None:
    assert compare_poll([(ONLINE, nothing)], now=START + CYCLE) == PollChanges((), (), ())


def test_a_poll_that_tells_what_is_known_changes_nothing() -> None:
    status = OnuStatus(1, HERE, DOWN, START, DownCause.LOS, "CLI-1", -2_000, START)

    assert compare_poll([(status, PolledOnu(DOWN, DownCause.LOS, None, "CLI-1"))], now=START + CYCLE).statuses == ()


def test_the_first_look_tells_nothing() -> None:
    """An ONU that was down already may have been so for months: it is down since nobody knows when."""
    up, down = Life(NEVER_READ), Life(NEVER_READ)

    assert up.poll(PolledOnu(UP)) == down.poll(PolledOnu(DOWN, DownCause.LOS)) == []
    assert up.status.state_since == START + CYCLE
    assert (down.status.state_since, down.status.cause) == (None, DownCause.LOS)


def test_without_a_cause_it_is_unknown_and_never_an_older_one() -> None:
    onu = Life(ONLINE._replace(cause=DownCause.DYING_GASP))

    onu.poll(PolledOnu(DOWN))

    assert onu.events[0].cause is onu.status.cause is DownCause.UNKNOWN


def test_a_cause_that_comes_later_completes_the_event() -> None:
    onu = Life()
    onu.poll(PolledOnu(DOWN))

    onu.poll(PolledOnu(DOWN, DownCause.LOS))
    onu.poll(PolledOnu(DOWN, DownCause.LOS))

    assert onu.late == [LateCause(1, onu.events[0].at, DownCause.LOS)]
    assert len(onu.events) == 1


def test_of_an_olt_that_cannot_be_asked_nothing_is_said() -> None:
    assert {shown_state(state, can_be_asked=False) for state in RunState} == {RunState.UNKNOWN}
    assert [shown_state(state, can_be_asked=True) for state in RunState] == list(RunState)


def test_the_fifth_change_of_an_hour_is_flapping_and_then_there_is_silence() -> None:
    onu = Life()

    assert onu.poll_states("-+-+") == [EventKind.DOWN, EventKind.UP] * 2
    assert onu.poll_states("-+-+-+-+") == [EventKind.FLAPPING]
    assert onu.status.state is UP


def test_half_an_hour_without_a_change_is_calm() -> None:
    onu = Life()
    onu.poll_states("-+-+-+")

    assert onu.poll_states("+++++") == []
    assert onu.poll_states("+++") == [EventKind.CALM]
    assert (onu.events[-1].after, onu.events[-1].cause) == ("online", None)
    assert onu.poll_states("-") == [EventKind.DOWN]


def test_calm_in_the_dark_tells_why_it_is_dark() -> None:
    onu = Life()
    onu.poll_states("-+-+")
    onu.poll(PolledOnu(DOWN, DownCause.LOS))

    onu.poll_states("-" * 7)

    assert (onu.events[-1].kind, onu.events[-1].after, onu.events[-1].cause) == (
        EventKind.CALM,
        "offline",
        DownCause.LOS,
    )


def test_nobody_is_calm_while_nobody_looks() -> None:
    onu = Life()
    onu.poll_states("-+-+-")

    assert onu.poll_states(" " * 20) == []
    assert onu.poll_states("+") == [EventKind.CALM, EventKind.UP]


def test_changes_that_are_far_apart_are_reported_one_by_one() -> None:
    onu = Life(cycle=timedelta(minutes=16))

    assert EventKind.FLAPPING not in onu.poll_states("-+" * 20)


def test_a_clock_that_was_set_back_starts_a_new_window() -> None:
    ahead = START + timedelta(days=1)
    onu = Life(ONLINE._replace(flap_changes=4, flap_since=ahead))

    assert onu.poll_states("-") == [EventKind.DOWN]


def test_a_drop_of_three_decibels_is_a_step_and_reported_once() -> None:
    onu = Life()
    for power in (-2_000, -2_100, -2_299):
        assert onu.poll(PolledOnu(power_cdbm=power)) == []

    assert onu.poll(PolledOnu(power_cdbm=-2_300)) == [EventKind.POWER_DROP]
    assert (onu.events[0].before, onu.events[0].after) == (-2_000, -2_300)
    assert onu.poll(PolledOnu(power_cdbm=-2_310)) == []


def test_light_that_comes_back_after_a_repair_is_reported() -> None:
    onu = Life()

    kinds = [onu.poll(PolledOnu(power_cdbm=power)) for power in (-2_000, -2_500, -2_050)]

    assert kinds == [[], [EventKind.POWER_DROP], [EventKind.POWER_RISE]]


def test_the_light_after_an_outage_is_compared_with_the_light_before_it() -> None:
    onu = Life()
    onu.poll(PolledOnu(UP, power_cdbm=-2_000))
    onu.poll_states("-" * 100)

    assert onu.poll(PolledOnu(UP, power_cdbm=-2_400)) == [EventKind.UP, EventKind.POWER_DROP]


def test_what_an_olt_repeats_of_an_onu_that_is_away_is_no_light() -> None:
    onu = Life()
    onu.poll(PolledOnu(UP, power_cdbm=-2_000))

    assert onu.poll(PolledOnu(DOWN, power_cdbm=-4_000)) == [EventKind.DOWN]


def test_at_another_place_other_light_is_no_step() -> None:
    onu = Life()
    onu.poll(PolledOnu(power_cdbm=-2_000))
    onu.status = relocate(onu.status, THERE)

    assert onu.poll(PolledOnu(power_cdbm=-2_600)) == []
    assert onu.status.place == THERE


@given(st.integers(-40, 40), st.sampled_from([5, 15, 30, 60, 180]))
def test_a_slow_drift_is_never_a_step(cdb_an_hour: int, minutes: int) -> None:
    onu = Life(cycle=timedelta(minutes=minutes))

    kinds = [onu.poll(PolledOnu(power_cdbm=-2_000 + cdb_an_hour * poll * minutes // 60)) for poll in range(200)]

    assert not any(kinds)


@given(st.lists(st.integers(-4_000, -800), min_size=2, max_size=30))
def test_every_sudden_step_is_reported_with_its_direction(powers: list[int]) -> None:
    onu = Life(cycle=timedelta(hours=6))

    kinds = [onu.poll(PolledOnu(power_cdbm=power)) for power in powers]

    steps = [after - before for before, after in pairwise(powers)]
    expected = [
        [EventKind.POWER_DROP if step < 0 else EventKind.POWER_RISE] if abs(step) >= POWER_STEP_CDBM else []
        for step in steps
    ]
    assert kinds == [[], *expected]


def test_another_description_is_reported_and_the_first_one_is_not() -> None:
    onu = Life()

    kinds = [onu.poll(PolledOnu(description=text)) for text in ("CLI-1", "CLI-1", "CLI-2", "")]

    assert kinds == [[], [], [EventKind.DESCRIPTION_CHANGED], [EventKind.DESCRIPTION_CHANGED]]
    assert (onu.events[0].before, onu.events[0].after) == ("CLI-1", "CLI-2")


def test_events_of_a_poll_stand_in_the_order_of_places() -> None:
    pairs = [
        (OnuStatus(7, THERE, UP, START), PolledOnu(DOWN)),
        (OnuStatus(8, HERE, DOWN, START, description="a"), PolledOnu(UP, description="b")),
    ]

    changes = compare_poll(pairs, now=START + CYCLE)

    assert changes.events == compare_poll(reversed(pairs), now=START + CYCLE).events
    assert [(event.place, event.kind) for event in changes.events] == [
        (HERE, EventKind.UP),
        (HERE, EventKind.DESCRIPTION_CHANGED),
        (THERE, EventKind.DOWN),
    ]


def reported_by_hand(states: Sequence[RunState | None]) -> list[tuple[int, EventKind]]:
    """Return what must be reported about an ONU that was up, by looking at the whole series at once."""
    expected: list[tuple[int, EventKind]] = []
    polls_of_window = FLAP_WINDOW // CYCLE
    state, changed_at, window = UP, 0, list[int]()
    is_flapping = False
    for poll, seen in enumerate(states, start=1):
        if seen is None:
            continue
        if is_flapping and (poll - changed_at) * CYCLE >= CALM_AFTER:
            expected.append((poll, EventKind.CALM))
            is_flapping, window = False, []
        if seen is state:
            continue
        state, changed_at = seen, poll
        if is_flapping:
            continue
        window = [*window, poll] if window and poll - window[0] <= polls_of_window else [poll]
        is_flapping = len(window) > FLAP_CHANGES
        expected.append((poll, EventKind.FLAPPING if is_flapping else EventKind.UP if seen is UP else EventKind.DOWN))
    return expected


@given(st.lists(st.sampled_from([UP, DOWN, None]), max_size=80))
def test_every_series_of_states_is_reported_without_gaps_and_without_echoes(states: list[RunState | None]) -> None:
    onu = Life()

    for state in states:
        onu.poll(PolledOnu(state))

    assert [((event.at - START) // CYCLE, event.kind) for event in onu.events] == reported_by_hand(states)
