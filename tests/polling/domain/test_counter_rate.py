"""Traffic is what a counter gained between two readings."""

from datetime import timedelta

import pytest

from facho.polling.domain.collection import per_second
from factories import NOW


@pytest.mark.parametrize(
    ("before", "after", "seconds", "rate"),
    [
        (1_000, 4_000, 300, 10.0),
        (1_000, 1_000, 300, 0.0),
        (4_000, 1_000, 300, None),  # cleared, or come around
        (1_000, 4_000, 0, None),  # read twice at once
        (1_000, 4_000, -60, None),  # the clock was set back
    ],
)
def test_growth_is_reported_only_when_it_is_known(before: int, after: int, seconds: int, rate: float | None) -> None:
    now = NOW + timedelta(seconds=seconds)

    assert per_second(before, after, read_before=NOW, now=now) == rate
