"""What a poll read can be read back: at once, after it was compacted, and after the ONU has moved."""

import math
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from facho.onus.compaction import CompactionLimits, compact
from facho.onus.history import (
    MAX_ONUS_PER_PORT,
    POLLS_PER_BUNDLE,
    Resolution,
    Samples,
    Series,
    append,
    read_onu,
    read_port,
)
from facho.onus.history_codec import POLL, kind_of
from facho.onus.history_models import STATE_CODES, HistoryPoll, HistorySamples, HistoryStay, Metric
from facho.onus.models import Onu, PonPort
from factories import NOW
from history_world import FIVE_MINUTES, FOREVER, compact_all, make_onus, make_ports, points, poll, read

pytestmark = pytest.mark.django_db

LATER = NOW + timedelta(days=1)


def seconds(moment: datetime) -> int:
    return int(moment.timestamp())


def test_a_poll_is_one_statement_and_can_be_read_at_once(django_assert_num_queries: object) -> None:
    (port,) = make_ports(1)
    near, far = make_onus(port, 2, now=NOW)

    with django_assert_num_queries(1):  # type: ignore[operator]
        poll(NOW, {near: -17.25, far: -26.011})

    assert points(read(near)) == [(seconds(NOW), -17.25)]
    assert points(read(far)) == [(seconds(NOW), -26.01)]


def test_every_metric_comes_back_in_its_unit() -> None:
    (port,) = make_ports(1)
    (onu,) = make_onus(port, 1, now=NOW)
    values = {
        Metric.RX_POWER: -21.37,
        Metric.TX_POWER: 2.21,
        Metric.OLT_RX_POWER: -23.98,
        Metric.TEMPERATURE: 47.3,
        Metric.DISTANCE: 41_234,
        Metric.STATE: STATE_CODES["online"],
    }
    append(NOW, Samples.of([onu.id], [port.id], {metric: [value] for metric, value in values.items()}))
    compact_all(LATER)

    found = {metric: points(read_onu(onu.id, metric, *FOREVER, Resolution.SAMPLES)) for metric in Metric}

    assert found == {metric: [(seconds(NOW), value)] for metric, value in values.items()}


def test_a_hostile_value_is_a_gap_and_costs_its_neighbours_nothing() -> None:
    (port,) = make_ports(1)
    onus = make_onus(port, 6, now=NOW)
    poll(NOW, dict(zip(onus, [-20.0, math.nan, math.inf, 1e300, -1e300, None], strict=True)))
    poll(NOW + FIVE_MINUTES, dict.fromkeys(onus, -20.5))
    compact_all(LATER)

    first, *others = (points(read(onu)) for onu in onus)

    assert [value for _, value in first] == [-20.0, -20.5]
    assert [[value for _, value in other] for other in others] == [[-20.5]] * 5


def test_a_port_with_more_onus_than_a_pon_can_have_costs_the_others_nothing() -> None:
    flooded, sane = make_ports(2)
    (onu,) = make_onus(sane, 1, now=NOW)
    ids = [*range(10**6, 10**6 + MAX_ONUS_PER_PORT + 1), onu.id]
    ports = [flooded.id] * (MAX_ONUS_PER_PORT + 1) + [sane.id]

    append(NOW, Samples.of(ids, ports, {Metric.RX_POWER: [-20.0] * len(ids)}))

    assert len(points(read(onu))) == 1
    assert read_port(flooded.id, Metric.RX_POWER, *FOREVER, Resolution.SAMPLES).at.size == 0


def test_a_poll_without_the_onu_is_a_gap_before_and_after_compaction() -> None:
    (port,) = make_ports(1)
    dark, lit = make_onus(port, 2, now=NOW)
    for number in range(6):
        present = {lit: -20.0} if number in (2, 3) else {lit: -20.0, dark: -25.0}
        poll(NOW + number * FIVE_MINUTES, present)

    waiting = read(dark)
    compact_all(LATER)
    compacted = read(dark)

    gaps = [-25.0, -25.0, np.nan, np.nan, -25.0, -25.0]
    np.testing.assert_array_equal(waiting.average, gaps)
    np.testing.assert_array_equal(compacted.average, gaps)
    assert compacted.at.tolist() == [seconds(NOW + n * FIVE_MINUTES) for n in range(6)]


def test_a_port_that_a_poll_gave_no_time_to_has_no_gap() -> None:
    """A long pass reads some ports now and the others later; its ONUs are all there each time."""
    left, right = make_ports(2)
    (early,), (late,) = make_onus(left, 1, now=NOW), make_onus(right, 1, now=NOW)
    for number in range(6):
        now = NOW + number * FIVE_MINUTES
        poll(now, {early: -20.0, late: None})
        poll(now + timedelta(minutes=1), {early: None, late: -21.0})

    assert read(early).average.tolist() == [-20.0] * 6
    compact_all(LATER)
    assert read(late).average.tolist() == [-21.0] * 6


def test_only_the_asked_time_is_read_its_end_left_out() -> None:
    (port,) = make_ports(1)
    (onu,) = make_onus(port, 1, now=NOW)
    for number in range(-400, 400):
        poll(NOW + number * FIVE_MINUTES, {onu: -20.0})
    span = (NOW - FIVE_MINUTES, NOW + 2 * FIVE_MINUTES)
    expected = [seconds(NOW + n * FIVE_MINUTES) for n in (-1, 0, 1)]

    assert read(onu, span=span).at.tolist() == expected
    compact_all(LATER)
    assert read(onu, span=span).at.tolist() == expected


def move(onu: Onu, port: PonPort) -> None:
    onu.pon_port, onu.onu_id = port, 1_000 + onu.id
    onu.save()


@pytest.mark.parametrize("compacts_between", [False, True])
def test_an_onu_that_moved_has_its_history_without_gaps_of_the_port_it_left(*, compacts_between: bool) -> None:
    """The ports are read at different moments, so polls of the old one fall between those of the new one."""
    left, right = make_ports(2)
    onu, old_neighbour = make_onus(left, 2, now=NOW)
    (new_neighbour,) = make_onus(right, 1, now=NOW)
    for number in range(12):
        now = NOW + number * FIVE_MINUTES
        if number == 6:
            if compacts_between:
                compact_all(LATER)
            move(onu, right)
        here, there = {old_neighbour: -20.0}, {new_neighbour: -21.0}
        (here if onu.pon_port == left else there)[onu] = -25.0
        poll(now, here)
        poll(now + timedelta(seconds=40), there)
    compact_all(LATER)

    series = read(onu)

    assert series.average.tolist() == [-25.0] * 12
    assert HistoryStay.objects.filter(onu=onu).count() == 2


def test_a_port_shows_all_that_were_there_and_nobody_else() -> None:
    left, right = make_ports(2)
    first, second = make_onus(left, 2, now=NOW)
    (stranger,) = make_onus(right, 1, now=NOW)
    poll(NOW, {first: -20.0, second: -21.0, stranger: -22.0})
    compact_all(LATER)
    poll(NOW + FIVE_MINUTES, {first: -20.5, stranger: -22.0})

    found = read_port(left.id, Metric.RX_POWER, *FOREVER, Resolution.SAMPLES)

    assert found.onu_ids.tolist() == [first.id, second.id]
    assert found.at.tolist() == [seconds(NOW), seconds(NOW + FIVE_MINUTES)]
    np.testing.assert_array_equal(found.average, [[-20.0, -20.5], [-21.0, np.nan]])


def test_nothing_known_is_an_empty_answer() -> None:
    (port,) = make_ports(1)
    (onu,) = make_onus(port, 1, now=NOW)

    assert read(onu).at.tolist() == []
    assert read_port(port.id, Metric.STATE, *FOREVER, Resolution.DAYS).average.shape == (0, 0)


def test_hours_and_days_tell_lowest_average_and_highest() -> None:
    (port,) = make_ports(1)
    (onu,) = make_onus(port, 1, now=NOW)
    for minute, power in enumerate([-20.0, -21.0, -25.0]):
        poll(NOW + timedelta(minutes=minute), {onu: power})
    poll(NOW + timedelta(hours=2), {onu: -24.0})

    hours, days = read(onu, Resolution.HOURS), read(onu, Resolution.DAYS)

    assert hours.at.tolist() == [seconds(NOW + timedelta(hours=n)) for n in range(3)]
    np.testing.assert_array_equal(hours.average, [-22.0, np.nan, -24.0])
    np.testing.assert_array_equal(hours.lowest, [-25.0, np.nan, -24.0])
    np.testing.assert_array_equal(hours.highest, [-20.0, np.nan, -24.0])
    assert [days.lowest.tolist(), days.average.tolist(), days.highest.tolist()] == [[-25.0], [-22.5], [-20.0]]


def test_damaged_blocks_cost_their_own_samples_only(caplog: pytest.LogCaptureFixture) -> None:
    (port,) = make_ports(1)
    (onu,) = make_onus(port, 1, now=NOW)
    poll(NOW, {onu: -20.0})
    compact_all(LATER)
    poll(NOW + FIVE_MINUTES, {onu: -21.0})
    HistorySamples.objects.update(data=b"\x02damaged")

    assert points(read(onu)) == [(seconds(NOW + FIVE_MINUTES), -21.0)]
    assert "history.block_unreadable" in caplog.text


moments = st.integers(0, 4 * 288).map(lambda n: datetime(2026, 1, 30, 22, tzinfo=UTC) + n * FIVE_MINUTES)
polls = st.tuples(moments, st.dictionaries(st.integers(0, 3), st.integers(-3_000, -1_000).map(lambda v: v / 100)))
moves = st.tuples(st.integers(0, 3), st.integers(0, 2))
compactions = st.builds(CompactionLimits, polls=st.integers(1, 5), blocks=st.integers(1, 5))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=20)
@given(st.lists(st.one_of(polls, moves, compactions), max_size=25))
def test_whatever_happens_in_whichever_order_each_sample_is_there_once(
    actions: list[tuple[datetime, dict[int, float]] | tuple[int, int] | CompactionLimits],
) -> None:
    """Polls in any order of time, moves, and compactions at any moment."""
    with transaction.atomic():
        ports = make_ports(3)
        onus = [onu for port in ports for onu in make_onus(port, 2, now=NOW)][:4]
        expected: list[dict[int, float]] = [{} for _ in onus]
        polled_at: dict[tuple[int, datetime], int] = {}
        for action in actions:
            if isinstance(action, CompactionLimits):
                compact(datetime(2026, 2, 10, tzinfo=UTC), action)
            elif isinstance(action[0], int):
                move(onus[action[0]], ports[int(str(action[1]))])
            else:
                now, wanted = action
                # Finding an ONU at another port takes longer than a second: nobody is polled at two ports in one.
                powers = {
                    number: power
                    for number, power in wanted.items()  # type: ignore[union-attr]
                    if polled_at.setdefault((number, now), onus[number].pon_port_id) == onus[number].pon_port_id
                }
                poll(now, {onus[number]: power for number, power in powers.items()})
                for number, power in powers.items():
                    expected[number][seconds(now)] = power

            assert [dict(points(read(onu))) for onu in onus] == expected
        transaction.set_rollback(True)


def test_a_day_of_frequent_polls_waits_in_few_rows_that_hold_all_of_it() -> None:
    """A reader unpacks each row: a day of polls every 30 seconds in rows of their own takes it seconds."""
    half_minute, polls = timedelta(seconds=30), 2880
    left, right = make_ports(2)
    (onu,), (other,) = make_onus(left, 1, now=NOW), make_onus(right, 1, now=NOW)

    for number in range(polls):
        poll(NOW + number * half_minute, {onu: -(2000 + number % 700) / 100, other: -15})

    waiting = HistoryPoll.objects.count()
    expected = [(seconds(NOW + n * half_minute), -(2000 + n % 700) / 100) for n in range(polls)]
    assert waiting * 30 <= polls
    assert points(read(onu)) == expected
    assert points(read_port_as_series(right)) == [(at, -15.0) for at, _ in expected]
    compact_all(LATER + timedelta(days=1))
    assert HistoryPoll.objects.count() == 0
    assert len(points(read(onu))) == polls


def test_groups_that_are_polled_together_are_not_bundled_by_the_same_polls() -> None:
    """All of them count from the start of the process; a poll that bundles takes longer than a start may wait."""
    groups, bundled = 8, []
    ports = [port for port in make_ports(8 * groups) if port.id % 8 == 0]
    onus = [make_onus(port, 1, now=NOW)[0] for port in ports]

    for number in range(2 * POLLS_PER_BUNDLE):
        now = NOW + number * FIVE_MINUTES
        poll(now, dict.fromkeys(onus, -20))
        blocks = HistoryPoll.objects.filter(taken_at=now).values_list("data", flat=True)
        bundled.append(sum(kind_of(block) != POLL for block in blocks))

    assert sum(bundled) >= groups
    assert max(bundled) == 1


def read_port_as_series(port: PonPort) -> Series:
    found = read_port(port.id, Metric.RX_POWER, *FOREVER, Resolution.SAMPLES)
    return Series(found.at, *(values[0] for values in (found.average, found.lowest, found.highest)))


def test_an_old_bundle_is_found_by_a_question_that_ends_before_its_last_poll() -> None:
    (port,) = make_ports(1)
    (onu,) = make_onus(port, 1, now=NOW)
    for number in range(POLLS_PER_BUNDLE):
        poll(NOW + number * FIVE_MINUTES, {onu: -20})

    found = read(onu, span=(NOW + FIVE_MINUTES, NOW + 3 * FIVE_MINUTES))

    assert [at for at, _ in points(found)] == [seconds(NOW + n * FIVE_MINUTES) for n in (1, 2)]


def test_a_poll_that_cannot_be_read_stays_out_of_the_bundle_and_costs_no_other() -> None:
    (port,) = make_ports(1)
    (onu,) = make_onus(port, 1, now=NOW)
    poll(NOW, {onu: -20})
    HistoryPoll.objects.update(data=bytes([POLL]) + b"damaged")

    for number in range(1, POLLS_PER_BUNDLE):
        poll(NOW + number * FIVE_MINUTES, {onu: -20})

    assert HistoryPoll.objects.count() == 2
    assert len(points(read(onu))) == POLLS_PER_BUNDLE - 1


def test_an_onu_that_moved_keeps_what_was_bundled_at_its_former_port() -> None:
    here, there = make_ports(2)
    (onu,) = make_onus(here, 1, now=NOW)
    for number in range(POLLS_PER_BUNDLE):
        poll(NOW + number * FIVE_MINUTES, {onu: -20})

    move(onu, there)
    poll(NOW + POLLS_PER_BUNDLE * FIVE_MINUTES, {onu: -21})

    assert HistoryPoll.objects.count() == 2
    assert len(points(read(onu))) == POLLS_PER_BUNDLE + 1


def test_polls_of_a_deleted_onu_are_bundled_with_those_of_its_neighbours() -> None:
    (port,) = make_ports(1)
    stays, goes = make_onus(port, 2, now=NOW)
    poll(NOW, {stays: -20, goes: -25})
    Onu.objects.filter(id=goes.id).delete()

    for number in range(1, POLLS_PER_BUNDLE):
        poll(NOW + number * FIVE_MINUTES, {stays: -20})

    assert HistoryPoll.objects.count() == 1
    assert len(points(read(stays))) == POLLS_PER_BUNDLE
