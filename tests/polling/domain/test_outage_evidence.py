"""What speaks for a cause: who said what, and how close together they went."""

from datetime import timedelta

import pytest

from facho.polling.domain.onu_state import DownCause
from facho.polling.domain.outages import Departure, weigh_departures
from factories import NOW


def departure(onu_id: int, seconds: float = 0, cause: DownCause = DownCause.LOS) -> Departure:
    return Departure(onu_id, NOW + timedelta(seconds=seconds), cause)


def test_onus_are_counted_by_what_they_said() -> None:
    causes = [DownCause.DYING_GASP, DownCause.POWER_OFF, DownCause.LOS, DownCause.RESET, DownCause.UNKNOWN]

    evidence = weigh_departures(departure(number, cause=cause) for number, cause in enumerate(causes))

    assert (evidence.power, evidence.signal, evidence.other, evidence.without_cause) == (2, 1, 1, 1)
    assert (evidence.together, evidence.spread) == (5, timedelta(0))


def test_one_straggler_does_not_stretch_the_time_in_which_the_others_went() -> None:
    evidence = weigh_departures([departure(0, 900), *(departure(number, number) for number in range(1, 20))])

    assert (evidence.together, evidence.spread) == (18, timedelta(seconds=17))


def test_an_onu_counts_once_by_its_first_word() -> None:
    evidence = weigh_departures([departure(1, 60, DownCause.DYING_GASP), departure(1, 0, DownCause.LOS)])

    assert (evidence.total, evidence.signal, evidence.power) == (1, 1, 0)


def test_nobody_seen_is_no_evidence() -> None:
    evidence = weigh_departures([])

    assert (evidence.total, evidence.without_cause, evidence.together) == (0, 0, 0)


def test_a_gasp_that_only_a_trap_said_is_counted_apart_and_leaves_the_cause() -> None:
    lost = [departure(1), departure(2), departure(3, cause=DownCause.DYING_GASP)]
    gasps = {number: [NOW - timedelta(seconds=2)] for number in (1, 2, 3, 4)}

    evidence = weigh_departures(lost, gasps)

    assert (evidence.announced, evidence.signal, evidence.power) == (2, 2, 1)
    assert evidence.hints_at_power


@pytest.mark.parametrize(("seconds", "counts"), [(-601, 0), (-600, 1), (60, 1), (61, 0)])
def test_a_gasp_belongs_to_a_departure_near_it(seconds: float, counts: int) -> None:
    evidence = weigh_departures([departure(1)], {1: [NOW + timedelta(seconds=seconds)]})

    assert evidence.announced == counts


def test_few_announced_gasps_do_not_hint_at_power() -> None:
    evidence = weigh_departures([departure(number) for number in range(10)], {1: [NOW]})

    assert (evidence.announced, evidence.hints_at_power) == (1, False)
