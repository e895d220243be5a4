"""What a dead engine left at an OLT is waited for: an agent never works on two questions of ours."""

from pathlib import Path

import pytest

from crash.commission import commission

pytestmark = [pytest.mark.slow, pytest.mark.django_db, pytest.mark.thorough("postgresql")]

SETTINGS = {"FACHO_LEASE_SECONDS": "20", "FACHO_PACKET_TIMEOUT_SECONDS": "4", "FACHO_POLLERS": "2"}


def test_the_next_engine_waits_for_the_question_that_its_predecessor_left(tmp_path: Path) -> None:
    """Counted at the device, whose answers take most of the time-out."""
    order = {"engines": 3}

    with commission("race.left_questions", [order], tmp_path, **SETTINGS) as theatre:
        seen = theatre.findings(**order)

    assert (seen["max_in_flight"], seen["is_served"]) == (1, True), seen
