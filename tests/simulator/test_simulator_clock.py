"""World time runs at its own speed and may be skipped."""

import pytest

from facho.simulator.server import WorldClock


def test_a_new_clock_stands_at_the_beginning() -> None:
    assert 0 <= WorldClock().now() < 1


def test_skipped_time_has_passed() -> None:
    clock = WorldClock()

    clock.skip(3_600)

    assert 3_600 <= clock.now() < 3_601


def test_a_faster_clock_is_ahead() -> None:
    fast, slow = WorldClock(speed=1e6), WorldClock(speed=1e-6)

    assert fast.now() > slow.now()


def test_time_does_not_run_backwards() -> None:
    with pytest.raises(ValueError, match="back"):
        WorldClock().skip(-1)
