"""Days of light: what is normal, what became unsteady, what decays together, and what the other direction says."""

import numpy as np
import pytest
from numpy.typing import NDArray

from facho.polling.domain.light import (
    BoxRule,
    LightHint,
    SharedEvent,
    common_decays,
    find_decays,
    find_unsteady,
    hint_of,
    infer_branches,
    normal_of,
    rates_since,
    sum_up_day,
)

Floats = NDArray[np.float64]
READINGS = 288


def day(noise: float = 0.05, onus: int = 3) -> Floats:
    rng = np.random.default_rng(5)
    return np.asarray(-20.0 + rng.normal(0, noise, (onus, READINGS)))


def test_a_day_is_its_median_its_noise_and_how_often_it_was_left() -> None:
    values = day()
    values[1, 30:36] -= 2.0
    values[1, 90:97] -= 2.0
    values[2, 40] -= 5.0  # a slip of the meter

    summed = sum_up_day(values)

    assert summed.median_dbm == pytest.approx([-20.0] * 3, abs=0.02)
    assert summed.noise_db[0] == pytest.approx(0.05, rel=0.15)
    assert summed.jumps.tolist() == [0, 2, 0]


def test_of_a_coarse_meter_and_of_a_few_readings_no_noise_is_reported() -> None:
    coarse = np.rint(day(0.3) / 0.5) * 0.5
    few = np.full((1, READINGS), np.nan)
    few[0, :10] = -20.0

    assert np.isnan(sum_up_day(coarse).noise_db).all()
    assert np.isnan(sum_up_day(few).noise_db).all()
    assert np.isnan(sum_up_day(few).jumps).all()


def test_noise_that_grew_is_reported_by_its_factor_and_other_noise_is_not() -> None:
    noise = np.full((3, 20), 0.08)
    noise[1, -3:] = 0.24
    noise[2, -1] = 0.24  # one day is no change

    growth = find_unsteady(noise, np.zeros((3, 20))).noise_growth

    assert growth[1] == pytest.approx(3.0)
    assert np.isnan(growth[[0, 2]]).all()


def test_light_flaps_as_long_as_it_leaves_its_level_every_day() -> None:
    jumps = np.zeros((3, 10))
    jumps[0, -4:] = 9
    jumps[1, 2:6] = 9
    jumps[2, -1] = 3

    assert find_unsteady(np.full((3, 10), 0.1), jumps).flapping_days.tolist() == [4, 0, 0]


def test_what_is_normal_is_unknown_at_first_and_then_known_by_the_own_past() -> None:
    rng = np.random.default_rng(2)
    days = -21.0 + rng.normal(0, 0.1, 20)

    assert normal_of(days[:6], np.full(6, 0.1)) is None
    normal = normal_of(days, np.full(20, 0.1))
    assert normal is not None
    assert normal.dbm == pytest.approx(-21.0, abs=0.1)
    assert 0.3 <= normal.range_db < 0.8


@pytest.mark.parametrize(
    ("down", "up", "error", "hint"),
    [
        (2.0, 2.0, 0.05, LightHint.CONNECTOR),
        (2.0, 1.0, 0.05, LightHint.BEND),
        (2.0, 0.0, 0.05, LightHint.RECEIVER),
        (0.2, 2.0, 0.05, LightHint.TRANSMITTER),
        (2.0, 1.4, 0.20, LightHint.UNKNOWN),
        (0.3, 0.3, 0.01, LightHint.UNKNOWN),
        (2.0, float("nan"), 0.05, LightHint.UNKNOWN),
    ],
)
def test_the_other_direction_hints_at_the_cause_where_it_is_clear(
    down: float, up: float, error: float, hint: LightHint
) -> None:
    assert hint_of(down, up, error) is hint


def falling(onus: int, hit: list[int], *, rate: float = 0.1, since: int = 12, days: int = 30) -> Floats:
    rng = np.random.default_rng(9)
    daily = -20.0 + rng.normal(0, 0.02, (onus, days))
    daily[hit] -= rate * np.maximum(np.arange(days) - since, 0)
    return np.asarray(daily)


def test_onus_that_decay_since_the_same_day_are_one_branch() -> None:
    decays = find_decays(falling(12, [2, 3, 4, 5]))

    (branch,) = common_decays(decays)

    assert np.flatnonzero(branch.members).tolist() == [2, 3, 4, 5]
    assert branch.rate_db == pytest.approx(0.1, rel=0.1)
    assert branch.confidence > 0.9


def test_decays_of_different_times_or_of_two_onus_are_no_branch() -> None:
    daily = falling(12, [2], since=2) + falling(12, [3], since=10) + falling(12, [4], since=18) + 40.0
    two = find_decays(falling(12, [2, 3]))

    assert list(common_decays(find_decays(daily))) == []
    assert list(common_decays(two)) == []


def test_who_shares_the_box_joins_on_weaker_evidence() -> None:
    daily = falling(12, [2, 3, 4])
    daily[5] -= 0.055 * np.maximum(np.arange(30) - 12, 0) * 0.9
    daily[5] += np.random.default_rng(1).normal(0, 0.09, 30)
    decays = find_decays(daily)
    box = np.where(np.isin(np.arange(12), [2, 3, 4, 5]), 1, 0)

    (alone,), (known,) = common_decays(decays), common_decays(decays, box)

    assert set(np.flatnonzero(alone.members)) <= set(np.flatnonzero(known.members))
    assert not known.members[box == 0].any()


def test_the_rate_of_the_other_direction_is_known_where_it_is_read() -> None:
    daily = falling(3, [1], rate=0.2)
    daily[2] = np.nan

    rate, _ = rates_since(daily, np.full(3, 12))

    assert rate[:2] == pytest.approx([0.0, 0.2], abs=0.02)
    assert np.isnan(rate[2])


def mask(which: list[int], onus: int = 6) -> NDArray[np.bool_]:
    return np.isin(np.arange(onus), which)


def test_what_a_person_says_wins_over_distance_and_events_and_the_latest_over_the_earlier() -> None:
    distance = np.array([1000, 1010, 1020, 1900, 1910, 1920], dtype=float)
    events = [SharedEvent(mask([0, 1, 2]), mask([3, 4, 5]))] * 5
    move = BoxRule(mask([0, 3, 4, 5]), mask([1, 2]))
    back = BoxRule(mask([0, 1, 2]), mask([3, 4, 5]))

    moved, again = (infer_branches(distance, events, rules).box for rules in ([move], [move, back]))

    assert moved[0] == moved[3] == moved[5] != moved[1] == moved[2]
    assert again.tolist() == infer_branches(distance, events).box.tolist()
