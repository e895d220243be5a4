"""Kill -9 at every moment of a store: all of a run's data or none of it, and nothing to repair by hand.

`crash/store_cell.py` kills the same run before each statement of its finishing transaction, before its commit and
after it. Whoever is killed before leaves nothing behind, and the next try begins where the first one did.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from crash.commission import Theatre, commission

pytestmark = [pytest.mark.slow, pytest.mark.django_db, pytest.mark.thorough("postgresql")]

JOBS = ("inventory", "readings")
# Fewer would mean that the moments were not met.
FEWEST_MOMENTS = 10

Seen = dict[str, Any]


@pytest.fixture(scope="module")
def theatre(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Theatre]:
    """Play both kinds of run."""
    orders = [{"job": job} for job in JOBS]
    with commission("crash.store_cell", orders, tmp_path_factory.mktemp("stores"), at_once=2) as theatre:
        yield theatre


def test_who_is_where_is_stored_whole_or_not_at_all(theatre: Theatre) -> None:
    seen = theatre.findings(job="inventory")

    assert_whole_or_not_at_all(seen)
    assert {"Onu", "OnuEvent", "OnuReading", "OltMemory"} <= set(seen["changed"]), seen
    assert seen["stored_at_its_end"]["events"] == 4, seen
    assert seen["events"] == {"moved": 1, "new": 2, "gone": 1}, seen


def test_readings_events_history_and_outages_are_stored_whole_or_not_at_all(theatre: Theatre) -> None:
    seen = theatre.findings(job="readings")

    assert_whole_or_not_at_all(seen)
    assert {"Onu", "OnuData", "OnuEvent", "OnuReading", "Outage", "HistoryPoll"} <= set(seen["changed"]), seen
    assert all(seen["stored_at_its_end"].values()), seen
    # However often the run was repeated, each ONU has one sample of it.
    assert seen["samples"] == [seen["reads"]], seen
    [(scope, lost, ended_at)] = seen["outages"]
    assert (scope, ended_at) == ("pon", None), seen
    assert seen["events"] == {"down": lost, "power_drop": 1, "description_changed": 1}, seen


def assert_whole_or_not_at_all(seen: Seen) -> None:
    assert seen["torn"] == [], seen
    assert seen["killed"] >= FEWEST_MOMENTS, seen
    # Who was killed right after the commit had stored everything: nobody did it again.
    assert seen["attempts"] == ["FAILED"] * (seen["killed"] - 1) + ["SUCCESS"], seen
    # The next run went on as if nothing had been.
    assert (seen["last"], seen["busy_pollers"], seen["active"]) == ("SUCCESS", 0, 0), seen
