"""What a read is guessed to cost before it was ever done."""

import pytest

from facho.polling.vendors.definition import LIVE_ONU_SECONDS, MAX_PAGE_SECONDS, estimate_read_seconds
from facho.polling.vendors.loader import load_definitions

HUAWEI = load_definitions()["huawei_smartax"]


def test_a_live_read_costs_by_the_onu() -> None:
    light = estimate_read_seconds(HUAWEI, ["onu.rx_power"], onus=1000)
    state = estimate_read_seconds(HUAWEI, ["onu.run_state"], onus=1000)

    assert light == pytest.approx(1000 * LIVE_ONU_SECONDS, rel=0.1)
    assert state < light / 20


def test_a_table_of_the_olt_costs_the_same_however_many_onus_there_are() -> None:
    few, many = (estimate_read_seconds(HUAWEI, ["board.cpu"], onus=onus) for onus in (10, 10_000))

    assert few == many


def test_one_slow_answer_does_not_make_every_page_slow() -> None:
    far, lost = (
        estimate_read_seconds(HUAWEI, ["onu.serial"], onus=1000, round_trip_seconds=seconds)
        for seconds in (MAX_PAGE_SECONDS, 4.0)
    )

    assert far == lost


@pytest.mark.parametrize("key", sorted(load_definitions()))
def test_every_ready_made_job_can_be_estimated(key: str) -> None:
    definition = load_definitions()[key]

    assert all(estimate_read_seconds(definition, job.columns, onus=500) > 0 for job in definition.jobs)
