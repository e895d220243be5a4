"""The bench of light counts right by hand-made cases, and its rules keep floors on a small plant."""

import numpy as np
import pytest
from bench.light import (
    CALM,
    PORTS,
    SEEDS,
    SETTINGS,
    TUNING_SEEDS,
    Found,
    Score,
    TrueDecay,
    count_openings,
    count_right,
    describe,
    dropped_by,
    dumb_failures,
    rand_index,
    score_weekly_lines,
    true_decays,
    watch_ports,
)
from bench.plant import PlantSettings, PortReadings, simulate_port
from numpy.typing import NDArray

from facho.alerts.conditions.weak_light import WEAK_LIGHT
from facho.simulator.plant import DAY_SECONDS, PlantFault, TrueFault

POLL_SECONDS = 300
DAY_POLLS = DAY_SECONDS // POLL_SECONDS


def mask(*members: int, onus: int = 6) -> NDArray[np.bool_]:
    return np.isin(np.arange(onus), members)


def readings(*faults: TrueFault, polls: int = 20, onus: int = 6) -> PortReadings:
    """Six ONUs at -20 dBm, read every five minutes, all at once."""
    at = np.tile(np.arange(polls) * float(POLL_SECONDS), (onus, 1))
    light = np.full((onus, polls), -20.0)
    for fault in faults:
        light[fault.members] -= fault.lost_db(at[fault.members])[0]
    dark = np.zeros(light.shape, dtype=bool)
    return PortReadings(at, light, light.copy(), np.zeros(onus), dark, np.zeros(onus, dtype=np.int64), light, faults)


def step(poll: float, *members: int) -> TrueFault:
    return TrueFault(PlantFault.BRANCH_STEP, poll * POLL_SECONDS, 1e9, mask(*members), 3.0)


def test_seeds_that_rules_are_tuned_on_are_not_those_that_judge_them() -> None:
    assert not set(TUNING_SEEDS) & set(SEEDS)
    assert len(set(SEEDS)) == 3


def test_what_is_promised_is_measured_on_200_ports_for_90_days_and_its_title_shows_it() -> None:
    seeds = [Score(ports=PORTS, onus=4_000, inside_range=[True], dumb_tree_scores=[0.5]) for _ in SEEDS]

    title = describe(seeds).title

    assert (PORTS, SETTINGS.days, CALM.days) == (200, 90, 90)
    assert title == "Light of a simulated plant: 200 ports of each of 3 seeds, 90 days, 12,000 ONUs"


@pytest.mark.parametrize(
    ("one", "other", "index"),
    [
        ([0, 0, 1, 1], [1, 1, 0, 0], 1.0),
        ([0, 0, 0, 0], [0, 0, 0, 0], 1.0),
        ([0, 0, 1, 1], [0, 1, 0, 1], -0.5),
        ([0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 2, 2], 0.2424),
    ],
)
def test_the_adjusted_rand_index_is_one_for_the_same_and_about_zero_by_chance(
    one: list[int], other: list[int], index: float
) -> None:
    assert rand_index(np.array(one), np.array(other)) == pytest.approx(index, abs=1e-4)
    assert rand_index(np.array(other), np.array(one)) == pytest.approx(index, abs=1e-4)


def test_groups_by_chance_are_worth_nothing_on_average() -> None:
    rng = np.random.default_rng(1)
    indices = [rand_index(rng.integers(0, 4, 60), rng.integers(0, 4, 60)) for _ in range(200)]

    assert abs(float(np.mean(indices))) < 0.02


@pytest.mark.parametrize(
    ("found", "right"),
    [
        ([Found(10, mask(0, 1, 2))], 1),
        ([Found(11, mask(0, 1, 2))], 1),
        # Too late, too early, and other ONUs.
        ([Found(12, mask(0, 1, 2))], 0),
        ([Found(9, mask(0, 1, 2))], 0),
        ([Found(11, mask(2, 3, 4))], 0),
        # Three of four are alike enough, two of five are not.
        ([Found(11, mask(0, 1, 2, 3))], 1),
        ([Found(11, mask(0, 1, 3, 4, 5))], 0),
        # The same failure is found once.
        ([Found(10, mask(0, 1, 2)), Found(11, mask(0, 1, 2))], 1),
        ([], 0),
    ],
)
def test_a_failure_is_found_by_its_onus_within_two_polls(found: list[Found], right: int) -> None:
    fault = step(9.5, 0, 1, 2)

    assert count_right(readings(fault), [fault], found) == right


def test_two_failures_need_two_findings() -> None:
    faults = [step(9.5, 0, 1, 2), step(9.5, 3, 4, 5)]
    port = readings(*faults)

    assert count_right(port, faults, [Found(10, mask(0, 1, 2))]) == 1
    assert count_right(port, faults, [Found(10, mask(0, 1, 2)), Found(10, mask(3, 4, 5))]) == 2


def test_fixed_thresholds_name_every_drop_of_three_db_at_its_poll() -> None:
    (found,) = dumb_failures(readings(TrueFault(PlantFault.BRANCH_STEP, 2_700.0, 1e9, mask(0, 1), 3.5)))

    assert (found.poll, found.members.tolist()) == (9, mask(0, 1).tolist())


def test_what_a_rule_names_of_one_port_is_not_of_the_next() -> None:
    quiet, hit = readings(polls=40), readings(step(25.5, 0, 1, 2), polls=40)

    first, second = watch_ports([quiet, hit])

    assert (first.common, first.alone) == ([], [])
    ((named,), _) = second.common, second.alone
    assert (named.poll, named.members.tolist()) == (27, mask(0, 1, 2).tolist())


def test_a_true_decay_is_the_line_of_the_true_light() -> None:
    polls = SETTINGS.polls
    fault = TrueFault(PlantFault.AGEING, 10.0 * DAY_SECONDS, 50.0 * DAY_SECONDS, mask(1), 0.1)

    (decay,) = true_decays(readings(fault, polls=polls))[1]

    assert (decay.first, decay.last) == (11, 50)
    assert decay.rate == pytest.approx(-0.1, rel=0.08)
    # From -20 dBm on it takes 70 days to -27 dBm, 40 of which are over.
    assert decay.days_left(50) == pytest.approx(7 / -decay.rate - 40, abs=1.0)


def test_the_weekly_line_is_judged_on_every_onu_that_it_names_by_itself() -> None:
    days = np.arange(SETTINGS.days)
    # One decays, one fell within a week for another reason, one falls too slowly to be named, one is weak already.
    daily = np.stack(
        [
            -24 - 0.1 * np.maximum(days - 10, 0),
            np.where(days < 40, -25.0, -26.0),
            -22 - 0.01 * days,
            -27.5 - 0.01 * days,
        ]
    )
    truth = {0: [TrueDecay(10, 89, -0.1, -23.0)]}
    score = Score()

    score_weekly_lines(daily, truth, score)

    # The decay crosses the limit on day 40; the step is named within its week, on both sides of a month's end.
    assert (score.dumb_forecasts_right, score.dumb_forecasts_wrong) == (2, 1)
    assert max(score.dumb_own_errors[10:]) < 0.01


def beyond(*runs: tuple[int, float]) -> NDArray[np.float64]:
    """A day without anything, and then so many polls of each value."""
    return np.array([[*[-5.0] * DAY_POLLS, *(value for polls, value in runs for _ in range(polls))]])


@pytest.mark.parametrize(
    ("runs", "sent"),
    [
        ([(3, 1.0), (9, -5.0)], 0),
        ([(4, 1.0), (9, -5.0)], 1),
        # Unknown ends what was not sent yet, and nothing that was.
        ([(3, 1.0), (1, np.nan), (3, 1.0)], 0),
        ([(4, 1.0), (20, np.nan), (9, 1.0)], 1),
        # Within its margin, or fine for less than half an hour, it is the same alert.
        ([(4, 1.0), (40, -0.5), (9, 1.0)], 1),
        ([(4, 1.0), (6, -5.0), (9, 1.0)], 1),
        ([(4, 1.0), (7, -5.0), (9, 1.0)], 2),
    ],
)
def test_alerts_of_weak_light_are_counted_as_rules_open_and_end_them(runs: list[tuple[int, float]], sent: int) -> None:
    assert count_openings(beyond(*runs), WEAK_LIGHT) == sent


def test_a_power_step_is_measured_from_the_level_of_the_last_day() -> None:
    hour = 3_600 // POLL_SECONDS
    light = np.array([[*[-20.0] * hour, *[-22.0] * hour, *[-23.5] * hour, *[-26.8] * hour, *[-26.8] * 26 * hour]])

    dropped = dropped_by(light)[0, hour // 2 :: hour]

    # Two decibels are no event; 3.5 are, and 3.3 more from the higher of both levels; after a day it is normal.
    assert np.isneginf(dropped[:2]).all()
    assert dropped[2:4].tolist() == pytest.approx([3.5, 6.8])
    assert np.isneginf(dropped[-1])


def test_seeds_add_up() -> None:
    whole = Score(found=1, tree_scores=[0.5])
    whole.add(Score(found=2, tree_scores=[0.7], false_alarms=3))

    assert (whole.found, whole.tree_scores, whole.false_alarms) == (3, [0.5, 0.7], 3)


@pytest.mark.parametrize("seed", TUNING_SEEDS)
def test_a_small_plant_keeps_floors_for_branch_failures(seed: str) -> None:
    ports = [simulate_port(f"{seed}/{number}", PlantSettings(days=20)) for number in range(8)]

    found = [its.common for its in watch_ports(ports)]

    failures = [[fault for fault in port.faults if fault.kind is PlantFault.BRANCH_STEP] for port in ports]
    right = sum(count_right(*each) for each in zip(ports, failures, found, strict=True))
    assert sum(map(len, failures)) >= 3
    assert right / sum(map(len, failures)) >= 0.8
    assert right / sum(map(len, found)) >= 0.9
