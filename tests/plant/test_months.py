"""The figures of a month: computed port by port from the history, once, and the same however it is cut into pieces."""

import tracemalloc
from datetime import UTC, date, datetime, timedelta

import numpy as np
import pytest
from django.conf import LazySettings

from facho.hosts.models import Pause
from facho.onus.compaction import CompactionLimits, compact
from facho.onus.history_codec import DAY_SECONDS, HistoryGrid, encode_grid
from facho.onus.history_models import STATE_CODES, HistorySamples, Metric, to_steps
from facho.onus.models import Onu
from facho.plant.models import MonthRun, OnuMonth, PortMonth
from facho.plant.months import ask_for_month, compute_month, compute_some, is_any_begun, is_kept
from facho.polling.domain.availability import Month
from history_world import make_onus, make_ports
from month_world import AFTERWARDS, END, OCTOBER, START, Story, day, down, silent, steady, write_history

pytestmark = pytest.mark.django_db
HOUR, DAY, MONTH = 3_600, 86_400, 31 * 86_400


@pytest.fixture(autouse=True)
def long_kept_samples(settings: LazySettings) -> None:
    settings.FACHO_HISTORY_DAYS = 40


def port_of(*stories: Story) -> list[Onu]:
    (port,) = make_ports(1)
    onus = make_onus(port, len(stories), now=START - timedelta(days=90))
    write_history(onus, stories)
    return onus


def figures(onu: Onu, month: Month = OCTOBER) -> OnuMonth:
    return OnuMonth.objects.get(onu=onu, month=date(month.year, month.number, 1))


def seconds(row: OnuMonth) -> tuple[int, int, int, int]:
    return row.up_seconds, row.down_seconds, row.unknown_seconds, row.planned_seconds


def compute_all(now: datetime = AFTERWARDS) -> int:
    pieces = 0
    while compute_some(now):
        pieces += 1
    return pieces


def test_a_month_says_when_each_onu_was_up_down_and_unknown() -> None:
    well, cut, lost = port_of(
        steady(-20),
        down(down(steady(-21), day(3), day(3, 6)), day(9), day(9, 2)),
        silent(steady(-22), day(20), day(22)),
    )

    compute_month(OCTOBER, AFTERWARDS)

    assert seconds(figures(well)) == (MONTH, 0, 0, 0)
    assert seconds(figures(cut)) == (MONTH - 8 * HOUR, 8 * HOUR, 0, 0)
    assert (figures(cut).interruptions, figures(cut).longest_down_seconds) == (2, 6 * HOUR)
    # The last state before the gap holds for one poll.
    assert seconds(figures(lost)) == (MONTH - 2 * DAY, 0, 2 * DAY, 0)


def test_planned_maintenance_of_an_olt_or_of_all_is_apart() -> None:
    (onu,) = port_of(down(steady(-20), day(5), day(5, 6)))
    Pause.objects.create(olt=onu.olt, starts_at=day(5), ends_at=day(5, 4))
    Pause.objects.create(olt=None, starts_at=day(5, 3), ends_at=day(5, 5), keeps_polling=True)
    Pause.objects.create(olt=onu.olt, starts_at=day(40), ends_at=day(41))

    compute_month(OCTOBER, AFTERWARDS)

    assert seconds(figures(onu)) == (MONTH - 6 * HOUR, HOUR, 0, 5 * HOUR)


def test_an_onu_that_came_or_left_within_the_month_has_less_of_it() -> None:
    came, left, gone_before = port_of(steady(-20), steady(-20), steady(-20))
    Onu.objects.filter(pk=came.pk).update(first_seen_at=day(11))
    Onu.objects.filter(pk=left.pk).update(is_present=False, absent_since=day(5))
    Onu.objects.filter(pk=gone_before.pk).update(is_present=False, absent_since=START - timedelta(days=1))

    compute_month(OCTOBER, AFTERWARDS)

    assert seconds(figures(came)) == (21 * DAY, 0, 0, 0)
    assert seconds(figures(left)) == (4 * DAY, 0, 0, 0)
    assert not OnuMonth.objects.filter(onu=gone_before).exists()


def test_light_is_the_median_of_the_days_and_weak_days_are_counted() -> None:
    (onu,) = port_of(lambda at: (True, -28.0 if day(4) <= at < day(7) else -22.0))

    compute_month(OCTOBER, AFTERWARDS)

    row = figures(onu)
    assert (row.light_cdbm, row.lowest_day_cdbm, row.weak_days) == (-2200, -2800, 3)


def test_a_repair_that_helped_has_its_day_and_what_it_brought() -> None:
    repaired, swinging = port_of(
        lambda at: (True, (-20.8 if at >= day(3, 10) else -25.0) + 0.05 * (at.hour % 3)),
        lambda at: (True, -25.0 + 4 * (at.day % 2)),
    )

    compute_month(OCTOBER, AFTERWARDS)

    row = figures(repaired)
    # Of the third day less than half is old.
    assert row.rise_on == date(2026, 10, 3)
    assert (row.rise_before_cdbm, row.rise_after_cdbm) == (pytest.approx(-2495, abs=6), pytest.approx(-2075, abs=6))
    assert figures(swinging).rise_on is None


def test_a_repair_at_the_end_of_a_month_is_reported_when_it_has_lasted() -> None:
    (port,) = make_ports(1)
    (onu,) = make_onus(port, 1, now=START - timedelta(days=90))
    write_history([onu], [lambda at: (True, -21.0 if at >= day(30) else -25.0)], end=day(61) + timedelta(hours=2))

    compute_month(OCTOBER, day(60))
    compute_month(OCTOBER.shifted(1), day(60))

    assert figures(onu).rise_on is None
    assert figures(onu, OCTOBER.shifted(1)).rise_on == date(2026, 10, 30)


def test_an_onu_that_moved_keeps_what_it_was_at_its_old_port() -> None:
    old, new = make_ports(2)
    (onu,) = make_onus(old, 1, now=START - timedelta(days=90))
    write_history([onu], [steady(-20)], end=day(10))
    Onu.objects.filter(pk=onu.pk).update(pon_port=new)
    write_history([onu], [down(steady(-20), day(12), day(13))], start=day(10), port=new)

    compute_month(OCTOBER, AFTERWARDS)

    assert seconds(figures(onu)) == (MONTH - DAY, DAY, 0, 0)
    assert figures(onu).pon_port_id == new.id


def test_what_is_kept_by_the_hour_only_gives_the_same_month(settings: LazySettings) -> None:
    onus = port_of(steady(-20), down(steady(-26), day(3), day(3, 6)), silent(steady(-22), day(20), day(22)))
    compute_month(OCTOBER, AFTERWARDS)
    exact = [seconds(figures(onu)) for onu in onus]
    settings.FACHO_HISTORY_DAYS = 20
    while compact(AFTERWARDS, CompactionLimits()):
        pass

    run = compute_month(OCTOBER, AFTERWARDS)

    assert run.hourly_until == datetime(2026, 10, 13, tzinfo=UTC)
    assert [seconds(figures(onu)) for onu in onus] == exact
    assert figures(onus[1]).light_cdbm == pytest.approx(-2600, abs=3)


def test_a_process_that_takes_over_goes_on_where_the_other_stopped() -> None:
    ports = make_ports(10)
    for port in ports:
        write_history(make_onus(port, 1, now=START - timedelta(days=90)), [down(steady(-20), day(3), day(4))])

    compute_some(AFTERWARDS)
    half = MonthRun.objects.get(month=date(2026, 10, 1))
    assert (half.done_port, half.finished_at) == (ports[7].id, None)
    compute_all()

    done = MonthRun.objects.get(month=date(2026, 10, 1))
    assert done.finished_at is not None
    assert done.is_final
    assert OnuMonth.objects.filter(month=done.month, down_seconds=DAY).count() == 10


def test_month_is_begun_from_the_wish_to_its_end() -> None:
    port_of(steady(-20))
    compute_all()
    before = is_any_begun()

    ask_for_month(OCTOBER, AFTERWARDS)
    asked = is_any_begun()
    compute_some(AFTERWARDS)
    halfway = is_any_begun()
    compute_all()

    assert (before, asked, halfway, is_any_begun()) == (False, True, True, False)


def test_a_month_that_is_over_is_computed_once_and_the_running_one_daily() -> None:
    (onu,) = port_of(steady(-20))
    first = compute_all()
    figures(onu)
    november = OCTOBER.shifted(1)

    again, next_day = compute_all(), compute_all(AFTERWARDS + timedelta(days=1))

    # For each month a piece with the port, and one that ends it; a month begins with its second day.
    assert (first, again, next_day) == (2, 0, 2)
    runs = {run.month.month: run for run in MonthRun.objects.all()}
    assert (runs[10].covers_until, runs[10].is_final) == (END, True)
    assert (runs[11].covers_until, runs[11].is_final) == (AFTERWARDS + timedelta(days=1), False)
    assert seconds(figures(onu, november))[0] == HOUR


def test_a_month_is_computed_anew_when_somebody_asks() -> None:
    (onu,) = port_of(steady(-20))
    compute_all()
    Pause.objects.create(olt=None, starts_at=day(5), ends_at=day(6))

    ask_for_month(OCTOBER, AFTERWARDS)
    compute_all()

    assert seconds(figures(onu)) == (MONTH - DAY, 0, 0, DAY)
    assert OnuMonth.objects.filter(month=date(2026, 10, 1)).count() == 1


def test_a_running_month_ends_where_it_was_computed() -> None:
    (onu,) = port_of(steady(-20))

    run = compute_month(OCTOBER, day(11))

    assert seconds(figures(onu)) == (10 * DAY, 0, 0, 0)
    assert not run.is_final


def test_an_installation_without_onus_computes_nothing() -> None:
    assert compute_all() == 0
    assert not MonthRun.objects.exists()


def test_only_months_that_the_history_still_has_by_the_hour_can_be_asked_for() -> None:
    assert is_kept(OCTOBER, AFTERWARDS)
    assert not is_kept(OCTOBER, AFTERWARDS + timedelta(days=90))
    assert not is_kept(OCTOBER.shifted(3), AFTERWARDS)


def test_what_does_not_end_with_the_month_is_cut_at_the_operators_midnight(settings: LazySettings) -> None:
    settings.TIME_ZONE = "America/Santiago"
    (onu,) = port_of(down(steady(-20), day(1), day(1, 6)))

    compute_month(OCTOBER, AFTERWARDS + timedelta(hours=6))

    # In October it is three hours behind, so that three of the six belong to September.
    assert figures(onu).down_seconds == 3 * HOUR


def days_one_by_one(last: datetime = AFTERWARDS) -> None:
    """Compute the running month each day, at noon; then the whole one."""
    for number in range(1, 32):
        compute_all(day(number, 12))
    compute_all(last)


def test_a_month_that_grew_day_by_day_is_the_same_as_one_computed_at_once() -> None:
    onus = port_of(
        down(steady(-20), day(3, 20), day(6, 5)),
        silent(down(steady(-21), day(9), day(12)), day(10), day(11)),
        down(down(steady(-22), day(20, 23), day(21)), day(21), day(21, 1)),
        lambda at: (True, (-20.8 if at >= day(9) else -25.0) + 0.03 * (at.hour % 3)),
        down(steady(-24), day(1), AFTERWARDS),
    )
    Onu.objects.filter(id=onus[0].id).update(first_seen_at=day(2, 7))
    Pause.objects.create(olt=onus[0].olt, starts_at=day(4, 22), ends_at=day(5, 2))

    days_one_by_one()
    grown = list(OnuMonth.objects.filter(month=date(2026, 10, 1)).order_by("onu_id").values())
    compute_month(OCTOBER, AFTERWARDS)

    assert grown == list(OnuMonth.objects.filter(month=date(2026, 10, 1)).order_by("onu_id").values())
    assert [row["interruptions"] for row in grown] == [1, 1, 1, 0, 1]


def test_days_that_are_over_are_not_read_again() -> None:
    (onu,) = port_of(down(steady(-20), day(3), day(4)))
    compute_all(day(20))

    HistorySamples.objects.filter(ends_at__lt=day(18)).delete()
    compute_all(day(21))

    assert seconds(figures(onu)) == (19 * DAY, DAY, 0, 0)


def test_maintenance_written_down_afterwards_is_apart_in_days_that_were_over() -> None:
    (onu,) = port_of(down(steady(-20), day(3), day(4)))
    compute_all(day(20))

    Pause.objects.create(olt=onu.olt, starts_at=day(3), ends_at=day(4))
    compute_all(day(21))

    assert seconds(figures(onu)) == (19 * DAY, 0, 0, DAY)


def test_an_onu_that_proves_to_have_left_earlier_is_computed_anew() -> None:
    (onu,) = port_of(steady(-20))
    compute_all(day(20))

    Onu.objects.filter(id=onu.id).update(is_present=False, absent_since=day(11))
    compute_all(day(21))

    assert seconds(figures(onu)) == (10 * DAY, 0, 0, 0)


def test_an_old_month_that_is_asked_for_leaves_the_days_of_the_running_one() -> None:
    (onu,) = port_of(steady(-20))
    days_one_by_one(AFTERWARDS + timedelta(days=3))
    running = PortMonth.objects.get().month

    ask_for_month(OCTOBER, AFTERWARDS + timedelta(days=3))
    compute_all(AFTERWARDS + timedelta(days=3))

    assert running == date(2026, 11, 1)
    assert PortMonth.objects.get().month == running
    assert seconds(figures(onu)) == (MONTH, 0, 0, 0)


def test_a_port_is_the_same_however_many_onus_are_computed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    onus = port_of(*[down(steady(-20 - number), day(3), day(3 + number)) for number in range(5)])

    found = []
    for at_once in (128, 2):
        monkeypatch.setattr("facho.plant.months.ONUS_AT_ONCE", at_once)
        compute_month(OCTOBER, AFTERWARDS)
        found.append(list(OnuMonth.objects.order_by("onu_id").values()))

    assert found[0] == found[1]
    assert [row["down_seconds"] for row in found[0]] == [number * DAY for number in range(len(onus))]


def test_a_port_of_a_thousand_onus_needs_the_memory_of_some() -> None:
    """The memory of the whole month at once would be eight times that of 128 ONUs."""
    (port,) = make_ports(1)
    onus = Onu.objects.bulk_create(
        Onu(olt=port.olt, pon_port=port, onu_id=number, first_seen_at=START - timedelta(days=90))
        for number in range(1_024)
    )
    ids = np.array([onu.id for onu in onus], dtype=np.int64)
    for number in range(1, 32):
        begins = int(day(number).timestamp())
        at = np.arange(begins, begins + DAY_SECONDS, 1_800, dtype=np.int64)
        for metric, value in ((Metric.STATE, STATE_CODES["online"]), (Metric.RX_POWER, -20.0)):
            steps = to_steps(metric, np.full(len(ids) * len(at), float(value)))
            grid = HistoryGrid(ids, at, steps.reshape(1, len(ids), len(at)))
            HistorySamples.objects.create(
                pon_port_id=port.id, metric=metric, ends_at=day(number + 1), data=encode_grid(grid)
            )

    tracemalloc.start()
    compute_month(OCTOBER, AFTERWARDS)
    _now, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert OnuMonth.objects.filter(up_seconds=MONTH, light_cdbm=-2000).count() == 1_024
    assert peak < 48 * 2**20
