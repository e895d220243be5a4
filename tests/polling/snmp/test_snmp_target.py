"""Targets: numeric, in one spelling, and silent about their secret."""

import pytest

from facho.polling.snmp.target import CHEAP, LIVE, Community, Patience, Target

SECRET = b"s3cr3t"


def test_the_community_shows_nowhere() -> None:
    target = Target("192.0.2.1", Community(SECRET))

    assert "s3cr3t" not in repr(target)
    assert "s3cr3t" not in str(target.credential)


@pytest.mark.parametrize("secret", [b"", b"x" * 256])
def test_a_community_has_a_sensible_length(secret: bytes) -> None:
    with pytest.raises(ValueError, match="community"):
        Community(secret)


def test_an_address_has_one_spelling() -> None:
    target = Target("2001:DB8:0::1", Community(SECRET))

    assert target.address == "2001:db8::1"
    assert target.is_ipv6


@pytest.mark.parametrize(
    "wrong",
    [
        {"address": "olt.example.net"},
        {"address": "192.0.2.1", "port": 0},
        {"address": "192.0.2.1", "port": 65_536},
        {"address": "192.0.2.1", "source_address": "::1"},
        {"address": "192.0.2.1", "source_address": "eth0"},
    ],
)
def test_what_cannot_be_sent_to_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"."):
        Target(credential=Community(SECRET), **wrong)  # type: ignore[arg-type]


def test_live_values_are_waited_for_longer_and_asked_for_less_often() -> None:
    assert (CHEAP.timeout_s, CHEAP.tries) == (5.0, 4)
    assert (LIVE.timeout_s, LIVE.tries) == (20.0, 2)


@pytest.mark.parametrize(("timeout_s", "tries"), [(0.0, 1), (-1.0, 1), (1.0, 0)])
def test_patience_is_positive(timeout_s: float, tries: int) -> None:
    with pytest.raises(ValueError, match="patience"):
        Patience(timeout_s, tries)
