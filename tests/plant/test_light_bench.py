"""The bench of light counts right by hand-made cases, and its rules keep floors on a small plant."""

import numpy as np
import pytest
from bench.light import (
    SEEDS,
    SETTINGS,
    TUNING_SEEDS,
    Found,
    Score,
    count_right,
    dumb_failures,
    rand_index,
    true_decays,
    watch_ports,
)
from bench.plant import PlantSettings, PortReadings, simulate_port
from numpy.typing import NDArray

from facho.simulator.plant import DAY_SECONDS, PlantFault, TrueFault

POLL_SECONDS = 300


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
