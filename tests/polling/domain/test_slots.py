"""The grid of due times (decision D2)."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from facho.polling.domain.schedule import count_slots, first_offset, next_slot_after, slot_at_or_before

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)

moments = st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 hypothesis wants naive bounds
intervals = st.integers(1, 2 * 86_400)


def test_a_five_minute_node_has_twelve_slots_an_hour() -> None:
    """S4-14, D2: 5 min = 12 executions an hour, whatever the offset."""
    assert {
        count_slots(NOON, NOON + timedelta(hours=1), interval_seconds=300, offset_seconds=offset)
        for offset in range(300)
    } == {12}


def test_seven_minutes_give_eight_or_nine_and_two_hours_none_or_one() -> None:
    """Slots of an hour are counted, not divided."""
    hours = [NOON + timedelta(hours=n) for n in range(48)]

    def counts(interval: int) -> set[int]:
        return {count_slots(h, h + timedelta(hours=1), interval_seconds=interval, offset_seconds=17) for h in hours}

    assert counts(420) == {8, 9}
    assert counts(7_200) == {0, 1}


@given(moments, intervals, st.data())
def test_the_next_slot_is_on_the_grid_and_the_first_after_the_moment(
    moment: datetime, interval: int, data: st.DataObject
) -> None:
    offset = data.draw(st.integers(0, interval - 1))

    slot = next_slot_after(moment, interval_seconds=interval, offset_seconds=offset)

    assert moment < slot <= moment + timedelta(seconds=interval)
    assert slot_at_or_before(slot, interval_seconds=interval, offset_seconds=offset) == slot


@given(moments, intervals, st.integers(1, 10_000))
def test_the_first_run_of_an_enabled_node_is_at_most_one_interval_away(
    now: datetime, interval: int, node_id: int
) -> None:
    """S4-08."""
    offset = first_offset(node_id, interval_seconds=interval, now=now)

    assert 0 <= offset < interval
    assert next_slot_after(now, interval_seconds=interval, offset_seconds=offset) <= now + timedelta(seconds=interval)


@given(moments, st.integers(360, 2 * 86_400), st.integers(1, 10_000))
def test_the_first_run_of_an_enabled_node_is_a_minute_and_its_spread_away(
    now: datetime, interval: int, node_id: int
) -> None:
    """S4-08, D12: the spread is its own, whenever it is enabled, and less than five minutes."""

    def wait(moment: datetime) -> timedelta:
        offset = first_offset(node_id, interval_seconds=interval, now=moment)
        return next_slot_after(moment, interval_seconds=interval, offset_seconds=offset) - moment

    now = now.replace(microsecond=0)
    assert timedelta(seconds=60) <= wait(now) < timedelta(seconds=360)
    assert wait(now + timedelta(seconds=interval // 2)) == wait(now)


def test_nodes_enabled_together_do_not_start_together() -> None:
    """D12: never a burst."""
    offsets = [first_offset(node_id, interval_seconds=300, now=NOON) for node_id in range(1, 301)]

    assert max(offsets.count(offset) for offset in offsets) <= 6


def test_a_span_that_ends_before_it_begins_holds_no_slot() -> None:
    assert count_slots(NOON, NOON - timedelta(hours=1), interval_seconds=60, offset_seconds=0) == 0
