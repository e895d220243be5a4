"""Whether an OLT's work fits into the hour, and what to relax when it does not."""

from hypothesis import given
from hypothesis import strategies as st

from facho.polling.domain.feasibility import NICE_INTERVALS_SECONDS, Blocked, Need, Relaxation, judge_feasibility


def need(node_id: int, interval_seconds: int, seconds: float, holds_seconds: float | None = None) -> Need:
    return Need(node_id, interval_seconds, seconds, seconds if holds_seconds is None else holds_seconds)


def test_work_is_added_up_in_minutes_of_the_hour() -> None:
    """Discovery for 10 s every 5 min and an optical pass of 8 min every hour."""
    judged = judge_feasibility([need(1, 300, 10), need(2, 3_600, 480, holds_seconds=90)])

    assert judged.minutes_per_hour == 10
    assert judged.share == 10 / 60
    assert judged.fits
    assert judged.relaxations == ()


def test_each_way_out_is_named_and_the_cheapest_stands_first() -> None:
    """71 minutes: states of 4 min 45 s every 5 min, and an optical pass of 14 min every hour."""
    judged = judge_feasibility([need(1, 300, 285, 60), need(2, 3_600, 840, 90)])

    assert judged.minutes_per_hour == 71
    assert not judged.fits
    assert judged.relaxations == (Relaxation(1, 300, 600, 28.5), Relaxation(2, 3_600, 21_600, 14 - 14 / 6))
    assert not judged.are_needed_together


def test_several_are_relaxed_when_none_alone_is_enough() -> None:
    judged = judge_feasibility([need(number, 300, 300, 60) for number in (1, 2, 3)])

    assert judged.minutes_per_hour == 180
    assert judged.are_needed_together
    assert {relaxation.node_id for relaxation in judged.relaxations} == {1, 2, 3}
    assert sum(relaxation.saves_minutes_per_hour for relaxation in judged.relaxations) >= 120


def test_a_run_that_is_longer_than_anothers_interval_does_not_fit_although_the_minutes_do() -> None:
    judged = judge_feasibility([need(1, 300, 10), need(2, 3_600, 480)])

    assert judged.minutes_per_hour == 10
    assert judged.blocked == (Blocked(1, by_node_id=2, seconds=480),)
    assert judged.relaxations == (Relaxation(1, 300, 600, 1),)


def test_what_can_never_fit_is_relaxed_as_far_as_it_goes() -> None:
    judged = judge_feasibility([need(1, 300, 100_000), need(2, 300, 1)])

    assert not judged.fits
    assert Relaxation(1, 300, 86_400, judged.relaxations[0].saves_minutes_per_hour) in judged.relaxations


def test_nothing_to_do_fits() -> None:
    assert judge_feasibility([]).fits


needs = st.lists(
    st.tuples(st.sampled_from((60, *NICE_INTERVALS_SECONDS)), st.floats(0, 4_000), st.floats(0, 1)), max_size=5
).map(
    lambda rows: [
        Need(number, interval, seconds, seconds * share) for number, (interval, seconds, share) in enumerate(rows)
    ]
)


@given(needs)
def test_doing_what_is_proposed_makes_it_fit(wanted: list[Need]) -> None:
    judged = judge_feasibility(wanted)

    changes = [list(judged.relaxations)] if judged.are_needed_together else [[one] for one in judged.relaxations]
    for together in changes:
        intervals = {one.node_id: one.interval_seconds for one in together}
        after = [
            need(n.node_id, intervals.get(n.node_id, n.interval_seconds), n.seconds, n.holds_seconds) for n in wanted
        ]
        still_shortest = all(n.interval_seconds >= 86_400 for n in after)
        assert judge_feasibility(after).fits or still_shortest
