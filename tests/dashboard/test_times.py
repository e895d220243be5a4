"""Moments as people read them on a clock."""

from datetime import UTC, datetime

import pytest
from django.utils import timezone

from facho.dashboard.shared.hour import zone_in_short
from facho.dashboard.templatetags.facho_words import job_name

NOON = datetime(2030, 5, 6, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("zone", "words"),
    [
        ("UTC", "UTC"),
        ("America/Bogota", "UTC\N{MINUS SIGN}5"),
        ("America/St_Johns", "UTC\N{MINUS SIGN}2:30"),
        ("Asia/Kathmandu", "UTC+5:45"),
    ],
)
def test_a_zone_is_named_by_its_distance(zone: str, words: str) -> None:
    with timezone.override(zone):
        assert zone_in_short(NOON) == words


def test_two_jobs_of_one_name_are_told_apart() -> None:
    names = {"walk_inventory": "Read models", "get_inventory": "Read models", "get_power": "Read light"}

    assert job_name("walk_inventory", names) == "Read models · walk_inventory"
    assert job_name("get_power", names) == "Read light"
    assert job_name("get_gone", names) == "get_gone"
