"""People write 90s, 5m or 1h where the product counts seconds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facho.polling.domain.schedule import format_interval, parse_interval


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90),
        ("5m", 300),
        ("1h", 3_600),
        ("1d", 86_400),
        ("1h30m", 5_400),
        ("1h 30", 3_630),
        (" 10 M ", 600),
        ("300", 300),
        ("0", 0),
    ],
)
def test_an_interval_is_read_as_people_write_it(text: str, seconds: int) -> None:
    assert parse_interval(text) == seconds


@pytest.mark.parametrize("text", ["", " ", "m", "5x", "-5m", "5m1h", "1.5h", "5 m s", "٣m", "9" * 30])
def test_what_is_no_interval_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="interval"):
        parse_interval(text)


@pytest.mark.parametrize(("seconds", "text"), [(300, "5m"), (90, "1m30s"), (3_600, "1h"), (90_000, "1d1h"), (0, "0s")])
def test_an_interval_is_written_in_its_largest_units(seconds: int, text: str) -> None:
    assert format_interval(seconds) == text


@given(st.integers(0, 366 * 86_400))
def test_what_is_written_is_read_again(seconds: int) -> None:
    assert parse_interval(format_interval(seconds)) == seconds
