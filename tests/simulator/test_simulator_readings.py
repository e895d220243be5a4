"""What is reported for a key, from the most telling word to the plainest."""

from datetime import UTC, datetime

import pytest
from world_factory import make_world

from facho.polling.domain.onu_state import DownCause, RunState
from facho.polling.vendors.loader import load_definitions
from facho.polling.vendors.vocabulary import PhaseState
from facho.simulator.personality import encode_first
from facho.simulator.readings import BOARD_READINGS, PORT_READINGS, Candidates, Moment, plain_reading
from facho.simulator.world import SimulatedOnu

HUAWEI = load_definitions()["huawei_smartax"]


def read(onu: SimulatedOnu, key: str) -> Candidates:
    reading = Moment(make_world(), datetime(2030, 1, 1, tzinfo=UTC)).onu_reading(key)
    assert reading is not None
    return reading(onu)


def absent(cause: DownCause) -> SimulatedOnu:
    onu = next(make_world().onus)
    onu.state = RunState.OFFLINE
    onu.last_down_cause = cause
    return onu


def test_phases_say_why_an_onu_is_away() -> None:
    assert read(next(make_world().onus), "onu.phase_state") == (PhaseState.WORKING,)
    assert read(absent(DownCause.LOS), "onu.phase_state")[0] is PhaseState.LOS
    assert read(absent(DownCause.DYING_GASP), "onu.phase_state")[0] is PhaseState.DYING_GASP


def test_a_family_without_dying_gasp_hears_of_lost_power() -> None:
    candidates = read(absent(DownCause.DYING_GASP), "onu.last_down_cause")

    assert candidates[:2] == (DownCause.DYING_GASP, DownCause.POWER_OFF)


def test_an_onu_that_never_failed_has_no_cause_or_an_unknown_one() -> None:
    assert read(next(make_world().onus), "onu.last_down_cause") == (None, DownCause.UNKNOWN)


@pytest.mark.parametrize("key", ["onu.rx_power", "onu.temperature", "onu.bias"])
def test_an_absent_onu_has_no_readings(key: str) -> None:
    assert read(absent(DownCause.LOS), key) == (None,)


def test_keys_that_no_onu_has_are_unknown() -> None:
    moment = Moment(make_world(), datetime(2030, 1, 1, tzinfo=UTC))

    assert moment.onu_reading("onu.favourite_colour") is None
    assert "pon.favourite_colour" not in PORT_READINGS
    assert "board.favourite_colour" not in BOARD_READINGS


def test_the_first_word_that_a_column_can_say_is_said() -> None:
    column = HUAWEI.column("onu.last_down_cause")

    typed = encode_first(column, (DownCause.POWER_OFF, DownCause.DYING_GASP, DownCause.LOS))

    assert typed is not None
    assert column.decode(*typed).value is DownCause.DYING_GASP


def test_a_column_that_can_say_nothing_of_it_stays_empty() -> None:
    assert encode_first(HUAWEI.column("onu.run_state"), (None, PhaseState.WORKING)) is None


@pytest.mark.parametrize(
    "key", ["pon.temperature", "pon.voltage", "board.cpu", "onu.up_bytes", "onu.sw_version_standby"]
)
def test_columns_the_world_knows_nothing_of_still_have_a_believable_value(key: str) -> None:
    column = HUAWEI.column(key)

    typed = encode_first(column, plain_reading(column, salt=17, at=0.0))

    assert typed is not None
    assert column.decode(*typed).reason is None


def test_uptime_counts_hundredths_and_wraps_as_the_type_does() -> None:
    world = make_world()
    moment = Moment(world, datetime(2030, 1, 1, tzinfo=UTC))
    before = moment.uptime_ticks

    world.advance(1.5)
    assert moment.uptime_ticks - before == 150
    world.advance(500 * 86_400.0)
    assert 0 <= moment.uptime_ticks < 1 << 32
