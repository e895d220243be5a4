"""Steps need two polls, common ones are one cause, decays are reported with their forecast, and weather is neither."""

import numpy as np
import pytest
from numpy.typing import NDArray

from facho.polling.domain.light import (
    COMMON_ONUS,
    CommonStep,
    Decays,
    LightWatch,
    common_steps,
    find_decays,
    settle,
    since_last_jump,
    watch_light,
)

Floats = NDArray[np.float64]
PORT = np.zeros(8, dtype=np.int64)


def noisy(level: Floats, polls: int, *, seed: int = 7) -> Floats:
    rng = np.random.default_rng(seed)
    return np.asarray(level[:, np.newaxis] + rng.normal(0.0, 0.06, (len(level), polls)))


def played(values: Floats, ports: NDArray[np.int64] = PORT) -> list[tuple[int, CommonStep]]:
    """Watch every poll; return common steps with the number of the poll that showed them."""
    state, found = LightWatch.new(len(values)), []
    for poll in range(values.shape[1]):
        state, steps = watch_light(state, values[:, poll])
        for step in common_steps(steps, ports):
            state = settle(state, step, steps)
            found.append((poll, step))
    return found


def test_light_lost_together_is_one_step_with_the_second_poll() -> None:
    values = noisy(np.linspace(-19, -24, 8), 40)
    values[2:6, 30:] -= 3.1

    ((poll, step),) = played(values)

    assert poll == 31
    assert np.flatnonzero(step.members).tolist() == [2, 3, 4, 5]
    assert step.size_db == pytest.approx(-3.1, abs=0.15)


@pytest.mark.parametrize("early", [1, 2, 3])
def test_a_loss_in_the_middle_of_a_poll_is_one_step_of_all_its_onus(early: int) -> None:
    values = noisy(np.linspace(-19, -24, 8), 40)
    values[2 : 2 + early, 30:] -= 3.1
    values[2 + early : 7, 31:] -= 3.1

    ((poll, step),) = played(values)

    assert poll == 31
    assert np.flatnonzero(step.members).tolist() == [2, 3, 4, 5, 6]


def test_a_loss_that_is_over_after_three_polls_has_an_end() -> None:
    values = noisy(np.full(8, -20.0), 60)
    values[:4, 20:23] -= 2.0

    assert [(poll, step.size_db > 0) for poll, step in played(values)] == [(21, False), (24, True)]


def test_a_single_bad_poll_is_no_step() -> None:
    values = noisy(np.full(8, -20.0), 40)
    values[:, 30] -= 5.0

    assert played(values) == []


def test_fewer_onus_than_a_common_cause_needs_are_none() -> None:
    values = noisy(np.full(8, -20.0), 40)
    values[: COMMON_ONUS - 1, 30:] -= 4.0

    assert played(values) == []


def test_a_repair_is_a_step_upwards() -> None:
    values = noisy(np.full(8, -20.0), 60)
    values[:4, 20:40] -= 2.0

    assert [(poll, step.size_db > 0) for poll, step in played(values)] == [(21, False), (41, True)]


def test_onus_of_two_ports_are_two_causes() -> None:
    values = noisy(np.full(8, -20.0), 40)
    values[:, 30:] -= 2.0

    found = played(values, np.repeat([4, 9], 4))

    assert sorted(step.port for _, step in found) == [4, 9]


def test_an_onu_without_readings_neither_steps_nor_breaks_the_others() -> None:
    values = noisy(np.full(8, -20.0), 40)
    values[2:6, 30:] -= 3.0
    values[4, 25:33] = np.nan
    values[7] = np.nan

    ((_, step),) = played(values)

    assert np.flatnonzero(step.members).tolist() == [2, 3, 5]


def test_days_and_slow_weather_are_no_step() -> None:
    polls = np.arange(3 * 288)
    values = noisy(np.full(8, -20.0), len(polls)) + 0.3 * np.sin(2 * np.pi * polls / 288)

    assert played(values) == []


def falling(rates: list[float], days: int, *, since: int = 10) -> Floats:
    rng = np.random.default_rng(3)
    fallen = np.maximum(np.arange(days) - since, 0)
    weather = np.cumsum(rng.normal(0, 0.03, days))
    level = np.full((len(rates), 1), -22.0) - np.array(rates)[:, np.newaxis] * fallen
    return np.asarray(
        level + np.linspace(0.2, 1.0, len(rates))[:, np.newaxis] * weather + rng.normal(0, 0.02, level.shape)
    )


def decays_of(daily: Floats) -> tuple[Decays, list[int]]:
    decays = find_decays(daily)
    return decays, np.flatnonzero(decays.is_decay).tolist()


def test_a_decay_is_reported_with_the_days_that_are_left() -> None:
    decays, decaying = decays_of(falling([0, 0, 0.1, 0, 0, 0], 40))

    soonest, likely, latest = decays.days_to(-27.0)
    left = (-22.0 - 0.1 * 29 + 27) / 0.1
    assert decaying == [2]
    assert soonest[2] < left < latest[2]
    assert likely[2] == pytest.approx(left, rel=0.2)


def test_seasons_are_no_decay() -> None:
    rng = np.random.default_rng(5)
    season = 0.25 * np.sin(2 * np.pi * np.arange(60) / 240)
    daily = -20.0 + season + rng.normal(0, 0.03, (30, 60))

    assert decays_of(daily)[1] == []


def test_a_step_is_no_decay_and_a_repair_ends_one() -> None:
    daily = falling([0, 0, 0, 0, 0, 0.15], 40)
    daily[1, 20:] -= 2.0
    daily[5, 36:] += 4.0

    assert decays_of(daily)[1] == []


def test_days_before_the_last_jump_do_not_count() -> None:
    daily = np.full((1, 10), -20.0)
    daily[0, 5:] = -23.0

    assert np.isfinite(since_last_jump(daily)[0]).tolist() == [False] * 6 + [True] * 4


def test_missing_days_and_onus_without_a_day_are_allowed() -> None:
    daily = falling([0, 0, 0.12, 0, 0, 0], 40)
    daily[2, 15:18] = np.nan
    daily[4] = np.nan

    assert decays_of(daily)[1] == [2]


def test_a_short_past_says_nothing() -> None:
    assert decays_of(falling([0.5] * 6, 5, since=0))[1] == []
