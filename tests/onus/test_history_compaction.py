"""History becomes smaller with age, in bounded pieces; nothing on the way loses or doubles a sample."""

import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from django.db import connection, connections, transaction
from pytest_django import Settings

from facho.execution_coordinator.retention import RETENTIONS, delete_expired
from facho.onus.compaction import MERGE_AFTER, CompactionLimits, compact
from facho.onus.history import Resolution, Series
from facho.onus.history_models import HistoryDays, HistoryHours, HistoryPoll, HistorySamples, HistoryStay
from facho.onus.models import Onu
from factories import NOW
from history_world import FIVE_MINUTES, compact_all, make_onus, make_ports, points, poll, read

pytestmark = pytest.mark.django_db

ANY = CompactionLimits()
LATER = NOW + timedelta(days=1)
# With the default ages, what was written at NOW is a sample, an hour or a day then.
WHEN_HOURS = NOW + timedelta(days=32)
WHEN_DAYS = NOW + timedelta(days=125)
GONE = NOW + timedelta(days=1_860)


def write_days(days: float, *, onus: int = 2) -> list[Onu]:
    (port,) = make_ports(1)
    found = make_onus(port, onus, now=NOW)
    for number in range(int(days * 24)):
        poll(NOW + number * timedelta(hours=1), {onu: -20 - onu.onu_id - number % 7 / 10 for onu in found})
    return found


def everything(onus: list[Onu]) -> list[list[tuple[int, float]]]:
    return [points(read(onu)) for onu in onus]


def test_polls_wait_for_others_before_they_are_merged() -> None:
    (onu, _) = write_days(1 / 24)

    assert compact(NOW + MERGE_AFTER, ANY) == 0
    assert compact(NOW + MERGE_AFTER + timedelta(seconds=1), ANY) == 1

    assert not HistoryPoll.objects.exists()
    assert HistorySamples.objects.get().ends_at == datetime(2026, 3, 2, tzinfo=UTC)
    assert HistoryStay.objects.filter(onu=onu).exists()


def test_a_day_is_one_block_for_each_port_and_metric_however_often_it_is_merged() -> None:
    onus = write_days(0.5)
    before = everything(onus)

    pieces = compact_all(LATER, CompactionLimits(polls=5))

    assert pieces == 3
    assert HistorySamples.objects.count() == 1
    assert everything(onus) == before


def test_old_samples_become_hours_and_old_hours_become_days() -> None:
    (onu, _) = write_days(40)
    hours, days = read(onu, Resolution.HOURS), read(onu, Resolution.DAYS)

    compact_all(WHEN_HOURS)
    assert HistoryHours.objects.exists()
    assert min(at for at, _ in points(read(onu))) >= (WHEN_HOURS - timedelta(days=31)).timestamp()
    assert_same(read(onu, Resolution.HOURS), hours)
    assert_same(read(onu, Resolution.DAYS), days)

    compact_all(WHEN_DAYS)
    assert not HistorySamples.objects.exists()
    assert HistoryDays.objects.get().ends_at == datetime(2026, 4, 1, tzinfo=UTC)
    assert_same(read(onu, Resolution.DAYS), days)


def assert_same(found: Series, expected: Series) -> None:
    np.testing.assert_array_equal(found.at, expected.at)
    for name in ("lowest", "highest"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    # Averages are rounded once for each step.
    np.testing.assert_allclose(found.average, expected.average, atol=0.0101)


def test_a_sample_that_comes_late_joins_those_of_its_age() -> None:
    (onu, _) = write_days(0.5)
    compact_all(WHEN_DAYS)

    poll(NOW + FIVE_MINUTES, {onu: -35.0})
    compact_all(WHEN_DAYS)

    days = read(onu, Resolution.DAYS)
    assert HistoryDays.objects.count() == 1
    assert days.lowest.tolist() == [-35.0]
    assert days.highest.tolist() == [-21.0]


def test_the_ages_can_be_chosen(settings: Settings) -> None:
    settings.FACHO_HISTORY_DAYS, settings.FACHO_HISTORY_HOURLY_DAYS = 1, 2
    write_days(2)

    compact_all(datetime(2026, 4, 3, tzinfo=UTC))

    assert [model.objects.count() for model in (HistorySamples, HistoryHours, HistoryDays)] == [0, 0, 1]


def test_whole_blocks_expire_and_nothing_is_left_of_them() -> None:
    write_days(0.5)
    compact_all(WHEN_DAYS)

    assert sum(delete_expired(retention, GONE, 10) for retention in RETENTIONS) == 1
    assert not HistoryDays.objects.exists()


def test_what_could_not_be_compacted_expires_too() -> None:
    write_days(1 / 24)

    assert sum(delete_expired(retention, GONE, 10) for retention in RETENTIONS) == 1


@pytest.mark.parametrize("limits", [CompactionLimits(polls=3, blocks=2), ANY])
def test_a_call_touches_no_more_than_its_limits(limits: CompactionLimits) -> None:
    write_days(5)

    with consumed(HistoryPoll) as polls:
        while compact(LATER + timedelta(days=5), limits):
            pass
    with consumed(HistorySamples) as blocks:
        while compact(WHEN_HOURS + timedelta(days=10), limits):
            pass

    assert max(polls) <= limits.polls
    assert max(blocks) <= limits.blocks


@contextmanager
def consumed(model: Any) -> Iterator[list[int]]:
    """Watch how many rows each DELETE takes."""
    counts: list[int] = []

    def watch(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        if sql.startswith("DELETE") and f'"{model._meta.db_table}"' in sql:
            counts.append(len(params))
        return execute(sql, params, many, context)

    with connection.execute_wrapper(watch):
        yield counts


def test_damaged_blocks_are_dropped_and_do_not_stop_the_others(caplog: pytest.LogCaptureFixture) -> None:
    onus = write_days(2 / 24)
    HistoryPoll.objects.filter(taken_at=NOW).update(data=b"\x01damaged")
    compact_all(LATER)
    assert [len(found) for found in everything(onus)] == [1, 1]

    HistorySamples.objects.update(data=b"\x02damaged")
    compact_all(WHEN_HOURS)

    assert not HistorySamples.objects.exists()
    assert caplog.text.count("history.block_dropped") == 2


def test_a_deleted_onu_or_port_does_not_stop_the_others() -> None:
    left, right = make_ports(2)
    gone, kept = make_onus(left, 2, now=NOW)
    (with_its_port,) = make_onus(right, 1, now=NOW)
    poll(NOW, {gone: -20.0, kept: -21.0, with_its_port: -22.0})
    gone.delete()
    right.delete()

    compact_all(LATER)

    assert not HistoryPoll.objects.exists()
    assert [value for _, value in points(read(kept))] == [-21.0]
    assert HistoryStay.objects.get().onu == kept


def test_history_goes_with_its_port() -> None:
    (onu, _) = write_days(1)
    compact_all(WHEN_HOURS)

    onu.pon_port.olt.delete()

    assert not HistoryHours.objects.exists()
    assert not HistoryStay.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_who_is_overtaken_leaves_everything_as_the_other_made_it() -> None:
    onus = write_days(0.5)
    before = everything(onus)

    with rival_after("SELECT", HistorySamples, lambda: compact_all(LATER)):
        assert compact(LATER, CompactionLimits(polls=3)) == 0

    assert everything(onus) == before
    assert HistorySamples.objects.count() == 1


@contextmanager
def rival_after(verb: str, model: Any, work: Callable[[], object]) -> Iterator[None]:
    """Let somebody else do `work` right after the first such statement of ours."""
    calls = [work]

    def watch(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        result = execute(sql, params, many, context)
        if calls and sql.startswith(verb) and model._meta.db_table in sql:
            in_another_thread(calls.pop())
        return result

    with connection.execute_wrapper(watch):
        yield


def in_another_thread(work: Callable[[], object]) -> None:
    with ThreadPoolExecutor(1) as pool:
        pool.submit(with_own_connection, work).result()


def with_own_connection(work: Callable[[], object]) -> None:
    try:
        work()
    finally:
        connections.close_all()


@pytest.mark.django_db(transaction=True)
def test_who_reads_during_a_compaction_sees_each_sample_once() -> None:
    onus = write_days(2)
    before = [points(read(onu, Resolution.HOURS)) for onu in onus]

    with ThreadPoolExecutor(1) as pool:
        compaction = pool.submit(with_own_connection, lambda: compact_all(WHEN_HOURS, CompactionLimits(1, 1)))
        while not compaction.done():
            assert [points(read(onu, Resolution.HOURS)) for onu in onus] == before
        compaction.result()

    assert not HistoryPoll.objects.exists()
    assert HistoryHours.objects.count() == 2
    assert [points(read(onu, Resolution.HOURS)) for onu in onus] == before


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("before", "now"), [(NOW, LATER), (LATER, WHEN_HOURS), (WHEN_HOURS, WHEN_DAYS)], ids=["merge", "hours", "days"]
)
def test_a_compaction_killed_anywhere_loses_and_doubles_nothing(before: datetime, now: datetime) -> None:
    onus = write_days(0.25)
    days = [read(onu, Resolution.DAYS) for onu in onus]
    compact_all(before)

    statement = 0
    while dies_after(statement, lambda: compact_all(now)):
        for onu, expected in zip(onus, days, strict=True):
            assert_same(read(onu, Resolution.DAYS), expected)
        statement += 1

    assert statement > 5
    for onu, expected in zip(onus, days, strict=True):
        assert_same(read(onu, Resolution.DAYS), expected)


@pytest.mark.django_db(transaction=True)
def test_a_run_killed_while_it_stores_keeps_all_or_nothing() -> None:
    (port,) = make_ports(1)
    (onu,) = make_onus(port, 1, now=NOW)

    @transaction.atomic
    def finish() -> None:
        poll(NOW, {onu: -20.0})
        Onu.objects.filter(id=onu.id).update(description="read")

    statement = 0
    while dies_after(statement, finish):
        assert points(read(onu)) == []
        statement += 1

    assert statement >= 2
    assert len(points(read(onu))) == 1


def dies_after(statement: int, work: Callable[[], object]) -> bool:
    """Do `work` in a process that is killed after so many statements; False when it got to the end before."""
    connections.close_all()
    child = os.fork()
    if not child:
        failed = 1
        try:
            with connection.execute_wrapper(_killer(statement)):
                work()
            failed = 0
        finally:
            os._exit(failed)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or not status
    return os.WIFSIGNALED(status)


def _killer(statement: int) -> Callable[..., Any]:
    left = [statement]

    def watch(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        result = execute(sql, params, many, context)
        if not left[0]:
            os.kill(os.getpid(), signal.SIGKILL)
        left[0] -= 1
        return result

    return watch
