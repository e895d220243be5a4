"""The cost model reproduces the proportions that were measured on a real chassis."""

import pytest

from facho.simulator.agent import CostModel, Processor
from facho.simulator.responder import ReplyWork

ONUS = 817
PAGE = 25
MODEL = CostModel()


def page(columns: int, *, is_live: bool, rows: int = PAGE) -> float:
    work = ReplyWork(cells=columns * rows, columns=columns, live_rows=rows if is_live else 0)
    return MODEL.seconds(work, in_flight=1)


def test_columns_of_a_live_page_are_nearly_free() -> None:
    assert page(13, is_live=True) < 1.06 * page(1, is_live=True)


def test_a_live_row_costs_what_was_measured() -> None:
    assert 0.105 < page(7, is_live=True) / PAGE < 0.290


def test_an_inventory_of_the_whole_chassis_takes_seconds() -> None:
    assert 3.5 < ONUS / PAGE * page(8, is_live=False) < 5.8


def test_an_empty_port_is_dear_because_the_next_one_is_read() -> None:
    dear, cheap = page(13, is_live=True), page(1, is_live=False, rows=1)

    assert dear == pytest.approx(2.8, rel=0.15)
    assert cheap == pytest.approx(0.051, rel=0.15)


def test_fused_columns_beat_one_walk_after_the_other() -> None:
    pages = ONUS / PAGE

    assert pages * page(7, is_live=True) < 0.25 * 5 * pages * page(1, is_live=True)


@pytest.mark.parametrize(("in_flight", "slower"), [(1, 1.0), (2, 1.05), (3, 1.35), (4, 1.65)])
def test_work_at_once_takes_longer_in_all(in_flight: int, slower: float) -> None:
    work = ReplyWork(cells=175, columns=7, live_rows=25)

    assert MODEL.seconds(work, in_flight=in_flight) == pytest.approx(slower * MODEL.seconds(work, in_flight=1))


def test_time_can_be_scaled() -> None:
    work = ReplyWork(cells=175, columns=7, live_rows=25)

    assert CostModel(time_scale=0.01).seconds(work, in_flight=1) == pytest.approx(
        0.01 * MODEL.seconds(work, in_flight=1)
    )


def test_a_processor_does_one_thing_after_the_other() -> None:
    processor = Processor()

    assert processor.take(2.0, now=10.0) == 2.0
    assert processor.take(3.0, now=11.0) == 4.0
    assert processor.take(1.0, now=100.0) == 1.0


def test_a_restarted_processor_has_nothing_to_do() -> None:
    processor = Processor()
    processor.take(50.0, now=10.0)

    processor.reset()

    assert processor.take(1.0, now=10.0) == 1.0
