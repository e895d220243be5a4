"""Alerts as values: reported once, resolved once, quiet when they should be, and damped when they flap."""

from collections.abc import Sequence
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facho.polling.domain.alerting import (
    CALM_AFTER,
    FLAP_OPENINGS,
    FLAP_WINDOW,
    MAX_MESSAGES,
    AlertMessage,
    Bound,
    Course,
    DueMessage,
    Look,
    Policy,
    Sight,
    Stage,
    follow,
    group_by_place,
)
from facho.polling.domain.schedule import Window

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
NIGHT = Window(time(22), time(7), ZoneInfo("America/Bogota"))
WRONG, FINE, UNKNOWN = Sight


class Teller:
    """One thing under one rule, looked at again and again, as the engine does it with rows."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.course: Course | None = None
        self.is_acknowledged = False
        self.firings: list[datetime] = []
        self.reported: list[tuple[datetime, DueMessage]] = []

    def look(self, sight: Sight, now: datetime) -> AlertMessage | None:
        """Look once, and keep what came of it."""
        recent = sum(now - at < FLAP_WINDOW for at in self.firings)
        look = Look(sight, now, recent_openings=recent, is_acknowledged=self.is_acknowledged)
        step = follow(self.course, look, self.policy)
        if step.course and step.course.fired_at == now and step.course.stage is Stage.FIRING:
            self.firings.append(now)
        if step.due_message:
            self.reported.append((now, step.due_message))
        self.course = step.course if step.course and step.course.stage is not Stage.RESOLVED else None
        return step.due_message.message if step.due_message else None

    @property
    def messages(self) -> list[AlertMessage]:
        """What was reported so far."""
        return [telling.message for _, telling in self.reported]


def looked_at(policy: Policy, *sights: Sight, start: datetime = NOON) -> Teller:
    """Look once a minute."""
    teller = Teller(policy)
    for number, sight in enumerate(sights):
        teller.look(sight, start + number * MINUTE)
    return teller


def test_what_is_wrong_is_reported_once_and_its_end_once() -> None:
    teller = looked_at(Policy(), WRONG, WRONG, WRONG, FINE, FINE)

    assert teller.messages == [AlertMessage.OPENED, AlertMessage.RESOLVED]


def test_nobody_is_reported_before_it_lasted_and_what_did_not_last_leaves_nothing() -> None:
    policy = Policy(hold=3 * MINUTE)

    assert looked_at(policy, WRONG, WRONG, WRONG).messages == []
    assert looked_at(policy, WRONG, WRONG, WRONG, WRONG).messages == [AlertMessage.OPENED]
    assert looked_at(policy, WRONG, WRONG, FINE).course is None


def test_what_began_before_the_first_look_has_lasted_already() -> None:
    step = follow(None, Look(WRONG, NOON, since=NOON - 5 * MINUTE), Policy(hold=5 * MINUTE))

    assert step.course is not None
    assert (step.course.stage, step.course.began_at) == (Stage.FIRING, NOON - 5 * MINUTE)


def test_it_is_over_only_when_it_stayed_fine() -> None:
    policy = Policy(clear=3 * MINUTE)

    assert looked_at(policy, WRONG, FINE, FINE, WRONG, FINE, FINE, FINE).messages == [AlertMessage.OPENED]
    assert looked_at(policy, WRONG, FINE, FINE, FINE, FINE).messages == [AlertMessage.OPENED, AlertMessage.RESOLVED]


def test_where_nobody_can_look_nothing_begins_and_nothing_ends() -> None:
    assert looked_at(Policy(), UNKNOWN, UNKNOWN).course is None
    assert looked_at(Policy(), WRONG, UNKNOWN, UNKNOWN).messages == [AlertMessage.OPENED]
    assert looked_at(Policy(hold=2 * MINUTE), WRONG, UNKNOWN, WRONG).messages == []


@pytest.mark.parametrize(
    ("is_low_wrong", "values", "expected"),
    [
        (False, (75, 75.1, 70, 65.1, 65, 70), (False, True, True, True, False, False)),
        (True, (-27, -27.1, -26.5, -26.1, -26, -26.5), (False, True, True, True, False, False)),
    ],
)
def test_a_value_near_its_threshold_does_not_flicker(
    is_low_wrong: bool, values: Sequence[float], expected: Sequence[bool]
) -> None:
    bound = Bound(-27, 1, is_low_wrong=True) if is_low_wrong else Bound(75, 10)

    seen, is_wrong = [], False
    for value in values:
        is_wrong = bound.is_wrong(value, was_wrong=is_wrong)
        seen.append(is_wrong)

    assert tuple(seen) == expected


def test_nobody_is_escalated_to_once_somebody_took_note() -> None:
    policy = Policy(escalate_after=2 * MINUTE)
    unanswered, answered = looked_at(policy, WRONG), looked_at(policy, WRONG)
    answered.is_acknowledged = True
    for number in range(1, 6):
        unanswered.look(WRONG, NOON + number * MINUTE)
        answered.look(WRONG, NOON + number * MINUTE)

    assert unanswered.messages == [AlertMessage.OPENED, AlertMessage.ESCALATED]
    assert answered.messages == [AlertMessage.OPENED]
    assert answered.look(FINE, NOON + 9 * MINUTE) is AlertMessage.RESOLVED


def test_where_nobody_can_look_nobody_is_escalated_to_before_it_is_seen_again() -> None:
    teller = looked_at(Policy(escalate_after=2 * MINUTE), WRONG, UNKNOWN, UNKNOWN, UNKNOWN)
    assert teller.messages == [AlertMessage.OPENED]

    assert teller.look(WRONG, NOON + 9 * MINUTE) is AlertMessage.ESCALATED


def test_a_clock_that_is_set_back_puts_escalation_off_by_no_more_than_its_minutes() -> None:
    teller = looked_at(Policy(escalate_after=5 * MINUTE), WRONG)
    set_back = NOON - 60 * MINUTE

    reported = [teller.look(WRONG, set_back + number * MINUTE) for number in range(7)]

    assert reported == [None] * 5 + [AlertMessage.ESCALATED, None]


def test_what_goes_on_is_reported_when_there_is_somebody_to_tell() -> None:
    alone = Policy(notifies_begin=False)
    teller, over = looked_at(alone, WRONG, WRONG), looked_at(alone, WRONG, WRONG, FINE)
    assert teller.messages == over.messages == []

    teller.policy = Policy()

    assert [teller.look(sight, NOON + 9 * MINUTE) for sight in (UNKNOWN, WRONG, WRONG, FINE)] == [
        None,
        AlertMessage.OPENED,
        None,
        AlertMessage.RESOLVED,
    ]


def test_where_nobody_is_reported_first_the_others_are_reported_later_and_of_the_end() -> None:
    policy = Policy(notifies_begin=False, escalate_after=2 * MINUTE)

    assert looked_at(policy, WRONG, WRONG, WRONG, WRONG, FINE).messages == [
        AlertMessage.ESCALATED,
        AlertMessage.RESOLVED,
    ]


def test_quiet_hours_put_a_message_off_and_swallow_what_was_over_by_then() -> None:
    evening = datetime(2026, 3, 2, 3, 0, tzinfo=UTC)  # 22:00 there
    goes_on, over = Teller(Policy(quiet=NIGHT)), Teller(Policy(quiet=NIGHT))
    for teller in (goes_on, over):
        assert teller.look(WRONG, evening) is None
    over.look(FINE, evening + MINUTE)
    assert goes_on.look(WRONG, evening + 9 * 60 * MINUTE - MINUTE) is None

    assert goes_on.look(WRONG, evening + 9 * 60 * MINUTE) is AlertMessage.OPENED
    assert over.messages == []


def test_after_quiet_hours_nobody_is_reported_of_what_nobody_can_see() -> None:
    teller = Teller(Policy(quiet=Window(time(12), time(13), ZoneInfo("UTC"))))
    teller.look(WRONG, NOON + MINUTE)
    teller.look(UNKNOWN, NOON + 60 * MINUTE)
    assert teller.messages == []

    assert teller.look(WRONG, NOON + 61 * MINUTE) is AlertMessage.OPENED


def test_the_end_of_what_was_reported_waits_for_the_end_of_quiet_hours() -> None:
    afternoon = datetime(2026, 3, 2, 2, 59, tzinfo=UTC)
    teller = Teller(Policy(quiet=NIGHT))
    teller.look(WRONG, afternoon)
    teller.look(FINE, afternoon + MINUTE)

    assert teller.reported[-1][1] == DueMessage(AlertMessage.RESOLVED, datetime(2026, 3, 2, 12, 0, tzinfo=UTC))


def test_what_flaps_is_reported_as_one_until_it_is_calm() -> None:
    teller = looked_at(Policy(), *[WRONG, FINE] * 30)
    assert teller.course is not None
    assert teller.course.is_flapping
    assert teller.messages == [AlertMessage.OPENED, AlertMessage.RESOLVED] * FLAP_OPENINGS + [AlertMessage.OPENED]

    last = NOON + 59 * MINUTE
    assert teller.look(FINE, last + CALM_AFTER - MINUTE) is None
    assert teller.look(FINE, last + CALM_AFTER) is AlertMessage.RESOLVED


minutes = st.integers(0, 20).map(lambda number: number * MINUTE)
policies = st.builds(
    Policy,
    hold=minutes,
    clear=minutes,
    quiet=st.sampled_from([None, NIGHT, Window(time(12), time(13), ZoneInfo("UTC"))]),
    escalate_after=st.none() | minutes,
)
# Minutes since the look before, and what the look shows.
looks = st.lists(st.tuples(st.integers(1, 45), st.sampled_from(Sight)), max_size=80)


def followed(policy: Policy, steps: Sequence[tuple[int, Sight]]) -> Teller:
    teller, now = Teller(policy), NOON
    for gap, sight in steps:
        now += gap * MINUTE
        teller.look(sight, now)
    return teller


@given(policies, looks)
def test_openings_and_ends_take_turns_and_an_end_always_comes(policy: Policy, steps: list[tuple[int, Sight]]) -> None:
    teller = followed(policy, steps)
    now = NOON + timedelta(days=4)
    for number in range(3):
        teller.look(FINE, now + number * timedelta(hours=1))

    turns = [message for message in teller.messages if message is not AlertMessage.ESCALATED]
    assert turns == [AlertMessage.OPENED, AlertMessage.RESOLVED] * (len(turns) // 2)
    for first, second in zip(teller.messages, teller.messages[1:], strict=False):
        assert second is not AlertMessage.ESCALATED or first is AlertMessage.OPENED


@given(policies, looks)
def test_quiet_hours_are_quiet(policy: Policy, steps: list[tuple[int, Sight]]) -> None:
    teller = followed(policy, steps)

    for at, telling in teller.reported:
        assert telling.not_before >= at
        assert policy.quiet is None or not policy.quiet.contains(telling.not_before)


@given(policies, looks)
def test_no_hour_has_more_openings_than_damping_allows(policy: Policy, steps: list[tuple[int, Sight]]) -> None:
    teller = followed(policy, steps)

    opened = [at for at, telling in teller.reported if telling.message is AlertMessage.OPENED]
    most = FLAP_OPENINGS + FLAP_WINDOW // CALM_AFTER
    assert all(sum(at <= other < at + FLAP_WINDOW for other in opened) <= most for at in opened)


@given(policies, looks)
def test_nothing_is_reported_of_what_did_not_last(policy: Policy, steps: list[tuple[int, Sight]]) -> None:
    teller = Teller(policy)
    now, wrong_since = NOON, None
    for gap, sight in steps:
        now += gap * MINUTE
        wrong_since = (wrong_since or now) if sight is WRONG else None
        if teller.look(sight, now) is AlertMessage.OPENED:
            assert wrong_since is not None
            assert teller.course is not None
            assert teller.course.fired_at is not None
            assert teller.course.fired_at - teller.course.began_at >= policy.hold


def test_sixty_four_onus_of_one_port_are_one_group() -> None:
    onus = [(("olt 1", "0/1/3"), number) for number in range(64)]

    assert group_by_place(onus) == [list(range(64))]


def test_many_ports_become_their_olts_and_many_olts_become_one() -> None:
    ports = [((f"olt {number // 8}", f"0/1/{number % 8}"), number) for number in range(16)]
    olts = [((f"olt {number}", "0/1/1"), number) for number in range(MAX_MESSAGES + 1)]

    assert group_by_place(ports) == [list(range(8)), list(range(8, 16))]
    assert group_by_place(olts) == [list(range(MAX_MESSAGES + 1))]


@given(st.lists(st.lists(st.sampled_from("abcdefgh"), max_size=3).map(tuple)))
def test_everything_is_in_one_group_and_groups_are_few(paths: list[tuple[str, ...]]) -> None:
    groups = group_by_place(list(zip(paths, range(len(paths)), strict=True)))

    assert sorted(number for group in groups for number in group) == list(range(len(paths)))
    assert len(groups) <= MAX_MESSAGES
