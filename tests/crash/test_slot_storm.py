"""Engines killed and frozen at random, people who change things: every slot that was owed has its fate written down."""

import sys
from json import dumps
from pathlib import Path
from typing import Any

import pytest

from crash.commission import commission

pytestmark = [pytest.mark.slow, pytest.mark.django_db]


def storm(folder: Path, **order: Any) -> dict[str, Any]:
    # Simulated OLTs share this machine: a shorter wait for an answer would take a busy one for silent, and ask again.
    settings = {"FACHO_POLLERS": "6", "FACHO_LEASE_SECONDS": "2", "FACHO_PACKET_TIMEOUT_SECONDS": "1.5"}
    with commission("crash.slot_storm", [order], folder, **settings) as theatre:
        seen = theatre.findings(**order)
    sys.stdout.write(dumps(seen, indent=1))
    assert seen["unaccounted"] == []
    assert (seen["doubled"], seen["unfinished"]) == (0, 0)
    assert (seen["overlaps"], seen["max_in_flight"]) == ([], 1)
    return seen


@pytest.mark.thorough("postgresql")
def test_after_a_storm_of_kills_every_owed_slot_was_served_skipped_or_reported_as_lost(tmp_path: Path) -> None:
    """Audited by steps that the database itself noted, not by the rules that made them."""
    seen = storm(tmp_path, seed=14, engines=1, seconds=30)

    # It was a storm: without these nothing would have been shown.
    assert seen["kills"] >= 3
    assert seen["changes"] >= 10
    assert seen["owed"] > 50
    assert "broken off, reported" in seen["fates"]


@pytest.mark.postgresql
@pytest.mark.parametrize("seconds", [8, pytest.param(40, marks=pytest.mark.thorough)])
def test_engines_that_share_the_olts_and_die_lose_no_slot_and_never_meet_at_an_olt(
    tmp_path: Path, seconds: int
) -> None:
    """Each OLT is served by the pollers of one engine, however often that one dies; the others go on."""
    seen = storm(tmp_path, seed=17, engines=3, seconds=seconds)

    assert all(olt_id % 3 == poller_id % 3 for olt_id, poller_id in seen["servants"])
    assert {poller_id % 3 for _, poller_id in seen["servants"]} == {0, 1, 2}
    assert seen["kills"] >= 2
    assert seen["owed"] > 20
