"""A machine is frozen for three leases while it polls, and its monotonic clock with it; others poll meanwhile."""

import os
from pathlib import Path

import pytest

from crash.commission import commission

pytestmark = [pytest.mark.slow, pytest.mark.django_db]

OLTS = 30
# TEST_FREEZES=20 is what a release is judged by.
MANY = int(os.environ.get("TEST_FREEZES", "4"))
SETTINGS = {"FACHO_LEASE_SECONDS": "2", "FACHO_PACKET_TIMEOUT_SECONDS": "1", "FACHO_POLLERS": "15"}


@pytest.mark.parametrize("freezes", [2, pytest.param(MANY, marks=pytest.mark.thorough)])
def test_a_machine_that_was_frozen_sends_nothing_that_others_do_not_expect(tmp_path: Path, freezes: int) -> None:
    """D7: counted at the devices; nobody believes a monotonic clock that stood still."""
    order = {"olts": OLTS, "freezes": freezes}

    with commission("race.frozen", [order], tmp_path, **SETTINGS) as theatre:
        seen = theatre.findings(**order)

    assert (seen["overlaps"], seen["strays"]) == ([], []), seen
    assert seen["taken_over"] >= freezes, f"nobody went on with what was frozen: {seen}"
    assert seen["succeeded"] >= OLTS, seen
