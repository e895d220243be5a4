"""Light drifts slowly, repeatably and within what an OLT can report."""

from itertools import pairwise

from world_factory import make_world

from facho.simulator.readings import DAY_SECONDS, DRIFT_STEP_SECONDS, FLOOR_DBM, read_optics


def test_readings_are_the_same_within_a_step() -> None:
    onu = next(make_world().onus)

    assert read_optics(onu, at=0.0) == read_optics(onu, at=DRIFT_STEP_SECONDS - 0.001)


def test_power_drifts_a_little_from_step_to_step() -> None:
    onu = next(make_world().onus)
    powers = [read_optics(onu, at=step * DRIFT_STEP_SECONDS).rx_dbm for step in range(600)]

    assert len(set(powers)) > 50
    assert max(abs(after - before) for before, after in pairwise(powers)) < 0.3
    assert max(powers) - min(powers) < 1.5


def test_a_fading_onu_gets_darker_until_nothing_is_left() -> None:
    onu = next(make_world().onus)
    onu.fade_db_per_day = 2.0

    start, later, at_last = (read_optics(onu, at=days * DAY_SECONDS).rx_dbm for days in (0, 3, 60))

    assert later < start - 4
    assert at_last == FLOOR_DBM


def test_all_readings_are_believable() -> None:
    for onu in make_world(onus=200).onus:
        optics = read_optics(onu, at=5_000.0)

        assert -40 < optics.rx_dbm < -8
        assert 1 < optics.tx_dbm < 5
        assert 20 < optics.temperature_c < 75
        assert 3.2 < optics.voltage_v < 3.4
        assert 5 < optics.bias_ma < 25
