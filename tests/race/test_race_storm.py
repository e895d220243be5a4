"""OLTs with five masters each, all due at once, four schedulers without a leader: the database alone decides."""

from pathlib import Path

import pytest

from crash.commission import commission

pytestmark = [pytest.mark.slow, pytest.mark.django_db]

MASTERS, SCHEDULERS = 5, 4


@pytest.mark.parametrize("olts", [15, pytest.param(50, marks=pytest.mark.thorough)])
def test_a_storm_of_schedulers_loses_no_run_doubles_none_and_asks_each_olt_one_thing_at_a_time(
    tmp_path: Path, olts: int
) -> None:
    """S0-02, S0-13, S0-25, S1-01, S4-15, S4-17: counted at the devices."""
    order = {"olts": olts, "schedulers": SCHEDULERS}
    settings = {"FACHO_POLLERS": "20", "FACHO_PACKET_TIMEOUT_SECONDS": "3"}

    with commission("race.storm", [order], tmp_path, **settings) as theatre:
        seen = theatre.findings(**order)

    assert seen["masters"] == olts * MASTERS
    assert (seen["lost"], seen["doubled"], seen["unaccounted"]) == ([], [], []), seen
    assert seen["histories"] == ["PENDING RUNNING SUCCESS", "RUNNING SUCCESS"], seen
    assert (seen["slots"], seen["next_slots"]) == (["0:00:00"], ["1:00:00"]), seen
    assert (seen["overlaps"], seen["strays"], seen["max_in_flight"]) == ([], [], 1), seen
    assert len(seen["runs_by_process"]) > 1, f"only one scheduler did anything: {seen}"
