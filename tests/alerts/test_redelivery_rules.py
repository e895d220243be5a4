"""When a message is tried again."""

from datetime import timedelta

import pytest

from facho.polling.domain.retry import GIVE_UP_AFTER, next_try_at
from factories import NOW


@pytest.mark.parametrize(("tries", "seconds"), [(1, 30), (2, 60), (3, 120), (6, 900), (500, 900)])
def test_pauses_double_up_to_a_quarter_of_an_hour(tries: int, seconds: int) -> None:
    assert next_try_at(tries, written_at=NOW, now=NOW, chance=0.5) == NOW + timedelta(seconds=seconds)


@pytest.mark.parametrize(("chance", "seconds"), [(0.0, 24), (1.0, 36)])
def test_chance_spreads_them_by_a_fifth(chance: float, seconds: int) -> None:
    assert next_try_at(1, written_at=NOW, now=NOW, chance=chance) == NOW + timedelta(seconds=seconds)


def test_after_a_day_it_is_given_up() -> None:
    a_day_later = NOW + GIVE_UP_AFTER

    assert next_try_at(90, written_at=NOW, now=a_day_later - timedelta(seconds=1), chance=0.5) is not None
    assert next_try_at(91, written_at=NOW, now=a_day_later, chance=0.5) is None
